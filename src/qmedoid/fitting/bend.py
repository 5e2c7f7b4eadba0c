r"""A bend of log-odds: probabilities of two classes that no straight line gives, from held-out rows.

To the log-odds z of every record a piecewise-linear function is added, with its knots at quantiles of z where both
classes count alike. It is the likeliest with a penalty :math:`\tfrac{\lambda}{2}\sum_j (\text{slope}_j)^2`; λ is
chosen by cross-validation, and where the bend does not make held-out rows likelier, there is none.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Bend = tuple[Array, Array]
"""Knots, and what is added there."""

_LEVELS = np.linspace(0.02, 0.98, 9)
_PENALTIES = (1.0, 4.0, 16.0, 64.0, 256.0)
_FOLDS = 5
# Knots are at least so far apart, in log-odds: nearer ones cannot be told apart by any number of rows that there is.
_NEAREST = 0.3
# Log-odds keep at least this share of their steps, so that their order is kept.
_FLATTEST = 0.05
# A row's worth of pull to no bend at all, where rows say nothing.
_PULL = 0.01
_MOST_STEPS = 50


def fit_bend(log_odds: Array, positive: Flags) -> Bend:
    """The bend of log-odds of rows that a model has not seen; empty where a straight line will do.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
    positive : ndarray of bool of shape (n,)
        Which rows are of the second class.
    """
    knots = _knots(log_odds, positive)
    if len(knots) < 2:
        return np.zeros(0), np.zeros(0)
    basis, targets = _hats(log_odds, knots), smoothed_targets(positive)
    # In turn by log-odds, so that every fold has all of them, and nothing is drawn; classes have no say in it.
    folds = np.empty(len(log_odds), dtype=np.intp)
    folds[np.argsort(log_odds, kind="stable")] = np.arange(len(log_odds)) % _FOLDS
    straight = _losses(log_odds, targets)
    held_out = [_held_out_losses(log_odds, targets, basis, knots, folds, penalty) for penalty in _PENALTIES]
    best = int(np.argmin([losses.mean() for losses in held_out]))
    gain = straight - held_out[best]
    if gain.mean() <= 0.0:
        return np.zeros(0), np.zeros(0)
    return knots, _likeliest(log_odds, targets, basis, knots, _PENALTIES[best])


def smoothed_targets(positive: Flags) -> Array:
    """1 and 0 with the doubt that so many rows of a class leave (Platt): (N + 1)/(N + 2), and 1/(N + 2)."""
    n_positive = int(positive.sum())
    n_others = len(positive) - n_positive
    targets: Array = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_others + 2.0))
    return targets


def _knots(log_odds: Array, positive: Flags) -> Array:
    """Quantiles of log-odds where each class has half of the weight, none too near to the one before."""
    n_positive = int(positive.sum())
    if n_positive in (0, len(positive)):
        return np.zeros(0)
    order = np.argsort(log_odds, kind="stable")
    weights = np.where(positive[order], 0.5 / n_positive, 0.5 / (len(positive) - n_positive))
    places = np.minimum(np.searchsorted(np.cumsum(weights), _LEVELS), len(order) - 1)
    kept: list[float] = []
    for knot in log_odds[order][places].tolist():
        if not kept or knot - kept[-1] >= _NEAREST:
            kept.append(knot)
    return np.array(kept)


def _hats(log_odds: Array, knots: Array) -> Array:
    """Weight of every knot in the interpolation at every row, shape (n, K)."""
    return np.column_stack([np.interp(log_odds, knots, one) for one in np.eye(len(knots))])


def _held_out_losses(
    log_odds: Array, targets: Array, basis: Array, knots: Array, folds: Codes, penalty: float
) -> Array:
    losses = np.empty(len(log_odds))
    for fold in range(_FOLDS):
        own, others = folds == fold, folds != fold
        bends = _likeliest(log_odds[others], targets[others], basis[others], knots, penalty)
        losses[own] = _losses(log_odds[own] + basis[own] @ bends, targets[own])
    return losses


def _likeliest(log_odds: Array, targets: Array, basis: Array, knots: Array, penalty: float) -> Array:
    """Bends of the highest penalised likelihood by Newton's method, held back where they would turn the order."""
    slopes = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]
    quadratic = penalty * slopes.T @ slopes + _PULL * np.eye(len(knots))

    def loss(bends: Array) -> float:
        return float(_losses(log_odds + basis @ bends, targets).sum() + 0.5 * bends @ quadratic @ bends)

    bends = np.zeros(len(knots))
    value = loss(bends)
    for _ in range(_MOST_STEPS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(log_odds + basis @ bends, -700, 700)))
        gradient = basis.T @ (chances - targets) + quadratic @ bends
        curvature = (basis * (chances * (1.0 - chances))[:, None]).T @ basis + quadratic
        step = np.linalg.solve(curvature, gradient)
        following = loss(bends - step)
        while following > value and np.abs(step).max() > 1e-9:
            step = step / 2.0
            following = loss(bends - step)
        if value - following < 1e-9 * (1.0 + abs(value)):
            break
        bends, value = bends - step, following
    steepest = float((-np.diff(bends) / np.diff(knots)).max())
    return bends if steepest <= 1.0 - _FLATTEST else bends * ((1.0 - _FLATTEST) / steepest)


def _losses(log_odds: Array, targets: Array) -> Array:
    """Minus the log-likelihood of every row."""
    losses: Array = np.logaddexp(0.0, log_odds) - targets * log_odds
    return losses
