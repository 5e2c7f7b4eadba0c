r"""What single columns say of the classes, by leave-one-out errors in closed form, to choose among very many.

A column z, of mean 0 over the rows, predicts the targets y by a line, and by a parabola: with q, the part of
:math:`z^2` that is at right angles to 1 and z, what both miss of a row that they have not seen is

.. math:: \frac{y_i - t_i}{1 - |G_i|\,h_i}, \qquad h_i = \frac1n + \frac{z_i^2}{\sum_j z_j^2}
          \Bigl(+ \frac{q_i^2}{\sum_j q_j^2}\Bigr),

where :math:`|G_i|` rows are equal to row i and left out with it. The worth of a column is by how much the better of the
two makes the sum of the squared errors smaller than the mean of the other rows does: about 0 or below for noise.
"""

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.ties import stable_order

MOST_COLUMNS = 500
"""Columns that vary up to which all of them are looked at; of more, those that are worth most."""
# Numbers of the columns that are looked at together.
_BLOCK_NUMBERS = 2**18
# A row of which less than this share is left to the others is not predicted by the column.
_LEAST_FREE = 1e-9


def most_worth(values: Array, targets: Array, most: int, sizes: Array | None = None) -> Codes:
    """Places of the `most` columns of values (n, M) that are worth most, the best first; of equal ones the first.

    Parameters
    ----------
    values : ndarray of shape (n, M)
    targets : ndarray of shape (n, K)
    sizes : ndarray of shape (n,), optional
        Number of rows that are equal to each, itself among them; 1 by default.
    """
    size = float((targets * targets).sum())
    return stable_order(-column_worth(values, targets, sizes), size)[:most]


def column_worth(values: Array, targets: Array, sizes: Array | None = None) -> Array:
    """The worth of every column of values (n, M) for targets (n, K), shape (M,)."""
    n, n_columns = values.shape
    each = np.ones((n, 1)) if sizes is None else sizes[:, None]
    centered = targets - targets.mean(axis=0)
    # The mean alone: one row that there is nothing else to predict by misses nothing.
    by_mean = centered / np.maximum(1.0 - each / n, _LEAST_FREE)
    worth, step = np.empty(n_columns), max(1, _BLOCK_NUMBERS // n)
    for start in range(0, n_columns, step):
        part = slice(start, start + step)
        errors = _errors(np.asarray(values[:, part], dtype=np.float64), centered, by_mean, each)
        worth[part] = float((by_mean * by_mean).sum()) - errors
    return worth


def _errors(columns: Array, centered: Array, by_mean: Array, each: Array) -> Array:
    """The smaller sum of squared errors, of the line and of the parabola, for every column, shape (m,)."""
    z = columns - columns.mean(axis=0)
    z_sum = (z * z).sum(axis=0)
    z *= _inverse_root(z_sum)
    square = z * z
    q = square - square.mean(axis=0) - z * (square * z).sum(axis=0)
    # What is left of a column of two values is rounding.
    q_sum = (q * q).sum(axis=0)
    q *= _inverse_root(np.where(q_sum > _LEAST_FREE * (square * square).sum(axis=0), q_sum, 0.0))
    left = 1.0 - each * (1.0 / len(z) + square)
    left_of_both = left - each * (q * q)
    by_line, by_both = np.zeros(z.shape[1]), np.zeros(z.shape[1])
    for target, mean_error in zip(centered.T, by_mean.T, strict=True):
        missed = target[:, None] - z * (target @ z)
        by_line += _sum_of_squares(missed, left, mean_error)
        by_both += _sum_of_squares(missed - q * (target @ q), left_of_both, mean_error)
    return np.minimum(by_line, by_both)


def _inverse_root(sums: Array) -> Array:
    return np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)


def _sum_of_squares(missed: Array, left: Array, mean_error: Array) -> Array:
    found = np.where(left > _LEAST_FREE, missed / np.maximum(left, _LEAST_FREE), mean_error[:, None])
    return np.asarray((found * found).sum(axis=0))
