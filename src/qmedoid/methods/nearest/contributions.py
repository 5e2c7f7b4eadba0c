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

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.channels import EPSILON
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.nearest.part import NearestPart

Linear = tuple[Array, Array]
"""What every anchor adds to n rows, slope·(v − reference), each of shape (n, A)."""


def contributions(model: NearestPart, row: Array, winner: int, other: int) -> Contributions:
    """Contributions of columns, of the anchors' groups and of the class weights; `row` has the shape (1, M)."""
    nearest, distance, theta = (part[0] for part in _channels(model, row))
    features, pair, alpha = model.features(row)[0], [winner, other], _alpha(model)
    totals = distance.sum() + EPSILON, theta.sum() + EPSILON
    mean, half = model.multipliers[pair].sum() / 2.0, (model.multipliers[other] - model.multipliers[winner]) / 2.0
    both = alpha * distance[pair].sum() / totals[0] + (1.0 - alpha) * theta[pair].sum() / totals[1]
    terms = {"class weights": float(half * both)}
    added, splits_angle = _added(model, row, np.array([winner]), np.array([other]))
    if not splits_angle[0]:
        terms["angle"] = float((1.0 - alpha) * mean * (theta[other] - theta[winner]) / totals[1])
    groups = tuple(
        GroupContribution(
            subset,
            float(sum(slope[0, anchor] * (features[anchor] - reference[0, anchor]) for slope, reference in added)),
            value=float(features[anchor]),
            medoid_values={code: float(model.medoids[nearest[code], anchor]) for code in pair},
        )
        for anchor, subset in enumerate(model.configuration)
    )
    return Contributions(_by_column(model, row, added)[0], groups, terms)


def column_contributions(model: NearestPart, rows: Array, winners: Codes, others: Codes) -> Array:
    """What columns add for many rows, each with its two classes, shape (n, M)."""
    return _by_column(model, rows, _added(model, rows, winners, others)[0])


def _alpha(model: NearestPart) -> float:
    return model.alpha if model.use_angular else 1.0


def _channels(model: NearestPart, rows: Array) -> tuple[Codes, Array, Array]:
    """The nearest medoid of each class, with distance and angle to it, each of shape (n, C)."""
    found = model.score(rows, channels=True)
    assert found.nearest is not None, "a model of medoids finds them"
    return found.nearest, *found.channels


def _added(model: NearestPart, rows: Array, winners: Codes, others: Codes) -> tuple[list[Linear], Flags]:
    """What every anchor adds by each channel, and for which rows the angle is a sum over the anchors, shape (n,)."""
    (nearest, distance, theta), each, alpha = _channels(model, rows), np.arange(len(rows)), _alpha(model)
    features = model.features(rows)
    medoids = [model.medoids[nearest[each, codes]] for codes in (winners, others)]
    mean = (model.multipliers[winners] + model.multipliers[others]) / 2.0
    both = (distance[each, winners] + distance[each, others])[:, None]
    factor = (alpha * mean / (distance.sum(axis=1) + EPSILON))[:, None]
    difference = np.divide(2.0 * factor * (medoids[0] - medoids[1]), both, out=np.zeros_like(features), where=both > 0)
    added = [(difference, (medoids[0] + medoids[1]) / 2.0)]
    # The angle is a sum where it is the true one between vectors that are not 0.
    splits = np.all([vectors.any(axis=1) for vectors in (features, *medoids)], axis=0) & (model.angle == "true")
    if alpha < 1.0 and splits.any():
        angles = [theta[each, codes] for codes in (winners, others)]
        factors = (1.0 - alpha) * mean / (theta.sum(axis=1) + EPSILON)
        added.append((_angle_slopes(features, medoids, angles, factors, splits), np.zeros_like(features)))
    return added, splits


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


def _by_column(model: NearestPart, rows: Array, added: list[Linear]) -> Array:
    """What the anchors add, shared among the columns of their features, shape (n, M)."""
    columns, scaled = np.zeros(rows.shape), model.input_scaling.apply(rows)
    for anchor, subset in enumerate(model.configuration):
        weights = model.weights[anchor]
        terms = scaled[:, list(subset)] * weights
        norm = np.sqrt((terms**2).sum(axis=1, keepdims=True))
        feature = np.where(terms.sum(axis=1, keepdims=True) < 0, -norm, norm) if model.signed else norm
        shares = np.divide(terms, norm, out=np.zeros_like(terms), where=norm > 0) ** 2
        center, scale = (float(one[anchor]) for one in (model.feature_scaling.center, model.feature_scaling.scale))
        total = float(np.sum(weights**2))
        usual = weights**2 / total if total > 0 else np.full(len(weights), 1.0 / len(weights))
        for slope, reference in added:
            from_usual = feature * shares - (center + scale * reference[:, [anchor]]) * usual
            columns[:, list(subset)] += slope[:, [anchor]] / scale * from_usual
    return columns
