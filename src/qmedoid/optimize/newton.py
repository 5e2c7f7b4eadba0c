r"""Newton's method for a convex function of a few parameters, some of which have a lowest value.

It is run until rounding is all that is left: a search that ends as soon as the function hardly falls stops at another
place when its input changes in the last digit.

Slopes of scores and biases of classes that make known classes likeliest.

.. math:: \min_{\beta, b} -\sum_{ic} y_{ic} \log p_{ic} + \tfrac12 \sum_a \rho_a (\theta_a - \theta_a^0)^2, \qquad
          p_i = \operatorname{softmax}\Bigl(o + b + \sum_a \beta_a S_{a,i}\Bigr), \quad \theta = (\beta, b)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.kernels.cross_entropy import log_softmax

_MOST_STEPS = 100
_MOST_HALVINGS = 40
# What a step promises, as a share of the value: below the first it is taken without a look, since rounding would say
# whether the function falls; below the second there is nothing left to gain.
_UNSEEN, _SETTLED = 1e-10, 1e-24
# Steps that are taken without a look at most: each doubles the digits.
_MOST_UNSEEN = 4
# Keeps the curvature away from 0 where a parameter changes nothing.
_LEAST_CURVATURE = 1e-13


class Local(NamedTuple):
    """A function at one place: its value, gradient of shape (p,) and Hessian of shape (p, p)."""

    value: float
    gradient: Array
    hessian: Array


def newton(function: Callable[[Array], Local], start: Array, lowest: Array) -> Array:
    """Where a convex function is smallest.

    Parameters
    ----------
    function : callable
    start, lowest : ndarray of shape (p,)
        Where to begin, and the lowest value of every parameter, −∞ for none.
    """
    place = np.maximum(start, lowest)
    here = function(place)
    unseen = 0
    for _ in range(_MOST_STEPS):
        step = _step(here, place <= lowest)
        promised = float(-here.gradient @ step)
        if promised <= _SETTLED * (1.0 + abs(here.value)) or unseen == _MOST_UNSEEN:
            break
        following = np.maximum(place + step, lowest)
        if promised <= _UNSEEN * (1.0 + abs(here.value)):
            place, here, unseen = following, function(following), unseen + 1
            continue
        there = function(following)
        for _ in range(_MOST_HALVINGS):
            if there.value <= here.value - 1e-4 * float(here.gradient @ (place - following)):
                break
            step = step / 2.0
            following = np.maximum(place + step, lowest)
            there = function(following)
        place, here = following, there
    return place


def _step(here: Local, at_lowest: Flags) -> Array:
    """The Newton step of all parameters but those that would leave their range at once."""
    step = np.zeros_like(here.gradient)
    free = ~(at_lowest & (here.gradient >= 0.0))
    if free.any():
        hessian = here.hessian[np.ix_(free, free)]
        size = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
        step[free] = np.linalg.solve(hessian + _LEAST_CURVATURE * size * np.eye(len(hessian)), -here.gradient[free])
    return step


def likeliest(
    scores: Sequence[Array],
    targets: Array,
    start: Array,
    *,
    lowest: Sequence[float],
    pulls: Array,
    towards: Array,
    offset: Array | float = 0.0,
) -> Array:
    """The slopes of A scores, then the biases of the first B classes, shape (A + B,).

    Parameters
    ----------
    scores : sequence of A ndarrays of shape (n, C)
    targets : ndarray of shape (n, C)
        y: what share of a row is of each class.
    start, pulls, towards : ndarray of shape (A + B,)
        Where to begin, ρ and θ⁰.
    lowest : sequence of A floats
        The lowest slopes.
    offset : ndarray of shape (C,) or float
        o.
    """
    n_biases = len(start) - len(scores)

    def local(parameters: Array) -> Local:
        logits = np.broadcast_to(offset, targets.shape) + np.pad(
            parameters[len(scores) :], (0, targets.shape[1] - n_biases)
        )
        for slope, score in zip(parameters, scores, strict=False):
            logits = logits + slope * score
        log_p = log_softmax(logits)
        p = np.exp(log_p)
        missed, off = p - targets, parameters - towards
        gradient = np.concatenate([[(missed * score).sum() for score in scores], missed.sum(axis=0)[:n_biases]])
        value = float(-(targets * log_p).sum() + 0.5 * pulls @ off**2)
        return Local(value, gradient + pulls * off, _curvature(scores, p, n_biases) + np.diag(pulls))

    return newton(local, start, np.concatenate([lowest, np.full(n_biases, -np.inf)]))


def _curvature(scores: Sequence[Array], p: Array, n_biases: int) -> Array:
    """Hessian of the log-likelihood, without its sign: what parameters do to logits, spread over the classes."""
    spread = [p * (score - (p * score).sum(axis=1, keepdims=True)) for score in scores]
    by_slopes = [[float((one * score).sum()) for score in scores] for one in spread]
    own = p[:, :n_biases]
    crossed = np.array([one.sum(axis=0)[:n_biases] for one in spread])
    among = np.diag(own.sum(axis=0)) - own.T @ own
    return np.block([[np.array(by_slopes), crossed], [crossed.T, among]])
