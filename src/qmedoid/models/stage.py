"""What the first stage of a hybrid model, whatever it is made of, says of records."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.geometry.fusion import Channels

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Table = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]
"""Rows of shape (n, M), or M columns."""


class Measured(NamedTuple):
    """Measurements of n records, with C classes.

    Attributes
    ----------
    channels : Channels of shape (n, C)
        Distance and angle to the nearest medoid of each class.
    scores : ndarray of shape (n, C)
        Dissimilarities; the smallest decides.
    nearest : ndarray of shape (n, C)
        Place of the nearest medoid of each class.
    deltas : ndarray of shape (n, m) or None
        What a circuit is fed, where the stage has deltas of its own; else they are made from the channels.
    """

    channels: Channels
    scores: Array
    nearest: Codes
    deltas: Array | None = None


def row_block(X: Table, rows: slice) -> Array:
    """Some rows of a table as numbers, shape (n, M)."""
    part = X[rows] if isinstance(X, np.ndarray) else np.column_stack([column[rows] for column in X])
    return np.asarray(part, dtype=np.float64)
