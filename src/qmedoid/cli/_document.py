"""Tables of a report in the terminal; one that is too wide goes on below, with its first columns repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from qmedoid.reporting.document import Table

# What a frame adds to the width of a cell.
_FRAME = 3


@dataclass(frozen=True)
class _Strip:
    """A column as it is printed: its headings and its cells."""

    group: str
    name: str
    texts: tuple[str, ...]
    is_label: bool


def print_table(console: Any, table: Table) -> None:
    """Print a table; means and their errors share a column."""
    from rich.table import Table as Grid

    strips = list(_strips(table))
    labels, figures = [one for one in strips if one.is_label], [one for one in strips if not one.is_label]
    console.print(table.title)
    for part in _pages(figures, console.width - 1 - _width(labels)):
        grid = Grid()
        above = ""
        for strip in (*labels, *part):
            heading = "" if strip.group == above else strip.group
            above = strip.group
            # Folded where even one column is too wide: a figure that is cut off is a wrong one.
            grid.add_column(f"{heading}\n{strip.name}", justify="left" if strip.is_label else "right", overflow="fold")
        for cells in zip(*(strip.texts for strip in (*labels, *part)), strict=True):
            grid.add_row(*cells)
        console.print(grid)
    if table.note:
        console.print(table.note)
    console.print()


def _strips(table: Table) -> Iterator[_Strip]:
    rows = range(len(table.rows))
    for place, column in enumerate(table.columns):
        if column.is_error:
            continue
        texts = [table.cell_text(row, place) for row in rows]
        if place + 1 < len(table.columns) and table.columns[place + 1].is_error:
            errors = [table.cell_text(row, place + 1) for row in rows]
            texts = [f"{text} ± {error}" if error else text for text, error in zip(texts, errors, strict=True)]
        is_label = not column.group and all(isinstance(row[place], str) for row in table.rows)
        yield _Strip(column.group, column.name, tuple(texts), is_label)


def _pages(strips: Sequence[_Strip], width: int) -> Iterator[list[_Strip]]:
    """Strips that fit side by side; those of one group stay together where they can."""
    page: list[_Strip] = []
    for _, members in groupby(strips, key=lambda strip: strip.group or strip.name):
        group = list(members)
        fits = _width(group) <= width
        for part in [group] if fits else [[strip] for strip in group]:
            if page and _width([*page, *part]) > width:
                yield page
                page = []
            page += part
    if page:
        yield page


def _width(strips: Sequence[_Strip]) -> int:
    """Columns of text that strips take side by side; the heading of a group stands over its first one alone."""
    above = ["", *(strip.group for strip in strips)]
    headings = [strip.group if strip.group != before else "" for strip, before in zip(strips, above, strict=False)]
    texts = [(heading, strip.name, *strip.texts) for heading, strip in zip(headings, strips, strict=True)]
    return sum(_FRAME + max(map(len, own)) for own in texts)
