r"""What a line leaves unexplained has much in common for similar pairs of vectors.

Gate noise acts on the state that holds both vectors, so that it misreads similar pairs alike. With
:math:`c = \cos(x, x')\,\cos(y, y')` for the pairs (x, y) and (x', y'), errors of circuits of many columns have a
correlation of about :math:`w c + (1 - w) c^3` on fake devices. A record is compared with many medoids that resemble
each other; errors of its margin would be understated if those of its tests were taken as independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.overlap import row_norms

# Pairs whose products are compared at most: a square matrix.
_MOST_PAIRS = 2_000
# Products of three random forms that are added up in a draw: a single one would be far from normal.
_PRODUCTS = 4


@dataclass(frozen=True, eq=False)
class Directions:
    """Pairs of vectors, each of length 1, both of shape (n, d)."""

    left: Array
    right: Array

    def part(self, rows: slice | Codes) -> "Directions":
        """Some of the pairs."""
        return Directions(self.left[rows], self.right[rows])

    def likeness(self) -> Array:
        """The c of all pairs of pairs, shape (n, n)."""
        likeness: Array = (self.left @ self.left.T) * (self.right @ self.right.T)
        return likeness

    def draw(self, rng: np.random.Generator, far: float) -> Array:
        """Random numbers of variance 1, shape (n,), that are correlated by ``far·c + (1 − far)·c³``."""
        drawn: Array = np.sqrt(far) * self._form(rng)
        for _ in range(_PRODUCTS):
            drawn += np.sqrt((1.0 - far) / _PRODUCTS) * self._form(rng) * self._form(rng) * self._form(rng)
        return drawn

    def _form(self, rng: np.random.Generator) -> Array:
        """A random bilinear form of every pair: its covariances are c."""
        width = self.left.shape[1]
        form: Array = np.einsum("ni,ni->n", self.left @ rng.standard_normal((width, width)), self.right)
        return form


def directions_of(left: Array, right: Array) -> Directions | None:
    """The directions of pairs of vectors, none of which is zero; None for vectors of one column."""
    if left.shape[1] == 1:
        return None
    return Directions(left / row_norms(left)[:, None], right / row_norms(right)[:, None])


def joined_directions(parts: Sequence[Directions | None]) -> Directions | None:
    """Directions one after the other; None where there are none."""
    known = [one for one in parts if one is not None]
    if not known:
        return None
    return Directions(*(np.concatenate([getattr(one, side) for one in known]) for side in ("left", "right")))


def far_share(residuals: Array, variances: Array, scatter: float, directions: Directions) -> float:
    """Share of the unexplained variance with a correlation of c, from 0 to 1; the rest has one of c³.

    Least squares of the products of residuals, which are `scatter` times the correlation on average.

    Parameters
    ----------
    residuals : ndarray of shape (n,)
        Distances of known pairs from their lines.
    variances : ndarray of shape (n,)
        Of these, by shots and scatter.
    scatter : float
        Variance beyond the shots.
    directions : Directions
        Of the known pairs.
    """
    some = slice(None, None, -(-len(residuals) // _MOST_PAIRS))
    likeness = directions.part(some).likeness()
    far, near = np.triu(likeness, 1), np.triu(likeness**3, 1)
    weights = np.outer(1.0 / variances[some], 1.0 / variances[some])
    products = np.outer(residuals[some], residuals[some]) / scatter if scatter else near
    square = float(np.sum(weights * (far - near) ** 2))
    if square == 0.0:
        return 0.0
    return float(np.clip(np.sum(weights * (far - near) * (products - near)) / square, 0.0, 1.0))
