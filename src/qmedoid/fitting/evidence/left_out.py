r"""Outputs of rows whose whole group is left out of a weighted sum, in closed form.

With the hat matrix H of a ridge regression and the residuals r of all rows, what weights that have not seen the group
G miss of it is

.. math:: (I - H_{GG})^{-1} r_G .

Where the rows of a group are equal, :math:`H_{GG} = h\,1 1^\top`, and this is
:math:`(r - \bar r) + \bar r / (1 - |G|\,h)`: the deviation from the mean of the group, and what is missed of the mean.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.fitting.row_groups import first_rows

# Numbers that are copied at a time.
_BLOCK_NUMBERS = 2**22
# Products of numbers along a path of λ; of larger groups, some judge λ.
_MOST_PRODUCTS = 2e10


class Together(NamedTuple):
    """Rows that are left out together.

    Attributes
    ----------
    groups : ndarray of shape (n,)
        Group of every row.
    twins : ndarray of shape (n,)
        Sets of equal rows that make up a whole group; all other rows are alone in theirs.
    sizes : ndarray of shape (n,)
        Rows in the set of each row.
    batches : tuple of ndarray of shape (m, s)
        Rows of the m groups of s rows each that are not all equal.
    """

    groups: Codes
    twins: Codes
    sizes: Array
    batches: tuple[Codes, ...]

    @classmethod
    def of(cls, groups: Codes, rows: Array) -> "Together":
        """From the groups of rows (n, M)."""
        n_groups = int(groups.max()) + 1
        differ = (rows != rows[first_rows(groups)[groups]]).any(axis=1)
        mixed = np.bincount(groups, weights=differ, minlength=n_groups) > 0
        order = np.argsort(groups, kind="stable")
        counts = np.bincount(groups, minlength=n_groups)
        ends = np.cumsum(counts)
        batches = []
        for size in np.unique(counts[mixed]):
            chosen = np.flatnonzero(mixed & (counts == size))
            batches.append(order[(ends[chosen] - size)[:, None] + np.arange(size)])
        alone = mixed[groups]
        twins = np.where(alone, n_groups + np.arange(len(groups)), groups)
        sizes = np.where(alone, 1, counts[groups]).astype(np.float64)
        return cls(groups, twins, sizes, tuple(batches))

    def means(self, values: Array) -> Array:
        """Mean of the values (n, K) over the equal rows of each row."""
        sums = [np.bincount(self.twins, weights=column)[self.twins] for column in values.T]
        return np.column_stack(sums) / self.sizes[:, None]

    def judging(self, n_directions: int, n_penalties: int) -> tuple["Together", Flags]:
        """The groups that λ is judged by within the time there is, and the rows of these and of all others."""
        products = n_directions * n_penalties * sum(rows.shape[1] * rows.size for rows in self.batches)
        share, judged = min(1.0, _MOST_PRODUCTS / max(products, 1)), np.ones(len(self.groups), dtype=np.bool_)
        batches = []
        for rows in self.batches:
            kept = max(1, round(share * len(rows)))
            judged[rows[kept:]] = False
            batches.append(rows[:kept])
        return self._replace(batches=tuple(batches)), judged

    def blocks(self, n_numbers: int) -> Iterator[Codes]:
        """The batches, no more rows at a time than make a block where each row has so many numbers."""
        for rows in self.batches:
            step = max(1, _BLOCK_NUMBERS // (rows.shape[1] * (n_numbers + rows.shape[1])))
            yield from (rows[start : start + step] for start in range(0, len(rows), step))


def missed_by_ridge(together: Together, missed: Array, left: Array, units: Array, shrunk: Array) -> Array:
    """What weights that have not seen a row's group miss of it, shape (n, K).

    Parameters
    ----------
    missed : ndarray of shape (n, K)
        Residuals.
    left : ndarray of shape (n,)
        1 − |G| h of every row and its twins.
    units : ndarray of shape (n, r)
        U.
    shrunk : ndarray of shape (r,)
        Shares by which directions are shrunk.
    """
    means = together.means(missed)
    found: Array = (missed - means) + means / left[:, None]
    for rows in together.blocks(units.shape[1]):
        own = units[rows]
        inverse = np.eye(rows.shape[1]) - 1.0 / len(units) - (own * (1.0 - shrunk)) @ own.transpose(0, 2, 1)
        found[rows] = np.linalg.solve(inverse, missed[rows])
    return found


def moved_logits(together: Together, reach: Array, curvature: Array, residuals: Array, least_free: float) -> Array:
    r"""By how much the logits of rows that differ from others of their group fall when it is left out, shape (n,).

    One Newton step moves them by :math:`Q(I - WQ)^{-1} r` with :math:`Q = T_G H^{-1} T_G^\top`; 0 for other rows.

    Parameters
    ----------
    reach : ndarray of shape (r, n)
        :math:`L^{-1} T^\top`, where :math:`H = L L^\top`.
    curvature, residuals : ndarray of shape (n,)
        Diagonal of W, and y − p.
    least_free : float
        Least eigenvalue of I − WQ.
    """
    moved = np.zeros(len(curvature))
    for rows in together.blocks(len(reach)):
        roots = np.sqrt(curvature[rows])
        own = reach[:, rows].transpose(1, 2, 0) * roots[:, :, None]
        values, vectors = np.linalg.eigh(own @ own.transpose(0, 2, 1))
        along = np.einsum("mij,mi->mj", vectors, residuals[rows] / roots)
        along *= values / np.maximum(1.0 - values, least_free)
        moved[rows] = np.einsum("mij,mj->mi", vectors, along) / roots
    return moved
