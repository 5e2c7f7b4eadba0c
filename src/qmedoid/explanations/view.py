"""A decision as HTML without scripts: a page that stands alone, and a view within a notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.explanations.digits import plain as plain_number
from qmedoid.explanations.digits import rounded_to_sum, signed
from qmedoid.explanations.picture import DIGITS, counted
from qmedoid.explanations.sentences import cell_text, change_texts, toward_text
from qmedoid.markup.html import Child, Html, element, folded, join, plain, table
from qmedoid.markup.notebook import STYLE, view
from qmedoid.markup.policy import policy_element, style_element

PAGE_TITLE = "Why this record is called"
"""How the title of every page begins."""
_PAGE_STYLE = """\
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: Canvas; color: CanvasText; }
h1 { font: 600 1.4rem/1.3 system-ui, sans-serif; }
@media print { details > *:not(summary) { display: block; } }
"""


def as_page(made: Mapping[str, Any], svg: str) -> str:
    """One page that loads nothing and runs nothing."""
    title = f"{PAGE_TITLE} {cell_text(made['prediction'])}"
    head = [
        element("meta", charset="utf-8"),
        policy_element([], [_PAGE_STYLE, STYLE]),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        style_element(_PAGE_STYLE),
    ]
    body = element("main", element("h1", title), as_fragment(made, svg, is_open=True))
    page = element("html", element("head", *head), element("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def as_fragment(made: Mapping[str, Any], svg: str, *, is_open: bool = False) -> Html:
    """The same as a part of another page, with its own style; tables are folded in a notebook."""
    first, *others = made["sentences"]
    parts: list[Child] = [element("p", " ".join(others))]
    parts.append(element("ul", *(element("li", one["sentence"]) for one in made["similar"])))
    if made["difference"]:
        lines = [element("li", line) for line in made["difference"]]
        parts.append(element("p", "The table differs from the one that the model was fitted on:"))
        parts.append(element("ul", *lines))
    parts.append(element("div", Html(svg), class_="box"))
    tables = (_columns(made), _medoids(made), _flips(made), _groups(made), _rows(made))
    parts += [
        folded(caption, one, is_open=is_open) for caption, one in (found for found in tables if found is not None)
    ]
    model = made["model"]
    stamp = f"qmedoid {model['qmedoid']}, model {model['sha256'] or 'not saved'}, {made['time']}"
    return view(first, *parts, element("p", stamp, class_="stamp"))


Section = tuple[str, Html] | None


def _columns(made: Mapping[str, Any]) -> Section:
    parts, rest = made["columns"], made["rest"]["columns"]
    terms = [(name, value) for name, value in made["terms"].items() if value]
    values = [*(one["contribution"] for one in parts), rest["contribution"], *(value for _, value in terms)]
    printed = [signed(value, DIGITS) for value in rounded_to_sum(values, DIGITS)]
    rows = [(plain(one["name"]), cell_text(one["cell"]), text) for one, text in zip(parts, printed, strict=False)]
    if rest["count"]:
        rows.append((counted(rest["count"], "other column"), "", printed[len(parts)]))
    rows += [(name, "", text) for (name, _), text in zip(terms, printed[len(parts) + 1 :], strict=True)]
    rows.append(("margin", "", signed(float(f"{made['margin']:.{DIGITS}f}"), DIGITS)))
    toward = toward_text(made)
    caption = f"What each column adds for {toward}" + ("" if made.get("probability") is None else ", in log-odds")
    return caption, table(caption, ("column", "cell", "contribution"), rows, numbers=[2])


def _groups(made: Mapping[str, Any]) -> Section:
    names = [(_group_name(one),) for one in made["groups"]]
    return _listed(made, "groups", "The same by group of columns", ("group",), names, "other group")


def _group_name(group: Mapping[str, Any]) -> str:
    names = ", ".join(cell_text(name) for name in group["columns"][:4])
    more = len(group["columns"]) - 4
    names += f" and {more} more" if more > 0 else ""
    return f"{names}: {group['name']}" if "name" in group else names


def _rows(made: Mapping[str, Any]) -> Section:
    names = [(str(one["training_row"]), cell_text(one["class"])) for one in made["rows"] or ()]
    return _listed(made, "rows", "The same by training row", ("training row", "class"), names, "other row")


def _listed(
    made: Mapping[str, Any], level: str, caption: str, head: Sequence[str], names: Sequence[Sequence[str]], rest: str
) -> Section:
    """Contributions of one level, whose printed digits add up."""
    if not made[level]:
        return None
    others = made["rest"][level]
    values = [*(one["contribution"] for one in made[level]), others["contribution"]]
    printed = [signed(value, DIGITS) for value in rounded_to_sum(values, DIGITS)]
    rows = [(*name, text) for name, text in zip(names, printed, strict=False)]
    if others["count"]:
        rows.append((counted(others["count"], rest), *[""] * (len(head) - 1), printed[-1]))
    return caption, table(caption, (*head, "contribution"), rows, numbers=[len(head)])


def _medoids(made: Mapping[str, Any]) -> Section:
    """The record beside the nearest medoid of each class, with the cells that differ marked."""
    medoids = made["medoids"]
    head = ("", "this record", *(f"row {one['training_row']}: {cell_text(one['class'])}" for one in medoids))
    rows: list[list[Child]] = [["distance", "", *(plain_number(one["distance"]) for one in medoids)]]
    for name, cell in made["record"].items():
        cells: list[Child] = []
        for one in medoids:
            text = "not kept" if one["record"] is None else cell_text(one["record"][name])
            differs = one["record"] is not None and name in one["differs"]
            cells.append(element("span", text, class_="differs") if differs else text)
        rows.append([plain(name), cell_text(cell), *cells])
    caption = "The nearest real rows of each class; cells that differ are underlined"
    return caption, table(caption, head, rows)


def _flips(made: Mapping[str, Any]) -> Section:
    if not made["flips"]:
        return None
    rows = []
    for flip in made["flips"]:
        changes = [f"{cell_text(one['column'])}: {' → '.join(change_texts(one))}" for one in flip["changes"]]
        probability = "" if flip["probability"] is None else plain_number(flip["probability"])
        rows.append((join(changes, " and "), cell_text(flip["prediction"]), probability))
    caption = "The smallest changes that lead to another class"
    return caption, table(caption, ("change", "called", "probability"), rows, numbers=[2])
