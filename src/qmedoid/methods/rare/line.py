r"""Nearness to many rows on one column, and the distances to all of them from the one that is measured.

The mean nearness of a value,

.. math:: N_c(x) = \frac{1}{n_c} \sum_{m \in c} e^{-|x - m| / \ell},

is exact and takes logarithmic time: a row to the left counts :math:`e^{-(x-k)/\ell}` times what it counts at the knot k
next to x, and one to the right likewise, so two running sums per knot give the sum over all rows.

So a SWAP test has one distance to measure on a column: the one to the row nearest to x, of which the closed form says
on which side of x it lies. The other rows lie on the same line, at known distances from this one:

.. math:: |x - m| = |x - k| + |k - m| \qquad (m \le k \le x \text{ or } x \le k \le m)
"""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.overlap import SwapTestFunction, measured_overlap, overlap_distance


@dataclass(frozen=True, eq=False)
class LineKernel:
    """Running sums over M columns with K rows of two groups.

    Attributes
    ----------
    length : float
        ℓ, above 0.
    counts : ndarray of shape (2,)
        Rows of each group.
    knots : ndarray of shape (M, K + 2)
        Values of the rows in ascending order, between −∞ and ∞.
    left, right : ndarray of shape (M, 2, K + 2)
        For each knot what rows at it or to its left, or at it or to its right, add up to there.
    """

    length: float
    counts: Array
    knots: Array
    left: Array
    right: Array

    def nearness(self, values: Array, own_group: Codes | None = None) -> tuple[Array, Array]:
        """Mean nearness of every value to both groups, each of shape (n, M).

        Parameters
        ----------
        values : ndarray of shape (n, M)
        own_group : ndarray of shape (n,), or None
            Group that the row itself belongs to and is not counted in, −1 for neither.
        """
        sums = np.empty((2, values.shape[1], len(values)))
        for column, x in enumerate(np.ascontiguousarray(values.T)):
            knots = self.knots[column]
            place = np.searchsorted(knots[1:-1], x, side="right")
            sums[:, column] = self.sums(column, place, x - knots[place], knots[place + 1] - x)
        means = []
        for group in (0, 1):
            count = np.full(len(values), self.counts[group])
            if own_group is not None:
                itself = own_group == group
                count -= itself
                # What is left of a sum of rounded terms may lie below zero by a rounding.
                sums[group][:, itself] = np.maximum(sums[group][:, itself] - 1.0, 0.0)
            means.append((sums[group] / np.maximum(count, 1.0)).T)
        return means[0], means[1]

    def sums(self, column: int, place: Codes, below: Array, above: Array) -> Array:
        """Sums of nearness to both groups on one column, shape (2, n), from distances to the knots beside each value.

        `place` is the number of knots at or below each value, without −∞.
        """
        left, right = self.left[column][:, place], self.right[column][:, place + 1]
        return np.asarray(left * np.exp(below / -self.length) + right * np.exp(above / -self.length))


def line_kernel(rows: Array, groups: Codes, length: float) -> LineKernel:
    """The kernel of rows (K, M) that belong to the groups 0 and 1."""
    k, m = rows.shape
    order = np.argsort(rows, axis=0, kind="stable")
    inner = np.take_along_axis(rows, order, axis=0)
    belongs = (groups[order][:, None, :] == np.array([0, 1])[:, None]).astype(np.float64)
    decay = np.exp(-np.diff(inner, axis=0) / length)
    left, right = belongs.copy(), belongs.copy()
    for i in range(1, k):
        left[i] += left[i - 1] * decay[i - 1]
        right[k - 1 - i] += right[k - i] * decay[k - 1 - i]
    ends = np.full((m, 1), np.inf)
    padding = ((0, 0), (0, 0), (1, 1))
    return LineKernel(
        length,
        np.bincount(groups, minlength=2).astype(np.float64),
        np.ascontiguousarray(np.hstack([-ends, inner.T, ends])),
        np.pad(left.transpose(2, 1, 0), padding),
        np.pad(right.transpose(2, 1, 0), padding),
    )


Beside = tuple[Codes, Array, Array]
"""How many of K rising values are at or below each of n records, and the distances to the value before this place and
to the one at it; inf where there is none."""


def distances_beside(known: Array, beside: Beside, values: Array) -> Array:
    """Distances of records beside `known` values to some of these, (q,) to (n, q)."""
    place, below, above = beside
    lower, upper = (side[:, None] for side in _beside(known, place))
    with np.errstate(invalid="ignore"):  # beyond the ends, on the side that is not taken
        on_left, on_right = below[:, None] + (lower - values), above[:, None] + (values - upper)
    return np.where(values <= lower, on_left, on_right)


def measured_beside(swap_test: SwapTestFunction, x: Array, values: Array) -> Beside:
    """Measure the distance of every record (n,) to the nearest of the values (K,), which are in ascending order.

    What is measured is held within the gap of the two values beside the record, and what is left of the gap is the
    distance to the other one.
    """
    place = np.searchsorted(values, x, side="right")
    lower, upper = _beside(values, place)
    is_lower = x - lower <= upper - x
    nearest, overlap = np.where(is_lower, lower, upper), np.empty(len(x))
    order = np.argsort(nearest, kind="stable")
    # Records with the same nearest value are measured in one call.
    for rows in np.split(order, np.flatnonzero(np.diff(nearest[order])) + 1) if len(x) else ():
        overlap[rows] = measured_overlap(swap_test, x[rows, None], nearest[rows[:1], None])[:, 0]
    found = np.minimum(overlap_distance(overlap, np.abs(x), np.abs(nearest)), upper - lower)
    rest = upper - lower - found
    return place, np.where(is_lower, found, rest), np.where(is_lower, rest, found)


def _beside(values: Array, place: Codes) -> tuple[Array, Array]:
    """The value before each place and the one at it, −∞ and ∞ beyond the ends."""
    ends = np.concatenate([[-np.inf], values, [np.inf]])
    return ends[place], ends[place + 1]
