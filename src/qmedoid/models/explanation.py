r"""Why a record was decided as it was: terms that add up to the margin (fact 20).

With w the class that won and o the one it is compared with, the margin is a difference of calibrated scores,

.. math::

   b_w - b_o + \beta\,(s_o - s_w), \qquad
   s_c = m_c\Bigl(\alpha\,\frac{D_c}{\sum D + \varepsilon}
         + (1-\alpha)\,\frac{\Theta_c}{\sum\Theta + \varepsilon}\Bigr),

and its distance part is a sum over the anchors a, because
:math:`D_o - D_w = \sum_a [(v_a-\mu_{oa})^2 - (v_a-\mu_{wa})^2] / (D_o + D_w)`. Angle, class weights (where the m_c
differ), calibration, circuit and operating point are terms of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ModelError
from qmedoid.geometry.fusion import EPSILON
from qmedoid.models.calibration import Calibration
from qmedoid.models.fusion import FusionModel
from qmedoid.models.geometric import GeometricModel
from qmedoid.models.table import TableModel

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The decision about one record.

    Attributes
    ----------
    winner, other : int
        Codes of the class that won and of the one it is compared with: the other of two, else the next best.
    margin : float
        By how much the winner is ahead, in the units of the class scores.
    groups : ndarray of shape (A,)
        Share of each anchor's group in the margin, by distance; above 0 speaks for the winner.
    angle, class_weights, calibration, circuit, operating_point : float
        The other terms; all add up to the margin.
    by_circuit : bool
        Whether the circuit decided.
    nearest : ndarray of shape (C,)
        Place of the nearest medoid of each class.
    distances, angles : ndarray of shape (C,)
        To that medoid.
    features : ndarray of shape (A,)
        The record's standardised anchor features.
    """

    winner: int
    other: int
    margin: float
    groups: Array
    angle: float
    class_weights: float
    calibration: float
    circuit: float
    operating_point: float
    by_circuit: bool
    nearest: Codes
    distances: Array
    angles: Array
    features: Array

    @property
    def terms(self) -> dict[str, float]:
        """All terms but the groups, by name."""
        return {
            "angle": self.angle,
            "class weights": self.class_weights,
            "calibration": self.calibration,
            "circuit": self.circuit,
            "operating point": self.operating_point,
        }


def explain(model: TableModel, columns: Sequence[npt.NDArray[Any]]) -> Explanation:
    """Explain the decision about one record from its encoded columns, each of shape (1,)."""
    fusion, best = model.fusion, model.best
    if fusion is None or not isinstance(best, GeometricModel):
        raise ModelError(
            "This model is a circuit alone: it has no medoids to explain a decision by. Explain a model of "
            "GeometricClassifier or FusionClassifier instead."
        )
    decided = model.decide(columns)
    channels, fused, nearest = fusion.measure(columns)
    scores, winner = decided.scores[0], int(decided.codes[0])
    other = int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))
    calibrated = best.calibration.apply(fused)[0]
    features = fusion.features(np.column_stack(list(columns)).astype(np.float64))[0]
    pair = _Pair(fusion, best.calibration, features, channels.distance[0], channels.angle[0], nearest[0], winner, other)
    # For two classes the cut is taken off the score of the second.
    cut = 0.0 if model.cut is None else model.cut * (1.0 if winner == 0 else -1.0)
    return Explanation(
        winner=winner,
        other=other,
        margin=float(scores[winner] - scores[other] + cut),
        groups=pair.groups(),
        angle=pair.angle(),
        class_weights=pair.class_weights(),
        calibration=float(best.calibration.biases[winner] - best.calibration.biases[other]),
        circuit=float((scores[winner] - scores[other]) - (calibrated[winner] - calibrated[other])),
        operating_point=cut,
        by_circuit=bool(decided.by_circuit[0]),
        nearest=nearest[0],
        distances=channels.distance[0],
        angles=channels.angle[0],
        features=features,
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """A record between the nearest medoids of two classes."""

    fusion: FusionModel
    calibration: Calibration
    features: Array
    distance: Array
    theta: Array
    nearest: Codes
    winner: int
    other: int

    @property
    def _alpha(self) -> float:
        return self.fusion.alpha if self.fusion.use_angular else 1.0

    @property
    def _mean_multiplier(self) -> float:
        return float(self.fusion.multipliers[self.winner] + self.fusion.multipliers[self.other]) / 2.0

    def groups(self) -> Array:
        """Share of every anchor by distance, shape (A,)."""
        to_winner = self.features - self.fusion.medoids[self.nearest[self.winner]]
        to_other = self.features - self.fusion.medoids[self.nearest[self.other]]
        both = self.distance[self.winner] + self.distance[self.other]
        if both == 0:
            return np.zeros(len(self.features))
        # (a² − b²) as a product keeps the digits where the medoids are nearly equally far.
        difference = (to_other - to_winner) * (to_other + to_winner)
        factor = self.calibration.slope * self._alpha * self._mean_multiplier / (self.distance.sum() + EPSILON)
        shares: Array = factor * difference / both
        return shares

    def angle(self) -> float:
        """Share of the angles."""
        difference = self.theta[self.other] - self.theta[self.winner]
        factor = self.calibration.slope * (1.0 - self._alpha) * self._mean_multiplier
        return float(factor * difference / (self.theta.sum() + EPSILON))

    def class_weights(self) -> float:
        """What different class multipliers add."""
        apart = float(self.fusion.multipliers[self.other] - self.fusion.multipliers[self.winner]) / 2.0
        of_distance, of_angle = (
            float((channel[self.winner] + channel[self.other]) / (channel.sum() + EPSILON))
            for channel in (self.distance, self.theta)
        )
        return self.calibration.slope * apart * (self._alpha * of_distance + (1.0 - self._alpha) * of_angle)
