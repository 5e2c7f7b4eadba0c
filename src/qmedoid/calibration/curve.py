"""Calibration: dissimilarities to class scores whose softmax is a probability."""

from dataclasses import dataclass, field

import numpy as np

from qmedoid.arrays import Array


@dataclass(frozen=True)
class Calibration:
    """The map −β·s_c + b_c from fusion scores to class scores, bent or not; the largest decides.

    Attributes
    ----------
    slope : float
        β, above 0.
    biases : ndarray of shape (C,)
        b; all zero keeps the decision of the fusion score.
    knots, bends : ndarray of shape (K,)
        What is added to the log-odds of the second of two classes, or to the score of every one of more: `bends` where
        it is at one of `knots`, which ascend, in between by straight lines, and beyond them as at the last. Log-odds
        and scores keep their order. Empty where nothing is added.
    """

    slope: float
    biases: Array
    knots: Array = field(default_factory=lambda: np.zeros(0))
    bends: Array = field(default_factory=lambda: np.zeros(0))

    def apply(self, fused: Array) -> Array:
        """Class scores, shape (n, C)."""
        scores: Array = self.biases - self.slope * fused
        return scores + self._bent(scores) if len(self.knots) else scores

    def bend(self, fused: Array) -> Array:
        """What the curve adds to the class scores, shape (n, C); 0 without a curve."""
        return self._bent(self.biases - self.slope * fused) if len(self.knots) else np.zeros_like(fused)

    def _bent(self, straight: Array) -> Array:
        if straight.shape[1] != 2:
            return np.interp(straight, self.knots, self.bends)
        half = np.interp(straight[:, 1] - straight[:, 0], self.knots, self.bends) / 2.0
        return np.column_stack([-half, half])
