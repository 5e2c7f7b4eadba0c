"""Fit of the Gaussian mid-rank scaling of a table; what is fitted is applied without SciPy."""

import numpy as np
from scipy.special import ndtri

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.geometry.scaling import RankScaling

MAX_KNOTS = 256
"""Knots of a column at most; beyond, those at evenly spaced ranks are kept."""


def fit_rank_scaling(X: Array) -> RankScaling:
    """Fit a Gaussian mid-rank scaling: every value of a column goes to the normal quantile of its mean rank.

    Scores are then brought to mean 0 and deviation 1 over the rows; a constant column is mapped to 0.
    """
    parts = [_block_knots(X[:, block]) for block in column_slices(*X.shape)]
    sizes, values, scores = (np.concatenate(own) for own in zip(*parts, strict=True))
    return RankScaling(np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp), values, scores)


def _block_knots(X: Array) -> tuple[Codes, Array, Array]:
    """Knots of every column, how many, and where they lie and what they are mapped to, column after column.

    Columns whose values are repeated alike have the same scores, which are made once: in wide tables of measurements
    most columns have no value twice.
    """
    rising = np.array(X.T, order="C")
    rising.sort(axis=1)
    is_first = np.ones(rising.shape, dtype=np.bool_)
    is_first[:, 1:] = rising[:, 1:] != rising[:, :-1]
    columns_of: dict[bytes, list[int]] = {}
    for column, firsts in enumerate(is_first):
        columns_of.setdefault(firsts.tobytes(), []).append(column)
    found = [(columns, *_knots(is_first[columns[0]])) for columns in columns_of.values()]
    sizes = np.empty(len(rising), dtype=np.intp)
    for columns, kept, _ in found:
        sizes[columns] = len(kept)
    starts = np.cumsum(sizes) - sizes
    values, scores = np.empty((2, int(sizes.sum())))
    for columns, kept, marks in found:
        places = starts[columns][:, None] + np.arange(len(kept))
        values[places], scores[places] = rising[columns][:, kept], marks
    return sizes, values, scores


def _knots(is_first: Flags) -> tuple[Codes, Array]:
    """Knots of a column in rising order, by where it has another value than before: their places, and their scores."""
    first = np.flatnonzero(is_first)
    if len(first) == 1:
        return first, np.zeros(1)
    counts, n_rows = np.diff(np.append(first, len(is_first))), len(is_first)
    # Half of a value's own rows count as below it, so that no rank is 0 or 1.
    ranks = (np.cumsum(counts) - counts / 2) / n_rows
    scores: Array = ndtri(ranks)
    mean = counts @ scores / n_rows
    scores = (scores - mean) / np.sqrt(counts @ (scores - mean) ** 2 / n_rows)
    if len(first) > MAX_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MAX_KNOTS)
        kept = np.unique(np.concatenate([[0], np.searchsorted(ranks, wanted[1:-1]), [len(first) - 1]]))
        first, scores = first[kept], scores[kept]
    return first, scores
