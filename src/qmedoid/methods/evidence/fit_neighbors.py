"""Choice of the neighbors of an evidence model, and their weights, by the likelihood of out-of-fold rows.

Neighbor i adds its class minus the probabilities of the evidence at a quarter of its confidence: at full confidence,
the weights have learnt from the very rows around it.
"""

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import is_clear_gain
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.kernels.ties import first_largest
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.evidence.design import Scaled
from qmedoid.methods.evidence.part import added
from qmedoid.methods.evidence.ridge import RowGroups
from qmedoid.methods.weights import slope_and_gain

# Numbers of neighbors that are tried.
_NUMBERS = (1, 4, 16)
# The length ℓ is the median distance to the neighbor of this number.
_MIDDLE = 5
# Minimum number of rows.
_FEWEST_ROWS = 20
_CONFIDENCE = 0.25
# Minimum gain in out-of-fold log-likelihood, in standard errors and absolute: where classes are separated almost
# perfectly, standard errors say little.
_WORTH_IT = 1.5
_LEAST_GAIN = 4.0


Chosen = tuple[Array, int, float, bool, Array]
"""What each neighbor adds (N, K), the number of nearest ones, ℓ, whether distances are by rank, and what the neighbors
add to each row, (n, K)."""


def choose_neighbors(
    dissimilarities: Array, n_outputs: int, codes: Codes, rows: Scaled, kept: Codes, together: RowGroups | None = None
) -> Chosen | None:
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
    # Place among the neighbors of every row, or of a row of its group, which is not compared with; −1 for none.
    itself = np.full(len(codes), -1, dtype=np.intp)
    itself[kept if groups is None else groups[kept]] = np.arange(len(kept))
    itself = itself if groups is None else itself[groups]
    losses, tried = list[Array](), list[tuple[float, Array, Codes, float, bool]]()
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
            slope, gain = slope_and_gain(scores, moved, codes, groups)
            losses.append(row_losses(slope * scores + gain * moved, codes))
            tried.append((gain / slope, *nearest, length, by_rank))
    if not tried:
        return None
    best = first_largest([-float(one.mean()) for one in losses])
    alone, _ = slope_and_gain(scores, np.zeros_like(scores), codes, groups)
    if not is_clear_gain(row_losses(alone * scores, codes) - losses[best], groups, _WORTH_IT, _LEAST_GAIN):
        return None
    gain, distances, places, length, by_rank = tried[best]
    # A single output is the difference of two scores.
    of_class = 2.0 * surprise[:, 1:] if n_outputs == 1 else surprise
    amounts = gain / calibration.slope * of_class
    return amounts, places.shape[1], length, by_rank, added(distances, places, length, amounts)
