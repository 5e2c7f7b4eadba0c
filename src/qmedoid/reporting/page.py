"""A report as one page of HTML that loads nothing: style and pictures are within it, and it has no scripts."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from qmedoid.reporting.document import Document, Picture, Section, Table

STYLE = """\
:root {
  color-scheme: light dark;
  --ground: #fdfdfc; --text: #1b1f24; --muted: #5b6470; --line: #d5d9de; --soft: #f1f4f7;
  --accent: #005a8c; --found: #eef6fb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --text: #e3e6e9; --muted: #9aa4af; --line: #373d44; --soft: #1e2328;
    --accent: #6cb8e6; --found: #17252f;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1rem; max-width: 100rem; background: var(--ground); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p, li { max-width: 46rem; }
a { color: var(--accent); }
nav { font-size: .875rem; line-height: 1.4; margin: 2rem 0; }
nav p { margin: 0 0 .25rem; font-weight: 600; }
nav ol, nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .3rem 0; }
nav ul { padding-left: .8rem; border-left: 1px solid var(--line); }
nav a { text-decoration: none; }
nav a:hover, nav a:focus { text-decoration: underline; }
.findings { background: var(--found); border: 1px solid var(--line); border-left: .3rem solid var(--accent);
  border-radius: .3rem; padding: .9rem 1.1rem; margin: 1.5rem 0; }
.findings h2 { margin: 0 0 .5rem; padding: 0; border: 0; }
.findings ul { margin: 0; padding-left: 1.2rem; }
.findings li + li { margin-top: .4rem; }
figure { margin: 1.75rem 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; max-width: 60rem; }
.note { color: var(--muted); font-size: .875rem; margin: .5rem 0 0; }
.box { overflow-x: auto; max-width: 100%; width: fit-content; border: 1px solid var(--line); border-radius: .3rem; }
.drawn { background: #fff; padding: .5rem; }
.drawn img { display: block; height: auto; max-width: max(100%, 42rem); }
table { border-collapse: separate; border-spacing: 0; font-size: .875rem; line-height: 1.35; overflow-wrap: normal; }
th, td { padding: .35rem .7rem; text-align: left; vertical-align: baseline; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--soft); vertical-align: bottom; font-weight: 600; }
thead th.group { text-align: center; border-left: 1px solid var(--line); }
tbody th { font-weight: 500; background: var(--ground); }
tbody th.again { color: var(--muted); font-weight: 400; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.error { display: inline-block; color: var(--muted); font-size: .8em; text-align: left; white-space: pre; }
.box tr:first-child > th:first-child, .box tbody th:first-child {
  position: sticky; left: 0; z-index: 1; border-right: 1px solid var(--line); min-width: 6rem; max-width: 40vw; }
tbody tr:hover > * { background: var(--soft); }
.provenance table { font-size: .8rem; color: var(--muted); }
.provenance th, .provenance td { padding: .2rem .7rem .2rem 0;
  vertical-align: top; border: 0; overflow-wrap: anywhere; }
.provenance th { white-space: nowrap; }
@media (min-width: 75rem) {
  body { display: grid; grid-template: auto 1fr / 15rem minmax(0, 1fr); gap: 0 2.5rem; padding: 2rem; }
  header, main { grid-column: 2; }
  nav { grid-area: 1 / 1 / span 2; position: sticky; top: 2rem; align-self: start; margin: 0;
    max-height: calc(100vh - 4rem); overflow-y: auto; }
  .box tr:first-child > th:first-child, .box tbody th:first-child { min-width: 9rem; }
}
@media print {
  :root { --ground: #fff; --text: #000; --muted: #444; --line: #bbb; --soft: #f2f2f2; --accent: #000; --found: #fff; }
  body { display: block; padding: 0; max-width: none; font-size: 10pt; }
  nav { display: none; }
  .box { overflow: visible; width: auto; border: 0; }
  .drawn img { max-width: 100%; }
  .box th:first-child { position: static; max-width: none; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .35rem; }
  figure, tr { break-inside: avoid; }
  h2, figcaption { break-after: avoid; }
}
"""


# Numbers from here on are written with commas; a year or a seed of four digits reads better without.
_MANY = 10_000


@dataclass(frozen=True)
class _ShownColumn:
    """A column as the page shows it.

    Attributes
    ----------
    column : int
        Of the table.
    has_text : bool
        Whether it is aligned to the left, as text; all others are to the right.
    error_width : int
        Characters that the errors behind its figures take; zero where it has none.
    """

    column: int
    has_text: bool
    error_width: int

    @property
    def alignment(self) -> str:
        return "" if self.has_text else ' class="number"'


def html_table(table: Table) -> Iterator[str]:
    """The lines of a table below its title, in a box that scrolls sideways where the page is narrow."""
    places = _places(table)
    yield f"<figcaption>{escape(table.title)}</figcaption>"
    # The box can be reached and moved by keys.
    yield f'<div class="box" tabindex="0" role="group" aria-label="{escape(table.title)}">'
    yield "<table>"
    yield "<thead>"
    yield from _table_head(table, places)
    yield "</thead>"
    yield "<tbody>"
    for row in range(len(table.rows)):
        yield f"<tr>{''.join(_cell(table, row, place) for place in places)}</tr>"
    yield "</tbody>"
    yield "</table>"
    yield "</div>"


def _places(table: Table) -> list[_ShownColumn]:
    """All columns but those of errors, which share the place of the column before."""
    places = []
    for number, column in enumerate(table.columns):
        if not column.is_error:
            values = [row[number] for row in table.rows]
            has_text = any(isinstance(value, str) for value in values)
            has_numbers = any(isinstance(value, int | float) for value in values)
            width = 0
            if number + 1 < len(table.columns) and table.columns[number + 1].is_error:
                texts = [table.cell_text(row, number + 1) for row in range(len(values))]
                width = len(" ± ") + max(map(len, texts), default=0)
            places.append(_ShownColumn(number, has_text and not has_numbers, width))
    return places


def _table_head(table: Table, places: Sequence[_ShownColumn]) -> Iterator[str]:
    """One line of headings, or two where there are groups: a group spans its neighbors, the rest spans both lines."""
    if not any(table.columns[place.column].group for place in places):
        yield f"<tr>{''.join(_heading(table, place) for place in places)}</tr>"
        return
    above, below = "", ""
    for group, neighbors in groupby(places, key=lambda place: table.columns[place.column].group):
        members = list(neighbors)
        if group:
            above += f'<th scope="colgroup" colspan="{len(members)}" class="group">{escape(group)}</th>'
            below += "".join(_heading(table, place) for place in members)
        else:
            above += "".join(_heading(table, place, lines=2) for place in members)
    yield f"<tr>{above}</tr>"
    yield f"<tr>{below}</tr>"


def _heading(table: Table, place: _ShownColumn, lines: int = 1) -> str:
    span = f' rowspan="{lines}"' if lines > 1 else ""
    return f'<th scope="col"{span}{place.alignment}>{escape(table.columns[place.column].name)}</th>'


def _cell(table: Table, row: int, place: _ShownColumn) -> str:
    content = _shown(table, row, place.column)
    if place.error_width:
        # Where the error is missing its place is kept, so that figures stay below each other.
        text = table.cell_text(row, place.column + 1)
        error = f" ± {escape(text)}" if text else ""
        content += f'<span class="error" style="min-width:{place.error_width}ch">{error}</span>'
    if place.column == 0:
        # A name that goes on from the row above is paler, so that the eye sees where another begins.
        is_again = place.has_text and row > 0 and table.rows[row][0] == table.rows[row - 1][0]
        looks = ' class="again"' if is_again else place.alignment
        return f'<th scope="row"{looks}>{content}</th>'
    return f"<td{place.alignment}>{content}</td>"


def _shown(table: Table, row: int, column: int) -> str:
    """A cell for the eye: a dash for none, commas in large numbers, a minus as long as a plus."""
    value = table.rows[row][column]
    if value is None:
        return "–"
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, bool) or abs(value) < _MANY:
        text = table.cell_text(row, column)
    else:
        text = f"{value:,.{table.digits_of(row, column)}f}" if isinstance(value, float) else f"{value:,}"
    return text.replace("-", "−")


def html_page(document: Document) -> str:
    """The page of a report.

    Findings come first, then links, the sections with their tables and pictures, and how the report was made. All
    text is escaped: nothing in a title or a cell is markup. The same document gives the same text.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(document.title)}</title>",
        f"<style>\n{STYLE}</style>",
        "</head>",
        "<body>",
        "<header>",
        f"<h1>{escape(document.title)}</h1>",
        *_paragraphs(document.introduction),
        *_findings(document.findings),
        "</header>",
        *_contents(document),
        "<main>",
        *(line for number, section in enumerate(document.sections, start=1) for line in _section(number, section)),
        *_provenance(document.provenance),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _contents(document: Document) -> Iterator[str]:
    """Links to all that has a heading."""
    yield '<nav aria-label="Contents">'
    yield "<p>Contents</p>"
    yield "<ol>"
    if document.findings:
        yield '<li><a href="#findings">Findings</a></li>'
    for number, section in enumerate(document.sections, start=1):
        parts = "".join(f"<li>{_link(_anchor(part), part.title)}</li>" for part in section.parts)
        yield f"<li>{_link(f'section-{number}', section.title)}{f'<ul>{parts}</ul>' if parts else ''}</li>"
    if document.provenance:
        yield '<li><a href="#provenance">How this was made</a></li>'
    yield "</ol>"
    yield "</nav>"


def _link(anchor: str, title: str) -> str:
    return f'<a href="#{anchor}">{escape(title)}</a>'


def _anchor(part: Table | Picture) -> str:
    """The id of a part; its name is plain, and unlike that of any other part of its kind."""
    return f"{'table' if isinstance(part, Table) else 'picture'}-{part.name}"


def _paragraphs(paragraphs: Sequence[str]) -> Iterator[str]:
    return (f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)


def _findings(findings: Sequence[str]) -> Iterator[str]:
    if findings:
        yield '<section class="findings" id="findings">'
        yield "<h2>Findings</h2>"
        yield "<ul>"
        yield from (f"<li>{escape(finding)}</li>" for finding in findings)
        yield "</ul>"
        yield "</section>"


def _section(number: int, section: Section) -> Iterator[str]:
    yield f'<section id="section-{number}">'
    yield f"<h2>{escape(section.title)}</h2>"
    yield from _paragraphs(section.paragraphs)
    for part in section.parts:
        yield f'<figure id="{_anchor(part)}">'
        yield from html_table(part) if isinstance(part, Table) else _picture(part)
        if part.note:
            yield f'<p class="note">{escape(part.note)}</p>'
        yield "</figure>"
    yield "</section>"


def _picture(picture: Picture) -> Iterator[str]:
    source = base64.b64encode(picture.svg).decode("ascii")
    yield f"<figcaption>{escape(picture.title)}</figcaption>"
    # The box can be reached and moved by keys where it is narrower than what it holds.
    yield f'<div class="box drawn" tabindex="0" role="group" aria-label="{escape(picture.title)}">'
    yield f'<img src="data:image/svg+xml;base64,{source}" alt="{escape(picture.title)}">'
    yield "</div>"


def _provenance(provenance: Mapping[str, str]) -> Iterator[str]:
    if provenance:
        yield '<section class="provenance" id="provenance">'
        yield "<h2>How this was made</h2>"
        yield "<table>"
        for key, value in provenance.items():
            yield f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        yield "</table>"
        yield "</section>"
