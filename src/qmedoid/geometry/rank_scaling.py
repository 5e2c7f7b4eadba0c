"""Gaussian mid-rank scaling: every column bent to a normal shape, by knots.

The order of the values is kept, and that is all that counts: a monotone change of a column changes nothing.
"""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes


@dataclass(frozen=True, eq=False)
class RankScaling:
    """A piecewise-linear, increasing map for each of M columns; values beyond the outer knots stay at their scores.

    Attributes
    ----------
    offsets : ndarray of shape (M + 1,)
        Knots of column f are at ``offsets[f]`` up to, and without, ``offsets[f + 1]``.
    values, scores : ndarray
        Where the knots lie, ascending within a column, and what they are mapped to.
    """

    offsets: Codes
    values: Array
    scores: Array

    def apply(self, X: Array) -> Array:
        """Scaled copy of X, shape (n, M)."""
        scaled = np.empty(X.shape)
        for column in range(X.shape[1]):
            knots = slice(self.offsets[column], self.offsets[column + 1])
            scaled[:, column] = np.interp(X[:, column], self.values[knots], self.scores[knots])
        return scaled
