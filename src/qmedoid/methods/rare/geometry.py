r"""Features of a rare-event model: deltas to the nearest prototypes of both classes, and of single columns.

.. math::

   \Delta_{g,k} = \frac{D_0 - D_1}{D_0 + D_1}, \qquad
   N_f = \log\frac{\bar N_1(x_f) + \varepsilon}{\bar N_0(x_f) + \varepsilon}, \qquad
   L_f = \frac{(x_f - l_f)^2 - (x_f - h_f)^2}{2 (h_f - l_f)}, \qquad
   A_{c,f} = |x_f - a_{c,f}|

:math:`D_c` is the mean distance to the k nearest prototypes of class c in a metric g, :math:`\bar N_c` the mean
nearness :math:`e^{-|x_f - m_f|/\ell}` to the prototypes of the class on one column, L says which of two real
records, the lowest l and the highest h on the column, is the nearer, and A how far the middle record a of a class is.
So every feature is made of distances to real training rows on a group of columns.

A SWAP test need not measure all of them. A delta takes the distances to the prototypes that the closed form finds
nearest, and on a column the distance to the nearest prototype gives those to the others.

The mean nearness of a value,

.. math:: N_c(x) = \frac{1}{n_c} \sum_{m \in c} e^{-|x - m| / \ell},

is exact and takes logarithmic time: a row to the left counts :math:`e^{-(x-k)/\ell}` times what it counts at the knot k
next to x, and one to the right likewise, so two running sums per knot give the sum over all rows.

So a SWAP test has one distance to measure on a column: the one to the row nearest to x, of which the closed form says
on which side of x it lies. The other rows lie on the same line, at known distances from this one:

.. math:: |x - m| = |x - k| + |k - m| \qquad (m \le k \le x \text{ or } x \le k \le m)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.overlap import SwapTestFunction, measured_overlap, overlap_distance
from qmedoid.geometry.scaling import SignedLog
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared
from qmedoid.methods.part import measured_nearest
from qmedoid.schema import RefusedError, Values

# What a squared difference counts at most: squares of the largest values then stay within the range of a double.
_MOST_WEIGHT = 1000.0


Evidence = tuple[Array, Array, Codes]
"""Features (n, F), and squared distance and place of the nearest common and rare prototype, each (n, 2)."""


class LineKernel:
    """Running sums over M columns with K rows (K, M) of two groups, 0 and 1, and the length ℓ of the nearness.

    `counts` (2,) are the rows of each group, and `knots` (M, K + 2) the values in ascending order, between −∞ and ∞;
    `left` and `right` (M, 2, K + 2) are for each knot what rows at it or to its left, or to its right, add up to there.
    """

    def __init__(self, rows: Array, groups: Codes, length: float) -> None:
        k, m = rows.shape
        order = np.argsort(rows, axis=0, kind="stable")
        inner = np.take_along_axis(rows, order, axis=0)
        belongs = (groups[order][:, None, :] == np.array([0, 1])[:, None]).astype(np.float64)
        decay = np.exp(-np.diff(inner, axis=0) / length)
        left, right = belongs.copy(), belongs.copy()
        for i in range(1, k):
            left[i] += left[i - 1] * decay[i - 1]
            right[k - 1 - i] += right[k - i] * decay[k - 1 - i]
        ends, padding = np.full((m, 1), np.inf), ((0, 0), (0, 0), (1, 1))
        self.length, self.counts = length, np.bincount(groups, minlength=2).astype(np.float64)
        self.knots = np.ascontiguousarray(np.hstack([-ends, inner.T, ends]))
        self.left, self.right = (np.pad(side.transpose(2, 1, 0), padding) for side in (left, right))

    def nearness(self, values: Array, own_group: Codes | None = None) -> tuple[Array, Array]:
        """Mean nearness of every value to both groups, each of shape (n, M).

        `own_group` is the group that the row itself belongs to and is not counted in, −1 for neither.
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


@dataclass(frozen=True, eq=False)
class RareGeometry:
    """The prototypes of a rare-event model, R rare and Q common ones, and the features of rows compared with them."""

    scaling: SignedLog  # of the M raw columns
    # Scaled prototypes; at least two of each.
    rare: Annotated[Array, Values("R M", largest=1e150, length=(2, 2**62))]
    common: Annotated[Array, Values("Q M", largest=1e150, length=(2, 2**62))]
    # Which common prototypes were chosen for their likeness to rare ones. Nearness on a column is to the others,
    # which represent their class.
    hard: Annotated[Flags, Values("Q", below=2)]
    # What a squared difference in each column counts, for each metric; the first finds the nearest prototypes.
    metrics: Annotated[Array, Values("metric_names M", least=0, most=_MOST_WEIGHT, length=(1, 2**62))]
    metric_names: tuple[str, ...]
    # The k of the nearest prototypes.
    counts: Annotated[tuple[int, ...], Values("k", least=1, most=MOST_NEAREST, order="rises", length=(1, MOST_NEAREST))]
    length: Annotated[float, Values(above=0)]  # ℓ and ε of the nearness on a column
    floor: Annotated[float, Values(above=0)]

    def validate(self) -> None:
        """Refuse stored prototypes that are all hard, and metrics that see no column."""
        if self.hard.all():
            raise RefusedError("hard must not be true of all common prototypes")
        if not self.metrics.any(axis=1).all():
            raise RefusedError("metrics must hold a number above 0 for each metric")

    @cached_property
    def kernel(self) -> LineKernel:
        """Nearness on every column to common (0) and to rare (1) prototypes."""
        typical = self.common[~self.hard]
        groups = np.repeat(np.arange(2, dtype=np.intp), [len(typical), len(self.rare)])
        return LineKernel(np.concatenate([typical, self.rare]), groups, self.length)

    @cached_property
    def middle(self) -> Array:
        """Half-way between the lowest and the highest prototype on every column, shape (M,); hard ones do not count."""
        typical = self.common[~self.hard]
        low = np.minimum(self.rare.min(axis=0), typical.min(axis=0))
        high = np.maximum(self.rare.max(axis=0), typical.max(axis=0))
        middle: Array = 0.5 * (low + high)
        return middle

    @cached_property
    def typical(self) -> Array:
        """The middle common and the middle rare prototype on every column, shape (2, M); hard ones do not count."""
        return np.array([np.sort(rows, axis=0)[(len(rows) - 1) // 2] for rows in (self.common[~self.hard], self.rare)])

    @cached_property
    def weighted(self) -> list[tuple[Codes, Array, Array, Array]]:
        """Of every metric the columns, the roots of their weights, and common and rare prototypes times these."""
        columns = [np.flatnonzero(weights) for weights in self.metrics]
        roots = [np.sqrt(weights[weights > 0]) for weights in self.metrics]
        return [
            (of, root, self.common[:, of] * root, self.rare[:, of] * root)
            for of, root in zip(columns, roots, strict=True)
        ]

    @cached_property
    def n_features(self) -> tuple[int, int, int, int]:
        """Numbers of deltas, of nearnesses, of positions and of distances to the middle of a class."""
        columns = self.rare.shape[1]
        return len(self.metrics) * len(self.counts), columns, columns, 2 * columns

    def by_column(self, scaled: Array, own: Codes | None) -> Array:
        """Nearness, position and distances to the middle of both classes on every column, shape (n, 4M).

        `own` are places of the rows among the rare and the common prototypes, shape (2, n), −1 for none: no row is
        compared with itself.
        """
        group = None
        if own is not None:
            typical = np.append(~self.hard, False)[own[1]]
            group = np.where(own[0] >= 0, 1, np.where(typical, 0, -1))
        common, rare = self.kernel.nearness(scaled, group)
        nearness = np.log((rare + self.floor) / (common + self.floor))
        return np.hstack([nearness, scaled - self.middle, *(np.abs(scaled - row) for row in self.typical)])

    def deltas(self, scaled: Array, own: Codes | None, swap_test: SwapTestFunction | None = None) -> Evidence:
        """Deltas of every metric and count, and the nearest prototypes of each class.

        The closed form finds the prototypes, and a SWAP test measures the distances of the deltas, if it is given.
        """
        deltas, squared, nearest = [], np.empty((len(scaled), 2)), np.empty((len(scaled), 2), dtype=np.intp)
        itself = (None, None) if own is None else (own[1], own[0])
        for number, (columns, roots, *classes) in enumerate(self.weighted):
            rows = np.ascontiguousarray(scaled[:, columns] * roots)
            means = []
            for c, prototypes in enumerate(classes):
                # A row that is itself a prototype has one less to be compared with.
                most = min(max(self.counts), len(prototypes) - 1)
                found, places = nearest_squared(rows, prototypes, k=most, own=itself[c], threads=1)
                distances = (
                    np.sqrt(found) if swap_test is None else measured_nearest(swap_test, rows, prototypes, places)
                )
                means.append([distances[:, :k].mean(axis=1) for k in self.counts])
                if number == 0:
                    squared[:, c], nearest[:, c] = found[:, 0], places[:, 0]
            deltas += [(far - near) / (far + near + 1e-300) for far, near in zip(*means, strict=True)]
        return np.column_stack(deltas), squared, nearest

    def evidence(self, scaled: Array, own: Codes | None = None) -> Evidence:
        """All features of scaled rows: deltas, nearness, positions, distances to the middle of both classes."""
        deltas, squared, nearest = self.deltas(scaled, own)
        return np.hstack([deltas, self.by_column(scaled, own)]), squared, nearest

    def measured_features(self, scaled: Array, swap_test: SwapTestFunction) -> Array:
        """The features of `evidence` from distances that a SWAP test measures, shape (n, F).

        In every metric these are the distances to the nearest prototypes of each class, as many as the largest of
        `counts`, and on every column the one to the nearest prototype. The closed form finds the prototypes, and their
        order is not changed by what is measured: the smallest of many distances with errors are too small.
        """
        columns = [
            self._measured_column(column, x, swap_test) for column, x in enumerate(np.ascontiguousarray(scaled.T))
        ]
        by_kind = (np.column_stack(kind) for kind in zip(*columns, strict=True))
        return np.hstack([self.deltas(scaled, None, swap_test)[0], *by_kind])

    def _measured_column(self, column: int, x: Array, swap_test: SwapTestFunction) -> tuple[Array, Array, Array, Array]:
        """Nearness, position and distances to the middle of both classes on one column, each of shape (n,)."""
        values = self.kernel.knots[column, 1:-1]
        place, below, above = beside = measured_beside(swap_test, x, values)
        common, rare = self.kernel.sums(column, place, below, above) / self.kernel.counts[:, None]
        nearness = np.log((rare + self.floor) / (common + self.floor))
        to_low, to_high = distances_beside(values, beside, values[[0, -1]]).T
        # A record between the lowest and the highest prototype is half-way where it is as far from the one as from the
        # other; beyond them, both distances are on the same side.
        side = np.where(place == 0, -1.0, np.where(place == len(values), 1.0, 0.0))
        position = 0.5 * np.where(side == 0.0, to_low - to_high, side * (to_low + to_high))
        to_common, to_rare = distances_beside(values, beside, self.typical[:, column]).T
        return nearness, position, to_common, to_rare
