r"""Slopes of scores and biases of classes that make known classes likeliest.

.. math:: \min_{\beta, b} -\sum_{ic} y_{ic} \log p_{ic} + \tfrac12 \sum_a \rho_a (\theta_a - \theta_a^0)^2, \qquad
          p_i = \operatorname{softmax}\Bigl(o + b + \sum_a \beta_a S_{a,i}\Bigr), \quad \theta = (\beta, b)
"""

from collections.abc import Sequence

import numpy as np

from qmedoid.arrays import Array
from qmedoid.search.newton import Local, newton
from qmedoid.variational.loss import log_softmax


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
