"""A study as one page of HTML that loads nothing: style and pictures are within it, and it has no scripts."""

from itertools import groupby
from typing import Any

from qmedoid.markup.html import Html
from qmedoid.markup.page import render
from qmedoid.reporting.document import Document, Picture, Table

# Numbers from here on are written with commas; a year or a seed of four digits reads better without.
_MANY = 10_000

Cell = dict[str, Any]


def html_page(document: Document) -> str:
    """The page of a study: findings first, then the sections with their tables and pictures, and how it was made.

    Nothing in a title or a cell is markup. The same document gives the same text.
    """
    sections = [
        {"title": one.title, "paragraphs": one.paragraphs, "parts": [_part(part) for part in one.parts]}
        for one in document.sections
    ]
    return render("study.html", **vars(document) | {"sections": sections})


def _part(part: Table | Picture) -> dict[str, Any]:
    """A part in plain values. The id is made of its name, which is unlike that of any other part of its kind."""
    if isinstance(part, Picture):
        return {"anchor": f"picture-{part.name}", "title": part.title, "note": part.note, "picture": Html(part.svg)}
    # Columns of errors share the place of the column before them.
    places = [place for place, column in enumerate(part.columns) if not column.is_error]
    kinds = {place: _alignment([row[place] for row in part.rows]) for place in places}
    return {
        "anchor": f"table-{part.name}", "title": part.title, "note": part.note, "picture": "",
        "head": _head(part, kinds),
        "rows": [[_cell(part, row, place, kind) for place, kind in kinds.items()] for row in range(len(part.rows))],
    }  # fmt: skip


def _alignment(values: list[Any]) -> str:
    """The class of a column: of numbers unless it holds texts alone."""
    has_text = any(isinstance(value, str) for value in values)
    return "" if has_text and not any(isinstance(value, int | float) for value in values) else "num"


def _head(table: Table, kinds: dict[int, str]) -> list[list[Cell]]:
    """One line of headings, or two where there are groups: a group spans its neighbors, the rest spans both lines."""
    has_groups = any(column.group for column in table.columns)
    above, below = list[Cell](), list[Cell]()
    for group, neighbors in groupby(kinds.items(), key=lambda item: table.columns[item[0]].group):
        own = [{"text": table.columns[place].name, "kind": kind, "lines": 1} for place, kind in neighbors]
        if group:
            above.append({"text": group, "kind": "group", "lines": 1, "columns": len(own)})
            below += own
        else:
            above += [{**one, "lines": 1 + has_groups} for one in own]
    return [above, below] if has_groups else [above]


def _cell(table: Table, row: int, place: int, kind: str) -> Cell:
    has_error = place + 1 < len(table.columns) and table.columns[place + 1].is_error
    # A name that goes on from the row above is paler, so that the eye sees where another begins.
    is_again = place == 0 and not kind and row > 0 and table.rows[row][0] == table.rows[row - 1][0]
    return {
        "text": _shown(table, row, place),
        "kind": "again" if is_again else kind,
        "has_error": has_error,
        "error": table.cell_text(row, place + 1) if has_error else "",
    }


def _shown(table: Table, row: int, column: int) -> str:
    """A cell for the eye: a dash for none, commas in large numbers, a minus as long as a plus."""
    value = table.rows[row][column]
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    if isinstance(value, bool) or abs(value) < _MANY:
        text = table.cell_text(row, column)
    else:
        text = f"{value:,.{table.digits_of(row, column)}f}" if isinstance(value, float) else f"{value:,}"
    return text.replace("-", "−")
