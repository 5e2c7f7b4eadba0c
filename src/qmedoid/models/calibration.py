"""Fusion scores, which are dissimilarities, as class scores whose softmax is a probability."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """The map −β·s_c + b_c from fusion scores to class scores; the largest decides.

    Attributes
    ----------
    slope : float
        β, above 0.
    biases : ndarray of shape (C,)
        b; all zero keeps the decision of the fusion score.
    knots, bends : ndarray of shape (K,)
        For two classes, what is added to the log-odds z of the second: `bends` where z is at one of `knots`, which
        ascend, in between by straight lines, and beyond them as at the last. The log-odds keep their order. Empty
        where nothing is added.
    """

    slope: float
    biases: Array
    knots: Array = field(default_factory=lambda: np.zeros(0))
    bends: Array = field(default_factory=lambda: np.zeros(0))

    def apply(self, fused: Array) -> Array:
        """Class scores, shape (n, C)."""
        scores: Array = self.biases - self.slope * fused
        if len(self.knots):
            bend = self.bend(fused) / 2.0
            scores[:, 0] -= bend
            scores[:, 1] += bend
        return scores

    def bend(self, fused: Array) -> Array:
        """What the curve adds to the log-odds of the second of two classes, shape (n,); 0 without a curve."""
        if not len(self.knots):
            return np.zeros(len(fused))
        straight = self.biases - self.slope * fused
        return np.interp(straight[:, 1] - straight[:, 0], self.knots, self.bends)
