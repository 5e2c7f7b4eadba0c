"""Knots of piecewise-linear maps, one map for each column, the knots of all columns end to end."""

import numpy as np

from qmedoid.arrays import Array, Codes


def knot_places(X: Array, offsets: Codes, knots: Array) -> Codes:
    """Place of the last knot that is not above each cell of X, or of the first knot of its column, shape (n, M).

    Knots of column f are at ``offsets[f]`` up to, and without, ``offsets[f + 1]``, and rise. The cells of all columns
    are searched for together, by halving.
    """
    low = np.broadcast_to(offsets[:-1], X.shape).copy()
    high = np.broadcast_to(offsets[1:] - 1, X.shape).copy()
    for _ in range(int(np.diff(offsets).max(initial=1)).bit_length()):
        middle = (low + high + 1) // 2
        is_reached = knots[middle] <= X
        low = np.where(is_reached, middle, low)
        high = np.maximum(np.where(is_reached, high, middle - 1), low)
    return low


def knots_of(columns: Codes, offsets: Codes) -> tuple[Codes, Codes]:
    """Places of the knots of some columns, in the order of these, and the offsets of the knots among them."""
    sizes = np.diff(offsets)[columns]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    return np.repeat(offsets[columns] - starts[:-1], sizes) + np.arange(starts[-1]), starts
