"""Points that may part thousands: floats and texts in which 1.275 may be 1275.

Columns of plain numbers in which every point may part thousands (1.275 and 20.628, and no cell that shows otherwise)
are read with a decimal point, as data of three decimals are far more usual, and a note says so.
"""

import json
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.tables.arrow import GROUPED
from qmedoid.tables.cells import Floats, texts

_FEW = 256
"""Values that tell of most columns what they are not."""
_GROUPED = r"^\s*([+-]?[1-9]\d{0,2}\.\d{3}\s*)?$"
ENOUGH_CELLS = 5
"""Different cells from which on it says something that all have three digits after their point."""


def maybe_thousands(values: npt.NDArray[Any]) -> bool:
    """Whether floats may be whole numbers whose thousands were parted by points, as 1.275 and 935; NaN is missing.

    The first values tell of most columns that they are none. The texts say more: see `_numbers.may_be_thousands`.
    """
    return len(values) > 0 and _in_thousands(values[:_FEW]) and _in_thousands(values)


def _in_thousands(values: npt.NDArray[Any]) -> bool:
    sizes = np.abs(values[~np.isnan(values)].astype(np.float64))
    fractions = sizes[sizes != np.trunc(sizes)]
    with np.errstate(over="ignore", invalid="ignore"):
        is_odd = np.abs(1000 * fractions - np.rint(1000 * fractions)) > 1e-6
    return not (is_odd.any() or (sizes >= 1000).any() or (fractions < 1).any())


def floats_show_points(column: pa.ChunkedArray) -> bool:
    """Whether floats that were read with a decimal point cannot be whole numbers with points between thousands."""
    if not pa.types.is_floating(column.type):
        return False
    values = column.to_numpy()
    values = values[np.isfinite(values)]
    fractions = np.abs(values[values != np.trunc(values)])
    short = np.abs(100 * fractions - np.rint(100 * fractions)) < 1e-6
    return bool(len(fractions)) and (not maybe_thousands(fractions) or 2 * int(short.sum()) > len(fractions))


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


def grouped_columns(table: pa.Table) -> dict[str, str]:
    """The columns of floats that the table marks as such, with a cell of each."""
    mark = (table.schema.metadata or {}).get(GROUPED)
    found: dict[str, str] = {} if mark is None else json.loads(mark)
    return found


def _are_grouped(column: pa.Array | pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    # Of no cells at all nothing is said.
    return bool(pc.all(pc.match_substring_regex(column, _GROUPED), min_count=0).as_py())
