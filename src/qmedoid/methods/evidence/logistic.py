r"""Logistic regression with a ridge, for the weights of two classes.

Leave-one-out logits are exact to first order: where :math:`H = T^\top W T + \lambda I` is the curvature at the solution
(with the intercept among the columns of T), leaving row i out moves its logit by one Newton step:

.. math:: \eta_{-i} = \eta_i - \frac{h_i}{1 - h_i}\,\frac{y_i - p_i}{w_i}, \qquad h_i = w_i\, t_i^\top H^{-1} t_i .
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.special import expit

from qmedoid.arrays import Array, Codes
from qmedoid.methods.evidence.long_table import RowBlock
from qmedoid.methods.evidence.ridge import RowGroups, moved_logits
from qmedoid.optimize.newton import Stored, logistic_weights

# Minimum curvature of a row, which keeps out-of-fold logits bounded where classes are separated perfectly.
_LEAST_CURVATURE = 1e-3
_LEAST_FREE = 1e-3
_INTERCEPT_PENALTY = 1e-6
# Rows that weights of a long table begin with.
_START_ROWS = 10_000


class Logistic(NamedTuple):
    r"""Logits :math:`b + T\beta`: intercept, coefficients of shape (r,), and out-of-fold logits, shape (n,)."""

    intercept: float
    coefficients: Array
    out_of_fold: Array


def fit_logistic(
    rotated: Array | Stored,
    positive: Array,
    penalty: float,
    intercept: float,
    coefficients: Array,
    together: RowGroups | None = None,
    *,
    same_intercept: bool = False,
    blocks: Sequence[RowBlock] | None = None,
    row_weights: Array | None = None,
) -> Logistic:
    r"""Fit a logistic regression with a ridge from a start, such as a ridge regression gives.

    Parameters
    ----------
    rotated : ndarray of shape (n, r)
    positive : ndarray of shape (n,)
        1 for the rows of the second class, else 0.
    penalty : float
        λ of :math:`\tfrac\lambda2|\beta|^2`, added to the sum of the losses.
    intercept, coefficients : float, ndarray of shape (r,)
        The start.
    together : RowGroups, optional
        Rows of one group are left out together.
    same_intercept : bool
        Whether out-of-fold logits have the intercept of all rows, see `fit_ridge`; rows of groups that are not all
        equal never have.
    blocks : sequence of RowBlock, optional
        Rows that are in memory together in double precision, with groups of their own; all by default.
    row_weights : ndarray of shape (n,), optional
        What every row counts in the loss; 1 by default.
    """
    blocks = [RowBlock(slice(None), together)] if blocks is None else blocks
    penalties = np.append(_INTERCEPT_PENALTY, np.full(rotated.shape[1], penalty))
    start = np.append(intercept, coefficients)
    if (step := len(rotated) // _START_ROWS) > 1:
        # Most steps are made on some rows.
        some = None if row_weights is None else row_weights[::step]
        start = logistic_weights(rotated[::step], positive[::step], penalties / step, start, some, tolerance=1e-5)
    weights = logistic_weights(rotated, positive, penalties, start, row_weights)
    logits = np.empty(len(rotated))
    for rows, _ in blocks:
        logits[rows] = _with_ones(_double(rotated, rows)) @ weights
    shares = expit(logits)
    curvature, residuals = _curvature(shares), positive - shares
    if row_weights is not None:
        curvature, residuals = row_weights * curvature, row_weights * residuals
    # Groups of rows that differ are left out with their intercept.
    mixed = any(of_block is not None and of_block.batches for _, of_block in blocks)
    inner = _factored(rotated, blocks, curvature, penalties[1:] if same_intercept else penalties)
    whole = _factored(rotated, blocks, curvature, penalties) if mixed and same_intercept else inner
    moved = np.empty(len(rotated))
    for rows, of_block in blocks:
        own, curved, missed = _double(rotated, rows), curvature[rows], residuals[rows]
        alone = solve_triangular(inner, (own if same_intercept else _with_ones(own)).T, lower=True, check_finite=False)
        leverage = curved * (alone**2).sum(axis=0)
        if of_block is not None:
            # Equal rows move by what all of them miss.
            leverage, missed = of_block.sizes * leverage, of_block.means(missed[:, None])[:, 0]
        falls = leverage / np.maximum(1.0 - leverage, _LEAST_FREE) * missed / curved
        if of_block is not None and of_block.batches:
            reach = solve_triangular(whole, _with_ones(own).T, lower=True, check_finite=False)
            together_moved = moved_logits(of_block, reach, curved, residuals[rows], _LEAST_FREE)
            for batch in of_block.batches:
                falls[batch] = together_moved[batch]
        moved[rows] = falls
    return Logistic(float(weights[0]), weights[1:], logits - moved)


def _double(rotated: Array | Stored, rows: Codes | slice) -> Array:
    return rotated[rows].astype(np.float64, copy=False)


def _with_ones(rotated: Array) -> Array:
    return np.column_stack([np.ones(len(rotated)), rotated])


def _curvature(shares: Array) -> Array:
    return np.maximum(shares * (1.0 - shares), _LEAST_CURVATURE)


def _factored(rotated: Array | Stored, blocks: Sequence[RowBlock], curvature: Array, penalties: Array) -> Array:
    """Lower Cholesky factor of the curvature H, of the intercept, too, if it has a penalty."""
    hessian = np.zeros((len(penalties), len(penalties)))
    for rows, _ in blocks:
        own = _double(rotated, rows)
        columns = own if len(penalties) == own.shape[1] else _with_ones(own)
        scaled = columns * np.sqrt(curvature[rows])[:, None]
        hessian += scaled.T @ scaled
    hessian[np.diag_indices(len(hessian))] += penalties
    factor: Array = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)[0]
    return factor
