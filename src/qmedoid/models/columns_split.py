r"""How a term that looks at several columns is shared among them: an exact sum, the same in any order of the columns.

A channel of a distance is a function F of the sum :math:`D^2 = \sum_f d_f^2`. Against a reference
:math:`R = \sum_f r_f` column f is given

.. math:: \bigl(F(D^2) - F(R)\bigr)\,\frac{d_f^2 - r_f}{D^2 - R},

its Aumann-Shapley value: what it adds while all squared differences move in a straight line from those of the
reference to those of the record. The reference is a typical record: R is where the channel is at its mean over the
training rows, and :math:`r_f` is the share of column f in the mean squared difference. So a column counts for what
it makes the distance larger or smaller than usual, a column that differs as usual counts 0, and so does one in which
neither training rows nor the record ever differ from the medoid.

References
----------
R. J. Aumann and L. S. Shapley, *Values of Non-Atomic Games*, Princeton University Press, 1974.
"""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array
from qmedoid.models.evidence import DISTANCE, NEAR

# A mean nearness below this is as good as none; its logarithm stays finite.
_SMALLEST = 1e-300


class SplitChannel(NamedTuple):
    """Channels of q distances over g columns, column by column.

    Attributes
    ----------
    columns : ndarray of shape (q, g)
        Each row adds up to the channel minus `reference`.
    reference : ndarray of shape (q,)
        The channel at the reference: its center, where that is a value that the channel can take.
    """

    columns: Array
    reference: Array


def split_channel(squares: Array, usual: Array, channel: int, length: Array, center: Array) -> SplitChannel:
    r"""Share channels among columns.

    Parameters
    ----------
    squares : ndarray of shape (q, g)
        Squared differences :math:`d_f^2` between the record and each of q medoids.
    usual : ndarray of shape (q, g)
        Mean squared differences between training rows and each medoid, up to a factor.
    channel : {0, 1, 2}
        The squared distance, the distance D, or the nearness :math:`e^{-D/\ell}`.
    length, center : ndarray of shape (q,)
        ℓ, and the mean of the channel over the training rows.
    """
    distance = np.sqrt(squares.sum(axis=1))
    if channel == NEAR:
        reference = np.clip(center, _SMALLEST, 1.0)
        far = -length * np.log(reference)
        # (e^(-D/l) - e^(-far/l)) / (D^2 - far^2) without a difference of nearly equal numbers.
        slope = -reference * _relative_growth((far - distance) / length) / (length * _positive(distance + far))
    elif channel == DISTANCE:
        reference = far = np.maximum(center, 0.0)
        slope = 1.0 / _positive(distance + far)
    else:
        reference = np.maximum(center, 0.0)
        far, slope = np.sqrt(reference), np.ones(len(center))
    total = usual.sum(axis=1, keepdims=True)
    shares = np.divide(usual, total, out=np.full(usual.shape, 1.0 / usual.shape[1]), where=total > 0)
    return SplitChannel(slope[:, None] * (squares - (far * far)[:, None] * shares), reference)


def _positive(values: Array) -> Array:
    """The values, with 1 for those that are 0: there record and reference are at the medoid, and nothing is shared."""
    return np.where(values > 0, values, 1.0)


def _relative_growth(exponent: Array) -> Array:
    """(e^x − 1)/x, which is 1 at 0."""
    safe = np.where(exponent == 0, 1.0, exponent)
    grown: Array = np.where(exponent == 0, 1.0, np.expm1(safe) / safe)
    return grown
