"""Fusion scores, which are dissimilarities, as class scores whose softmax is a probability."""

from dataclasses import dataclass

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
    """

    slope: float
    biases: Array

    def apply(self, fused: Array) -> Array:
        """Class scores, shape (n, C)."""
        return self.biases - self.slope * fused
