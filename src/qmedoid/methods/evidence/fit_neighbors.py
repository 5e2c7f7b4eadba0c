"""Choice of the neighbors of an evidence model, and their weights, by the likelihood of out-of-fold rows.

Neighbor i adds its class minus the probabilities of the evidence at a quarter of its confidence: at full confidence,
the weights have learnt from the very rows around it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import draws_per_row, is_clear_gain
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.kernels.ties import first_largest
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.evidence.design import Scaled
from qmedoid.methods.evidence.neighbors import added
from qmedoid.methods.evidence.ridge import RowGroups
from qmedoid.optimize.newton import softmax_weights

# Numbers of neighbors that are tried.
_NUMBERS = (1, 4, 16)
# The length ℓ is the median distance to the neighbor of this number.
_MIDDLE = 5
# Minimum number of rows.
_FEWEST_ROWS = 20
_CONFIDENCE = 0.25
# Imagined rows that pull to the evidence alone.
_PULL, _PULL_ADDED = 1.0, 0.01
_FLATTEST = 0.05
# Minimum gain in out-of-fold log-likelihood, in standard errors and absolute: where classes are separated almost
# perfectly, standard errors say little.
_WORTH_IT = 1.5
_LEAST_GAIN = 4.0


class ChosenNeighbors(NamedTuple):
    """The neighbors of the highest likelihood: what each adds (N, K), and what others add to each row (n, K)."""

    amounts: Array
    n_nearest: int
    length: float
    by_rank: bool
    out_of_fold: Array


def choose_neighbors(
    dissimilarities: Array, n_outputs: int, codes: Codes, rows: Scaled, kept: Codes, together: RowGroups | None = None
) -> ChosenNeighbors | None:
    """Choose neighbors by out-of-fold likelihood; None where they are not clearly better than evidence alone.

    Parameters
    ----------
    dissimilarities : ndarray of shape (n, C)
        Out-of-fold scores of every row, by evidence alone.
    n_outputs : int
        K, of the evidence.
    codes : ndarray of shape (n,)
        Classes.
    rows : Scaled
        All rows, of the columns that distances look at.
    kept : ndarray of shape (N,)
        Rows that may be kept, no two of one group.
    together : RowGroups, optional
        Rows of one group are no neighbors of each other, and count as one in what is gained.
    """
    if len(kept) < _FEWEST_ROWS or rows.ranks.shape[1] == 0:
        return None
    groups = None if together is None else together.groups
    calibration = fit_calibration(dissimilarities, codes, "logistic", groups)
    scores = calibration.apply(dissimilarities)
    scores -= scores.mean(axis=1, keepdims=True)
    surprise = np.eye(scores.shape[1])[codes] - np.exp(log_softmax(_CONFIDENCE * scores))
    surprise = (surprise if together is None else together.means(surprise))[kept]
    share = draws_per_row(groups)
    tried = list(_candidates(scores, surprise, codes, rows, kept, groups))
    if not tried:
        return None
    best = tried[first_largest([-float(one.losses.mean()) for one in tried])]
    alone, _ = _likeliest(scores, np.zeros_like(scores), codes, share)
    if not is_clear_gain(row_losses(alone * scores, codes) - best.losses, groups, _WORTH_IT, _LEAST_GAIN):
        return None
    # A single output is the difference of two scores.
    of_class = 2.0 * surprise[:, 1:] if n_outputs == 1 else surprise
    amounts = best.gain / calibration.slope * of_class
    out_of_fold = added(best.distances, best.places, best.length, amounts)
    return ChosenNeighbors(amounts, best.places.shape[1], best.length, best.by_rank, out_of_fold)


class _NeighborCandidate(NamedTuple):
    """Neighbors that may be chosen: their weight relative to the scores, and the losses of rows with them."""

    by_rank: bool
    length: float
    distances: Array
    places: Codes
    gain: float
    losses: Array


def _candidates(
    scores: Array, surprise: Array, codes: Codes, rows: Scaled, kept: Codes, groups: Codes | None
) -> Iterator[_NeighborCandidate]:
    # Place among the neighbors of every row, or of a row of its group, which is not compared with; −1 for none.
    itself = np.full(len(codes), -1, dtype=np.intp)
    itself[kept if groups is None else groups[kept]] = np.arange(len(kept))
    itself = itself if groups is None else itself[groups]
    for by_rank in (True, False):
        values = np.ascontiguousarray(rows.ranks if by_rank else rows.plain)
        squared, places = nearest_squared(values, values[kept], k=min(_NUMBERS[-1], len(kept) - 1), own=itself)
        distances = np.sqrt(squared)
        length = float(np.median(distances[:, min(_MIDDLE, distances.shape[1]) - 1]))
        if not length > 0:
            continue  # most rows have an equal one: distances say nothing
        for number in _NUMBERS:
            nearest = distances[:, :number], places[:, :number]
            moved = added(*nearest, length, surprise)
            slope, gain = _likeliest(scores, moved, codes, draws_per_row(groups))
            losses = row_losses(slope * scores + gain * moved, codes)
            yield _NeighborCandidate(by_rank, length, *nearest, gain / slope, losses)


def _likeliest(scores: Array, moved: Array, codes: Codes, share: float = 1.0) -> tuple[float, float]:
    """Slopes of the scores and of what is added to them, of the highest likelihood; `share` is draws per row."""
    as_it_is = np.array([1.0, 0.0])
    slope, gain = softmax_weights(
        [scores, moved], np.eye(scores.shape[1])[codes], as_it_is,
        lowest=[_FLATTEST, 0.0], pulls=np.array([_PULL, _PULL_ADDED]) / share, towards=as_it_is,
    )  # fmt: skip
    return float(slope), float(gain)
