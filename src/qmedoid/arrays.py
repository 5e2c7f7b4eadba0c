"""Types of arrays, named once, and the one way to take a table block by block."""

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


def row_slices(rows: Table | int, step: int) -> Iterator[slice]:
    """Slices of at most `step` rows of a table, or of a number of rows; at least one, if there are none."""
    n = rows if isinstance(rows, int) else len(rows) if isinstance(rows, np.ndarray) else len(rows[0])
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))
