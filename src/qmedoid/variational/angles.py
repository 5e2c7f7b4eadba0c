r"""Features to rotation angles: standardize, clip, map (algorithm 14).

.. math:: A_{ij} = \frac{\text{span}}{z_{\max}}\,\operatorname{clip}(z_{ij}, -z_{\max}, z_{\max})

The paper's span is π. Then both clipped ends are the same state up to a sign, :math:`R_y(\pi) = -R_y(-\pi)`, and no
weights can tell the extremes apart (fact 15); the default span is π/2.
"""

import math
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError

SPAN = math.pi / 2
"""Angle of the clipped extreme by default."""
PRINTED_SPAN = math.pi
"""Angle of the clipped extreme as printed, where both ends fold onto each other."""


@dataclass(frozen=True)
class AngleMap:
    """A fitted angle map.

    Attributes
    ----------
    center, scale : ndarray of shape (m,)
        Training mean and deviation of every feature.
    clip : float
        Largest standardized value z_max that is told apart.
    span : float
        The angle it is mapped to.
    """

    center: Array
    scale: Array
    clip: float = 3.0
    span: float = SPAN

    def __post_init__(self) -> None:
        if not self.clip > 0 or not math.isfinite(self.clip):
            raise ParameterError(f"The 'clip' of an angle map must be a number above 0. Got {self.clip!r} instead.")
        if not math.isfinite(self.span) or self.span == 0:
            raise ParameterError(
                f"The 'span' of an angle map must be a number other than 0. Got {self.span!r} instead."
            )

    def apply(self, features: Array) -> Array:
        """Angles of every row, shape (n, m), within ±span."""
        standardized = (features - self.center) / self.scale
        return np.clip(standardized, -self.clip, self.clip) * (self.span / self.clip)
