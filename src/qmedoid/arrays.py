"""Types of arrays, named once, the ways to take a table block by block, and whether data are a Dask collection."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""Numbers."""
Codes = npt.NDArray[np.intp]
"""Places, row numbers and class codes."""
Flags = npt.NDArray[np.bool_]
"""Truth values."""
Table = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]
"""Rows of shape (n, M), or M columns."""


_BLOCK_CELLS = 2**18


def column_slices(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of columns whose cells are worked on together; of a long table each has one column.

    A call of NumPy takes longer than a short column does: wide tables are worked on in blocks. A block fits into the
    processor's cache.
    """
    step = max(1, _BLOCK_CELLS // max(n_rows, 1))
    return (slice(start, min(start + step, n_columns)) for start in range(0, n_columns, step))


def row_slices(rows: Table | int, step: int) -> Iterator[slice]:
    """Slices of at most `step` rows of a table, or of a number of rows; at least one, if there are none."""
    n = rows if isinstance(rows, int) else len(rows) if isinstance(rows, np.ndarray) else len(rows[0])
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))


def is_collection(data: Any) -> bool:
    """Whether the data are a data frame, a series or an array of Dask, which is not imported."""
    return type(data).__module__.partition(".")[0] == "dask" and hasattr(data, "__dask_graph__")
