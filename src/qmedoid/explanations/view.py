"""A decision as HTML without scripts: a page that stands alone, and a view within a notebook."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from qmedoid.explanations.digits import plain, rounded_to_sum, signed
from qmedoid.explanations.picture import DIGITS, counted
from qmedoid.explanations.sentences import cell_text
from qmedoid.spelling import printable

_LONGEST = 200
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """\
.qmedoid-why { color: var(--jp-content-font-color1, var(--vscode-editor-foreground, inherit)); max-width: 60rem;
  font: .95rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
.qmedoid-why svg { max-width: 100%; height: auto; }
.qmedoid-why .box { overflow-x: auto; }
.qmedoid-why table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
.qmedoid-why caption, .qmedoid-why summary { text-align: left; font-weight: 600; padding: .3rem 0; }
.qmedoid-why th, .qmedoid-why td { text-align: left; padding: .2rem .7rem; background: none;
  border-bottom: 1px solid var(--jp-border-color2, var(--vscode-panel-border, #8888)); }
.qmedoid-why td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.qmedoid-why td.differs { font-weight: 600; text-decoration: underline; }
.qmedoid-why .stamp { font-size: .8rem; opacity: .8; }
"""
_PAGE_STYLE = """\
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: Canvas; color: CanvasText; }
h1 { font: 600 1.4rem/1.3 system-ui, sans-serif; }
@media print { details > *:not(summary) { display: block; } }
"""


def as_page(made: Mapping[str, Any], svg: str) -> str:
    """One page that loads nothing and runs nothing."""
    title = f"Why this record is called {cell_text(made['prediction'])}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_PAGE_STYLE}</style>",
            "</head>",
            f"<body><main><h1>{escape(title)}</h1>",
            as_fragment(made, svg, folded=False),
            "</main></body></html>",
            "",
        ]
    )


def as_fragment(made: Mapping[str, Any], svg: str, *, folded: bool = True) -> str:
    """The same as a part of another page, with its own style; details are folded in a notebook."""
    sections = [_columns(made), _medoids(made), _flips(made), _groups(made), _rows(made)]
    lines = [f'<div class="qmedoid-why"><style>{_STYLE}</style>']
    lines += [f"<p>{escape(sentence)}</p>" for sentence in made["sentences"]]
    if made["difference"]:
        noted = "".join(f"<li>{escape(line)}</li>" for line in made["difference"])
        lines.append(f"<p>The table differs from the one that the model was fitted on:</p><ul>{noted}</ul>")
    lines.append(f'<div class="box">{svg}</div>')
    for title, body in (section for section in sections if section is not None):
        opened = "" if folded else " open"
        lines.append(f"<details{opened}><summary>{escape(title)}</summary>{''.join(body)}</details>")
    model = made["model"]
    stamp = f"qmedoid {model['qmedoid']}, model {model['sha256'] or 'not saved'}, {made['time']}"
    lines += [f'<p class="stamp">{escape(stamp)}</p>', "</div>"]
    return "\n".join(lines)


Section = tuple[str, Iterator[str]] | None


def _columns(made: Mapping[str, Any]) -> Section:
    parts = made["columns"]
    rest = made["rest"]["columns"]
    terms = [(name, value) for name, value in made["terms"].items() if value]
    values = [*(one["contribution"] for one in parts), rest["contribution"], *(value for _, value in terms)]
    printed = [signed(value, DIGITS) for value in rounded_to_sum(values, DIGITS)]
    rows = [[one["name"], cell_text(one["cell"]), text] for one, text in zip(parts, printed, strict=False)]
    if rest["count"]:
        rows.append([counted(rest["count"], "other column"), "", printed[len(parts)]])
    rows += [[name, "", text] for (name, _), text in zip(terms, printed[len(parts) + 1 :], strict=True)]
    rows.append(["margin", "", signed(float(f"{made['margin']:.{DIGITS}f}"), DIGITS)])
    return "What each column adds to the margin, in log-odds", _table(("column", "cell", "contribution"), rows, (2,))


def _groups(made: Mapping[str, Any]) -> Section:
    listed, rest = made["groups"], made["rest"]["groups"]
    if not listed:
        return None
    printed = rounded_to_sum([*(one["contribution"] for one in listed), rest["contribution"]], DIGITS)
    rows = [[_group_name(one), signed(value, DIGITS)] for one, value in zip(listed, printed, strict=False)]
    if rest["count"]:
        rows.append([counted(rest["count"], "other group"), signed(printed[-1], DIGITS)])
    return "The same by group of columns", _table(("group", "contribution"), rows, (1,))


def _group_name(group: Mapping[str, Any]) -> str:
    names = ", ".join(cell_text(name) for name in group["columns"][:4])
    more = len(group["columns"]) - 4
    names += f" and {more} more" if more > 0 else ""
    return f"{names}: {group['name']}" if "name" in group else names


def _rows(made: Mapping[str, Any]) -> Section:
    if not made["rows"]:
        return None
    listed, rest = made["rows"], made["rest"]["rows"]
    printed = rounded_to_sum([*(one["contribution"] for one in listed), rest["contribution"]], DIGITS)
    rows = [
        [str(one["training_row"]), cell_text(one["class"]), signed(value, DIGITS)]
        for one, value in zip(listed, printed, strict=False)
    ]
    if rest["count"]:
        rows.append([counted(rest["count"], "other row"), "", signed(printed[-1], DIGITS)])
    return "The same by training row", _table(("training row", "class", "contribution"), rows, (2,))


def _medoids(made: Mapping[str, Any]) -> Section:
    """The record beside the nearest medoid of each class, with the cells that differ marked."""
    medoids = made["medoids"]
    names = ("", "this record", *(f"row {one['training_row']}: {cell_text(one['class'])}" for one in medoids))
    rows = [["distance", "", *(plain(one["distance"]) for one in medoids)]]
    marked: set[tuple[int, int]] = set()
    for name, cell in made["record"].items():
        cells = []
        for place, one in enumerate(medoids):
            own = one["record"]
            cells.append("not kept" if own is None else cell_text(own[name]))
            if own is not None and name in one["differs"]:
                marked.add((len(rows), place + 2))
        rows.append([name, cell_text(cell), *cells])
    title = "The nearest real rows of each class; cells that differ are underlined"
    return title, _table(names, rows, (), marked)


def _flips(made: Mapping[str, Any]) -> Section:
    if not made["flips"]:
        return None
    rows = [
        [
            " and ".join(
                f"{cell_text(one['column'])}: {cell_text(one['cell'])} → {cell_text(one['to'])}"
                for one in flip["changes"]
            ),
            cell_text(flip["prediction"]),
            "" if flip["probability"] is None else plain(flip["probability"]),
        ]
        for flip in made["flips"]
    ]
    return "The smallest changes that lead to another class", _table(("change", "called", "probability"), rows, (2,))


def _heading(text: str) -> str:
    line = printable(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
    marked: Collection[tuple[int, int]] = (),
) -> Iterator[str]:
    yield '<div class="box" tabindex="0" role="group" aria-label="table"><table><thead><tr>'
    yield "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    yield "</tr></thead><tbody>"
    for number, row in enumerate(rows):
        cells = [f'<th scope="row">{escape(_heading(row[0]))}</th>']
        for place, cell in enumerate(row[1:], 1):
            kind = "number" if place in numbers else "differs" if (number, place) in marked else ""
            cells.append(f"<td{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(cell)}</td>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
