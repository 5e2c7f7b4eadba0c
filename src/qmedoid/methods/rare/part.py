r"""The rare-event model: a logistic regression on distances to prototypes, in closed form or measured by circuits.

Contributions are those of its features. A feature of one column is that column's. A delta
:math:`\Delta = (D_0 - D_1)/(D_0 + D_1)` of mean distances is a sum over columns, because every distance is one,
:math:`D = \sum_f d_f^2 / D`:

.. math:: \Delta_f = \frac{e_{0f} - e_{1f}}{D_0 + D_1}, \qquad e_{cf} = \frac1k \sum_{i\in N_c} \frac{d_{if}^2}{D_i}.

A column in which a record equals its nearest prototypes of both classes has :math:`\Delta_f = 0`. The mean of the
delta over the training rows, from which a feature counts, is shared as the squared differences between common and
rare prototypes are: so a column in which the record lies between both classes as most rows do adds little.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes, Table
from qmedoid.geometry.overlap import SwapTestFunction, row_angles
from qmedoid.kernels.backend import in_chunks, row_block, row_count
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.part import LARGEST, KeptRows, Part, PartFacts, Scored, refuse_bad_values
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.schema import MODERATE, RefusedError, RowNumbers, Values

CLIP = 12.0
"""Standardized features are held within this many deviations."""
# Rows that are judged at a time: their features stay in the cache.
_BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class RarePart(Part):
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
    medoid_rows: Annotated[Codes, RowNumbers("P")]
    center: Annotated[Array, Values("F")]
    scale: Annotated[Array, Values("F", zero=False)]
    weights: Annotated[Array, Values("F", largest=MODERATE)]
    intercept: float
    circuit_features: Annotated[Codes, Values("m", below="F")]
    rare_class: Annotated[int, Values(most=1)]

    name: ClassVar[str] = "rare"

    def validate(self) -> None:
        """Refuse a stored model whose features or rows are not those of its prototypes."""
        n_features, n_rows = sum(self.geometry.n_features), len(self.geometry.rare) + len(self.geometry.common)
        if (len(self.center), len(self.medoid_rows)) != (n_features, n_rows):
            raise RefusedError(f"center must have {n_features} numbers and medoid_rows {n_rows}")

    @cached_property
    def medoid_classes(self) -> Codes:
        """Class code of each prototype."""
        counts = [len(self.geometry.rare), len(self.geometry.common)]
        return np.repeat(np.array([self.rare_class, 1 - self.rare_class], dtype=np.intp), counts)

    @cached_property
    def columns(self) -> Codes:
        """Encoded columns that it reads: all of them."""
        return np.arange(self.geometry.rare.shape[1])

    @cached_property
    def rows(self) -> KeptRows:
        """The prototypes, in the first metric."""
        space = f"over all columns, signed logarithms in the {self.geometry.metric_names[0]} metric"
        return KeptRows(self.medoid_rows, self.medoid_classes, self._prototype_points, self._points, space)

    @cached_property
    def _prototype_points(self) -> Array:
        prototypes = np.concatenate([self.geometry.rare, self.geometry.common])
        return np.asarray(prototypes * np.sqrt(self.geometry.metrics[0]))

    @property
    def n_features(self) -> int:
        """Number of features for a circuit."""
        return len(self.circuit_features)

    @property
    def facts(self) -> PartFacts:
        """What it says of itself; its groups are the columns of each metric, and every column alone."""
        return {
            "description": (
                "how much nearer a record lies to known cases of the rare class than to others: to the medoids"
            ),
            "groups": tuple(dict.fromkeys(self.feature_columns)),
            "kept": (),
            "vector_length": len(self.columns),
            "numbers": {},
        }

    @cached_property
    def feature_columns(self) -> tuple[tuple[int, ...], ...]:
        """Columns that each feature looks at."""
        metrics = [tuple(columns.tolist()) for columns, *_ in self.geometry.weighted]
        deltas = [columns for columns in metrics for _ in self.geometry.counts]
        single: list[tuple[int, ...]] = [(column,) for column in self.columns.tolist()]
        return tuple(deltas + 4 * single)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Description of every feature."""
        deltas = [
            f"{_nearest(k, 'rare')} against {_nearest(k, 'common')} ({metric} metric)"
            for metric in self.geometry.metric_names
            for k in self.geometry.counts
        ]
        nearness = ["nearness to rare rows against common rows"] * len(self.columns)
        positions = ["nearness to its highest row against its lowest"] * len(self.columns)
        middles = [f"distance to the middle {name} row" for name in ("common", "rare") for _ in self.columns]
        return tuple(deltas + nearness + positions + middles)

    def features(self, X: Table) -> Array:
        """All features of raw rows, shape (n, F): the definition."""
        scaled = self.scaled(X, range(row_count(X, len(self.columns))))
        return self.geometry.evidence(scaled)[0]

    def logit(self, features: Array) -> Array:
        """Logarithm of the odds of the rare class from features, shape (n,)."""
        # A sum along each row, not a product of matrices: it does not depend on the other rows.
        logit: Array = self.intercept + (self.standardized(features) * self.weights).sum(axis=1)
        return logit

    def standardized(self, features: Array) -> Array:
        """Features in deviations from their means, held within ±`CLIP`."""
        standardized: Array = np.clip((features - self.center) / self.scale, -CLIP, CLIP)
        return standardized

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Score records, and find the nearest prototypes of each class by the first metric."""
        n = row_count(X, len(self.columns))
        nearest, features = np.empty((n, 2), dtype=np.intp), np.empty((n, len(self.circuit_features)))
        distance, angle, scores = np.empty((3, n, 2))
        # Once, before threads ask for it.
        _ = self.geometry.kernel, self.geometry.middle, self.geometry.typical, self.geometry.weighted
        results = {"rows": np.arange(n), "scores": scores, "nearest": nearest, "features": features}
        angles = {"distance": distance, "angle": angle if channels else None}
        in_chunks("", self._fill, X, (_BLOCK_ROWS, _BLOCK_ROWS), threads, {}, results | angles)
        return Scored(scores, nearest, *((distance, angle, features) if channels else ()))

    def _fill(
        self,
        X: Table,
        rows: Codes,
        distance: Array,
        angle: Array | None,
        scores: Array,
        nearest: Codes,
        features: Array,
    ) -> None:
        scaled = self.scaled(X, rows)
        found, squared, places = self.geometry.evidence(scaled)
        by_class = slice(None, None, 1 if self.rare_class == 1 else -1)
        nearest[...] = (places + np.array([len(self.geometry.rare), 0]))[:, by_class]
        distance[...] = np.sqrt(squared)[:, by_class]
        scores[...] = self.class_scores(self.logit(found))
        features[...] = found[:, self.circuit_features]
        if angle is not None:
            points = self._prototype_points
            in_metric = scaled * np.sqrt(self.geometry.metrics[0])
            for c in range(2):
                angle[:, c] = row_angles(in_metric, points[nearest[:, c]])

    def class_scores(self, logit: Array) -> Array:
        """Dissimilarities from the logit of the rare class, shape (n, 2)."""
        scores = np.column_stack([0.5 * logit, -0.5 * logit])
        return scores if self.rare_class == 1 else scores[:, ::-1]

    def scaled(self, X: Table, rows: Codes | range) -> Array:
        """Raw rows on the scale of the prototypes, shape (n, M); `rows` are their numbers in the whole table."""
        block = row_block(X, slice(None))
        refuse_bad_values(block, self.columns, rows)
        # With a column of tiny values, a large one may leave the range of a double, or its square may.
        with np.errstate(over="ignore"):
            scaled = self.geometry.scaling.apply(block)
        return np.clip(scaled, -LARGEST, LARGEST, out=scaled)

    def _points(self, rows: Array) -> Array:
        """Raw rows on the scale of the prototypes in the first metric, shape (n, M)."""
        scaled = np.clip(self.geometry.scaling.apply(rows), -LARGEST, LARGEST)
        return np.asarray(scaled * np.sqrt(self.geometry.metrics[0]))

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """Score records by measured distances to the prototypes that the closed form finds nearest."""
        features = self.measured_features(X, backend)
        scores = self.class_scores(self.logit(features))
        return self.score(X, channels=True)._replace(scores=scores, features=features[:, self.circuit_features])

    def measured_features(self, X: Table, swap_test: SwapTestFunction) -> Array:
        """All features of raw rows, shape (n, F), from measured distances."""
        scaled = self.scaled(X, range(row_count(X, len(self.columns))))
        return self.geometry.measured_features(scaled, swap_test)

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Contributions of every feature, and of every column, for one row of shape (1, M)."""
        sign = 1.0 if winner == self.rare_class else -1.0
        added = sign * (self.standardized(self.features(row))[0] * self.weights)
        groups = tuple(
            GroupContribution(columns, float(amount), name=name)
            for columns, name, amount in zip(self.feature_columns, self.feature_names, added, strict=True)
        )
        columns = self.column_contributions(row, np.array([winner]), np.array([other]))[0]
        return Contributions(columns, groups, {"intercept": sign * float(self.intercept)})

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        del others  # of two classes
        signs = np.where(winners == self.rare_class, 1.0, -1.0)
        n_deltas = self.geometry.n_features[0]
        added = self.standardized(self.features(X))[:, n_deltas:] * self.weights[n_deltas:]
        columns = added.reshape(len(X), 4, X.shape[1]).sum(axis=1)
        columns += self._deltas_by_column(self.scaled(X, range(len(X))))
        return np.asarray(signs[:, None] * columns)

    def _deltas_by_column(self, scaled: Array) -> Array:
        """What the deltas, weighted, add by every column, shape (n, M)."""
        geometry, columns = self.geometry, np.zeros(scaled.shape)
        common, rare = geometry.common[~geometry.hard], geometry.rare
        # Mean squared difference between common and rare prototypes in every column.
        between = common.var(axis=0) + rare.var(axis=0) + (common.mean(axis=0) - rare.mean(axis=0)) ** 2
        most, number = max(geometry.counts), 0
        for metric in geometry.metrics:
            usual, root, found = metric * between if (metric * between).any() else metric, np.sqrt(metric), []
            usual = usual / usual.sum()
            for prototypes in (geometry.common, geometry.rare):
                # A prototype has one less to be compared with, so that there are never as many as all.
                k = min(most, len(prototypes) - 1)
                squared, places = nearest_squared(np.ascontiguousarray(scaled * root), prototypes * root, k=k)
                found.append((np.sqrt(squared), metric * (scaled[:, None] - prototypes[places]) ** 2))
            for count in geometry.counts:
                center, scale = float(self.center[number]), float(self.scale[number])
                parts, means = [], []
                for distances, squares in found:
                    near = distances[:, :count]
                    parts.append((squares[:, :count] / np.where(near > 0, near, 1.0)[:, :, None]).mean(axis=1))
                    means.append(near.mean(axis=1))
                delta = (parts[0] - parts[1]) / (means[0] + means[1] + 1e-300)[:, None]
                # A delta that is held at ±CLIP deviations counts less, in all columns alike.
                deviations = np.abs(delta.sum(axis=1) - center) / scale
                held = np.where(deviations > CLIP, CLIP / np.maximum(deviations, CLIP), 1.0)
                columns += (held * float(self.weights[number]) / scale)[:, None] * (delta - center * usual)
                number += 1
        return columns


def _nearest(k: int, name: str) -> str:
    return f"nearest {name} row" if k == 1 else f"{k} nearest {name} rows"
