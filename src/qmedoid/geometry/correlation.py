r"""Correlation of columns with each other and with the target, by one pass over blocks of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.scaling import column_powers

# Blocks of this many rows keep the temporaries small and fix the order of the sums.
BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Moments:
    r"""Weight, means and co-moments :math:`\sum_i w_i (x_i - \bar x)(x_i - \bar x)^\top` of the rows seen so far.

    Two of them merge exactly (Chan's update), so a table of any length needs one pass and one block of memory.
    """

    weight: float
    mean: Array
    comoment: Array

    def merge(self, other: "Moments") -> "Moments":
        """Moments of both sets of rows together."""
        total = self.weight + other.weight
        if total == 0:
            return self
        shift = other.mean - self.mean
        return Moments(
            total,
            self.mean + shift * (other.weight / total),
            self.comoment + other.comoment + np.outer(shift, shift) * (self.weight * other.weight / total),
        )


def block_moments(X: Array, weights: Array | None = None) -> Moments:
    """Moments of one block of rows, shape (n, M)."""
    w = np.ones(len(X)) if weights is None else weights
    total = float(w.sum())
    if total == 0:
        return Moments(0.0, np.zeros(X.shape[1]), np.zeros((X.shape[1], X.shape[1])))
    mean = w @ X / total
    centred = X - mean
    return Moments(total, mean, (centred * w[:, None]).T @ centred)


def moments(blocks: Iterable[tuple[Array, Array | None]]) -> Moments:
    """Moments of a stream of (rows, weights) blocks."""
    iterator = iter(blocks)
    result = block_moments(*next(iterator))
    for block in iterator:
        result = result.merge(block_moments(*block))
    return result


def row_blocks(X: Array, weights: Array | None = None) -> Iterator[tuple[Array, Array | None]]:
    """Cut a matrix into blocks of `BLOCK_ROWS` rows."""
    for start in range(0, max(len(X), 1), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        yield X[rows], None if weights is None else weights[rows]


def correlation_matrix(X: Array, *, weights: Array | None = None) -> Array:
    """Pearson correlation R between the columns of X, shape (M, M), with a diagonal of ones.

    A constant column correlates 0 with every other column. A weight of k counts a row k times.
    """
    scaled = X * column_powers(X)
    scaled -= scaled.mean(axis=0)  # blocks merge by their means, which must not be lost beside a large offset
    spread = moments(row_blocks(scaled, weights))
    return correlation_from_moments(spread, constant_columns(X))


def correlation_from_moments(spread: Moments, constant: Flags) -> Array:
    """Correlation matrix from co-moments; `constant` marks the columns that correlate with nothing."""
    deviation = np.sqrt(np.where(constant, 0.0, np.diag(spread.comoment)))
    usable = deviation > 0
    inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=usable)
    correlation = np.clip(spread.comoment * inverse[:, None] * inverse[None, :], -1.0, 1.0)
    correlation = (correlation + correlation.T) / 2.0
    np.fill_diagonal(correlation, 1.0)
    return correlation


def correlation_ratio(X: Array, codes: Codes, *, weights: Array | None = None) -> Array:
    r"""Correlation ratio of every column with a class label, shape (M,).

    .. math:: \eta_f^2 = \frac{\sum_c n_c (\bar x_{fc} - \bar x_f)^2}{\sum_i (x_{if} - \bar x_f)^2}

    It does not depend on how classes are numbered, and for two classes it is \|r\|. Constant columns get 0.
    """
    w = np.ones(len(X)) if weights is None else weights
    scaled = X * column_powers(X)
    counts = np.bincount(codes, weights=w)
    mean = w @ scaled / w.sum()
    sums, total = np.zeros((len(counts), X.shape[1])), np.zeros(X.shape[1])
    for start in range(0, len(X), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        centred = scaled[rows] - mean
        membership = (codes[rows, None] == np.arange(len(counts))) * w[rows, None]
        sums += membership.T @ centred
        total += w[rows] @ centred**2
    drift = sums.sum(axis=0) / w.sum()  # what rounding left of the mean
    sums, total = sums - counts[:, None] * drift, total - w.sum() * drift**2
    between = np.divide(sums**2, counts[:, None], out=np.zeros_like(sums), where=counts[:, None] > 0).sum(axis=0)
    usable = (total > 0) & ~constant_columns(X)
    eta: Array = np.sqrt(np.clip(np.divide(between, total, out=np.zeros_like(total), where=usable), 0.0, 1.0))
    return eta


def correlation_with_numbers(X: Array, target: Array, *, weights: Array | None = None) -> Array:
    r"""\|r\| of every column with a numeric target, shape (M,); with label codes 0, 1, 2, … the printed rule."""
    with_target = np.column_stack([X, target])
    strength: Array = np.abs(correlation_matrix(with_target, weights=weights)[:-1, -1])
    return strength


def constant_columns(X: Array) -> Flags:
    """Which columns hold one value only, shape (M,)."""
    return np.asarray(X.min(axis=0) == X.max(axis=0))
