"""Affine scaling of columns, fitted on training rows and kept with the model."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ParameterError

Array = npt.NDArray[np.float64]
ScalingKind = Literal["standard", "minmax", "none"]
SCALING_KINDS: tuple[ScalingKind, ...] = ("standard", "minmax", "none")


@dataclass(frozen=True)
class Scaling:
    """The map (x − center) / scale, column by column; both of shape (M,)."""

    center: Array
    scale: Array

    def apply(self, X: Array) -> Array:
        """Scaled copy of X, shape (n, M)."""
        return (X - self.center) / self.scale


def fit_scaling(X: Array, kind: ScalingKind, *, weights: Array | None = None) -> Scaling:
    """Scaling to mean 0 and deviation 1, to [0, 1], or none at all, from the rows of X."""
    match kind:
        case "standard":
            return fit_standard(X, weights=weights)
        case "minmax":
            low, high = X.min(axis=0), X.max(axis=0)
            span = high - low
            return Scaling(low, np.where(span > 0, span, 1.0))
        case "none":
            return Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]))
    raise ParameterError(f"The scaling must be one of {list(SCALING_KINDS)}. Got {kind!r} instead.")


def fit_standard(X: Array, *, weights: Array | None = None) -> Scaling:
    """Mean and population deviation of every column; a column that is constant up to rounding keeps scale 1."""
    w = np.ones(len(X)) if weights is None else weights
    total = w.sum()
    mean = w @ X / total
    variance = w @ (X - mean) ** 2 / total
    return Scaling(mean, standard_scale(mean, variance, len(X)))


def standard_scale(mean: Array, variance: Array, n_rows: int) -> Array:
    """Deviation from a variance, or 1 where the variance is no more than rounding of `n_rows` sums can make."""
    rounding = n_rows * np.finfo(np.float64).eps
    constant = variance <= rounding * variance + (rounding * mean) ** 2
    scale: Array = np.where(constant, 1.0, np.sqrt(variance))
    return scale
