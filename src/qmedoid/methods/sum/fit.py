"""Weights of a sum by the likelihood of out-of-fold rows, and the gate that keeps or drops its parts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import draws_per_row, group_sums
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.optimize.newton import softmax_weights

# Imagined rows that pull the weights to equal shares and the biases to 0.
_PULL = 4.0
# A part whose weight is below this is dropped.
_LEAST_WEIGHT = 0.05
# Minimum gain in out-of-fold log-likelihood by all parts, in standard errors.
_WORTH_IT = 0.5


class FittedSum(NamedTuple):
    """Weights of the scores, 0 for those that are dropped, shape (J,); biases, shape (C,); and the sums, shape (n, C)."""

    weights: Array
    biases: Array
    scores: Array


def fit_sum(scores: Sequence[Array], codes: Codes, groups: Codes | None = None) -> FittedSum:
    """Weights of dissimilarities of the highest likelihood; the first stays, the others have to earn their place.

    Parameters
    ----------
    scores : sequence of J ndarrays of shape (n, C)
        Out-of-fold dissimilarities.
    codes : ndarray of shape (n,)
    groups : ndarray of shape (n,), optional
        Rows of one group count as one draw.
    """
    kept = list(range(len(scores)))
    while True:
        found = _likeliest([scores[place] for place in kept], codes, draws_per_row(groups))
        small = [place for place, weight in zip(kept, found[0], strict=True) if weight < _LEAST_WEIGHT and len(kept) > 1]
        if not small:
            break
        kept = [place for place in kept if place not in small] or [0]
    weights, biases = np.zeros(len(scores)), found[1]
    weights[kept] = found[0]
    return FittedSum(weights, biases, sum(w * s for w, s in zip(weights, scores, strict=True)) - biases)


def _likeliest(scores: Sequence[Array], codes: Codes, share: float) -> tuple[Array, Array]:
    n_classes, count = scores[0].shape[1], len(scores)
    # One bias is redundant.
    towards = np.append(np.full(count, 1.0 / count), np.zeros(n_classes - 1))
    found = softmax_weights(
        [-one for one in scores], np.eye(n_classes)[codes], towards, lowest=[0.0] * count,
        pulls=np.full(len(towards), _PULL / share), towards=towards,
    )  # fmt: skip
    return found[:count], np.append(found[count:], 0.0)
