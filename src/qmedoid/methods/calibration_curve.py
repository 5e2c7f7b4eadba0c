"""Calibration: dissimilarities to class scores whose softmax is a probability."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from qmedoid.arrays import Array
from qmedoid.schema import MODERATE, RefusedError, Values


@dataclass(frozen=True)
class Calibration:
    """Class scores b_c − β·s_c of dissimilarities s, with or without a curve; the largest decides.

    Attributes
    ----------
    slope : float
        β, above 0.
    biases : ndarray of shape (C,)
        b; all zero keeps the decision of the dissimilarities.
    knots, heights : ndarray of shape (K,)
        A piecewise-linear curve that is added to the log-odds of the second of two classes, or to the score of every
        one of more: its knots, ascending, and its values there, constant beyond. Log-odds and scores keep their
        order. The outer two knots at either end bound it beyond all out-of-fold rows. Empty without a curve.
    """

    slope: Annotated[float, Values(above=0)]
    biases: Annotated[Array, Values("C", largest=MODERATE)]
    knots: Annotated[Array, Values("J", largest=MODERATE, order="rises")] = field(default_factory=lambda: np.zeros(0))
    heights: Annotated[Array, Values("J", largest=MODERATE)] = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def plain(cls, n_classes: int) -> "Calibration":
        """The calibration that only turns the sign: the smallest dissimilarity is the largest score."""
        return cls(1.0, np.zeros(n_classes))

    def validate(self) -> None:
        """Refuse a stored curve that turns the order of the scores."""
        if not (np.diff(self.heights) > -np.diff(self.knots)).all():
            raise RefusedError("heights turns the order of the scores")

    def apply(self, fused: Array) -> Array:
        """Class scores, shape (n, C)."""
        scores: Array = self.biases - self.slope * fused
        return scores + self._curve(scores) if len(self.knots) else scores

    def curve_part(self, fused: Array) -> Array:
        """What the curve adds to the class scores, shape (n, C); 0 without a curve."""
        return self._curve(self.biases - self.slope * fused) if len(self.knots) else np.zeros_like(fused)

    def _curve(self, straight: Array) -> Array:
        if straight.shape[1] != 2:
            return np.interp(straight, self.knots, self.heights)
        half = np.interp(straight[:, 1] - straight[:, 0], self.knots, self.heights) / 2.0
        return np.column_stack([-half, half])
