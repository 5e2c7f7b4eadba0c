"""Weights of a sum by the likelihood of out-of-fold rows, and the gate that keeps or drops its parts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import draws_per_row
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.optimize.newton import softmax_weights

# Imagined rows that pull the weights to equal shares and the biases to 0.
_PULL = 4.0
# Scores whose weight is below this are dropped, and so are those that add no more than this to the log-likelihood:
# the pull to equal shares makes those that say nothing do harm.
_LEAST_WEIGHT = 0.05
_LEAST_GAIN = 0.0


# Least slope of scores that others are added to, and imagined rows that pull to them alone.
_FLATTEST, _PULLS_ADDED = 0.05, np.array([1.0, 0.01])


class FittedSum(NamedTuple):
    """Weights of the scores, 0 for those that are dropped, shape (J,); biases, (C,); the sums, (n, C); and the loss."""

    weights: Array
    biases: Array
    scores: Array
    loss: float


def fit_sum(
    scores: Sequence[Array], codes: Codes, groups: Codes | None = None, row_weights: Array | None = None
) -> FittedSum:
    """Weights of dissimilarities of the highest likelihood; scores that add nothing to it are dropped one by one.

    Parameters
    ----------
    scores : sequence of J ndarrays of shape (n, C)
        Out-of-fold dissimilarities.
    codes : ndarray of shape (n,)
    groups : ndarray of shape (n,), optional
        Rows of one group count as one draw.
    row_weights : ndarray of shape (n,), optional
        What every row counts in the likelihood, 1 in the mean.
    """
    share, kept = draws_per_row(groups), list(range(len(scores)))
    found, biases, loss = _likeliest(scores, codes, share, row_weights)
    while len(kept) > 1:
        without = [[place for place in kept if place != dropped] for dropped in kept]
        fits = [_likeliest([scores[place] for place in rest], codes, share, row_weights) for rest in without]
        least = int(np.argmin([loss for _, _, loss in fits]))
        if share * (fits[least][2] - loss) > _LEAST_GAIN and found[least] >= _LEAST_WEIGHT:
            break
        kept, (found, biases, loss) = without[least], fits[least]
    weights = np.zeros(len(scores))
    weights[kept] = found
    total = np.sum([weight * one for weight, one in zip(weights, scores, strict=True)], axis=0)
    return FittedSum(weights, biases, total - biases, loss)


def _likeliest(
    scores: Sequence[Array], codes: Codes, share: float, row_weights: Array | None
) -> tuple[Array, Array, float]:
    """Weights and biases, and minus the log-likelihood of the rows."""
    n_classes, count = scores[0].shape[1], len(scores)
    # One bias is redundant.
    towards = np.append(np.full(count, 1.0 / count), np.zeros(n_classes - 1))
    found = softmax_weights(
        [-one for one in scores], np.eye(n_classes)[codes], towards, lowest=[0.0] * count,
        pulls=np.full(len(towards), _PULL / share), towards=towards, row_weights=row_weights,
    )  # fmt: skip
    biases = np.append(found[count:], 0.0)
    logits = biases - np.sum([weight * one for weight, one in zip(found[:count], scores, strict=True)], axis=0)
    losses = row_losses(logits, codes)
    return found[:count], biases, float((losses if row_weights is None else row_weights * losses).sum())


def slope_and_gain(scores: Array, added: Array, codes: Codes, groups: Codes | None = None) -> tuple[float, float]:
    """Slope of log-odds (n, C) and gain of what is added to them, of the highest likelihood."""
    as_it_is = np.array([1.0, 0.0])
    truth, pulls = np.eye(scores.shape[1])[codes], _PULLS_ADDED / draws_per_row(groups)
    found = softmax_weights([scores, added], truth, as_it_is, lowest=[_FLATTEST, 0.0], pulls=pulls, towards=as_it_is)
    return float(found[0]), float(found[1])
