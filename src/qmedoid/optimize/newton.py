r"""Newton's method for convex functions of a few parameters, and the likelihoods that it maximizes.

Stopping rule: a step :math:`d = -H^{-1} g` promises to lower the function f by :math:`-g^\top d` (twice what its
quadratic model does). The search ends with the first step that promises no more than ``tolerance``·(1 + |f|). Since
each step doubles the number of right digits, the remaining error is far smaller. The default goes on until rounding: a
search that ends earlier ends at another place when its input changes in the last digit.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit

from qmedoid.arrays import Array, Flags, row_slices
from qmedoid.kernels.cross_entropy import log_softmax

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# A step that promises less than this share of the value is taken without a line search: rounding would decide it.
_UNSEEN = 1e-10
# Maximum number of steps without a line search.
_MAX_UNSEEN = 4
# Keeps the curvature above 0 where a parameter changes nothing, as a share of the largest.
_MIN_CURVATURE = 1e-13
# Curvature of a row of a logistic loss is at least this, so that separated classes have a step.
_MIN_ROW_CURVATURE = 1e-9
# Rows whose sums are made at a time.
_BLOCK_ROWS = 8192
Local = tuple[float, Callable[[], tuple[Array, Array]]]
"""A function at one place: its value, and a callable for its gradient (p,) and Hessian (p, p)."""


def newton(
    function: Callable[[Array], Local],
    start: Array,
    lowest: Array | None = None,
    *,
    tolerance: float = 1e-24,
    last_step: bool = True,
) -> Array:
    """Minimize a convex function.

    Parameters
    ----------
    function : callable
        Derivatives are asked for only at places that are kept.
    start : ndarray of shape (p,)
    lowest : ndarray of shape (p,), optional
        Lower bound of every parameter, −∞ for none.
    tolerance : float
        See the stopping rule of this module.
    last_step : bool
        Whether the step that ends the search is taken.
    """
    lowest = np.full(len(start), -np.inf) if lowest is None else lowest
    place = np.maximum(start, lowest)
    value, derivatives = function(place)
    n_unseen = 0
    for _ in range(_MAX_STEPS):
        gradient, hessian = derivatives()
        step = _step(gradient, hessian, place <= lowest)
        promised, scale = float(-gradient @ step), 1.0 + abs(value)
        following = np.maximum(place + step, lowest)
        if promised <= tolerance * scale or n_unseen == _MAX_UNSEEN:
            return following if last_step else place
        there = function(following)
        if promised <= _UNSEEN * scale:
            place, (value, derivatives), n_unseen = following, there, n_unseen + 1
            continue
        for _ in range(_MAX_HALVINGS):
            if there[0] <= value - 1e-4 * float(gradient @ (place - following)):
                break
            step = step / 2.0
            following = np.maximum(place + step, lowest)
            there = function(following)
        place, (value, derivatives) = following, there
    return place


def _step(gradient: Array, hessian: Array, at_lowest: Flags) -> Array:
    """The Newton step of all parameters but those that would leave their range at once."""
    step = np.zeros_like(gradient)
    free = ~(at_lowest & (gradient >= 0.0))
    if free.any():
        hessian = hessian if free.all() else hessian[np.ix_(free, free)]
        size = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
        step[free] = np.linalg.solve(hessian + _MIN_CURVATURE * size * np.eye(len(hessian)), -gradient[free])
    return step


def logistic_weights(
    features: Array, targets: Array, penalties: Array, start: Array, row_weights: Array | None = None
) -> Array:
    r"""Intercept and weights of a logistic regression with a ridge penalty for every parameter, shape (1 + F,).

    .. math:: \min_{b, w} \sum_i u_i \bigl(\log(1 + e^{t_i}) - y_i t_i\bigr) + \tfrac12 \sum_j \rho_j \theta_j^2,
              \qquad t = b + Zw, \quad \theta = (b, w)

    Sums over rows are made block by block, so that Z is not copied. It is the Hessian that takes the time, so the
    tolerance is one that saves the last of them.

    Parameters
    ----------
    features : ndarray of shape (n, F)
        Z.
    targets : ndarray of shape (n,)
        y, 0 or 1.
    penalties, start : ndarray of shape (1 + F,)
        ρ and the first θ, of the intercept first.
    row_weights : ndarray of shape (n,), optional
        u; 1 by default.
    """
    u = 1.0 if row_weights is None else row_weights

    def local(parameters: Array) -> Local:
        logits = parameters[0] + features @ parameters[1:]
        losses = u * (np.logaddexp(0.0, logits) - targets * logits)

        def derivatives() -> tuple[Array, Array]:
            p = expit(logits)
            gradient, hessian = _sums(features, u * (p - targets), u * np.maximum(p * (1.0 - p), _MIN_ROW_CURVATURE))
            hessian[np.diag_indices(len(hessian))] += penalties
            return gradient + penalties * parameters, hessian

        return float(losses.sum() + 0.5 * penalties @ parameters**2), derivatives

    return newton(local, start, tolerance=1e-9)


def _sums(features: Array, residuals: Array, curvatures: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of a sum of losses over rows, the intercept first."""
    n_parameters = features.shape[1] + 1
    gradient, hessian = np.zeros(n_parameters), np.zeros((n_parameters, n_parameters))
    gradient[0], hessian[0, 0] = residuals.sum(), curvatures.sum()
    roots = np.sqrt(curvatures)
    for rows in row_slices(len(features), _BLOCK_ROWS):
        block = features[rows]
        scaled = block * roots[rows, None]
        gradient[1:] += residuals[rows] @ block
        hessian[0, 1:] += roots[rows] @ scaled
        hessian[1:, 1:] += scaled.T @ scaled
    hessian[1:, 0] = hessian[0, 1:]
    return gradient, hessian


def softmax_weights(
    scores: Sequence[Array],
    targets: Array,
    start: Array,
    *,
    lowest: Sequence[float],
    pulls: Array,
    towards: Array,
    offset: Array | float = 0.0,
    row_weights: Array | None = None,
) -> Array:
    r"""Slopes of A scores, then biases of the first B classes, of the highest penalized likelihood, shape (A + B,).

    .. math:: \min_{\beta, b} -\sum_{ic} u_i\, y_{ic} \log p_{ic}
              + \tfrac12 \sum_a \rho_a (\theta_a - \theta_a^0)^2, \qquad
              p_i = \operatorname{softmax}\Bigl(o + b + \sum_a \beta_a S_{a,i}\Bigr), \quad \theta = (\beta, b)

    Parameters
    ----------
    scores : sequence of A ndarrays of shape (n, C)
    targets : ndarray of shape (n, C)
        y: class probabilities of every row.
    start, pulls, towards : ndarray of shape (A + B,)
        The first θ, ρ and θ⁰.
    lowest : sequence of A floats
        Lower bounds of the slopes.
    offset : ndarray of shape (C,) or float
        o.
    row_weights : ndarray of shape (n,), optional
        u; 1 by default.
    """
    u = None if row_weights is None else row_weights[:, None]
    n_biases = len(start) - len(scores)

    def local(parameters: Array) -> Local:
        logits = np.broadcast_to(offset, targets.shape) + np.pad(
            parameters[len(scores) :], (0, targets.shape[1] - n_biases)
        )
        for slope, score in zip(parameters, scores, strict=False):
            logits = logits + slope * score
        log_p, off = log_softmax(logits), parameters - towards

        def derivatives() -> tuple[Array, Array]:
            p = np.exp(log_p)
            missed = p - targets if u is None else u * (p - targets)
            gradient = np.concatenate([[(missed * score).sum() for score in scores], missed.sum(axis=0)[:n_biases]])
            return gradient + pulls * off, _softmax_curvature(scores, p, n_biases, u) + np.diag(pulls)

        gained = targets * log_p if u is None else u * targets * log_p
        return float(-gained.sum() + 0.5 * pulls @ off**2), derivatives

    return newton(local, start, np.concatenate([lowest, np.full(n_biases, -np.inf)]))


def _softmax_curvature(scores: Sequence[Array], p: Array, n_biases: int, u: Array | None) -> Array:
    """Hessian of minus the log-likelihood in slopes and biases; rows count u, shape (n, 1)."""
    counted = p if u is None else u * p
    spread = [counted * (score - (p * score).sum(axis=1, keepdims=True)) for score in scores]
    by_slopes = [[float((one * score).sum()) for score in scores] for one in spread]
    biased = counted[:, :n_biases]
    crossed = np.array([one.sum(axis=0)[:n_biases] for one in spread])
    among = np.diag(biased.sum(axis=0)) - biased.T @ p[:, :n_biases]
    return np.block([[np.array(by_slopes), crossed], [crossed.T, among]])
