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

The mean nearness of a value on one column,

.. math:: N_c(x) = \frac{1}{n_c} \sum_{m \in c} e^{-|x - m| / \ell},

is exact and takes logarithmic time: a row to the left counts :math:`e^{-(x-k)/\ell}` times what it counts at the knot k
next to x, and one to the right likewise, so two running sums per knot give the sum over all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.scaling import SignedLog
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared
from qmedoid.schema import RefusedError, Values


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
            from_left = np.exp((knots[place] - x) / self.length)
            from_right = np.exp((x - knots[place + 1]) / self.length)
            for group in (0, 1):
                left, right = self.left[column, group], self.right[column, group]
                sums[group, column] = left[place] * from_left + right[place + 1] * from_right
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


# What a squared difference counts at most: squares of the largest values then stay within the range of a double.
_MOST_WEIGHT = 1000.0
Distances = Callable[[Array, Array], Array]
"""Distance of every row to every prototype, (n, g) and (q, g) to (n, q)."""


class OwnPlaces(NamedTuple):
    """Places of n rows among the rare and common prototypes, −1 for none: no row is compared with itself."""

    rare: Codes
    common: Codes

    def part(self, rows: slice) -> "OwnPlaces":
        """The same for some of the rows."""
        return OwnPlaces(self.rare[rows], self.common[rows])


class Evidence(NamedTuple):
    """Features (n, F), and squared distance and place of the nearest rare and common prototype, each (n, 2)."""

    features: Array
    squared: Array
    nearest: Codes


@dataclass(frozen=True, eq=False)
class RareGeometry:
    """The prototypes of a rare-event model, R rare and Q common ones, and the features of rows compared with them.

    Attributes
    ----------
    scaling : SignedLog
        Of the M raw columns.
    rare, common : ndarray of shape (R, M) and (Q, M)
        Scaled prototypes; at least two of each.
    hard : ndarray of shape (Q,)
        Which common prototypes were chosen for their likeness to rare ones. Nearness on a column is to the others,
        which represent their class.
    metrics : ndarray of shape (G, M)
        What a squared difference in each column counts, for each metric; the first finds the nearest prototypes.
    metric_names : tuple of str
    counts : tuple of int
        The k of the nearest prototypes.
    length, floor : float
        ℓ and ε of the nearness on a column.
    """

    scaling: SignedLog
    rare: Annotated[Array, Values("R M", largest=1e150, length=(2, 2**62))]
    common: Annotated[Array, Values("Q M", largest=1e150, length=(2, 2**62))]
    hard: Annotated[Flags, Values("Q", below=2)]
    metrics: Annotated[Array, Values("metric_names M", least=0, most=_MOST_WEIGHT, length=(1, 2**62))]
    metric_names: tuple[str, ...]
    counts: Annotated[tuple[int, ...], Values("k", least=1, most=MOST_NEAREST, order="rises", length=(1, MOST_NEAREST))]
    length: Annotated[float, Values(above=0)]
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
        return line_kernel(np.concatenate([typical, self.rare]), groups, self.length)

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

    def by_column(self, scaled: Array, own_places: OwnPlaces | None) -> Array:
        """Nearness, position and distances to the middle of both classes on every column, shape (n, 4M)."""
        group = None
        if own_places is not None:
            typical = np.append(~self.hard, False)[own_places.common]
            group = np.where(own_places.rare >= 0, 1, np.where(typical, 0, -1))
        common, rare = self.kernel.nearness(scaled, group)
        nearness = np.log((rare + self.floor) / (common + self.floor))
        return np.hstack([nearness, scaled - self.middle, *(np.abs(scaled - row) for row in self.typical)])

    def deltas(self, scaled: Array, own_places: OwnPlaces | None) -> Evidence:
        """Deltas of every metric and count, and the nearest prototypes of each class."""
        deltas, squared, nearest = [], np.empty((len(scaled), 2)), np.empty((len(scaled), 2), dtype=np.intp)
        itself = (None, None) if own_places is None else (own_places.common, own_places.rare)
        for number, (columns, roots, *classes) in enumerate(self.weighted):
            rows = np.ascontiguousarray(scaled[:, columns] * roots)
            means = []
            for c, prototypes in enumerate(classes):
                # A row that is itself a prototype has one less to be compared with.
                most = min(max(self.counts), len(prototypes) - 1)
                found, places = nearest_squared(rows, prototypes, k=most, own=itself[c], threads=1)
                distances = np.sqrt(found)
                means.append([distances[:, :k].mean(axis=1) for k in self.counts])
                if number == 0:
                    squared[:, c], nearest[:, c] = found[:, 0], places[:, 0]
            deltas += [(far - near) / (far + near + 1e-300) for far, near in zip(*means, strict=True)]
        return Evidence(np.column_stack(deltas), squared, nearest)

    def evidence(self, scaled: Array, own_places: OwnPlaces | None = None) -> Evidence:
        """All features of scaled rows: deltas, nearness, positions, distances to the middle of both classes."""
        found = self.deltas(scaled, own_places)
        return found._replace(features=np.hstack([found.features, self.by_column(scaled, own_places)]))

    def measured_features(self, scaled: Array, distances: Distances) -> Array:
        """The features of `evidence` by their definition, with distances measured by a backend."""
        deltas = []
        for columns, roots, *prototypes in self.weighted:
            rows = scaled[:, columns] * roots
            found = [np.sort(distances(rows, of_class), axis=1) for of_class in prototypes]
            for k in self.counts:
                # The farthest of few is left out: a prototype itself would have one less to be compared with.
                far, near = (one[:, : min(k, one.shape[1] - 1)].mean(axis=1) for one in found)
                deltas.append((far - near) / (far + near + 1e-300))
        nearness, positions = [], []
        middles: tuple[list[Array], list[Array]] = [], []
        typical = self.common[~self.hard]
        for column in range(scaled.shape[1]):
            value, classes = scaled[:, [column]], (typical[:, [column]], self.rare[:, [column]])
            found = [distances(value, prototype_rows) for prototype_rows in classes]
            common, rare = (np.exp(one / -self.length).mean(axis=1) for one in found)
            nearness.append(np.log((rare + self.floor) / (common + self.floor)))
            places, every = np.concatenate(classes)[:, 0], np.hstack(found)
            low, high = places.argmin(), places.argmax()
            span = places[high] - places[low]
            # Where all prototypes agree, no two distances say on which side of them a record lies.
            by_span = (every[:, low] ** 2 - every[:, high] ** 2) / (2.0 * span) if span > 0 else value[:, 0] - places[0]
            positions.append(by_span)
            for prototype_rows, one, far in zip(classes, found, middles, strict=True):
                far.append(one[:, prototype_rows[:, 0].argsort(kind="stable")[(len(prototype_rows) - 1) // 2]])
        return np.column_stack([*deltas, *nearness, *positions, *middles[0], *middles[1]])
