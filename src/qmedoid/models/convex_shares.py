r"""How the convex fusion of distance and angle tells two classes apart, anchor by anchor.

.. math:: s_c = m_c\Bigl(\alpha\,\frac{D_c}{\sum D + \varepsilon}
         + (1-\alpha)\,\frac{\Theta_c}{\sum\Theta + \varepsilon}\Bigr)

The distance part of s_o − s_w is a sum over the anchors a, because
:math:`D_o - D_w = \sum_a [(v_a-\mu_{oa})^2 - (v_a-\mu_{wa})^2] / (D_o + D_w)`. Angle and class weights (where the m_c
differ) are terms of their own.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.geometry.fusion import EPSILON
from qmedoid.models.fusion import FusionModel
from qmedoid.models.shares import GroupShare, Shares
from qmedoid.models.stage import Measured

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def convex_shares(model: FusionModel, row: Array, measured: Measured, winner: int, other: int) -> Shares:
    """Shares of the anchors' groups, of the angle and of the class weights; `row` has the shape (1, M)."""
    features = model.features(row)[0]
    channels, nearest = measured.channels, measured.nearest[0]
    pair = _Pair(model, features, channels.distance[0], channels.angle[0], nearest, winner, other)
    groups = tuple(
        GroupShare(
            subset,
            float(share),
            value=float(features[anchor]),
            medoid_values={code: float(model.medoids[nearest[code], anchor]) for code in (winner, other)},
        )
        for anchor, (subset, share) in enumerate(zip(model.configuration, pair.groups(), strict=True))
    )
    return Shares(groups, {"angle": pair.angle(), "class weights": pair.class_weights()})


@dataclass(frozen=True, eq=False)
class _Pair:
    """A record between the nearest medoids of two classes."""

    model: FusionModel
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

    def groups(self) -> Array:
        """Share of every anchor by distance, shape (A,)."""
        to_winner = self.features - self.model.medoids[self.nearest[self.winner]]
        to_other = self.features - self.model.medoids[self.nearest[self.other]]
        both = self.distance[self.winner] + self.distance[self.other]
        if both == 0:
            return np.zeros(len(self.features))
        # (a² − b²) as a product keeps the digits where the medoids are nearly equally far.
        difference = (to_other - to_winner) * (to_other + to_winner)
        factor = self._alpha * self._mean_multiplier / (self.distance.sum() + EPSILON)
        shares: Array = factor * difference / both
        return shares

    def angle(self) -> float:
        """Share of the angles."""
        difference = self.theta[self.other] - self.theta[self.winner]
        return float((1.0 - self._alpha) * self._mean_multiplier * difference / (self.theta.sum() + EPSILON))

    def class_weights(self) -> float:
        """What different class multipliers add."""
        apart = float(self.model.multipliers[self.other] - self.model.multipliers[self.winner]) / 2.0
        of_distance, of_angle = (
            float((channel[self.winner] + channel[self.other]) / (channel.sum() + EPSILON))
            for channel in (self.distance, self.theta)
        )
        return apart * (self._alpha * of_distance + (1.0 - self._alpha) * of_angle)
