"""The exact medoid, the row with the smallest sum of distances to all rows, in near-linear time.

Rows that cannot be the medoid are ruled out by lower bounds (`qmedoid.kernels._medoid_search`). The primitives come
from the compiled kernel or from its NumPy twin; both give the same index.
"""

from types import ModuleType

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError
from qmedoid.kernels import _medoid_numpy
from qmedoid.kernels._backend import compiled
from qmedoid.kernels._medoid_search import candidates

#: Two totals whose relative difference is at most this count as equal, and the lower index wins. Rounding moves a
#: total by about 1e-15 of itself, so every way of computing it agrees on what is equal.
TIE_TOLERANCE = 1e-12
# Powers of a distance neither overflow nor vanish while the widest column range lies between these bounds;
# outside them the rows are rescaled.
_SAFE_SPREAD = (2.0**-100, 2.0**100)


def medoid(X: Array, *, weights: Array | None = None) -> int:
    """Return the row i of X that minimizes sum_j w_j |x_j - x_i|.

    Parameters
    ----------
    X : C-contiguous array of shape (n, d), n >= 1
    weights : array of shape (n,), non-negative with a positive entry; None for all ones
        A row of weight k counts as k equal rows; a row of weight 0 is absent, hence never the medoid.

    Returns
    -------
    int
        The lowest index among the rows within ``TIE_TOLERANCE`` of the smallest total.
    """
    primitives = compiled("medoid") or _medoid_numpy
    if weights is None:
        return _medoid(primitives, X, np.ones(len(X)))
    require_finite(X)
    kept = np.flatnonzero(weights)
    return int(kept[_medoid(primitives, X[kept], unit_scale(weights[kept]))])


def _medoid(primitives: ModuleType, X: Array, w: Array) -> int:
    """Return the medoid of rows that all have a positive weight."""
    n, d = X.shape
    if d == 0:
        return 0
    X = safe_scale(X, primitives.spread(X))
    rows = candidates(primitives, X, w, TIE_TOLERANCE)
    totals = np.empty(n if rows is None else len(rows))
    if rows is None:
        primitives.all_totals(X, w, totals)
        return _first_minimum(totals)
    primitives.totals(X, w, rows, totals)
    return int(rows[_first_minimum(totals)])


def _first_minimum(totals: Array) -> int:
    least = totals.min()
    return int(np.argmax(totals <= least + TIE_TOLERANCE * least))


def require_finite(X: Array) -> None:
    """Raise a DataError that names the first entry of X that is NaN or infinite."""
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"X holds {X[row, column]} in row {row}, column {column}. A medoid needs finite numbers: "
            "fill or drop the missing values first."
        )


def unit_scale(values: Array) -> Array:
    """Divide positive numbers by a power of two so that the largest lies in [0.5, 1); no digit changes."""
    scaled: Array = np.ldexp(values, -np.frexp(values.max())[1])
    return scaled


def safe_scale(X: Array, spread: float | None = None) -> Array:
    """Multiply X by a power of two, where that is needed, so that squared differences stay in range.

    The medoid does not change. ``spread`` is the largest column range, NaN for a table that is not finite.
    """
    widest = _medoid_numpy.spread(X) if spread is None else spread
    if _SAFE_SPREAD[0] < widest < _SAFE_SPREAD[1] or widest == 0.0:
        return X
    require_finite(X)
    # A constant column adds nothing to a distance but could overflow when tiny columns are scaled up.
    moving = np.where(X.min(axis=0) < X.max(axis=0), X, 0.0)
    return np.ascontiguousarray(np.ldexp(moving, -np.frexp(min(widest, np.finfo(float).max))[1] - 2))


def distances(X: Array) -> Array:
    """Return all distances |x_i - x_j|, shape (n, n), of a table that ``safe_scale`` has seen."""
    return _medoid_numpy.distances(X, np.arange(len(X), dtype=np.intp))
