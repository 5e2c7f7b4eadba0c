"""The nearest-medoid model: scaled columns, anchor features, medoids, and a fusion score per class (algorithm 8)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table, row_slices
from qmedoid.geometry.channels import Channels, class_channels, fusion_scores, margins, predict_codes
from qmedoid.geometry.groups import anchor_feature
from qmedoid.geometry.overlap import (
    AngleKind,
    SwapTest,
    SwapTestFunction,
    compact_swap_test,
    from_overlap,
    measured_overlap,
    row_norms,
)
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels import scoring
from qmedoid.kernels._backend import row_block
from qmedoid.methods.base import LARGEST, Measured, MeasuredMethod, Scorer, refuse_bad_values
from qmedoid.methods.contributions import Contributions
from qmedoid.schema import MODERATE, Given, Packed, Values

# Rows per block where the definition is applied, so that its temporaries stay small.
_BLOCK_ROWS = 8192


class _Scores:
    """Parts of what a nearest-medoid rule measures."""

    def channels(self: Scorer, X: Table, *, threads: int | None = None) -> Channels:
        """Distance and angle to the nearest medoid of each class, each of shape (n, C)."""
        return self.measure(X, threads=threads).channels

    def scores(self: Scorer, X: Table, *, threads: int | None = None) -> Array:
        """Fusion score of every class, shape (n, C); the smallest decides."""
        return self.scores_and_medoids(X, threads=threads)[0]

    def margins(self: Scorer, X: Table, *, threads: int | None = None) -> Array:
        """Decision values: s_0 − s_1 for two classes, −s for more."""
        return margins(self.scores_and_medoids(X, threads=threads)[0])


@dataclass(frozen=True)
class NearestModel(_Scores):
    """A fitted nearest-medoid rule over the features of one configuration.

    Attributes
    ----------
    input_scaling : Scaling of shape (M,)
        Applied to the raw columns.
    configuration : tuple of tuple of int
        Columns of each anchor's subset, the anchor first.
    weights : tuple of ndarray
        Weight of each column of each subset.
    signed : bool
        Whether features carry the sign of their weighted sum.
    feature_scaling : Scaling of shape (A,)
        Training mean and deviation of the features.
    medoids : ndarray of shape (P, A)
        Standardized features of the medoids, class by class.
    medoid_classes, medoid_rows : ndarray of shape (P,)
        Class code and training row of each medoid.
    multipliers : ndarray of shape (C,)
        Factor on each class's score; below 1 favors a class.
    alpha : float
        α, the weight of the distance in the score.
    use_angular : bool
        Whether the angle enters the score.
    angle : {"true", "printed"}
        The true angle, or the one as printed in the paper.

    Notes
    -----
    `channels`, `scores`, `margins` and `predict` take a table as rows of shape (n, M) or as a sequence of M columns,
    of any real type, and read it in place: one pass of :mod:`qmedoid.kernels.scoring`. `features`, `swap_test` and
    `feature_channels` define what that pass computes, and decide the rare rows it leaves undecided.
    """

    input_scaling: Scaling
    configuration: Annotated[tuple[tuple[int, ...], ...], Packed("A", Values(below="M"), fewest=1)]
    weights: Annotated[tuple[Array, ...], Packed("A", Values(largest=MODERATE), like="configuration")]
    signed: bool
    feature_scaling: Annotated[Scaling, Given(M="A")]
    medoids: Annotated[Array, Values("P A", largest=MODERATE)]
    medoid_classes: Annotated[Codes, Values("P", below="C", every=True)]
    medoid_rows: Annotated[Codes, Values("P")]
    multipliers: Annotated[Array, Values("C", above=0, below=MODERATE)]
    alpha: Annotated[float, Values(least=0, most=1)]
    use_angular: bool
    angle: AngleKind

    name: ClassVar[str] = "nearest"
    decider: ClassVar[str] = name
    description: ClassVar[str] = "distance and angle to the medoids"
    kept_rows: ClassVar[tuple[str, ...]] = ()
    distance_name: ClassVar[str] = "over the features of all groups of columns"
    rare_class: ClassVar[None] = None
    n_deltas: ClassVar[None] = None
    n_neighbors: ClassVar[int] = 0

    @property
    def plain(self) -> "NearestModel":
        """Itself: the closed form."""
        return self

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.multipliers)

    def features(self, X: Array) -> Array:
        """Standardized anchor features of raw rows, shape (n, A) (algorithms 2 and 3)."""
        return self.scaled_features(self.input_scaling.apply(X))

    def scaled_features(self, scaled: Array) -> Array:
        """Standardized anchor features of rows whose columns are scaled already, shape (n, A)."""
        columns = [
            anchor_feature(scaled, subset, weights, signed=self.signed)
            for subset, weights in zip(self.configuration, self.weights, strict=True)
        ]
        return self.feature_scaling.apply(np.column_stack(columns))

    def swap_test(self, features: Array) -> SwapTest:
        """Overlap, distance and angle of every feature vector to every medoid, each of shape (n, P) (algorithm 6)."""
        return compact_swap_test(features, self.medoids, angle=self.angle)

    def feature_channels(self, features: Array) -> Channels:
        """Channels of standardized feature vectors, each of shape (n, C)."""
        return self._nearest(self.swap_test(features))[0]

    def _nearest(self, measured: SwapTest) -> tuple[Channels, Codes]:
        """Channels and nearest medoid of each class from the measurements against every medoid."""
        return class_channels(measured.distance, measured.angle, self.medoid_classes, self.n_classes)

    @property
    def used(self) -> Codes:
        """Columns that the model reads."""
        return self.scoring_plan.used

    @property
    def n_measured(self) -> int:
        """Length of the feature vectors that the SWAP test compares."""
        return len(self.configuration)

    @property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of."""
        return self.configuration

    @cached_property
    def scoring_plan(self) -> scoring.ScoringPlan:
        """The model as the scoring kernel takes it."""
        scaling, features = self.input_scaling, self.feature_scaling
        return scoring.make_plan(
            center=scaling.center, scale=scaling.scale, subsets=self.configuration, weights=self.weights,
            signed=self.signed, feature_center=features.center, feature_scale=features.scale, medoids=self.medoids,
            medoid_classes=self.medoid_classes, multipliers=self.multipliers, alpha=self.alpha,
            use_angular=self.use_angular, angle=self.angle,
        )  # fmt: skip

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Channels, fusion scores, and the place in `medoids` of each class's nearest medoid, all of shape (n, C)."""
        found = self._measured(X, True, threads)
        return Measured(Channels(found.distance, found.angle), found.scores, found.nearest)

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Fusion scores, and the place in `medoids` of the nearest medoid of each class, each of shape (n, C)."""
        found = self._measured(X, False, threads)
        return found.scores, found.nearest

    def _measured(self, X: Table, channels: bool, threads: int | None) -> scoring.ScoringResults:
        found = scoring.measure(X, self.scoring_plan, channels=channels, threads=threads)
        for rows, block, nearest in self._undecided(X, found.nearest[:, 0] < 0):
            found.scores[rows], found.nearest[rows] = self.fuse(block), nearest
            if channels:
                found.distance[rows], found.angle[rows] = block
        return found

    def predict(self, X: Table, *, threads: int | None = None) -> Codes:
        """Class code of every row, shape (n,)."""
        labels = scoring.labels(X, self.scoring_plan, threads=threads)
        for rows, block, _ in self._undecided(X, labels < 0):
            labels[rows] = predict_codes(self.fuse(block))
        return labels

    def fuse(self, channels: Channels) -> Array:
        """Fusion scores from channels, shape (n, C)."""
        return fusion_scores(channels, self.alpha, use_angular=self.use_angular, multipliers=self.multipliers)

    def _undecided(self, X: Table, undecided: Flags) -> Iterator[tuple[Codes, Channels, Codes]]:
        """Channels and nearest medoids, by their definition, of rows that the kernel could not measure, in blocks."""
        rows = np.flatnonzero(undecided)
        for part in row_slices(rows, _BLOCK_ROWS) if len(rows) else ():
            block = rows[part]
            values = row_block(X, block)
            refuse_bad_values(values, self.used, block)
            yield block, *self._nearest(self.swap_test(self.features(values)))

    @cached_property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise.

        A NaN, an infinity or a number beyond `LARGEST` makes a feature so large that the kernel leaves the row
        undecided, unless the weight of the column is so small that it does not show.
        """
        plan = self.scoring_plan
        # The kernel leaves features undecided beyond 2**480, far below 1e146.
        anchors = np.repeat(np.arange(len(plan.offsets) - 1), np.diff(plan.offsets))
        gains = np.abs(plan.weights) * plan.feature_inverse_scale[anchors]
        of_used = np.zeros(len(plan.used))
        np.maximum.at(of_used, plan.members, gains)
        centers = np.abs(plan.center) + np.abs(plan.feature_center).max(initial=0.0)
        notices = np.zeros(plan.n_columns, dtype=np.bool_)
        notices[plan.used] = (of_used * LARGEST > 1e146) & (centers < 1e140)
        return notices

    @property
    def facts(self) -> dict[str, Any]:
        """The mixing weight of the fusion score."""
        return {"alpha": float(self.alpha)}

    def coordinates(self, rows: Array) -> Array:
        """Raw rows as standardized anchor features, between which distances are measured, shape (n, A)."""
        return self.features(rows)

    @property
    def medoid_coordinates(self) -> Array:
        """The medoids as standardized anchor features, shape (P, A)."""
        return self.medoids

    def with_swap_test(self, swap_test: SwapTestFunction) -> "MeasuredNearest":
        """A copy whose distances a SWAP test measures."""
        return MeasuredNearest(self, swap_test)

    def measure_with(self, X: Table, swap_test: SwapTestFunction) -> Measured:
        """`measure` from measured overlaps and known norms, so that the angle is the one the model was fitted with."""
        features = self.features(row_block(X, slice(None)))
        overlap = measured_overlap(swap_test, features, self.medoids)
        found = from_overlap(overlap, row_norms(features), row_norms(self.medoids), angle=self.angle)
        channels, nearest = self._nearest(found)
        return Measured(channels, self.fuse(channels), nearest)

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        return replace(self, medoid_rows=rows[self.medoid_rows].astype(np.intp))

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        from qmedoid.methods.nearest.contributions import column_contributions

        return column_contributions(self, rows, winners, others)

    def contributions(self, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        from qmedoid.methods.nearest.contributions import contributions

        return contributions(self, row, measured, winner, other)


class MeasuredNearest(MeasuredMethod, _Scores):
    """A nearest-medoid model whose overlaps a SWAP test measures, such as by circuits."""

    def predict(self, X: Array) -> Codes:
        """Class code of every row, shape (n,)."""
        return predict_codes(self.scores(X))
