"""Which known records have a say beside the evidence: chosen, weighted and judged by rows that are left out.

What record i adds is its class less what evidence says of it with a quarter of its confidence: at full confidence, the
weights that say so have learnt from the very rows that lie around it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.fit import fit_calibration
from qmedoid.geometry.row_groups import draws_per_row, group_sums
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import first_smallest
from qmedoid.methods.evidence.bag import Scaled
from qmedoid.methods.evidence.neighbors import FoundNeighbors, added, find
from qmedoid.methods.evidence.ridge import RowGroups
from qmedoid.optimize.newton import softmax_weights

# How many of the nearest may have a say.
_NUMBERS = (1, 4, 16)
# The length ℓ is the median distance to the neighbor of this number.
_MIDDLE = 5
# Rows to find neighbors of at least.
_FEWEST_ROWS = 20
_CONFIDENCE = 0.25
# Imagined rows that pull to the evidence as it is, with nothing added.
_PULL, _PULL_ADDED = 1.0, 0.01
_FLATTEST = 0.05
# The gain in log-likelihood of all left-out rows must be so many of its standard errors above 0, and at least so large:
# where classes are told apart almost perfectly, errors say little.
_WORTH_IT = 1.5
_LEAST_GAIN = 4.0


class ChosenNeighbors(NamedTuple):
    """Neighbors that pay.

    Attributes
    ----------
    n_nearest : int
    length : float
    by_rank : bool
    amounts : ndarray of shape (N, K)
        What each known record adds.
    left_out : ndarray of shape (n, K)
        What is added to the outputs of every row by others.
    """

    n_nearest: int
    length: float
    by_rank: bool
    amounts: Array
    left_out: Array


def choose_neighbors(
    dissimilarities: Array, n_outputs: int, codes: Codes, rows: Scaled, known: Codes, together: RowGroups | None = None
) -> ChosenNeighbors | None:
    """The neighbors that make left-out rows likeliest; None where that is not clearly more than evidence alone does.

    Parameters
    ----------
    dissimilarities : ndarray of shape (n, C)
        Scores of every row, by evidence that has not seen it.
    n_outputs : int
        K, of the evidence.
    codes : ndarray of shape (n,)
        Classes.
    rows : Scaled
        All rows, of the columns that distances look at.
    known : ndarray of shape (N,)
        Rows that may be kept, no two of one group.
    together : RowGroups, optional
        Rows of one group are no neighbors of each other, and count as one in what is gained.
    """
    if len(known) < _FEWEST_ROWS or rows.ranks.shape[1] == 0:
        return None
    groups = None if together is None else together.groups
    calibration = fit_calibration(dissimilarities, codes, "logistic", groups)
    scores = calibration.apply(dissimilarities)
    scores -= scores.mean(axis=1, keepdims=True)
    surprise = np.eye(scores.shape[1])[codes] - np.exp(log_softmax(_CONFIDENCE * scores))
    surprise = (surprise if together is None else together.means(surprise))[known]
    share = draws_per_row(groups)
    tried = list(_candidates(scores, surprise, codes, rows, known, groups))
    if not tried:
        return None
    best = tried[first_smallest([float(one.losses.mean()) for one in tried])]
    alone, _ = _likeliest(scores, np.zeros_like(scores), codes, share)
    better = share * group_sums(_losses(alone * scores, codes) - best.losses, groups)
    if not better.sum() > max(_WORTH_IT * better.std() * np.sqrt(len(better)), _LEAST_GAIN):
        return None
    # A single output is the difference of two scores.
    of_class = 2.0 * surprise[:, 1:] if n_outputs == 1 else surprise
    amounts = best.gain / calibration.slope * of_class
    left_out = added(best.found, best.length, amounts)
    return ChosenNeighbors(best.found.places.shape[1], best.length, best.by_rank, amounts, left_out)


class _NeighborCandidate(NamedTuple):
    """Neighbors that may be chosen: what they add to a score for every unit of it, and the losses of rows then."""

    by_rank: bool
    length: float
    found: FoundNeighbors
    gain: float
    losses: Array


def _candidates(
    scores: Array, surprise: Array, codes: Codes, rows: Scaled, known: Codes, groups: Codes | None
) -> Iterator[_NeighborCandidate]:
    own = np.full(len(codes), -1, dtype=np.intp)
    own[known if groups is None else groups[known]] = np.arange(len(known))
    own = own if groups is None else own[groups]
    for by_rank in (True, False):
        values = np.ascontiguousarray(rows.ranks if by_rank else rows.plain)
        found = find(values, values[known], min(_NUMBERS[-1], len(known) - 1), own)
        length = float(np.median(found.distances[:, min(_MIDDLE, found.distances.shape[1]) - 1]))
        if not length > 0:
            continue  # most rows have a twin: nearness tells nothing apart
        for number in _NUMBERS:
            nearest = FoundNeighbors(found.distances[:, :number], found.places[:, :number])
            moved = added(nearest, length, surprise)
            slope, gain = _likeliest(scores, moved, codes, draws_per_row(groups))
            yield _NeighborCandidate(
                by_rank, length, nearest, gain / slope, _losses(slope * scores + gain * moved, codes)
            )


def _likeliest(scores: Array, moved: Array, codes: Codes, share: float = 1.0) -> tuple[float, float]:
    """Slopes of the scores and of what is added to them, of the highest likelihood; a row is this share of a draw."""
    as_it_is = np.array([1.0, 0.0])
    slope, gain = softmax_weights(
        [scores, moved], np.eye(scores.shape[1])[codes], as_it_is,
        lowest=[_FLATTEST, 0.0], pulls=np.array([_PULL, _PULL_ADDED]) / share, towards=as_it_is,
    )  # fmt: skip
    return float(slope), float(gain)


def _losses(scores: Array, codes: Codes) -> Array:
    """Minus the log-likelihood of every row."""
    losses: Array = -log_softmax(scores)[np.arange(len(codes)), codes]
    return losses
