r"""Columns on a scale where far values keep their order and their sign, and yet do not rule every distance.

.. math:: z = \frac{x - \mu}{\sigma}, \qquad s = \frac{\operatorname{sign}(z)\,\log(1 + |z|) - \mu'}{\sigma'}
"""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array
from qmedoid.geometry.scaling import Scaling, fit_standard


@dataclass(frozen=True, eq=False)
class SignedLog:
    """A fitted scale.

    Attributes
    ----------
    outer : Scaling of shape (M,)
        Of the raw columns.
    inner : Scaling of shape (M,) or None
        Of their signed logarithms; None leaves the columns standardised.
    """

    outer: Scaling
    inner: Scaling | None

    def apply(self, X: Array) -> Array:
        """Scaled copy of raw rows, shape (n, M)."""
        standardised = self.outer.apply(X)
        return standardised if self.inner is None else self.inner.apply(signed_log(standardised))


def fit_signed_log(X: Array, *, compress: bool = True) -> SignedLog:
    """Means and deviations of the rows of X, and of their signed logarithms unless `compress` is off."""
    outer = fit_standard(X)
    return SignedLog(outer, fit_standard(signed_log(outer.apply(X))) if compress else None)


def signed_log(values: Array) -> Array:
    """sign(z)·log(1 + |z|): odd, increasing, and the identity near 0."""
    return np.copysign(np.log1p(np.abs(values)), values)
