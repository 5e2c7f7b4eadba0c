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
    columns = column_contributions(model, row, np.array([winner]))[0]
    return Contributions(columns, groups, {"intercept": sign * float(model.intercept)})


def column_contributions(model: RarePart, rows: Array, winners: Codes) -> Array:
    """What columns add for many rows, each with its class, shape (n, M)."""
    signs = np.where(winners == model.rare_class, 1.0, -1.0)
    n_deltas = model.geometry.n_features[0]
    added = model.standardized(model.features(rows))[:, n_deltas:] * model.weights[n_deltas:]
    columns = added.reshape(len(rows), 4, rows.shape[1]).sum(axis=1)
    columns += _deltas_by_column(model, model.scaled(rows, range(len(rows))))
    return np.asarray(signs[:, None] * columns)


def _deltas_by_column(model: RarePart, scaled: Array) -> Array:
    """What the deltas, weighted, add by every column, shape (n, M)."""
    geometry, columns = model.geometry, np.zeros(scaled.shape)
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
            center, scale = float(model.center[number]), float(model.scale[number])
            parts, means = [], []
            for distances, squares in found:
                near = distances[:, :count]
                parts.append((squares[:, :count] / np.where(near > 0, near, 1.0)[:, :, None]).mean(axis=1))
                means.append(near.mean(axis=1))
            delta = (parts[0] - parts[1]) / (means[0] + means[1] + 1e-300)[:, None]
            # A delta that is held at ±CLIP deviations counts less, in all columns alike.
            deviations = np.abs(delta.sum(axis=1) - center) / scale
            held = np.where(deviations > CLIP, CLIP / np.maximum(deviations, CLIP), 1.0)
            columns += (held * float(model.weights[number]) / scale)[:, None] * (delta - center * usual)
            number += 1
    return columns
