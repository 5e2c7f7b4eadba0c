"""The rare-event model: a logistic regression on distances to prototypes, in closed form or measured by circuits."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.overlap import SwapTestFunction, row_angles
from qmedoid.kernels._backend import in_chunks, row_block, row_count
from qmedoid.methods.base import LARGEST, Measured, MeasuredMethod, refuse_bad_values
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.schema import MODERATE, RefusedError, Values

CLIP = 12.0
"""Standardized features are held within this many deviations."""
# Rows that are judged at a time: their features stay in the cache.
_BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class RareEventModel:
    """A fitted rare-event model with F features.

    Attributes
    ----------
    geometry : RareGeometry
    medoid_rows : ndarray of shape (R + Q,)
        Training row of each prototype, the rare ones first.
    center, scale : ndarray of shape (F,)
        Mean and deviation of the features over the training rows.
    weights : ndarray of shape (F,)
        Of the standardized features; positive speaks for the rare class.
    intercept : float
    circuit_features : ndarray of shape (m,)
        Features for a circuit.
    rare_class : int
        Code of the rare class, 0 or 1.
    """

    geometry: RareGeometry
    medoid_rows: Annotated[Codes, Values("P")]
    center: Annotated[Array, Values("F")]
    scale: Annotated[Array, Values("F", zero=False)]
    weights: Annotated[Array, Values("F", largest=MODERATE)]
    intercept: float
    circuit_features: Annotated[Codes, Values("m", below="F")]
    rare_class: Annotated[int, Values(most=1)]

    name: ClassVar[str] = "rare"
    decider: ClassVar[str] = name
    description: ClassVar[str] = (
        "how much nearer a record lies to known cases of the rare class than to others: to the medoids"
    )
    kept_rows: ClassVar[tuple[str, ...]] = ()
    n_classes: ClassVar[int] = 2
    n_neighbors: ClassVar[int] = 0
    use_angular: ClassVar[bool] = False
    facts: ClassVar[dict[str, Any]] = {}

    def validate(self) -> None:
        """Refuse a stored model whose features or rows are not those of its prototypes."""
        n_features, n_rows = sum(self.geometry.n_features), len(self.geometry.rare) + len(self.geometry.common)
        if (len(self.center), len(self.medoid_rows)) != (n_features, n_rows):
            raise RefusedError(f"center must have {n_features} numbers and medoid_rows {n_rows}")

    @property
    def plain(self) -> "RareEventModel":
        """Itself: the closed form."""
        return self

    @cached_property
    def medoid_classes(self) -> Codes:
        """Class code of each prototype."""
        counts = [len(self.geometry.rare), len(self.geometry.common)]
        return np.repeat(np.array([self.rare_class, 1 - self.rare_class], dtype=np.intp), counts)

    @cached_property
    def used(self) -> Codes:
        """Columns that the model reads: all of them."""
        return np.arange(self.geometry.rare.shape[1])

    @property
    def n_deltas(self) -> int:
        """Number of features for a circuit."""
        return len(self.circuit_features)

    @property
    def n_measured(self) -> int:
        """Length of the vectors that its SWAP test compares: all columns."""
        return len(self.used)

    @cached_property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of: those of each metric, and every column alone."""
        return tuple(dict.fromkeys(self.feature_columns))

    @property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise."""
        return np.ones(len(self.used), dtype=np.bool_)

    @cached_property
    def feature_columns(self) -> tuple[tuple[int, ...], ...]:
        """Columns that each feature looks at."""
        metrics = [tuple(columns.tolist()) for columns, *_ in self.geometry.weighted]
        deltas = [columns for columns in metrics for _ in self.geometry.counts]
        single: list[tuple[int, ...]] = [(column,) for column in self.used.tolist()]
        return tuple(deltas + 4 * single)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Description of every feature."""
        deltas = [
            f"{_nearest(k, 'rare')} against {_nearest(k, 'common')} ({metric} metric)"
            for metric in self.geometry.metric_names
            for k in self.geometry.counts
        ]
        nearness = ["nearness to rare rows against common rows"] * len(self.used)
        positions = ["nearness to its highest row against its lowest"] * len(self.used)
        middles = [f"distance to the middle {name} row" for name in ("common", "rare") for _ in self.used]
        return tuple(deltas + nearness + positions + middles)

    def features(self, X: Table) -> Array:
        """All features of raw rows, shape (n, F): the definition."""
        scaled = self.scaled(X, range(row_count(X, len(self.used))))
        return self.geometry.evidence(scaled).features

    def logits(self, X: Table, *, threads: int | None = None) -> Array:
        """Logarithm of the odds of the rare class, shape (n,)."""
        scores: Array = self.measure(X, threads=threads).scores
        return scores[:, 1 - self.rare_class] - scores[:, self.rare_class]

    def logit(self, features: Array) -> Array:
        """The same from features, shape (n,)."""
        # A sum along each row, not a product of matrices: it does not depend on the other rows.
        logit: Array = self.intercept + (self.standardized(features) * self.weights).sum(axis=1)
        return logit

    def standardized(self, features: Array) -> Array:
        """Features in deviations from their means, held within ±`CLIP`."""
        standardized: Array = np.clip((features - self.center) / self.scale, -CLIP, CLIP)
        return standardized

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest prototype of each class, each of shape (n, 2)."""
        measured = self._measured(X, False, threads)
        return measured.scores, measured.nearest

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Scores, features for a circuit, and the nearest prototypes of each class by the first metric."""
        return self._measured(X, True, threads)

    def _measured(self, X: Table, channels: bool, threads: int | None) -> Measured:
        n = row_count(X, len(self.used))
        nearest, deltas = np.empty((n, 2), dtype=np.intp), np.empty((n, self.n_deltas))
        distance, angle, scores = np.empty((3, n, 2))
        # Once, before threads ask for it.
        _ = self.geometry.kernel, self.geometry.middle, self.geometry.typical, self.geometry.weighted
        in_chunks(
            self._fill, X, chunk_rows=_BLOCK_ROWS, rows_per_thread=_BLOCK_ROWS, threads=threads, rows=np.arange(n),
            distance=distance, angle=angle if channels else None, scores=scores, nearest=nearest, deltas=deltas,
        )  # fmt: skip
        return Measured(Channels(distance, angle), scores, nearest, deltas)

    def _fill(
        self, X: Table, rows: Codes, distance: Array, angle: Array | None, scores: Array, nearest: Codes, deltas: Array
    ) -> None:
        scaled = self.scaled(X, rows)
        found = self.geometry.evidence(scaled)
        by_class = slice(None, None, 1 if self.rare_class == 1 else -1)
        nearest[...] = (found.nearest + np.array([len(self.geometry.rare), 0]))[:, by_class]
        distance[...] = np.sqrt(found.squared)[:, by_class]
        scores[...] = self.class_scores(self.logit(found.features))
        deltas[...] = found.features[:, self.circuit_features]
        if angle is not None:
            in_metric = scaled * np.sqrt(self.geometry.metrics[0])
            for c in range(2):
                angle[:, c] = row_angles(in_metric, self.medoid_coordinates[nearest[:, c]])

    def class_scores(self, logit: Array) -> Array:
        """Dissimilarities from the logit of the rare class, shape (n, 2)."""
        scores = np.column_stack([0.5 * logit, -0.5 * logit])
        return scores if self.rare_class == 1 else scores[:, ::-1]

    @cached_property
    def medoid_coordinates(self) -> Array:
        """All prototypes in the first metric, shape (R + Q, M)."""
        weighted: Array = np.concatenate([self.geometry.rare, self.geometry.common]) * np.sqrt(self.geometry.metrics[0])
        return weighted

    def scaled(self, X: Table, rows: Codes | range) -> Array:
        """Raw rows on the scale of the prototypes, shape (n, M); `rows` are their numbers in the whole table."""
        block = row_block(X, slice(None))
        refuse_bad_values(block, self.used, rows)
        # With a column of tiny values, a large one may leave the range of a double, or its square may.
        with np.errstate(over="ignore"):
            scaled = self.geometry.scaling.apply(block)
        return np.clip(scaled, -LARGEST, LARGEST, out=scaled)

    @property
    def distance_name(self) -> str:
        """What the distance to prototypes is, in words."""
        return f"over all columns, signed logarithms in the {self.geometry.metric_names[0]} metric"

    def coordinates(self, rows: Array) -> Array:
        """Raw rows on the scale of the prototypes in the first metric, shape (n, M)."""
        scaled = np.clip(self.geometry.scaling.apply(rows), -LARGEST, LARGEST)
        return np.asarray(scaled * np.sqrt(self.geometry.metrics[0]))

    def with_swap_test(self, swap_test: SwapTestFunction) -> MeasuredMethod:
        """A copy whose distances a SWAP test measures."""
        return MeasuredMethod(self, swap_test)

    def measure_with(self, X: Table, swap_test: SwapTestFunction) -> Measured:
        """Scores from measured distances to the prototypes that the closed form finds nearest."""
        features = self.measured_features(X, swap_test)
        scores = self.class_scores(self.logit(features))
        return self.measure(X)._replace(scores=scores, deltas=features[:, self.circuit_features])

    def measured_features(self, X: Table, swap_test: SwapTestFunction) -> Array:
        """All features of raw rows, shape (n, F), from measured distances."""
        scaled = self.scaled(X, range(row_count(X, len(self.used))))
        return self.geometry.measured_features(scaled, swap_test)

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        return replace(self, medoid_rows=rows[self.medoid_rows].astype(np.intp))

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        from qmedoid.methods.rare.contributions import column_contributions

        del others  # of two classes
        return column_contributions(self, rows, winners)

    def contributions(self, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        from qmedoid.methods.rare.contributions import contributions

        del measured, other  # of two classes, and exact sums of the features
        return contributions(self, row, winner)


def _nearest(k: int, name: str) -> str:
    return f"nearest {name} row" if k == 1 else f"{k} nearest {name} rows"
