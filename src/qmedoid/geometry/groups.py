r"""Correlations of columns, correlation groups, and the anchor features made of them (algorithms 1, 2, 2b and 3).

Correlations take one pass over blocks of rows. A group is an anchor with its members and weights. Every kind of
feature is a weighted norm over the columns of a subset,

.. math:: u_a(x) = \sigma_a(x)\,\sqrt{\textstyle\sum_{f\in\kappa(a)} (w_{af}\,x_f)^2},

and differs only in the weights w and in whether there is a sign σ.

*Column worth*, by which some of very many columns are chosen, is by how much a column lowers leave-one-out errors.
A column z, of mean 0 over the rows, predicts the targets y by a line, and by a parabola: with q, the part of
:math:`z^2` that is at right angles to 1 and z, what both miss of a row that they have not seen is

.. math:: \frac{y_i - t_i}{1 - |G_i|\,h_i}, \qquad h_i = \frac1n + \frac{z_i^2}{\sum_j z_j^2}
          \Bigl(+ \frac{q_i^2}{\sum_j q_j^2}\Bigr),

where :math:`|G_i|` rows are equal to row i and left out with it. The worth of a column is by how much the better of the
two makes the sum of the squared errors smaller than the mean of the other rows does: about 0 or below for noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.scaling import column_powers
from qmedoid.kernels.ties import stable_order

# Blocks of this many rows keep the temporaries small and fix the order of the sums.
BLOCK_ROWS = 8192
MOST_COLUMNS = 500
"""Columns that vary up to which all of them are looked at; of more, those that are worth most."""
# Numbers of the columns that are looked at together.
_BLOCK_NUMBERS = 2**18
# A row of which less than this share is left to the others is not predicted by the column.
_LEAST_FREE = 1e-9


def correlation_matrix(X: Array) -> Array:
    """Pearson correlation R between the columns of X, shape (M, M), with a diagonal of ones.

    A constant column correlates 0 with every other column.
    """
    scaled = X * column_powers(X)
    scaled -= scaled.mean(axis=0)  # blocks merge by their means, which a large offset must not swallow
    ones, n_columns = np.ones(len(X)), X.shape[1]
    weight, mean, comoment = 0.0, np.zeros(n_columns), np.zeros((n_columns, n_columns))
    for rows in row_slices(X, BLOCK_ROWS):
        added = len(scaled[rows])
        block_mean = ones[rows] @ scaled[rows] / added
        centered = scaled[rows] - block_mean
        # Chan's update merges the moments of two sets of rows exactly.
        total, shift = weight + added, block_mean - mean
        comoment = comoment + centered.T @ centered + np.outer(shift, shift) * (weight * added / total)
        weight, mean = total, mean + shift * (added / total)
    deviation = np.sqrt(np.where(constant_columns(X), 0.0, np.diag(comoment)))
    inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    correlation = np.clip(comoment * inverse[:, None] * inverse[None, :], -1.0, 1.0)
    correlation = (correlation + correlation.T) / 2.0
    np.fill_diagonal(correlation, 1.0)
    return correlation


def correlation_ratio(X: Array, codes: Codes) -> Array:
    r"""Correlation ratio of every column with a class label, shape (M,).

    .. math:: \eta_f^2 = \frac{\sum_c n_c (\bar x_{fc} - \bar x_f)^2}{\sum_i (x_{if} - \bar x_f)^2}

    It does not depend on how classes are numbered, and for two classes it is \|r\|. Constant columns get 0.
    """
    ones, scaled = np.ones(len(X)), X * column_powers(X)
    counts = np.bincount(codes)
    mean = ones @ scaled / len(X)
    sums, total = np.zeros((len(counts), X.shape[1])), np.zeros(X.shape[1])
    for rows in row_slices(X, BLOCK_ROWS):
        centered = scaled[rows] - mean
        membership = (codes[rows, None] == np.arange(len(counts))).astype(np.float64)
        sums += membership.T @ centered
        total += ones[rows] @ centered**2
    drift = sums.sum(axis=0) / len(X)  # what rounding left of the mean
    sums, total = sums - counts[:, None] * drift, total - len(X) * drift**2
    between = np.divide(sums**2, counts[:, None], out=np.zeros_like(sums), where=counts[:, None] > 0).sum(axis=0)
    usable = (total > 0) & ~constant_columns(X)
    eta: Array = np.sqrt(np.clip(np.divide(between, total, out=np.zeros_like(total), where=usable), 0.0, 1.0))
    return eta


def constant_columns(X: Array) -> Flags:
    """Which columns hold one value only, shape (M,)."""
    return np.asarray(X.min(axis=0) == X.max(axis=0))


Subset = tuple[int, ...]
"""Columns of one anchor, the anchor first."""
Configuration = tuple[Subset, ...]
"""A subset for every anchor, in the order of the anchors."""


@dataclass(frozen=True)
class Groups:
    """Anchors in order, each with its group of columns."""

    anchors: tuple[int, ...]  # columns that anchor a group, the one most related to the target first
    members: tuple[Subset, ...]  # for each anchor: the anchor, then the columns most correlated with it
    correlation: Array  # (M, M): entry (a, f) is the weight ρ of member f in the group of anchor a

    def first(self, size: int) -> Configuration:
        """The configuration that takes the first `size` members of every group (fewer where a group is smaller)."""
        return tuple(group[:size] for group in self.members)


def build_groups(
    correlation: Array,
    *,
    group_size: int,
    association: Array | None = None,
    usable: Flags | None = None,
    n_anchors: int | None = None,
) -> Groups:
    """Order the anchors and collect the members of each (algorithm 1).

    A group of size m is the anchor and the m − 1 columns most correlated with it in absolute value, among the `usable`
    ones. Anchors, at most `n_anchors`, come in falling order of `association`, the strength of the relation of each
    column to the target, shape (M,); None keeps the order of the columns.
    """
    if group_size < 1:
        raise ParameterError(f"The 'group_size' parameter must be an int >= 1. Got {group_size!r} instead.")
    allowed = np.arange(len(correlation)) if usable is None else np.flatnonzero(usable)
    # Correlations that differ by rounding alone keep the order of the columns.
    order = allowed if association is None else allowed[stable_order(-association[allowed], 1.0)]
    anchors, members = tuple(order[:n_anchors].tolist()), list[Subset]()
    for anchor in anchors:
        others = allowed[allowed != anchor]
        nearest = others[stable_order(-np.abs(correlation[anchor, others]), 1.0)]
        members.append((anchor, *nearest[: group_size - 1].tolist()))
    return Groups(anchors, tuple(members), correlation)


FeatureKind = Literal["signed", "weighted", "unweighted", "multiplicative"]
FEATURE_KINDS: tuple[FeatureKind, ...] = ("signed", "weighted", "unweighted", "multiplicative")


def subset_weights(correlation: Array, subset: Sequence[int], kind: FeatureKind) -> Array:
    r"""Weight w of each column of a subset whose first column is the anchor, shape (k,).

    ``"weighted"`` and ``"signed"`` take the correlation ρ with the anchor; ``"unweighted"`` takes 1;
    ``"multiplicative"`` takes the strength :math:`g_a = \sqrt{\sum_f \rho_{af}^2}` of the subset for every column.
    """
    rho: Array = correlation[subset[0], list(subset)]
    match kind:
        case "weighted" | "signed":
            return rho
        case "unweighted":
            return np.ones(len(subset))
        case "multiplicative":
            return np.full(len(subset), np.sqrt(np.sum(rho**2)))
    raise ParameterError(f"The 'kind' parameter must be one of {list(FEATURE_KINDS)}. Got {kind!r} instead.")


def anchor_feature(X: Array, subset: Sequence[int], weights: Array, *, signed: bool) -> Array:
    """Feature of one anchor for every row, shape (n,) (algorithm 2).

    With `signed`, the norm carries the sign of Σ w·x, so that x and −x differ; a sum of 0 counts as positive.
    """
    terms = X[:, list(subset)] * weights
    norm: Array = np.sqrt(np.sum(terms**2, axis=1))
    if not signed:
        return norm
    return np.where(np.sum(terms, axis=1) < 0, -norm, norm)


def feature_matrix(X: Array, configuration: Configuration, correlation: Array, kind: FeatureKind) -> Array:
    """Features of every anchor of a configuration, shape (n, A) (algorithm 3)."""
    features = np.empty((len(X), len(configuration)))
    for j, subset in enumerate(configuration):
        weights = subset_weights(correlation, subset, kind)
        features[:, j] = anchor_feature(X, subset, weights, signed=kind == "signed")
    return features


def most_worth(values: Array, targets: Array, most: int, sizes: Array | None = None) -> Codes:
    """Columns of values (n, M), `most` of them, that are worth most for targets (n, K), the best first.

    Of equal ones the first are taken. `sizes` (n,) are numbers of rows that are equal to each, itself among them.
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
