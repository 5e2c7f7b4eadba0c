r"""Contributions of features and columns to the log-odds of a rare-event model.

A feature of one column is that column's. A delta :math:`\Delta = (D_0 - D_1)/(D_0 + D_1)` of mean distances is a sum
over columns, because every distance is one, :math:`D = \sum_f d_f^2 / D`:

.. math:: \Delta_f = \frac{e_{0f} - e_{1f}}{D_0 + D_1}, \qquad e_{cf} = \frac1k \sum_{i\in N_c} \frac{d_{if}^2}{D_i}.

A column in which a record equals its nearest prototypes of both classes has :math:`\Delta_f = 0`. The mean of the
delta over the training rows, from which a feature counts, is shared as the squared differences between common and
rare prototypes are: so a column in which the record lies between both classes as most rows do adds little.
"""

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.rare.part import CLIP, RarePart


def contributions(model: RarePart, row: Array, winner: int) -> Contributions:
    """Contributions of every feature, and of every column; `row` has the shape (1, M)."""
    sign = 1.0 if winner == model.rare_class else -1.0
    added = sign * (model.standardized(model.features(row))[0] * model.weights)
    groups = tuple(
        GroupContribution(columns, float(amount), name=name)
        for columns, name, amount in zip(model.feature_columns, model.feature_names, added, strict=True)
    )
    n_deltas, n_columns = model.geometry.n_features[0], row.shape[1]
    columns = added[n_deltas:].reshape(4, n_columns).sum(axis=0)
    columns += _delta_columns(model, model.scaled(row, range(1))[0], sign * model.weights)
    return Contributions(columns, groups, {"intercept": sign * float(model.intercept)})


def column_contributions(model: RarePart, rows: Array, winners: Codes) -> Array:
    """What columns add for many rows, each with its class, shape (n, M): `contributions`, all rows at once."""
    signs = np.where(winners == model.rare_class, 1.0, -1.0)
    n_deltas = model.geometry.n_features[0]
    added = model.standardized(model.features(rows))[:, n_deltas:] * model.weights[n_deltas:]
    columns = added.reshape(len(rows), 4, rows.shape[1]).sum(axis=1)
    columns += _deltas_by_column(model, model.scaled(rows, range(len(rows))))
    return np.asarray(signs[:, None] * columns)


def _deltas_by_column(model: RarePart, scaled: Array) -> Array:
    """`_delta_columns` of many rows, by the weights of the model, shape (n, M)."""
    geometry, columns = model.geometry, np.zeros(scaled.shape)
    between = _squares_between(geometry.common[~geometry.hard], geometry.rare)
    most, number = max(geometry.counts), 0
    for metric in geometry.metrics:
        usual, root = _shares(metric * between, metric), np.sqrt(metric)
        found = []
        for prototypes in (geometry.common, geometry.rare):
            k = min(most, len(prototypes) - 1)
            squared, places = nearest_squared(np.ascontiguousarray(scaled * root), prototypes * root, k=k)
            found.append((np.sqrt(squared), metric * (scaled[:, None] - prototypes[places]) ** 2))
        for count in geometry.counts:
            center, scale = float(model.center[number]), float(model.scale[number])
            parts, means = [], []
            for distances, squares in found:
                near = distances[:, :count]
                parts.append((squares[:, :count] / np.where(near > 0, near, 1.0)[:, :, None]).mean(axis=1))
                means.append(near.mean(axis=1))
            delta = (parts[0] - parts[1]) / (means[0] + means[1] + 1e-300)[:, None]
            deviations = np.abs(delta.sum(axis=1) - center) / scale
            held = np.where(deviations > CLIP, CLIP / np.maximum(deviations, CLIP), 1.0)
            columns += (held * float(model.weights[number]) / scale)[:, None] * (delta - center * usual)
            number += 1
    return columns


def _delta_columns(model: RarePart, scaled: Array, weights: Array) -> Array:
    """What the deltas, weighted, add by every column, shape (M,)."""
    geometry, columns = model.geometry, np.zeros(len(scaled))
    between = _squares_between(geometry.common[~geometry.hard], geometry.rare)
    number = 0
    for metric in geometry.metrics:
        usual = _shares(metric * between, metric)
        for k in geometry.counts:
            center, scale = float(model.center[number]), float(model.scale[number])
            parts = _delta(scaled, geometry.common, geometry.rare, metric, k)
            # A delta that is held at ±CLIP deviations counts less, in all columns alike.
            deviations = abs(float(parts.sum()) - center) / scale
            held = CLIP / deviations if deviations > CLIP else 1.0
            columns += held * float(weights[number]) / scale * (parts - center * usual)
            number += 1
    return columns


def _delta(row: Array, common: Array, rare: Array, weights: Array, k: int) -> Array:
    """The delta of the k nearest prototypes in one metric, column by column, shape (M,)."""
    parts, means = [], []
    for prototypes in (common, rare):
        squares = weights * (row - prototypes) ** 2
        distances = np.sqrt(squares.sum(axis=1))
        # A prototype has one less to be compared with, so that there are never as many as all.
        nearest = np.argsort(distances, kind="stable")[: min(k, len(prototypes) - 1)]
        of_nearest = distances[nearest]
        parts.append((squares[nearest] / np.where(of_nearest > 0, of_nearest, 1.0)[:, None]).mean(axis=0))
        means.append(float(of_nearest.mean()))
    delta: Array = (parts[0] - parts[1]) / (means[0] + means[1] + 1e-300)
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
