r"""Ridge regression with an intercept, its λ by leave-one-out errors in closed form, groups left out together.

With the hat matrix H of a ridge regression and the residuals r of all rows, what weights that have not seen the group
G miss of it is

.. math:: (I - H_{GG})^{-1} r_G .

Where the rows of a group are equal, :math:`H_{GG} = h\,1 1^\top`, and this is
:math:`(r - \bar r) + \bar r / (1 - |G|\,h)`: the deviation from the mean of the group, and what is missed of the mean.

With features :math:`\Phi = U S^{1/2} V^\top` and targets :math:`\tilde y`, both of mean 0, what weights that have not
seen row i miss of its target is

.. math::

   y_i - t_{-i} = \frac{y_i - t_i}{1 - h_i}, \qquad
   y - t = \tilde y - U\,\frac{S}{S + n\lambda}\,U^\top \tilde y, \qquad
   h_i = \frac1n + \sum_j \frac{S_j\,U_{ij}^2}{S_j + n\lambda}.

Both sides of the fraction vanish with λ where there are more features than rows, so each is summed from the parts that
remain, :math:`n\lambda / (S + n\lambda)`, and not as a difference.
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.geometry.row_groups import first_rows
from qmedoid.kernels.cross_entropy import log_softmax, row_losses

_DIRECTIONS_SHARE = 0.5  # progress of a ridge when its directions are found

# Numbers that are copied at a time.
_BLOCK_NUMBERS = 2**22
# Products of numbers along a path of λ; of larger groups, some judge λ.
_MOST_PRODUCTS = 2e10


class RowGroups:
    """Rows that are left out together.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of every row.
    rows : ndarray of shape (n, M)

    Attributes
    ----------
    twins : ndarray of shape (n,)
        Sets of equal rows that make up a whole group; all other rows are alone in theirs.
    sizes : ndarray of shape (n,)
        Rows in the set of each row.
    batches : tuple of ndarray of shape (m, s)
        Rows of the m groups of s rows each that are not all equal.
    """

    def __init__(self, groups: Codes, rows: Array) -> None:
        n_groups = int(groups.max()) + 1
        differ = (rows != rows[first_rows(groups)[groups]]).any(axis=1)
        mixed = np.bincount(groups, weights=differ, minlength=n_groups) > 0
        order = np.argsort(groups, kind="stable")
        counts = np.bincount(groups, minlength=n_groups)
        ends = np.cumsum(counts)
        batches = list[Codes]()
        for size in np.unique(counts[mixed]):
            chosen = np.flatnonzero(mixed & (counts == size))
            batches.append(order[(ends[chosen] - size)[:, None] + np.arange(size)])
        alone = mixed[groups]
        self.groups, self.batches = groups, tuple(batches)
        self.twins: Codes = np.where(alone, n_groups + np.arange(len(groups)), groups)
        self.sizes: Array = np.where(alone, 1, counts[groups]).astype(np.float64)

    def means(self, values: Array) -> Array:
        """Mean of the values (n, K) over the equal rows of each row."""
        sums = [np.bincount(self.twins, weights=column)[self.twins] for column in values.T]
        return np.column_stack(sums) / self.sizes[:, None]

    def judging(self, n_directions: int, n_penalties: int) -> tuple["RowGroups", Flags]:
        """The groups that λ is judged by within the time there is, and the rows of these and of all others."""
        products = n_directions * n_penalties * sum(rows.shape[1] * rows.size for rows in self.batches)
        share, judged = min(1.0, _MOST_PRODUCTS / max(products, 1)), np.ones(len(self.groups), dtype=np.bool_)
        batches = []
        for rows in self.batches:
            kept = max(1, round(share * len(rows)))
            judged[rows[kept:]] = False
            batches.append(rows[:kept])
        judging = copy(self)
        judging.batches = tuple(batches)
        return judging, judged

    def blocks(self, n_numbers: int) -> Iterator[Codes]:
        """The batches, no more rows at a time than make a block where each row has so many numbers."""
        for rows in self.batches:
            step = max(1, _BLOCK_NUMBERS // (rows.shape[1] * (n_numbers + rows.shape[1])))
            yield from (rows[part] for part in row_slices(rows, step))


PENALTIES: Array = 10.0 ** np.arange(-7.0, 2.25, 0.5)
"""The path of λ, in units of the number of rows."""
_PATHS = PENALTIES, np.concatenate([10.0 ** np.arange(-9.0, -7.25, 0.5), PENALTIES])
# Rows from which on the path goes further down: a table without noise asks for it.
_FURTHER_FROM = 1000
# Directions whose share of the largest is below this are rounding.
_ROUNDING = 1e-11
# Errors that differ by less than this share are the same; the larger λ is then the simpler model.
_TIE = 1e-9
# Rows that lie wholly in the directions have nothing else, but for rounding.
_NOTHING = 1e-9
# Steps of a multinomial fit at most, and of one without a fold, which begins at the weights of all rows.
_MOST_STEPS, _FOLD_STEPS = 60, 30
# Relative decrease of the loss at which L-BFGS stops, and one that is good enough to compare values of λ.
_TOLERANCE, _ROUGHLY = 1e-6, 1e-5
# Places to begin at again, per unit, where steps did not arrive.
_GRID = 16
# Multiples of λ that are tried, the largest first.
_STRENGTHS: tuple[float, ...] = (64.0, 16.0, 4.0, 1.0)
# Numbers of a block of rows: they stay in the cache for both products of a step.
_CACHED_NUMBERS = 2**16


class RidgePath(NamedTuple):
    """Leave-one-out errors along a path of λ, rising; each array of the shape (L,)."""

    penalties: Array  # the λ, in units of the number of rows
    errors: Array  # mean squared leave-one-out error of the outputs, mean of the bags

    @property
    def place(self) -> int:
        """Place of the λ that is taken: of those that are as good, the largest."""
        least = self.errors.min()
        return int(np.flatnonzero(self.errors <= least + _TIE * least)[-1])


class Ridge(NamedTuple):
    """A ridge regression along the r principal directions of p features, with K outputs."""

    penalty: float  # λ, in units of the number of rows
    path: RidgePath
    means: Array  # means of the targets: the intercepts, (K,)
    out_of_fold: Array  # outputs of weights that have not seen the row, (n, K)
    sizes: Array  # S, rising, (r,)
    directions: Array  # V, (p, r)
    rotated: Array  # T, (n, r)
    coefficients: Array  # weights of the directions, (r, K)


def fit_ridge(
    features: Array,
    targets: Array,
    judged: Codes | None = None,
    penalties: Array | None = None,
    together: RowGroups | None = None,
    *,
    same_intercept: bool = False,
    row_weights: Array | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Ridge:
    """Ridge of targets (n, K) on features (n, p) of mean 0.

    Errors are those of the `judged` rows alone, if given: features may have been chosen by what the others say. Rows
    that belong `together` are left out together. With `same_intercept` the outputs of left-out rows have the means of
    all rows: without it, a row is seen by its being missing from the mean, which is all that there is to see where
    features say nothing, and rows are ordered against their targets. λ is judged without.

    Rows with weights u count so much, and features are of weighted mean 0: rows and targets times √u are those of a
    plain ridge, where the intercept is a further feature √u.
    """
    n, roots = len(features), None if row_weights is None else np.sqrt(row_weights)[:, None]
    penalties = _PATHS[n >= _FURTHER_FROM] if penalties is None else penalties
    sizes, directions, rotated = _rotated(features if roots is None else roots * features)
    means = np.average(targets, axis=0, weights=row_weights) if roots is not None else targets.mean(axis=0)
    centered = targets - means if roots is None else roots * (targets - means)
    missing = Missing(rotated / np.sqrt(sizes), centered, together, row_weights)
    judging, rows = missing, judged if judged is not None else np.arange(n)
    if together is not None:
        some, by_some = together.judging(len(sizes), len(penalties))
        judging, rows = copy(missing), rows[by_some[rows]]
        judging.together = some
    errors = np.empty(len(penalties))
    for place, penalty in enumerate(penalties):
        errors[place] = judging.squared_errors(n * penalty / (sizes + n * penalty))[rows].mean()
        progress(_DIRECTIONS_SHARE + (1.0 - _DIRECTIONS_SHARE) * (place + 1) / len(penalties))
    path = RidgePath(penalties, errors)
    penalty = float(penalties[path.place])
    missed = missing.out_of_fold(n * penalty / (sizes + n * penalty), same_intercept=same_intercept)
    coefficients = rotated.T @ centered / (sizes + n * penalty)[:, None]
    if roots is not None:
        missed, rotated = missed / roots, features @ directions
    return Ridge(penalty, path, means, targets - missed, sizes, directions, rotated, coefficients)


class Missing:
    """What a ridge misses, from U and the targets of mean 0; squares and what is free are of a row and its equals."""

    def __init__(
        self, units: Array, centered: Array, together: RowGroups | None, row_weights: Array | None = None
    ) -> None:
        squares, sizes, n_rows = units * units, np.ones(len(units)), len(units)
        inner = units.T @ centered
        if together is not None:
            sizes = together.sizes
            squares *= sizes[:, None]
        in_mean = sizes if row_weights is None else row_weights * sizes
        free = 1.0 - in_mean / n_rows - squares.sum(axis=1)
        self.units, self.squares, self.inner, self.together = units, squares, inner, together
        self.outside: Array = centered - units @ inner
        self.free: Array = np.where(free > _NOTHING, free, 0.0)
        self.n_rows, self.row_weights = n_rows, row_weights

    def squared_errors(self, shrunk: Array) -> Array:
        """Mean squared error of the outputs of every row, shape (n,)."""
        missed = self.out_of_fold(shrunk)
        return np.asarray((missed * missed).mean(axis=1))

    def out_of_fold(self, shrunk: Array, *, same_intercept: bool = False) -> Array:
        """What is missed of every row by weights that have not seen it, where directions are shrunk by these shares."""
        missed = self.outside + self.units @ (self.inner * shrunk[:, None])
        # A single row leaves nothing, and nothing is missed of it.
        left = np.maximum(self.free + self.squares @ shrunk, np.finfo(np.float64).tiny)
        if same_intercept:
            in_mean = 1.0 if self.together is None else self.together.sizes
            left += (in_mean if self.row_weights is None else self.row_weights * in_mean) / self.n_rows
        if self.together is not None:
            means = self.together.means(missed)
            found: Array = (missed - means) + means / left[:, None]
            for rows in self.together.blocks(self.units.shape[1]):
                of_group = self.units[rows]
                roots = np.ones(rows.shape) if self.row_weights is None else np.sqrt(self.row_weights[rows])
                mean = roots[:, :, None] * roots[:, None, :] / self.n_rows
                hat = mean + (of_group * (1.0 - shrunk)) @ of_group.transpose(0, 2, 1)
                found[rows] = np.linalg.solve(np.eye(rows.shape[1]) - hat, missed[rows])
            return found
        return np.asarray(missed / left[:, None])


def _rotated(features: Array) -> tuple[Array, Array, Array]:
    """S, V and T from the smaller of the two Gram matrices."""
    n, p = features.shape
    if n >= p:
        sizes, directions = principal(features.T @ features)
        return sizes, directions, features @ directions
    sizes, rows = principal(features @ features.T)
    roots = np.sqrt(sizes)
    return sizes, features.T @ rows / roots, rows * roots


def principal(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues of a Gram matrix, rising, and their vectors, without those that are rounding."""
    sizes, vectors = eigh(gram, overwrite_a=True, check_finite=False)
    kept = sizes > _ROUNDING * max(sizes[-1], 0.0)
    return sizes[kept], vectors[:, kept]


def fit_multinomial(
    rotated: Array,
    codes: Codes,
    penalty: float,
    start: tuple[Array, Array],
    folds: Codes,
    row_weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    r"""Multinomial regression along the directions T of a ridge (n, r), for three or more classes.

    .. math:: \min_{b, \beta} -\sum_i \log p_{i,y_i} + \tfrac\lambda2 \sum_c |\beta_c|^2, \qquad
              p_i = \operatorname{softmax}(b + T_i\beta)

    Intercepts (C,), coefficients (r, C) and outputs (n, C) without the fold of each row. λ is `penalty` or larger, by
    the likelihood of the first fold: the best λ of squared errors is often too small here. L-BFGS needs few steps along
    the principal directions: there the curvature is nearly diagonal, and known.
    """
    u = np.ones(len(codes)) if row_weights is None else row_weights
    n_classes, step = len(start[0]), max(1, _CACHED_NUMBERS // max(1, rotated.shape[1]))
    squares = sum(np.einsum("ij,ij->j", u[at, None] * rotated[at], rotated[at]) for at in row_slices(len(codes), step))
    # A typical curvature of each direction: in these units all of them are alike.
    curvature = 0.25 * (1.0 - 1.0 / n_classes) * np.concatenate([[u.sum()], squares])

    def fit(chosen: Flags, strength: float, start: Array, tolerance: float, most_steps: int) -> tuple[Array, Array]:
        """Weights of some rows from a start, shape (1 + r, C), and a start for other rows.

        The curvature of some rows is about as large as their share.
        """
        own_rotated, own_codes, own_u, share = rotated[chosen], codes[chosen], u[chosen], np.average(chosen, weights=u)
        units = 1.0 / np.sqrt(share * (curvature + strength))[:, None]

        def loss(flat: Array) -> tuple[float, Array]:
            weights = flat.reshape(-1, n_classes) * units
            gradient = np.vstack([np.zeros(n_classes), share * strength * weights[1:]])
            total = 0.5 * share * strength * float((weights[1:] ** 2).sum())
            for at in row_slices(len(own_codes), step):
                block, each = own_rotated[at], np.arange(len(own_codes[at]))
                log_p = log_softmax(weights[0] + block @ weights[1:])
                missed = np.exp(log_p)
                missed[each, own_codes[at]] -= 1.0
                missed *= own_u[at, None]
                gradient[0] += missed.sum(axis=0)
                gradient[1:] += block.T @ missed
                total -= float((own_u[at] * log_p[each, own_codes[at]]).sum())
            return total, (gradient * units).ravel()

        first = (start / units).ravel()
        found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": most_steps, "ftol": tolerance})
        # Steps that do not arrive multiply rounding a million times, and the next ones would do so again: they begin
        # at a place that other processors find, too.
        place = found.x if found.success else np.round(_GRID * found.x) / _GRID
        return found.x.reshape(-1, n_classes) * units, place.reshape(-1, n_classes) * units

    held, lowest, factor, near = folds == 0, np.inf, _STRENGTHS[0], np.vstack(start)
    best = near
    for strength in _STRENGTHS:
        weights, near = fit(~held, strength * penalty, near, _ROUGHLY, _MOST_STEPS)
        loss = float((u[held] * row_losses(weights[0] + rotated[held] @ weights[1:], codes[held])).mean())
        if not loss < lowest:
            break
        best, factor, lowest = near, strength, loss
    penalty, out_of_fold = factor * penalty, np.empty((len(codes), n_classes))
    fitted, near = fit(np.ones(len(codes), dtype=np.bool_), penalty, best, _TOLERANCE, _MOST_STEPS)
    for fold in range(folds.max() + 1):
        held = folds == fold
        weights, _ = fit(~held, penalty, near if fold else best, _TOLERANCE, _FOLD_STEPS)
        out_of_fold[held] = weights[0] + rotated[held] @ weights[1:]
    return fitted[0], fitted[1:], out_of_fold
