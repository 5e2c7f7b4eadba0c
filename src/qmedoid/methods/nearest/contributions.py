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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.channels import EPSILON
from qmedoid.methods.base import Contributions, GroupContribution, Measured
from qmedoid.methods.nearest.model import NearestModel


def contributions(model: NearestModel, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
    """Contributions of columns, of the anchors' groups and of the class weights; `row` has the shape (1, M)."""
    features = model.features(row)[0]
    channels, nearest = measured.channels, measured.nearest[0]
    pair = _ClassPair(model, features, channels.distance[0], channels.angle[0], nearest, winner, other)
    added = pair.distances(), pair.angles()
    columns = np.zeros(row.shape[1])
    scaled = model.input_scaling.apply(row)[0]
    for anchor, subset in enumerate(model.configuration):
        for of_channel in added:
            change = of_channel.slope[anchor], of_channel.reference[anchor]
            columns[list(subset)] += _feature_columns(model, scaled, anchor, *change)
    groups = tuple(
        GroupContribution(
            subset,
            float(sum(one.slope[anchor] * (features[anchor] - one.reference[anchor]) for one in added)),
            value=float(features[anchor]),
            medoid_values={code: float(model.medoids[nearest[code], anchor]) for code in (winner, other)},
        )
        for anchor, subset in enumerate(model.configuration)
    )
    terms = {"class weights": pair.class_weights()}
    if not pair.splits_angle:
        terms["angle"] = pair.angle()
    return Contributions(columns, groups, terms)


class _Linear(NamedTuple):
    """What every anchor adds, slope·(v − reference), each of shape (A,)."""

    slope: Array
    reference: Array


def _feature_columns(model: NearestModel, scaled: Array, anchor: int, slope: float, reference: float) -> Array:
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


@dataclass(frozen=True, eq=False)
class _ClassPair:
    """A record between the nearest medoids of two classes."""

    model: NearestModel
    features: Array
    distance: Array
    theta: Array
    nearest: Codes
    winner: int
    other: int

    @property
    def _alpha(self) -> float:
        return self.model.alpha if self.model.use_angular else 1.0

    @property
    def _mean_multiplier(self) -> float:
        return float(self.model.multipliers[self.winner] + self.model.multipliers[self.other]) / 2.0

    @property
    def splits_angle(self) -> bool:
        """Whether the angle is a sum over the anchors: the true one between vectors that are not 0."""
        vectors = self.features, *(self.model.medoids[self.nearest[code]] for code in (self.winner, self.other))
        return self.model.angle == "true" and all(vector.any() for vector in vectors)

    def distances(self) -> _Linear:
        """What every anchor adds by distance."""
        winner, other = (self.model.medoids[self.nearest[code]] for code in (self.winner, self.other))
        both = self.distance[self.winner] + self.distance[self.other]
        factor = self._alpha * self._mean_multiplier / (self.distance.sum() + EPSILON)
        slope = 2.0 * factor * (winner - other) / both if both > 0 else np.zeros(len(self.features))
        return _Linear(slope, (winner + other) / 2.0)

    def angles(self) -> _Linear:
        """What every anchor adds by the true angle."""
        nothing = np.zeros(len(self.features))
        if not self.splits_angle:
            return _Linear(nothing, nothing)
        winner, other = (_unit(self.model.medoids[self.nearest[code]]) for code in (self.winner, self.other))
        half, mean = ((self.theta[self.other] + sign * self.theta[self.winner]) / 2.0 for sign in (-1.0, 1.0))
        # cos w − cos o = 2 sin(mean) sin(half): no difference of nearly equal numbers.
        rate = 1.0 / (np.sinc(half / np.pi) * np.sin(mean)) if 0 < mean < np.pi else 0.0
        factor = (1.0 - self._alpha) * self._mean_multiplier / (self.theta.sum() + EPSILON)
        norm = float(np.sqrt(self.features @ self.features))
        return _Linear(factor * rate / norm * (winner - other), nothing)

    def angle(self) -> float:
        """What all anchors add by the angle."""
        difference = self.theta[self.other] - self.theta[self.winner]
        return float((1.0 - self._alpha) * self._mean_multiplier * difference / (self.theta.sum() + EPSILON))

    def class_weights(self) -> float:
        """What different class multipliers add."""
        half = float(self.model.multipliers[self.other] - self.model.multipliers[self.winner]) / 2.0
        of_distance, of_angle = (
            float((channel[self.winner] + channel[self.other]) / (channel.sum() + EPSILON))
            for channel in (self.distance, self.theta)
        )
        return half * (self._alpha * of_distance + (1.0 - self._alpha) * of_angle)


def _unit(vector: Array) -> Array:
    norm = np.sqrt(vector @ vector)
    unit: Array = vector / norm if norm > 0 else vector
    return unit
