r"""Contributions of anchors and columns to the difference of two fusion scores.

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

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.channels import EPSILON
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.nearest.part import NearestPart


class _Linear(NamedTuple):
    """What every anchor adds, slope·(v − reference), each of shape (A,)."""

    slope: Array
    reference: Array


def contributions(model: NearestPart, row: Array, winner: int, other: int) -> Contributions:
    """Contributions of columns, of the anchors' groups and of the class weights; `row` has the shape (1, M)."""
    nearest, distance, theta = (part[0] for part in _channels(model, row))
    features, pair = model.features(row)[0], [winner, other]
    medoids = model.medoids[nearest[pair]]
    alpha = model.alpha if model.use_angular else 1.0
    shares = alpha, 1.0 - alpha
    totals = distance.sum() + EPSILON, theta.sum() + EPSILON
    mean, half = model.multipliers[pair].sum() / 2.0, (model.multipliers[other] - model.multipliers[winner]) / 2.0
    # The angle is a sum over the anchors where it is the true one between vectors that are not 0.
    splits_angle = model.angle == "true" and bool(features.any() and medoids.any(axis=1).all())
    added = [_by_distance(medoids, distance[pair], shares[0] * mean / totals[0])]
    both = alpha * distance[pair].sum() / totals[0] + (1.0 - alpha) * theta[pair].sum() / totals[1]
    terms = {"class weights": float(half * both)}
    if splits_angle:
        added.append(_by_angle(features, medoids, theta[pair], shares[1] * mean / totals[1]))
    else:
        terms["angle"] = float(shares[1] * mean * (theta[other] - theta[winner]) / totals[1])
    columns, scaled, groups = np.zeros(row.shape[1]), model.input_scaling.apply(row)[0], []
    for anchor, subset in enumerate(model.configuration):
        for of_channel in added:
            change = of_channel.slope[anchor], of_channel.reference[anchor]
            columns[list(subset)] += _feature_columns(model, scaled, anchor, *change)
        groups.append(
            GroupContribution(
                subset,
                float(sum(one.slope[anchor] * (features[anchor] - one.reference[anchor]) for one in added)),
                value=float(features[anchor]),
                medoid_values={code: float(model.medoids[nearest[code], anchor]) for code in pair},
            )
        )
    return Contributions(columns, tuple(groups), terms)


def column_contributions(model: NearestPart, rows: Array, winners: Codes, others: Codes) -> Array:
    """What columns add for many rows, each with its two classes, shape (n, M): `contributions`, all rows at once."""
    (nearest, distance, theta), each = _channels(model, rows), np.arange(len(rows))
    features, scaled = model.features(rows), model.input_scaling.apply(rows)
    medoids = [model.medoids[nearest[each, codes]] for codes in (winners, others)]
    alpha = model.alpha if model.use_angular else 1.0
    mean = (model.multipliers[winners] + model.multipliers[others]) / 2.0
    pair = [distance[each, codes] for codes in (winners, others)]
    factor = (alpha * mean / (distance.sum(axis=1) + EPSILON))[:, None]
    both = (pair[0] + pair[1])[:, None]
    difference = np.divide(2.0 * factor * (medoids[0] - medoids[1]), both, out=np.zeros_like(features), where=both > 0)
    added = [(difference, (medoids[0] + medoids[1]) / 2.0)]
    if model.angle == "true" and alpha < 1.0:
        angles = [theta[each, codes] for codes in (winners, others)]
        factors = (1.0 - alpha) * mean / (theta.sum(axis=1) + EPSILON)
        added.append((_angle_slopes(features, medoids, angles, factors), np.zeros_like(features)))
    columns = np.zeros(rows.shape)
    for anchor, subset in enumerate(model.configuration):
        for slope, reference in added:
            columns[:, list(subset)] += _columns_of_feature(
                model, scaled, anchor, slope[:, [anchor]], reference[:, [anchor]]
            )
    return columns


def _channels(model: NearestPart, rows: Array) -> tuple[Codes, Array, Array]:
    """The nearest medoid of each class, with distance and angle to it, each of shape (n, C)."""
    found = model.score(rows, channels=True)
    assert found.nearest is not None, "a model of medoids finds them"
    return found.nearest, *found.channels


def _angle_slopes(features: Array, medoids: list[Array], angles: list[Array], factors: Array) -> Array:
    """Slopes of `_by_angle` for many rows, shape (n, A); 0 where a vector of zeros has no angle."""
    lengths = [np.sqrt((vectors**2).sum(axis=1)) for vectors in (features, *medoids)]
    splits = (lengths[0] > 0) & (lengths[1] > 0) & (lengths[2] > 0)
    length, winner, other = (np.where(splits, one, 1.0)[:, None] for one in lengths)
    half, mean = (angles[1] - angles[0]) / 2.0, (angles[1] + angles[0]) / 2.0
    inside = splits & (mean > 0) & (mean < np.pi)
    rate = np.where(inside, factors / np.where(inside, np.sinc(half / np.pi) * np.sin(mean), 1.0), 0.0)
    slopes: Array = rate[:, None] / length * (medoids[0] / winner - medoids[1] / other)
    return slopes


def _columns_of_feature(model: NearestPart, scaled: Array, anchor: int, slope: Array, reference: Array) -> Array:
    """`_feature_columns` of many rows, shape (n, k)."""
    weights = model.weights[anchor]
    terms = scaled[:, list(model.configuration[anchor])] * weights
    norm = np.sqrt((terms**2).sum(axis=1, keepdims=True))
    feature = np.where(terms.sum(axis=1, keepdims=True) < 0, -norm, norm) if model.signed else norm
    shares = np.divide(terms, norm, out=np.zeros_like(terms), where=norm > 0) ** 2
    center, scale = (float(one[anchor]) for one in (model.feature_scaling.center, model.feature_scaling.scale))
    total = float(np.sum(weights**2))
    usual = weights**2 / total if total > 0 else np.full(len(weights), 1.0 / len(weights))
    columns: Array = slope / scale * (feature * shares - (center + scale * reference) * usual)
    return columns


def _by_distance(medoids: Array, distance: Array, factor: float) -> _Linear:
    """What every anchor adds by distance; medoids and distances are those of the winner and of the other class."""
    winner, other = medoids
    both = distance.sum()
    slope = 2.0 * factor * (winner - other) / both if both > 0 else np.zeros(len(winner))
    return _Linear(slope, (winner + other) / 2.0)


def _by_angle(features: Array, medoids: Array, theta: Array, factor: float) -> _Linear:
    """What every anchor adds by the true angle."""
    winner, other = (medoid / np.sqrt(medoid @ medoid) for medoid in medoids)
    half, mean = (theta[1] - theta[0]) / 2.0, (theta[1] + theta[0]) / 2.0
    # cos w − cos o = 2 sin(mean) sin(half): no difference of nearly equal numbers.
    rate = 1.0 / (np.sinc(half / np.pi) * np.sin(mean)) if 0 < mean < np.pi else 0.0
    return _Linear(factor * rate / np.sqrt(features @ features) * (winner - other), np.zeros(len(features)))


def _feature_columns(model: NearestPart, scaled: Array, anchor: int, slope: float, reference: float) -> Array:
    """What slope·(v − reference) of an anchor's feature v is by its columns, shape (k,)."""
    weights = model.weights[anchor]
    terms = scaled[list(model.configuration[anchor])] * weights
    norm = float(np.sqrt(np.sum(terms**2)))
    feature = -norm if model.signed and np.sum(terms) < 0 else norm
    parts = feature * (terms / norm) ** 2 if norm > 0 else np.zeros(len(terms))
    center, scale = (float(one[anchor]) for one in (model.feature_scaling.center, model.feature_scaling.scale))
    total = float(np.sum(weights**2))
    usual = weights**2 / total if total > 0 else np.full(len(weights), 1.0 / len(weights))
    columns: Array = slope / scale * (parts - (center + scale * reference) * usual)
    return columns
