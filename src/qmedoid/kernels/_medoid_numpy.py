"""NumPy twin of the compiled sums of distances (same names, same arguments as ``_medoid``)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Rows of a block of distances are chosen so that the block stays in cache.
BLOCK_NUMBERS = 1 << 16


def spread(X: Floats) -> float:
    """Return the largest range of a column of X, or NaN when X holds NaN or infinity."""
    if not np.isfinite(X).all():
        return float("nan")
    with np.errstate(over="ignore"):
        return float(np.ptp(X, axis=0).max())


def distances(X: Floats, rows: Rows) -> Floats:
    """Return the distances |x_r - x_j| of the given rows r to all rows j, shape (len(rows), n).

    Differences are taken before squaring, so that a table far from the origin loses no digits.
    """
    n, d = X.shape
    out = np.zeros((len(rows), n))
    columns = np.ascontiguousarray(X.T)
    step = max(1, BLOCK_NUMBERS // max(1, n))
    for start in range(0, len(rows), step):
        block = out[start : start + step]
        mine = columns[:, rows[start : start + step]]
        for k in range(d):
            difference = mine[k][:, None] - columns[k]
            difference *= difference
            block += difference
        np.sqrt(block, out=block)
    return out


def totals(X: Floats, w: Floats, rows: Rows, out: Floats) -> None:
    """Write sum_j w_j |x_j - x_r| for the r in ``rows`` to ``out``."""
    step = max(1, 16 * BLOCK_NUMBERS // max(1, len(X)))
    for start in range(0, len(rows), step):
        out[start : start + step] = (distances(X, rows[start : start + step]) * w).sum(axis=1)


def all_totals(X: Floats, w: Floats, out: Floats) -> None:
    """Write sum_j w_j |x_j - x_i| for every row i to ``out``."""
    totals(X, w, np.arange(len(X), dtype=np.intp), out)
