r"""Ridge regression with an intercept, its λ by leave-one-out errors in closed form.

With features :math:`\Phi = U S^{1/2} V^\top` and targets :math:`\tilde y`, both of mean 0, what weights that have not
seen row i miss of its target is

.. math::

   y_i - t_{-i} = \frac{y_i - t_i}{1 - h_i}, \qquad
   y - t = \tilde y - U\,\frac{S}{S + n\lambda}\,U^\top \tilde y, \qquad
   h_i = \frac1n + \sum_j \frac{S_j\,U_{ij}^2}{S_j + n\lambda}.

Both sides of the fraction vanish with λ where there are more features than rows, so each is summed from the parts that
remain, :math:`n\lambda / (S + n\lambda)`, and not as a difference.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.evidence.left_out import Together, missed_by_ridge
from qmedoid.fitting.evidence.settings import RidgePath, Selection
from qmedoid.fitting.row_groups import group_sums, numbered

PENALTIES: Array = 10.0 ** np.arange(-7.0, 2.25, 0.5)
"""The path of λ, in units of the number of rows."""

# Directions whose share of the largest is below this are rounding.
_ROUNDING = 1e-11
# Errors that differ by less than this share are the same; the larger λ is then the simpler model.
_TIE = 1e-9
# Rows that lie wholly in the directions have nothing else, but for rounding.
_NOTHING = 1e-9


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


def fit_ridge(
    features: Array,
    targets: Array,
    selection: Selection,
    judged: Codes | None = None,
    penalties: Array = PENALTIES,
    together: Together | None = None,
    *,
    same_intercept: bool = False,
) -> Ridge:
    """Ridge of targets (n, K) on features (n, p) of mean 0.

    Errors are those of the `judged` rows alone, if given: features may have been chosen by what the others say. Rows
    that belong `together` are left out together. With `same_intercept` the outputs of left-out rows have the means of
    all rows: without it, a row is seen by its being missing from the mean, which is all that there is to see where
    features say nothing, and rows are ordered against their targets. λ is judged without.
    """
    n = len(features)
    sizes, directions, rotated = _rotated(features)
    means = targets.mean(axis=0)
    missing = _Missing.of(rotated / np.sqrt(sizes), targets - means, together)
    judging, rows, groups = missing, judged if judged is not None else np.arange(n), None
    if together is not None:
        some, by_some = together.judging(len(sizes), len(penalties))
        judging, rows = missing._replace(together=some), rows[by_some[rows]]
        groups = numbered(together.groups[rows])
    errors, standard_errors = np.empty(len(penalties)), np.empty(len(penalties))
    for place, penalty in enumerate(penalties):
        missed = judging.left_out(n * penalty / (sizes + n * penalty))
        by_row = (missed * missed).mean(axis=1)[rows]
        errors[place] = by_row.mean()
        deviations = group_sums(by_row - errors[place], groups)
        standard_errors[place] = np.sqrt((deviations * deviations).sum()) / len(by_row)
    best = int(errors.argmin())
    slack = standard_errors[best] if selection == "one_se" else _TIE * errors[best]
    place = int(np.flatnonzero(errors <= errors[best] + slack)[-1])
    penalty = float(penalties[place])
    return Ridge(
        penalty, RidgePath(penalties, errors, standard_errors), place, means,
        targets - missing.left_out(n * penalty / (sizes + n * penalty), same_intercept=same_intercept),
        sizes, directions, rotated, rotated.T @ (targets - means) / (sizes + n * penalty)[:, None],
    )  # fmt: skip


class _Missing(NamedTuple):
    """What a ridge misses: U, U², their share of the targets, and what lies outside of U."""

    units: Array
    squares: Array
    inner: Array
    outside: Array
    free: Array
    together: Together | None

    @classmethod
    def of(cls, units: Array, centered: Array, together: Together | None) -> "_Missing":
        """From U and the targets of mean 0; squares and what is free are those of a row and its equals."""
        squares, inner, sizes = units * units, units.T @ centered, np.ones(len(units))
        if together is not None:
            sizes = together.sizes
            squares *= sizes[:, None]
        free = 1.0 - sizes / len(units) - squares.sum(axis=1)
        return cls(units, squares, inner, centered - units @ inner, np.where(free > _NOTHING, free, 0.0), together)

    def left_out(self, shrunk: Array, *, same_intercept: bool = False) -> Array:
        """What is missed of every row by weights that have not seen it, where directions are shrunk by these shares."""
        missed = self.outside + self.units @ (self.inner * shrunk[:, None])
        # A single row leaves nothing, and nothing is missed of it.
        left = np.maximum(self.free + self.squares @ shrunk, np.finfo(np.float64).tiny)
        if same_intercept:
            left += (1.0 if self.together is None else self.together.sizes) / len(left)
        if self.together is not None:
            return missed_by_ridge(self.together, missed, left, self.units, shrunk)
        return np.asarray(missed / left[:, None])


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
