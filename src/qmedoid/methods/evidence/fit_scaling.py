"""Fit of the scaling by ranks; what is fitted is applied without SciPy."""

import numpy as np
from scipy.special import ndtri

from qmedoid.arrays import Array
from qmedoid.geometry.scaling import RankScaling

MAX_KNOTS = 256
"""Knots of a column at most; beyond, those at evenly spaced ranks are kept."""


def fit_rank_scaling(X: Array) -> RankScaling:
    """Fit a Gaussian mid-rank scaling: every value of a column goes to the normal quantile of its mean rank.

    Scores are then brought to mean 0 and deviation 1 over the rows; a constant column is mapped to 0.
    """
    parts = [_knots(X[:, column]) for column in range(X.shape[1])]
    offsets = np.concatenate([[0], np.cumsum([len(values) for values, _ in parts])]).astype(np.intp)
    return RankScaling(
        offsets, np.concatenate([values for values, _ in parts]), np.concatenate([scores for _, scores in parts])
    )


def _knots(column: Array) -> tuple[Array, Array]:
    values, counts = np.unique(column, return_counts=True)
    if len(values) == 1:
        return values, np.zeros(1)
    # Half of a value's own rows count as below it, so that no rank is 0 or 1.
    ranks = (np.cumsum(counts) - counts / 2) / len(column)
    scores: Array = ndtri(ranks)
    mean = counts @ scores / len(column)
    scores = (scores - mean) / np.sqrt(counts @ (scores - mean) ** 2 / len(column))
    if len(values) > MAX_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MAX_KNOTS)
        kept = np.unique(np.concatenate([[0], np.searchsorted(ranks, wanted[1:-1]), [len(values) - 1]]))
        values, scores = values[kept], scores[kept]
    return values, scores
