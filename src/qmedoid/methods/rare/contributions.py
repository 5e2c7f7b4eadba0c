r"""Contributions of features and columns to the log-odds of a rare-event model.

A feature of one column is that column's. A delta :math:`\Delta = (D_0 - D_1)/(D_0 + D_1)` of mean distances is a sum
over columns, because every distance is one, :math:`D = \sum_f d_f^2 / D`:

.. math:: \Delta_f = \frac{e_{0f} - e_{1f}}{D_0 + D_1}, \qquad e_{cf} = \frac1k \sum_{i\in N_c} \frac{d_{if}^2}{D_i}.

A column in which a record equals its nearest prototypes of both classes has :math:`\Delta_f = 0`. The mean of the
delta over the training rows, from which a feature counts, is shared as the squared differences between common and
rare prototypes are: so a column in which the record lies between both classes as most rows do adds little.
"""

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.methods.contributions import BLOCK_NUMBERS, Contributions, GroupContribution
from qmedoid.methods.rare.model import CLIP, RareEventModel


def contributions(model: RareEventModel, row: Array, winner: int) -> Contributions:
    """Contributions of every feature, and of every column; `row` has the shape (1, M)."""
    sign = 1.0 if winner == model.rare_class else -1.0
    added = sign * (model.standardized(model.features(row))[0] * model.weights)
    groups = tuple(
        GroupContribution(columns, float(amount), name=name)
        for columns, name, amount in zip(model.feature_columns, model.feature_names, added, strict=True)
    )
    columns = column_contributions(model, row, np.array([winner]))[0]
    return Contributions(columns, groups, {"intercept": sign * float(model.intercept)})


def column_contributions(model: RareEventModel, X: Array, winner: Codes) -> Array:
    """What every column says for the winner of a row, shape (n, M)."""
    columns, n_deltas = np.zeros(X.shape), model.geometry.n_features[0]
    for block in row_slices(X, max(1, BLOCK_NUMBERS // (max(model.geometry.counts) * X.shape[1]))):
        rows = X[block]
        added = (model.standardized(model.features(rows)) * model.weights)[:, n_deltas:]
        scaled = model.scaled(rows, range(len(rows)))
        for_rare = added.reshape(len(rows), 4, -1).sum(axis=1) + _delta_columns(model, scaled)
        columns[block] = np.where(winner[block] == model.rare_class, 1.0, -1.0)[:, None] * for_rare
    return columns


def _delta_columns(model: RareEventModel, scaled: Array) -> Array:
    """What the deltas, weighted, add by every column, shape (n, M)."""
    geometry, columns = model.geometry, np.zeros(scaled.shape)
    between = _squares_between(geometry.common[~geometry.hard], geometry.rare)
    number = 0
    for metric in geometry.metrics:
        usual = _shares(metric * between, metric)
        far, near = (_nearest(scaled, rows, metric, max(geometry.counts)) for rows in (geometry.common, geometry.rare))
        for k in geometry.counts:
            center, scale = float(model.center[number]), float(model.scale[number])
            parts = _delta(far, near, k)
            # A delta that is held at ±CLIP deviations counts less, in all columns alike.
            deviations = np.abs(parts.sum(axis=1, keepdims=True) - center) / scale
            held = CLIP / np.maximum(deviations, CLIP)
            columns += held * (float(model.weights[number]) / scale) * (parts - center * usual)
            number += 1
    return columns


def _nearest(rows: Array, prototypes: Array, weights: Array, k: int) -> tuple[Array, Array]:
    """Distances (n, k) to the nearest prototypes in one metric, and what each column adds to them, (n, k, M)."""
    of, roots = np.flatnonzero(weights), np.sqrt(weights[weights > 0])
    # A prototype has one less to be compared with, so that there are never as many as all.
    found, places = nearest_squared(
        np.ascontiguousarray(rows[:, of] * roots), np.ascontiguousarray(prototypes[:, of] * roots),
        k=min(k, len(prototypes) - 1), threads=1,
    )  # fmt: skip
    distances = np.sqrt(found)
    squares = weights * (rows[:, None] - prototypes[places]) ** 2
    return distances, squares / np.where(distances > 0, distances, 1.0)[:, :, None]


def _delta(common: tuple[Array, Array], rare: tuple[Array, Array], k: int) -> Array:
    """The delta of the k nearest prototypes in one metric, column by column, shape (n, M)."""
    (far, of_far), (near, of_near) = common, rare
    total = far[:, :k].mean(axis=1) + near[:, :k].mean(axis=1) + 1e-300
    delta: Array = (of_far[:, :k].mean(axis=1) - of_near[:, :k].mean(axis=1)) / total[:, None]
    return delta


def _squares_between(common: Array, rare: Array) -> Array:
    """Mean squared difference between common and rare prototypes in every column, shape (M,)."""
    gap = common.mean(axis=0) - rare.mean(axis=0)
    squares: Array = common.var(axis=0) + rare.var(axis=0) + gap**2
    return squares


def _shares(values: Array, weights: Array) -> Array:
    """Values as parts of their sum; where all are 0, the parts of the weights."""
    parts: Array = values / values.sum() if values.sum() > 0 else weights / weights.sum()
    return parts
