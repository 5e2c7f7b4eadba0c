r"""Mean nearness of a value to the rows of each of two classes on one column, exact and in logarithmic time.

.. math:: N_c(x) = \frac{1}{n_c} \sum_{m \in c} e^{-|x - m| / \ell}

On a line a row to the left counts :math:`e^{-(x-k)/\ell}` times what it counts at the knot k next to x, and one to the
right likewise. So two running sums per knot, kept once, give the sum over all rows from the two knots around x.
"""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes


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

    def nearness(self, values: Array, own: Codes | None = None) -> tuple[Array, Array]:
        """Mean nearness of every value to both groups, each of shape (n, M).

        Parameters
        ----------
        values : ndarray of shape (n, M)
        own : ndarray of shape (n,), or None
            Group in which the row itself stands and is left out, −1 for neither.
        """
        sums = np.empty((2, values.shape[1], len(values)))
        for column, x in enumerate(np.ascontiguousarray(values.T)):
            knots = self.knots[column]
            place = np.searchsorted(knots[1:-1], x, side="right")
            from_left = np.exp((knots[place] - x) / self.length)
            from_right = np.exp((x - knots[place + 1]) / self.length)
            for group in (0, 1):
                left, right = self.left[column, group], self.right[column, group]
                sums[group, column] = left[place] * from_left + right[place + 1] * from_right
        means = []
        for group in (0, 1):
            count = np.full(len(values), self.counts[group])
            if own is not None:
                itself = own == group
                count -= itself
                # What is left of a sum of rounded terms may lie below zero by a rounding.
                sums[group][:, itself] = np.maximum(sums[group][:, itself] - 1.0, 0.0)
            means.append((sums[group] / np.maximum(count, 1.0)).T)
        return means[0], means[1]


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
