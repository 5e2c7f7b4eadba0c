"""Affine scaling of columns, fitted on training rows and kept with the model."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import ParameterError

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
    powers = column_powers(X)
    scaled = X * powers
    mean = w @ scaled / total
    variance = w @ (scaled - mean) ** 2 / total
    deviation = np.sqrt(variance) / powers
    return Scaling(mean / powers, np.where(is_constant(mean, variance, len(X)), 1.0, deviation))


def is_constant(mean: Array, variance: Array, n_rows: int) -> Flags:
    """Whether a variance is no more than the rounding of `n_rows` sums can make."""
    rounding = n_rows * np.finfo(np.float64).eps
    return np.asarray(variance <= rounding * variance + (rounding * mean) ** 2)


def column_powers(X: Array) -> Array:
    """Powers of two that bring every column near 1, so that no square leaves the range; they change no digit."""
    _, exponent = np.frexp(np.maximum(np.abs(X.min(axis=0)), np.abs(X.max(axis=0))))
    powers: Array = np.ldexp(1.0, np.clip(-exponent, -1021, 1021))
    return powers
