r"""The evidence model: a weighted sum of distances to medoids over groups of columns.

.. math::

   t_k(x) = b_k + \sum_j w_{jk}\,\bigl(\varphi_j(D_j(x)) - c_j\bigr), \qquad
   D_j^2(x) = \sum_{f\in g_j} u_f\,(v_f(x) - v_f(m_j))^2

Every term j looks at one group of columns g, one medoid m and one channel φ: the squared distance, the distance, or
the nearness :math:`\exp(-D/\ell)`. So a decision is an exact sum over real training rows and groups of columns, and
each number in it is a distance that the compact SWAP test measures on the columns of the group. Where it
helps, the nearest of many more training rows add a neighbor term (`Neighbors`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table, row_slices
from qmedoid.geometry.channels import Channels, class_channels
from qmedoid.geometry.overlap import SwapTestFunction, compact_swap_test
from qmedoid.geometry.scaling import RankScaling, Scaling
from qmedoid.kernels import evidence
from qmedoid.kernels._backend import row_block
from qmedoid.kernels.evidence import Group as Group
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.methods.base import LARGEST, Measured, MeasuredMethod, measured_distances, refuse_bad_values, rows_kept
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.evidence.neighbors import Neighbors, added
from qmedoid.schema import MODERATE, Packed, Values

Distances = Callable[[Array, Array], Array]
"""Distance of every row to every medoid, (n, g) and (q, g) to (n, q)."""

SQUARE, DISTANCE, NEAR = 0, 1, 2
CHANNELS = ("square", "distance", "near")
"""Names of the channels by their codes."""
CLIP = 8.0
"""Standardized values are held within this many deviations."""

# Numbers of a block of rows, so that a table of any length is judged in bounded memory.
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class Terms:
    """T terms of evidence for K outputs.

    Attributes
    ----------
    group, medoid, channel : ndarray of shape (T,)
        Places in the groups, in the medoids and in `CHANNELS`.
    length : ndarray of shape (T,)
        ℓ of the nearness, above 0; unused by the other channels.
    center : ndarray of shape (T,)
        c: mean of the channel over the training rows, so that a term is a deviation from the average row.
    weights : ndarray of shape (T, K)
        w; positive speaks for the second of two classes (K = 1), else for class k.
    """

    group: Annotated[Codes, Values("T", below="G")]
    medoid: Annotated[Codes, Values("T", below="P")]
    channel: Annotated[Codes, Values("T", below=len(CHANNELS))]
    length: Annotated[Array, Values("T", least=1 / MODERATE, most=MODERATE)]
    center: Annotated[Array, Values("T", largest=MODERATE)]
    weights: Annotated[Array, Values("T K", largest=MODERATE)]

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, eq=False)
class EvidenceModel:
    """A fitted evidence model over M encoded columns, with P medoids, G groups, T terms and C classes.

    Attributes
    ----------
    rank_scaling, linear_scaling : RankScaling, Scaling of shape (M,)
        The two scalings of the raw columns; what is standardized is held within ±`CLIP`.
    medoids : ndarray of shape (P, M)
        Raw columns of the medoids.
    medoid_classes, medoid_rows : ndarray of shape (P,)
        Class code and training row of each.
    column_weights : ndarray of shape (M,)
        Weights of the distance over all columns, scaled by rank, that finds the nearest medoids; 0 ignores a column.
    groups : tuple of Group
    terms : Terms
    intercepts : ndarray of shape (K,)
        b; K is 1 for two classes and C for more.
    n_classes : int
    neighbors : Neighbors or None
        Training rows of the neighbor term.
    """

    rank_scaling: RankScaling
    linear_scaling: Scaling
    medoids: Annotated[Array, Values("P M")]
    medoid_classes: Annotated[Codes, Values("P", below="C", every=True)]
    medoid_rows: Annotated[Codes, Values("P")]
    column_weights: Annotated[Array, Values("M", least=0, most=MODERATE)]
    groups: Annotated[tuple[Group, ...], Packed("G")]
    terms: Terms
    intercepts: Annotated[Array, Values("K", largest=MODERATE)]
    n_classes: int
    neighbors: Neighbors | None = None

    name: ClassVar[str] = "evidence"
    decider: ClassVar[str] = name
    description: ClassVar[str] = "weighted distances, group of columns by group of columns, to the medoids"
    distance_name: ClassVar[str] = "over all columns that vary, scaled by rank"
    use_angular: ClassVar[bool] = True
    rare_class: ClassVar[None] = None
    n_deltas: ClassVar[None] = None
    facts: ClassVar[dict[str, Any]] = {}

    @property
    def plain(self) -> "EvidenceModel":
        """Itself: the closed form."""
        return self

    @cached_property
    def used(self) -> Codes:
        """Columns that the model reads."""
        read = self.column_weights > 0
        for group in self.groups:
            read[list(group.columns)] = True
        return np.flatnonzero(read)

    @property
    def n_measured(self) -> int:
        """Length of the vectors that the SWAP test compares: columns of the largest group."""
        by_group = max((len(group.columns) for group in self.groups), default=self.medoids.shape[1])
        return by_group if self.neighbors is None else max(by_group, len(self.compared))

    @cached_property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of, each once."""
        return tuple(dict.fromkeys(group.columns for group in self.groups))

    @property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise."""
        return np.isin(np.arange(self.medoids.shape[1]), self.used)

    @cached_property
    def plan(self) -> evidence.EvidencePlan:
        """The model as the kernel takes it."""
        ranks, linear, terms = self.rank_scaling, self.linear_scaling, self.terms
        return evidence.make_plan(
            rank_offsets=ranks.offsets, rank_values=ranks.values, rank_scores=ranks.scores,
            center=linear.center, scale=linear.scale, clip=CLIP, largest=LARGEST,
            medoids=self.medoids, medoid_classes=self.medoid_classes, n_classes=self.n_classes,
            column_weights=self.column_weights, groups=self.groups,
            term_group=terms.group, term_medoid=terms.medoid, term_channel=terms.channel, term_length=terms.length,
            term_center=terms.center, weights=terms.weights, intercepts=self.intercepts,
        )  # fmt: skip

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Scores, nearest medoids, and distance and angle to them."""
        found = self._measured(X, True, threads)
        return Measured(Channels(found.distance, found.angle), self.class_scores(found.outputs), found.nearest)

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place in `medoids` of the nearest medoid of each class, each of shape (n, C)."""
        found = self._measured(X, False, threads)
        return self.class_scores(found.outputs), found.nearest

    def _measured(self, X: Table, channels: bool, threads: int | None) -> evidence.EvidenceResults:
        found = evidence.measure(X, self.plan, channels=channels, threads=threads)
        undecided = np.flatnonzero(found.nearest[:, 0] < 0)[:1]
        if len(undecided):  # it holds a bad value
            refuse_bad_values(row_block(X, undecided), self.used, undecided)
        if self.neighbors is not None and len(found.outputs):
            for rows in row_slices(X, max(1, _BLOCK_NUMBERS // self.medoids.shape[1])):
                found.outputs[rows] += self.neighbor_outputs(row_block(X, rows), threads)
        return found

    def neighbor_outputs(self, rows: Array, threads: int | None = None) -> Array:
        """What the nearest neighbors add to the outputs of raw rows, shape (n, K)."""
        assert self.neighbors is not None, "the model has neighbors"
        near = self.nearest_neighbors(rows, threads)
        return added(*near, self.neighbors.length, self.neighbors.amounts)

    def scores(self, X: Table, *, threads: int | None = None) -> Array:
        """Dissimilarity to every class, shape (n, C); the smallest decides."""
        return self.scores_and_medoids(X, threads=threads)[0]

    def evidence(self, X: Array, distances: Distances | None = None) -> Array:
        """Channel of every term for raw rows, shape (n, T): the definition."""
        by_rank, linear = self.scaled(X)
        medoids_by_rank, medoids_linear = self.scaled(self.medoids)
        values = np.empty((len(X), len(self.terms)))
        for number, group in enumerate(self.groups):
            places = np.flatnonzero(self.terms.group == number)
            columns, roots = list(group.columns), np.sqrt(group.weights)
            rows, of_medoids = (by_rank, medoids_by_rank) if group.by_rank else (linear, medoids_linear)
            # Medoids that are equal on the columns of the group are compared once.
            medoids = of_medoids[self.terms.medoid[places]][:, columns] * roots
            distinct, of_term = np.unique(medoids, axis=0, return_inverse=True)
            measure = root_distances if distances is None else distances
            found = measure(rows[:, columns] * roots, distinct)
            channel, distance = self.terms.channel[places], found[:, of_term.ravel()]
            near = np.exp(distance / -self.terms.length[places])
            values[:, places] = np.select([channel == NEAR, channel == DISTANCE], [near, distance], distance * distance)
        return values

    def outputs(self, evidence: Array) -> Array:
        """The outputs t from the channels of the terms, shape (n, K), without what neighbors add."""
        outputs: Array = self.intercepts + (evidence - self.terms.center) @ self.terms.weights
        return outputs

    def scaled(self, X: Array) -> tuple[Array, Array]:
        """Raw rows by rank and standardized, each of shape (n, M)."""
        return self.rank_scaling.apply(X), self._standardized(X)

    def _standardized(self, X: Array) -> Array:
        return np.clip(self.linear_scaling.apply(X), -CLIP, CLIP)

    def class_scores(self, outputs: Array) -> Array:
        """Dissimilarities from t, shape (n, C)."""
        return np.hstack([outputs / 2.0, outputs / -2.0]) if self.n_classes == 2 else -outputs

    def nearest_neighbors(self, rows: Array, threads: int | None = None) -> tuple[Array, Codes]:
        """Distances and places of the neighbors nearest to raw rows, each of shape (n, k)."""
        assert self.neighbors is not None, "the model has neighbors"
        space, k = self._in_space(rows), self.neighbors.n_nearest
        squared, places = nearest_squared(space, self._scaled_neighbors, k=k, threads=threads)
        return np.sqrt(squared), places

    @cached_property
    def compared(self) -> Codes:
        """Columns that distances over all columns look at."""
        return np.flatnonzero(self.column_weights > 0)

    @cached_property
    def _scaled_neighbors(self) -> Array:
        """Scaled neighbors, shape (N, M')."""
        assert self.neighbors is not None
        return self._in_space(self.neighbors.records)

    def _in_space(self, rows: Array) -> Array:
        """Raw rows, scaled as the neighbors are."""
        assert self.neighbors is not None
        scaled = self.rank_scaling.apply(rows) if self.neighbors.by_rank else self._standardized(rows)
        return np.ascontiguousarray(scaled[:, self.compared])

    def _measured_neighbors(self, rows: Array, distances: Distances) -> Array:
        """The neighbor term by measured distances to those that the closed form finds nearest."""
        if self.neighbors is None:
            return np.zeros((len(rows), len(self.intercepts)))
        found, nearest = self.nearest_neighbors(rows)
        for place, row in enumerate(self._in_space(rows)):
            found[place] = distances(row[None], self._scaled_neighbors[nearest[place]])[0]
        return added(found, nearest, self.neighbors.length, self.neighbors.amounts)

    def measured_by(self, X: Table, distances: Distances) -> Measured:
        """`measure` by its definition, with distances measured by a backend."""
        roots, parts = np.sqrt(self.column_weights), []
        medoids = self.rank_scaling.apply(self.medoids) * roots
        for place in row_slices(X, max(1, _BLOCK_NUMBERS // max(len(self.terms), self.medoids.shape[1]))):
            rows = row_block(X, place)
            refuse_bad_values(rows, self.used, range(place.start, place.stop))
            outputs = self.outputs(self.evidence(rows, distances)) + self._measured_neighbors(rows, distances)
            tested = compact_swap_test(self.rank_scaling.apply(rows) * roots, medoids)
            found = class_channels(tested.distance, tested.angle, self.medoid_classes, self.n_classes)
            parts.append((*found[0], self.class_scores(outputs), found[1]))
        distance, angle, scores, nearest = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Measured(Channels(distance, angle), scores, nearest)

    @property
    def kept_rows(self) -> tuple[str, ...]:
        """What is kept of training rows in addition to the medoids, in sentences for the card."""
        return () if self.neighbors is None else (rows_kept(self.n_neighbors, "n_neighbors=0"),)

    @property
    def n_neighbors(self) -> int:
        """Number of training rows kept in addition to the medoids."""
        return 0 if self.neighbors is None else len(self.neighbors.rows)

    def coordinates(self, rows: Array) -> Array:
        """Raw rows scaled by rank and weighted, between which distances are measured, shape (n, M)."""
        return np.asarray(self.rank_scaling.apply(rows) * np.sqrt(self.column_weights))

    @property
    def medoid_coordinates(self) -> Array:
        """The medoids scaled by rank and weighted, shape (P, M)."""
        return self.coordinates(self.medoids)

    def with_swap_test(self, swap_test: SwapTestFunction) -> MeasuredMethod:
        """A copy whose distances a SWAP test measures."""
        return MeasuredMethod(self, swap_test)

    def measure_with(self, X: Table, swap_test: SwapTestFunction) -> Measured:
        """Scores from measured distances; the closed form finds the nearest medoids and neighbors."""
        return self.measured_by(X, partial(measured_distances, swap_test))

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        neighbors = self.neighbors and replace(self.neighbors, rows=rows[self.neighbors.rows].astype(np.intp))
        return replace(self, medoid_rows=rows[self.medoid_rows].astype(np.intp), neighbors=neighbors)

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        from qmedoid.methods.evidence.contributions import column_contributions

        return column_contributions(self, rows, winners, others)

    def group_contributions(
        self, rows: Array, winners: Codes, others: Codes
    ) -> tuple[tuple[tuple[int, ...], ...], Array]:
        """The `groups` of `contributions` for many rows: their columns, and what each adds, shape (n, G)."""
        from qmedoid.methods.evidence.contributions import group_contributions

        return group_contributions(self, rows, winners, others)

    def contributions(self, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        from qmedoid.methods.evidence.contributions import contributions

        del measured  # contributions are exact sums of the terms
        return contributions(self, row, winner, other)


def root_distances(rows: Array, medoids: Array) -> Array:
    """Distances column by column: differences first, so that equal rows are at distance 0 exactly."""
    squares = np.zeros((len(rows), len(medoids)))
    for column in range(rows.shape[1]):
        squares += (rows[:, column, None] - medoids[None, :, column]) ** 2
    return np.sqrt(squares)
