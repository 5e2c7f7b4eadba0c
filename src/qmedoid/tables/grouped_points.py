"""Columns of plain numbers in which every point may part thousands: 1.275 and 20.628, and no cell that shows otherwise.

They are read with a decimal point, as data of three decimals are far more usual, and a note says so.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.model.contract import Numbers
from qmedoid.model.table import TableModel
from qmedoid.tables._types import GROUPED
from qmedoid.tables.cells import texts
from qmedoid.tables.encode import Found

Floats = npt.NDArray[np.float64]

ENOUGH_CELLS = 5
"""Different cells from which on it says something that all have three digits after their point."""
_FEW = 256
_GROUPED = r"^\s*([+-]?[1-9]\d{0,2}\.\d{3}\s*)?$"
_HALFWAY = 1000.0**0.5
"""Between a number and a thousand times as much, in ratios."""


class Grouped(NamedTuple):
    """A cell of a column in which every point may part thousands, and the median size as it is read."""

    example: str
    size: float

    @classmethod
    def of(cls, example: str, values: Floats) -> "Grouped":
        """The same from the numbers as they are read; NaN is missing."""
        given = np.abs(values[~np.isnan(values)])
        return cls(example, float(np.median(given)) if len(given) else math.inf)


def grouped_example(column: pa.Array | pa.ChunkedArray) -> str | None:
    """A cell of texts that all have one to three digits before a point and three after it; None where they do not.

    Missing cells do not count, and fewer than `ENOUGH_CELLS` different ones are too few to tell.
    """
    # The first cells tell of most columns that they hold other numbers.
    if not (_are_grouped(column.slice(0, _FEW)) and _are_grouped(column)):
        return None
    for part in (column.slice(0, _FEW), column):
        different = texts(part).drop_null().unique()
        if len(different) >= ENOUGH_CELLS:
            return str(different[0].as_py())
    return None


def grouped_note(name: str, example: str) -> str:
    """What is said about a column that is read with a decimal point all the same."""
    return (
        f"column {name!r} is read as numbers with a decimal point: {example!r} is {float(example):g}, not "
        f"{example.replace('.', '')}; every cell has three digits after its point, which may part thousands: "
        "--decimal , reads it so, --decimal . says that it is a decimal point (decimal=',' or '.' in Python)"
    )


def with_grouped(table: pa.Table, examples: Mapping[str, str]) -> pa.Table:
    """The table with a mark that says which of its columns of floats were such texts, with a cell of each."""
    if not examples:
        return table
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), GROUPED: json.dumps(dict(examples)).encode()}
    )


def grouped_columns(table: pa.Table) -> dict[str, str]:
    """The columns that `with_grouped` marked, with a cell of each."""
    mark = (table.schema.metadata or {}).get(GROUPED)
    found: dict[str, str] = {} if mark is None else json.loads(mark)
    return found


def training_sizes(model: TableModel, places: Iterable[int]) -> dict[str, float]:
    """The median size of the training numbers, by column; of those that may have been parted, and plain ones only."""
    sizes = {}
    for place in places:
        column, encoding = model.contract.columns[place], model.encodings[place]
        # What may be parted is read as 1.000 at the least: columns of smaller numbers are spared a look at their texts.
        is_plain = column.kind == "number" and not column.spelling
        if is_plain and isinstance(encoding, Numbers) and abs(encoding.fill) > _HALFWAY:
            sizes[column.name] = abs(encoding.fill)
    return sizes


def note_grouped(found: Found, model: TableModel, grouped: Mapping[str, Grouped]) -> None:
    """Note those columns of a table that would be more like the training rows if their points parted thousands."""
    sizes = training_sizes(model, range(len(model.contract.columns))) if grouped else {}
    for name, one in grouped.items():
        if sizes.get(name, 0.0) > one.size * _HALFWAY:
            found.column(name).grouped = one.example


def _are_grouped(column: pa.Array | pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    # Of no cells at all nothing is said.
    return bool(pc.all(pc.match_substring_regex(column, _GROUPED), min_count=0).as_py())
