r"""Logistic regression with a ridge, by Newton steps, and the logits of left-out rows to first order.

Where :math:`H = T^\top W T + \lambda I` is the curvature at the solution (with the intercept among the columns of T),
leaving row i out moves its logit by one Newton step:

.. math:: \eta_{-i} = \eta_i - \frac{h_i}{1 - h_i}\,\frac{y_i - p_i}{w_i}, \qquad h_i = w_i\, t_i^\top H^{-1} t_i .

One bag of an evidence model: weights of its terms, and the outputs of rows that they have not seen.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.special import expit

from qmedoid.arrays import Array, Codes
from qmedoid.methods.evidence.design import Design
from qmedoid.methods.evidence.ridge import Ridge, Together, fit_ridge, moved_logits
from qmedoid.methods.evidence.settings import RidgePath, Selection
from qmedoid.optimize.newton import logistic_weights

# Minimum curvature of a row, which keeps out-of-fold logits bounded where classes are separated perfectly.
_LEAST_CURVATURE = 1e-3
_LEAST_FREE = 1e-3
_INTERCEPT_PENALTY = 1e-6


class Logistic(NamedTuple):
    r"""Logits :math:`b + T\beta`: intercept, coefficients of shape (r,), and logits of left-out rows, shape (n,)."""

    intercept: float
    coefficients: Array
    left_out: Array


def fit_logistic(
    rotated: Array,
    positive: Array,
    penalty: float,
    intercept: float,
    coefficients: Array,
    together: Together | None = None,
    *,
    same_intercept: bool = False,
) -> Logistic:
    r"""Fit from a start, such as a ridge regression gives.

    Parameters
    ----------
    rotated : ndarray of shape (n, r)
    positive : ndarray of shape (n,)
        1 for the rows of the second class, else 0.
    penalty : float
        λ of :math:`\tfrac\lambda2|\beta|^2` beside the sum of the losses.
    intercept, coefficients : float, ndarray of shape (r,)
        The start.
    together : Together, optional
        Rows that are left out together.
    same_intercept : bool
        Whether the logits of left-out rows have the intercept of all rows, see `fit_ridge`; rows of groups that are
        not all equal never have.
    """
    columns = np.column_stack([np.ones(len(rotated)), rotated])
    penalties = np.append(_INTERCEPT_PENALTY, np.full(rotated.shape[1], penalty))
    weights = logistic_weights(rotated, positive, penalties, np.append(intercept, coefficients))
    logits = columns @ weights
    shares = expit(logits)
    curvature = _curvature(shares)
    factor = _factored(columns, shares, penalties)
    reach, residuals = solve_triangular(factor, columns.T, lower=True, check_finite=False), positive - shares
    alone = reach
    if same_intercept:
        factor = _factored(rotated, shares, penalties[1:])
        alone = solve_triangular(factor, rotated.T, lower=True, check_finite=False)
    leverage = curvature * (alone**2).sum(axis=0)
    if together is None:
        moved = leverage / np.maximum(1.0 - leverage, _LEAST_FREE) * residuals / curvature
    else:
        # Equal rows move by what all of them miss.
        leverage, missed = together.sizes * leverage, together.means(residuals[:, None])[:, 0]
        moved = leverage / np.maximum(1.0 - leverage, _LEAST_FREE) * missed / curvature
        mixed = moved_logits(together, reach, curvature, residuals, _LEAST_FREE)
        for rows in together.batches:
            moved[rows] = mixed[rows]
    return Logistic(float(weights[0]), weights[1:], logits - moved)


def _curvature(shares: Array) -> Array:
    return np.maximum(shares * (1.0 - shares), _LEAST_CURVATURE)


def _factored(columns: Array, shares: Array, penalties: Array) -> Array:
    """Lower Cholesky factor of the curvature H."""
    scaled = columns * np.sqrt(_curvature(shares))[:, None]
    hessian = scaled.T @ scaled
    hessian[np.diag_indices(len(hessian))] += penalties
    factor: Array = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)[0]
    return factor


# The logistic loss of one row is curved by a quarter at most, and by less where a row is told with confidence: its λ is
# this share of the one that would be the same ridge at the quarter.
_LOGISTIC_SHARE = 0.8
# Directions that the logistic refit keeps: at most so many, and none that the ridge shrinks below this share.
_MAX_DIRECTIONS = 400
_LEAST_SHARE = 0.003


class Bag(NamedTuple):
    """A weighted design.

    Attributes
    ----------
    design : Design
    weights : list of ndarray of shape (q, K)
        Weights of the terms of each part.
    intercepts : ndarray of shape (K,)
    left_out : ndarray of shape (n, K)
        Outputs of weights that have not seen the row.
    penalty, error : float
        The λ that was chosen and its leave-one-out error.
    path : RidgePath
    """

    design: Design
    weights: list[Array]
    intercepts: Array
    left_out: Array
    penalty: float
    error: float
    path: RidgePath


def class_targets(codes: Codes, n_classes: int) -> Array:
    """±1 for the second of two classes, shape (n, 1), or for each of more, shape (n, C)."""
    wanted = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == wanted, 1.0, -1.0)


def fit_bag(
    design: Design,
    targets: Array,
    logistic: bool,
    selection: Selection,
    judged: Codes | None,
    together: Together | None = None,
) -> Bag:
    """Weigh a design by ridge regression on ±1, then, if asked and with one output, by logistic regression.

    λ is that of the `judged` rows, by which no group was chosen. Rows that belong `together` are left out together.
    """
    ridge = fit_ridge(design.features, targets, selection, judged, together=together, same_intercept=True)
    if logistic and targets.shape[1] == 1:
        weights, intercepts, left_out = _logistic(ridge, targets, together)
    else:
        weights, intercepts, left_out = ridge.directions @ ridge.coefficients, ridge.means, ridge.left_out
    error = float(ridge.path.errors[ridge.place])
    return Bag(design, design.term_weights(weights), intercepts, left_out, ridge.penalty, error, ridge.path)


def _logistic(ridge: Ridge, targets: Array, together: Together | None) -> tuple[Array, Array, Array]:
    """Weights of the features, intercepts and outputs of left-out rows, all as logits."""
    penalty = ridge.penalty * len(targets)
    kept = np.flatnonzero(ridge.sizes > _LEAST_SHARE * penalty)[-_MAX_DIRECTIONS:]
    # An output of ±1 stands for shares (1 ± t) / 2, whose logit starts as 2 t.
    fitted = fit_logistic(
        ridge.rotated[:, kept], (targets[:, 0] + 1.0) / 2.0, _LOGISTIC_SHARE * penalty / 4.0,
        2.0 * float(ridge.means[0]), 2.0 * ridge.coefficients[kept, 0], together, same_intercept=True,
    )  # fmt: skip
    weights = ridge.directions[:, kept] @ fitted.coefficients
    return weights[:, None], np.array([fitted.intercept]), fitted.left_out[:, None]
