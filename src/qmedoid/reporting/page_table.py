"""A table of a report as HTML: headings of two levels, figures with their errors in one cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from qmedoid.reporting.document import Table

# Numbers from here on are written with commas; a year or a seed of four digits reads better without.
_MANY = 10_000


@dataclass(frozen=True)
class _Place:
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
    yield from _head(table, places)
    yield "</thead>"
    yield "<tbody>"
    for row in range(len(table.rows)):
        yield f"<tr>{''.join(_cell(table, row, place) for place in places)}</tr>"
    yield "</tbody>"
    yield "</table>"
    yield "</div>"


def _places(table: Table) -> list[_Place]:
    """All columns but those of errors, which have no place of their own."""
    places = []
    for number, column in enumerate(table.columns):
        if not column.is_error:
            values = [row[number] for row in table.rows]
            has_text = any(isinstance(value, str) for value in values)
            has_numbers = any(isinstance(value, int | float) for value in values)
            places.append(_Place(number, has_text and not has_numbers, _error_width(table, number + 1)))
    return places


def _error_width(table: Table, column: int) -> int:
    if column >= len(table.columns) or not table.columns[column].is_error:
        return 0
    longest = max((len(table.cell_text(row, column)) for row in range(len(table.rows))), default=0)
    return len(" ± ") + longest


def _head(table: Table, places: Sequence[_Place]) -> Iterator[str]:
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


def _heading(table: Table, place: _Place, lines: int = 1) -> str:
    span = f' rowspan="{lines}"' if lines > 1 else ""
    return f'<th scope="col"{span}{place.alignment}>{escape(table.columns[place.column].name)}</th>'


def _cell(table: Table, row: int, place: _Place) -> str:
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
