r"""The nearest-medoid model: scaled columns, anchor features, medoids, and a fusion score per class (algorithm 8).

Contributions of anchors and columns to the difference of two fusion scores:

.. math:: s_c = m_c\Bigl(\alpha\,\frac{D_c}{\sum D + \varepsilon}
         + (1-\alpha)\,\frac{\Theta_c}{\sum\Theta + \varepsilon}\Bigr)

Both channels of s_o − s_w are sums over the anchors a, with v the features of the record and μ those of the medoids:

.. math:: D_o - D_w = \sum_a \frac{2(\mu_{wa} - \mu_{oa})}{D_o + D_w}\Bigl(v_a - \frac{\mu_{oa} + \mu_{wa}}2\Bigr),
          \qquad \Theta_o - \Theta_w = \kappa \sum_a \hat v_a (\hat\mu_{wa} - \hat\mu_{oa}),

where hats are unit vectors and :math:`\kappa = (\Theta_o - \Theta_w)/(\cos\Theta_w - \cos\Theta_o)`. Both are linear
in v, and 0 at a reference: half-way between the medoids, and at the mean of the training rows. A feature
:math:`h = \pm\sqrt{\sum_f q_f}` with :math:`q_f = (w_f x_f)^2` is shared among its columns as
:math:`h\,q_f/\sum q`, and the reference as :math:`w_f^2` is. Class weights (where the m_c differ) are a
separate term, and so is an angle that is no such sum: the printed one, and one to a vector of zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table, row_slices
from qmedoid.geometry.channels import EPSILON, Channels, class_channels, fusion_scores
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
from qmedoid.kernels.backend import row_block
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.part import LARGEST, KeptRows, Part, PartFacts, Scored, refuse_bad_values
from qmedoid.schema import MODERATE, Packed, RowNumbers, Values, part_bounds

Linear = tuple[Array, Array]
"""What every anchor adds to n rows, slope·(v − reference), each of shape (n, A)."""
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
        by_class, lengths = np.argsort(self.medoid_classes, kind="stable"), [len(one) for one in self.configuration]
        medoids = np.ascontiguousarray(self.medoids[by_class])
        every = np.concatenate([np.array(subset, dtype=np.intp) for subset in self.configuration])
        used, members = np.unique(every, return_inverse=True)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):  # shows in the rows it touches
            inverse_scale = 1.0 / self.feature_scaling.scale
            weights = np.concatenate(self.weights) / self.input_scaling.scale[used][members]
            norms = np.linalg.norm(medoids, axis=1)
        in_range = (norms >= 2.0**-480) & (norms <= 2.0**480)
        return scoring.ScoringPlan(
            n_columns=len(self.input_scaling.center), used=used, center=self.input_scaling.center[used],
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp), members=members.astype(np.intp),
            weights=weights, signed=bool(self.signed), feature_center=np.ascontiguousarray(self.feature_scaling.center),
            feature_inverse_scale=inverse_scale, medoids=medoids, medoid_norms=norms,
            medoid_indices=by_class.astype(np.intp), multipliers=np.ascontiguousarray(self.multipliers),
            class_offsets=np.searchsorted(self.medoid_classes[by_class], np.arange(self.n_classes + 1)).astype(np.intp),
            measurable=bool(np.all(in_range | ~medoids.any(axis=1))),
            alpha=float(self._alpha), angle=self.angle,
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
            labels[rows] = first_smallest_of_rows(self.fuse(block))
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
        """Contributions of columns, of the anchors' groups and of the class weights, for one row of shape (1, M)."""
        measured = self._measured(row)
        features, nearest, distance, theta = (one[0] for one in measured)
        pair, alpha = [winner, other], self._alpha
        totals = distance.sum() + EPSILON, theta.sum() + EPSILON
        mean, half = self.multipliers[pair].sum() / 2.0, (self.multipliers[other] - self.multipliers[winner]) / 2.0
        both = alpha * distance[pair].sum() / totals[0] + (1.0 - alpha) * theta[pair].sum() / totals[1]
        terms = {"class weights": float(half * both)}
        added, splits_angle = self._added(measured, np.array([winner]), np.array([other]))
        if not splits_angle[0]:
            terms["angle"] = float((1.0 - alpha) * mean * (theta[other] - theta[winner]) / totals[1])
        groups = tuple(
            GroupContribution(
                subset,
                float(sum(slope[0, anchor] * (features[anchor] - reference[0, anchor]) for slope, reference in added)),
                value=float(features[anchor]),
                medoid_values={code: float(self.medoids[nearest[code], anchor]) for code in pair},
            )
            for anchor, subset in enumerate(self.configuration)
        )
        return Contributions(self._by_column(row, added)[0], groups, terms)

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        return self._by_column(X, self._added(self._measured(X), winners, others)[0])

    @property
    def _alpha(self) -> float:
        return self.alpha if self.use_angular else 1.0

    def _measured(self, rows: Array) -> tuple[Array, Codes, Array, Array]:
        """Features, and the nearest medoid of each class with distance and angle to it, each of shape (n, C)."""
        found = self.score(rows, channels=True)
        assert found.nearest is not None, "a model of medoids finds them"
        return self.features(rows), found.nearest, *found.channels

    def _added(
        self, measured: tuple[Array, Codes, Array, Array], winners: Codes, others: Codes
    ) -> tuple[list[Linear], Flags]:
        """What every anchor adds by each channel, and for which rows (n,) the angle is a sum over the anchors."""
        (features, nearest, distance, theta), alpha, each = measured, self._alpha, np.arange(len(winners))
        medoids = [self.medoids[nearest[each, codes]] for codes in (winners, others)]
        mean = (self.multipliers[winners] + self.multipliers[others]) / 2.0
        both = (distance[each, winners] + distance[each, others])[:, None]
        factor = (alpha * mean / (distance.sum(axis=1) + EPSILON))[:, None]
        difference = np.divide(
            2.0 * factor * (medoids[0] - medoids[1]), both, out=np.zeros_like(features), where=both > 0
        )
        added = [(difference, (medoids[0] + medoids[1]) / 2.0)]
        # The angle is a sum where it is the true one between vectors that are not 0.
        splits = np.all([vectors.any(axis=1) for vectors in (features, *medoids)], axis=0) & (self.angle == "true")
        if alpha < 1.0 and splits.any():
            angles = [theta[each, codes] for codes in (winners, others)]
            factors = (1.0 - alpha) * mean / (theta.sum(axis=1) + EPSILON)
            added.append((_angle_slopes(features, medoids, angles, factors, splits), np.zeros_like(features)))
        return added, splits

    def _by_column(self, rows: Array, added: list[Linear]) -> Array:
        """What the anchors add, shared among the columns of their features, shape (n, M)."""
        columns, scaled = np.zeros(rows.shape), self.input_scaling.apply(rows)
        for anchor, subset in enumerate(self.configuration):
            weights = self.weights[anchor]
            terms = scaled[:, list(subset)] * weights
            norm = np.sqrt((terms**2).sum(axis=1, keepdims=True))
            feature = np.where(terms.sum(axis=1, keepdims=True) < 0, -norm, norm) if self.signed else norm
            shares = np.divide(terms, norm, out=np.zeros_like(terms), where=norm > 0) ** 2
            center, scale = (float(one[anchor]) for one in (self.feature_scaling.center, self.feature_scaling.scale))
            total = float(np.sum(weights**2))
            usual = weights**2 / total if total > 0 else np.full(len(weights), 1.0 / len(weights))
            for slope, reference in added:
                from_usual = feature * shares - (center + scale * reference[:, [anchor]]) * usual
                columns[:, list(subset)] += slope[:, [anchor]] / scale * from_usual
        return columns


def _angle_slopes(features: Array, medoids: list[Array], angles: list[Array], factors: Array, splits: Flags) -> Array:
    """What the true angle adds for each feature, shape (n, A); 0 for rows whose angle is no sum."""
    length, winner, other = (
        np.where(splits, np.sqrt((vectors**2).sum(axis=1)), 1.0)[:, None] for vectors in (features, *medoids)
    )
    half, mean = (angles[1] - angles[0]) / 2.0, (angles[1] + angles[0]) / 2.0
    # cos w − cos o = 2 sin(mean) sin(half): no difference of nearly equal numbers.
    inside = splits & (mean > 0) & (mean < np.pi)
    rate = np.where(inside, factors / np.where(inside, np.sinc(half / np.pi) * np.sin(mean), 1.0), 0.0)
    slopes: Array = rate[:, None] / length * (medoids[0] / winner - medoids[1] / other)
    return slopes
