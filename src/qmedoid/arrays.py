"""Types of arrays, named once."""

from collections.abc import Sequence
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
