"""The nearest-medoid model: scaled columns, anchor features, medoids, and a fusion score per class (algorithm 8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table, row_slices
from qmedoid.geometry.channels import Channels, class_channels, fusion_scores, predict_codes
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
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.part import LARGEST, KeptRows, Part, PartFacts, Scored, refuse_bad_values
from qmedoid.schema import MODERATE, Packed, RowNumbers, Values, part_bounds

# Rows per block where the definition is applied, so that its temporaries stay small.
_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class NearestPart(Part):
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
    `score` and `labels` take a table as rows of shape (n, M) or as a sequence of M columns, of any real type, and read
    it in place: one pass of :mod:`qmedoid.kernels.scoring`. `features`, `swap_test` and `feature_channels` define what
    that pass computes, and decide the rare rows it leaves undecided.
    """

    input_scaling: Scaling
    configuration: Annotated[
        tuple[tuple[int, ...], ...], Packed(part_bounds("A", "total", fewest=1), Values(below="M"))
    ]
    weights: Annotated[tuple[Array, ...], Packed("configuration", Values(largest=MODERATE))]
    signed: bool
    feature_scaling: Annotated[Scaling, {"M": "A"}]
    medoids: Annotated[Array, Values("P A", largest=MODERATE)]
    medoid_classes: Annotated[Codes, Values("P", below="C", every=True)]
    medoid_rows: Annotated[Codes, RowNumbers("P")]
    multipliers: Annotated[Array, Values("C", above=0, below=MODERATE)]
    alpha: Annotated[float, Values(least=0, most=1)]
    use_angular: bool
    angle: AngleKind

    name: ClassVar[str] = "nearest"

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
    def columns(self) -> Codes:
        """Encoded columns that it reads, rising."""
        return self.scoring_plan.used

    @cached_property
    def rows(self) -> KeptRows:
        """The medoids, as standardized anchor features."""
        space = "over the features of all groups of columns"
        return KeptRows(self.medoid_rows, self.medoid_classes, self.medoids, self.features, space)

    @property
    def facts(self) -> PartFacts:
        """What it says of itself; its number is the mixing weight of the fusion score."""
        return {
            "description": "distance and angle to the medoids",
            "groups": self.configuration,
            "kept": (),
            "vector_length": len(self.configuration),
            "numbers": {"alpha": float(self.alpha)},
        }

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

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Fusion scores, and the nearest medoid of each class."""
        self._refuse_unnoticed(X)
        found = scoring.measure(X, self.scoring_plan, channels=channels, threads=threads)
        for rows, block, nearest in self._undecided(X, found.nearest[:, 0] < 0):
            found.scores[rows], found.nearest[rows] = self.fuse(block), nearest
            if channels:
                found.distance[rows], found.angle[rows] = block
        return Scored(found.scores, found.nearest, *((found.distance, found.angle) if channels else ()))

    def labels(self, X: Table, *, threads: int | None = None) -> Codes:
        """Class code of every row, shape (n,): the class of the smallest score, found faster than the scores."""
        self._refuse_unnoticed(X)
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
            refuse_bad_values(values, self.columns, block)
            yield block, *self._nearest(self.swap_test(self.features(values)))

    def _refuse_unnoticed(self, X: Table) -> None:
        """Raise for a bad value in a column that the kernel would not notice."""
        if len(self._unnoticed):
            columns = X.T if isinstance(X, np.ndarray) else X
            values = np.column_stack([np.asarray(columns[j], dtype=np.float64) for j in self._unnoticed])
            if not np.all(np.abs(values) <= LARGEST):
                block = row_block(X, slice(None))
                refuse_bad_values(block, self.columns, range(len(block)))

    @cached_property
    def _unnoticed(self) -> Codes:
        """Columns with weights so small that a bad value in them may not show.

        Elsewhere a NaN, an infinity or a number beyond `LARGEST` makes a feature so large that the kernel leaves the
        row undecided.
        """
        plan = self.scoring_plan
        # The kernel leaves features undecided beyond 2**480, far below 1e146.
        anchors = np.repeat(np.arange(len(plan.offsets) - 1), np.diff(plan.offsets))
        gains = np.abs(plan.weights) * plan.feature_inverse_scale[anchors]
        of_used = np.zeros(len(plan.used))
        np.maximum.at(of_used, plan.members, gains)
        centers = np.abs(plan.center) + np.abs(plan.feature_center).max(initial=0.0)
        unnoticed: Codes = plan.used[~((of_used > 1e146 / LARGEST) & (centers < 1e140))]
        return unnoticed

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """Score records by measured overlaps and known norms: the angle is the one the model was fitted with."""
        features = self.features(row_block(X, slice(None)))
        overlap = measured_overlap(backend, features, self.medoids)
        found = from_overlap(overlap, row_norms(features), row_norms(self.medoids), angle=self.angle)
        channels, nearest = self._nearest(found)
        return Scored(self.fuse(channels), nearest, *channels)

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Contributions of the anchors, for one row of shape (1, M)."""
        from qmedoid.methods.nearest.contributions import contributions

        return contributions(self, row, winner, other)

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        from qmedoid.methods.nearest.contributions import column_contributions

        return column_contributions(self, X, winners, others)
