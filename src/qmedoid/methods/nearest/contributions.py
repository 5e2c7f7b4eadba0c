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

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.channels import EPSILON
from qmedoid.methods.base import Measured
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.nearest.model import NearestModel


class _Linear(NamedTuple):
    """What every anchor adds, slope·(v − reference), each of shape (n, A)."""

    slope: Array
    reference: Array


class _Between(NamedTuple):
    """What decides between two classes of n rows.

    Attributes
    ----------
    features : ndarray of shape (n, A)
    added : list of _Linear
        By distance, and by angle.
    splits_angle : ndarray of shape (n,)
        Whether the angle is a sum over the anchors: the true one between vectors that are not 0.
    angle, class_weights : ndarray of shape (n,)
        What an angle adds that is no such sum, and what class weights add.
    """

    features: Array
    added: list[_Linear]
    splits_angle: Flags
    angle: Array
    class_weights: Array


def contributions(model: NearestModel, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
    """Contributions of columns, of the anchors' groups and of the class weights; `row` has the shape (1, M)."""
    found = _between(model, row, measured, np.array([winner]), np.array([other]))
    terms = {"class weights": float(found.class_weights[0])}
    if not found.splits_angle[0]:
        terms["angle"] = float(found.angle[0])
    amounts = sum(one.slope[0] * (found.features[0] - one.reference[0]) for one in found.added)
    nearest = measured.nearest[0]
    groups = tuple(
        GroupContribution(
            subset,
            float(amount),
            value=float(value),
            medoid_values={code: float(model.medoids[nearest[code], anchor]) for code in (winner, other)},
        )
        for anchor, (subset, amount, value) in enumerate(
            zip(model.configuration, np.asarray(amounts), found.features[0], strict=True)
        )
    )
    return Contributions(_columns(model, row, found)[0], groups, terms)


def column_contributions(model: NearestModel, X: Array, measured: Measured, winner: Codes, other: Codes) -> Array:
    """The contributions of every column, row by row, shape (n, M)."""
    return _columns(model, X, _between(model, X, measured, winner, other))


def _between(model: NearestModel, X: Array, measured: Measured, winner: Codes, other: Codes) -> _Between:
    features, each = model.features(X), np.arange(len(X))
    distance, theta = measured.channels
    of_winner, of_other = (model.medoids[measured.nearest[each, code]] for code in (winner, other))
    alpha = model.alpha if model.use_angular else 1.0
    by_distance, by_angle = alpha / (distance.sum(axis=1) + EPSILON), (1.0 - alpha) / (theta.sum(axis=1) + EPSILON)
    mean = (model.multipliers[winner] + model.multipliers[other]) / 2.0
    half = (model.multipliers[other] - model.multipliers[winner]) / 2.0
    near, far = (distance[each, code] for code in (winner, other))
    narrow, wide = (theta[each, code] for code in (winner, other))
    added = [_by_distance(of_winner, of_other, near + far, by_distance * mean)]
    splits: Flags = np.all([rows.any(axis=1) for rows in (features, of_winner, of_other)], axis=0)
    splits &= model.angle == "true"
    if splits.any():
        added.append(_by_angle(features, of_winner, of_other, narrow, wide, by_angle * mean * splits))
    angle = np.where(splits, 0.0, by_angle * mean * (wide - narrow))
    class_weights = half * (by_distance * (near + far) + by_angle * (narrow + wide))
    return _Between(features, added, splits, angle, class_weights)


def _by_distance(winner: Array, other: Array, both: Array, factor: Array) -> _Linear:
    """What every anchor adds by distance to the medoids of the winner and of the other class."""
    rate = np.divide(2.0 * factor, both, out=np.zeros_like(both), where=both > 0)
    return _Linear(rate[:, None] * (winner - other), (winner + other) / 2.0)


def _by_angle(features: Array, winner: Array, other: Array, narrow: Array, wide: Array, factor: Array) -> _Linear:
    """What every anchor adds by the true angle."""
    half, mean = (wide - narrow) / 2.0, (wide + narrow) / 2.0
    is_inner = (mean > 0) & (mean < np.pi)
    # cos w − cos o = 2 sin(mean) sin(half): no difference of nearly equal numbers.
    rate = np.divide(factor, np.sinc(half / np.pi) * np.sin(mean), out=np.zeros_like(mean), where=is_inner)
    between = winner / _length(winner) - other / _length(other)
    return _Linear(rate[:, None] / _length(features) * between, np.zeros_like(features))


def _length(rows: Array) -> Array:
    """The length of every row, shape (n, 1); 1 for rows of zeros."""
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.where(lengths > 0, lengths, 1.0)


def _columns(model: NearestModel, X: Array, found: _Between) -> Array:
    """What slope·(v − reference) of the anchors' features v is by columns, shape (n, M)."""
    columns, scaled = np.zeros(X.shape), model.input_scaling.apply(X)
    for anchor, subset in enumerate(model.configuration):
        weights = model.weights[anchor]
        terms = scaled[:, list(subset)] * weights
        norm = np.sqrt(np.sum(terms**2, axis=1))
        feature = np.where(np.sum(terms, axis=1) < 0, -norm, norm) if model.signed else norm
        parts = feature[:, None] * (terms / np.where(norm > 0, norm, 1.0)[:, None]) ** 2
        center, scale = (float(one[anchor]) for one in (model.feature_scaling.center, model.feature_scaling.scale))
        total = float(np.sum(weights**2))
        usual = weights**2 / total if total > 0 else np.full(len(weights), 1.0 / len(weights))
        for one in found.added:
            slope, reference = one.slope[:, [anchor]] / scale, one.reference[:, [anchor]]
            columns[:, list(subset)] += slope * (parts - (center + scale * reference) * usual)
    return columns
