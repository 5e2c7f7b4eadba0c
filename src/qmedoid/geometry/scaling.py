r"""Column scalings, fitted on training rows: affine, Gaussian mid-ranks, and signed logarithms.

Mid-ranks give every column a normal shape and depend on the order of its values alone, so a monotone change of a column
changes nothing. Signed logarithms keep order and sign, and keep outliers from dominating every distance:

.. math:: z = \frac{x - \mu}{\sigma}, \qquad s = \frac{\operatorname{sign}(z)\,\log(1 + |z|) - \mu'}{\sigma'}
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.evidence import knot_places
from qmedoid.schema import MODERATE, Values, part_bounds

ScalingKind = Literal["standard", "minmax", "none"]
# Rows from which on a column is scaled by a separate call.
_FEW_ROWS = 20
SCALING_KINDS: tuple[ScalingKind, ...] = ("standard", "minmax", "none")


@dataclass(frozen=True)
class Scaling:
    """The map (x − center) / scale, column by column; both of shape (M,)."""

    center: Annotated[Array, Values("M", largest=1e150)]
    scale: Annotated[Array, Values("M", zero=False)]

    def apply(self, X: Array) -> Array:
        """Scaled copy of X, shape (n, M)."""
        scaled = X - self.center
        scaled /= self.scale
        return scaled


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
    # In place: of long tables a copy is most of the memory of a fit.
    scaled -= mean
    np.square(scaled, out=scaled)
    variance = w @ scaled / total
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


@dataclass(frozen=True, eq=False)
class RankScaling:
    """A piecewise-linear, increasing map for each of M columns; values beyond the outer knots stay at their scores.

    Knots of column f are at ``offsets[f]`` up to, and without, ``offsets[f + 1]``: their values, and what these are
    mapped to.
    """

    offsets: Annotated[Codes, part_bounds("M", "V")]
    values: Annotated[Array, Values("V", order="never falls", within="offsets")]
    scores: Annotated[Array, Values("V", largest=MODERATE, order="never falls", within="offsets")]

    def take(self, columns: Codes) -> "RankScaling":
        """The scaling of some columns, in their order."""
        sizes = np.diff(self.offsets)[columns]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        every = np.repeat(self.offsets[columns] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return RankScaling(offsets, self.values[every], self.scores[every])

    def apply(self, X: Array) -> Array:
        """Scaled copy of X, shape (n, M)."""
        scaled = np.empty(X.shape)
        if len(X) <= _FEW_ROWS:
            for block in column_slices(*X.shape):
                scaled[:, block] = self._applied_at_once(X[:, block], self.offsets[block.start : block.stop + 1])
            return scaled
        for column in range(X.shape[1]):
            knots = slice(self.offsets[column], self.offsets[column + 1])
            scaled[:, column] = np.interp(X[:, column], self.values[knots], self.scores[knots])
        return scaled

    def _applied_at_once(self, X: Array, offsets: Codes) -> Array:
        """The same, bit by bit, for several columns: of few rows a call for each column is most of the time."""
        place = knot_places(X, offsets[:-1], offsets[1:] - 1, self.values)
        scaled = np.where(np.isnan(X), np.nan, self.scores[place])
        between = np.nonzero((self.values[place] < X) & (place + 1 < offsets[1:]))
        left, x = place[between], X[between]
        slope = (self.scores[left + 1] - self.scores[left]) / (self.values[left + 1] - self.values[left])
        scaled[between] = slope * (x - self.values[left]) + self.scores[left]
        return scaled


@dataclass(frozen=True, eq=False)
class SignedLog:
    """A fitted scale: of the raw columns, then of their signed logarithms."""

    outer: Scaling
    inner: Scaling

    def apply(self, X: Array) -> Array:
        """Scaled copy of raw rows, shape (n, M)."""
        return self.inner.apply(signed_log(self.outer.apply(X)))


def signed_log(values: Array) -> Array:
    """sign(z)·log(1 + |z|): odd, increasing, and the identity near 0."""
    return np.copysign(np.log1p(np.abs(values)), values)
