r"""Ridge regression with an intercept, its λ by leave-one-out errors in closed form.

With features :math:`\Phi` of mean 0, :math:`\Phi^\top\Phi = V S V^\top` and :math:`T = \Phi V`, the output for row i of
weights that have not seen it is

.. math::

   t_{-i} = y_i - \frac{y_i - t_i}{1 - h_i}, \qquad
   h_i = \frac1n + \sum_j \frac{T_{ij}^2}{S_j + n\lambda}.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from qmedoid.fitting.evidence.settings import RidgePath, Selection

Array = npt.NDArray[np.float64]

PENALTIES: Array = 10.0 ** np.arange(-7.0, 2.25, 0.5)
"""The path of λ, in units of the number of rows."""

# Directions whose share of the largest is below this are rounding.
_ROUNDING = 1e-11
# Errors that differ by less than this share are the same; the larger λ is then the simpler model.
_TIE = 1e-9
# A row that fits itself alone is left with this much of its residual.
_LEAST_FREE = 1e-6


class Ridge(NamedTuple):
    """A ridge regression in its own directions: r of them over p features, with K outputs.

    Attributes
    ----------
    penalty : float
        λ, in units of the number of rows.
    path : RidgePath
    place : int
        Place of λ on the path.
    means : ndarray of shape (K,)
        Means of the targets: the intercepts.
    left_out : ndarray of shape (n, K)
        Outputs of weights that have not seen the row.
    sizes : ndarray of shape (r,)
        S, rising.
    directions : ndarray of shape (p, r)
        V.
    rotated : ndarray of shape (n, r)
        T.
    coefficients : ndarray of shape (r, K)
        Weights of the directions.
    """

    penalty: float
    path: RidgePath
    place: int
    means: Array
    left_out: Array
    sizes: Array
    directions: Array
    rotated: Array
    coefficients: Array


def fit_ridge(features: Array, targets: Array, selection: Selection, penalties: Array = PENALTIES) -> Ridge:
    """Ridge of targets (n, K) on features (n, p) of mean 0."""
    n = len(features)
    sizes, directions, rotated = _rotated(features)
    means = targets.mean(axis=0)
    inner, squares = rotated.T @ (targets - means), rotated * rotated
    errors, standard_errors = np.empty(len(penalties)), np.empty(len(penalties))
    for place, penalty in enumerate(penalties):
        missed = targets - _left_out(sizes, rotated, squares, inner, means, targets, n * penalty)
        by_row = (missed * missed).mean(axis=1)
        errors[place] = by_row.mean()
        standard_errors[place] = by_row.std() / np.sqrt(n)
    best = int(errors.argmin())
    slack = standard_errors[best] if selection == "one_se" else _TIE * errors[best]
    place = int(np.flatnonzero(errors <= errors[best] + slack)[-1])
    penalty = float(penalties[place])
    return Ridge(
        penalty, RidgePath(penalties, errors, standard_errors), place, means,
        _left_out(sizes, rotated, squares, inner, means, targets, n * penalty),
        sizes, directions, rotated, inner / (sizes + n * penalty)[:, None],
    )  # fmt: skip


def _rotated(features: Array) -> tuple[Array, Array, Array]:
    """S, V and T from the smaller of the two Gram matrices."""
    n, p = features.shape
    if n >= p:
        sizes, directions = eigh(features.T @ features, overwrite_a=True, check_finite=False)
        kept = sizes > _ROUNDING * max(sizes[-1], 0.0)
        directions = directions[:, kept]
        return sizes[kept], directions, features @ directions
    sizes, rows = eigh(features @ features.T, overwrite_a=True, check_finite=False)
    kept = sizes > _ROUNDING * max(sizes[-1], 0.0)
    roots = np.sqrt(sizes[kept])
    return sizes[kept], features.T @ rows[:, kept] / roots, rows[:, kept] * roots


def _left_out(
    sizes: Array, rotated: Array, squares: Array, inner: Array, means: Array, targets: Array, penalty: float
) -> Array:
    shrunk = 1.0 / (sizes + penalty)
    leverage = 1.0 / len(rotated) + squares @ shrunk
    fitted = means + rotated @ (inner * shrunk[:, None])
    left_out: Array = targets - (targets - fitted) / np.maximum(1.0 - leverage, _LEAST_FREE)[:, None]
    return left_out
