r"""Logistic regression with a penalty of its own on every weight, by Newton's method.

.. math:: \min_{b, w} \sum_i u_i \bigl(\log(1 + e^{t_i}) - y_i t_i\bigr) + \tfrac12 \sum_j \frac{w_j^2}{C_j},
          \qquad t = b + Zw

The sums over rows are made block by block, so that no copy of Z is needed.
"""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Flags

_BLOCK_ROWS = 8192
_MOST_STEPS = 50
# A step that lowers the loss by less than this is the last.
_TOLERANCE = 1e-6
# Share of the loss that is rounding: it does not say whether a step is a good one.
_ROUNDING = 1e-12


class Logistic(NamedTuple):
    """Intercept b and weights w of shape (F,)."""

    intercept: float
    weights: Array

    def logits(self, standardized: Array) -> Array:
        """Logit t of every row, shape (n,)."""
        logits: Array = self.intercept + standardized @ self.weights
        return logits


def fit_logistic(
    Z: Array,
    target: Flags,
    strengths: Array,
    *,
    row_weights: Array | None = None,
    start: Logistic | None = None,
) -> Logistic:
    """The minimum.

    Parameters
    ----------
    Z : ndarray of shape (n, F)
        Standardized features.
    target : ndarray of shape (n,)
        y; both values must occur.
    strengths : ndarray of shape (F,)
        C of every weight; where it is 0, the weight is.
    row_weights : ndarray of shape (n,), or None
        u; None is 1.
    start : Logistic or None
        Where to begin; None begins at the share of the target.
    """
    u = np.ones(len(Z)) if row_weights is None else row_weights
    y = target.astype(np.float64)
    kept = strengths > 0
    penalty = np.concatenate([[0.0], 1.0 / strengths[kept]])
    design = Z if kept.all() else Z[:, kept]
    beta = np.zeros(len(penalty))
    if start is None:
        beta[0] = np.log((u @ y) / (u @ (1.0 - y)))
    else:
        beta[0], beta[1:] = start.intercept, start.weights[kept]
    logit = beta[0] + design @ beta[1:]
    value = _loss(logit, y, u, beta, penalty)
    for _ in range(_MOST_STEPS):
        gradient, hessian = _derivatives(design, logit, y, u)
        step = np.linalg.solve(hessian + np.diag(penalty), gradient + penalty * beta)
        moved = step[0] + design @ step[1:]
        size, found = 1.0, np.inf
        while size > 1e-6:
            found = _loss(logit - size * moved, y, u, beta - size * step, penalty)
            if found <= value + _ROUNDING * abs(value):
                break
            size *= 0.5
        if found > value + _ROUNDING * abs(value):
            break
        gain, value = value - found, found
        beta, logit = beta - size * step, logit - size * moved
        if gain < _TOLERANCE:
            break
    weights = np.zeros(len(strengths))
    weights[kept] = beta[1:]
    return Logistic(float(beta[0]), weights)


def _loss(logit: Array, y: Array, u: Array, beta: Array, penalty: Array) -> float:
    return float(u @ (np.logaddexp(0.0, logit) - y * logit) + 0.5 * penalty @ beta**2)


def _derivatives(Z: Array, logit: Array, y: Array, u: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of the sum over rows, intercept first."""
    p = 1.0 / (1.0 + np.exp(-np.clip(logit, -700.0, 700.0)))
    residual, curvature = u * (p - y), u * p * (1.0 - p)
    f = Z.shape[1]
    gradient, hessian = np.zeros(f + 1), np.zeros((f + 1, f + 1))
    gradient[0], hessian[0, 0] = residual.sum(), curvature.sum()
    for start in range(0, len(Z), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        block, curved = Z[rows], Z[rows] * curvature[rows, None]
        gradient[1:] += residual[rows] @ block
        hessian[0, 1:] += curved.sum(axis=0)
        hessian[1:, 1:] += curved.T @ block
    hessian[1:, 0] = hessian[0, 1:]
    return gradient, hessian
