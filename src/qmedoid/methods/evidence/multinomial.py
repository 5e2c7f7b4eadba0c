r"""Multinomial regression with a ridge, for the weights of three or more classes.

.. math:: \min_{b, \beta} -\sum_i \log p_{i,y_i} + \tfrac\lambda2 \sum_c |\beta_c|^2, \qquad
          p_i = \operatorname{softmax}(b + T_i\beta)

over rows T along the principal directions of a design, where L-BFGS needs few steps: there the curvature is nearly
diagonal, and known.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.fit import fit_calibration
from qmedoid.geometry.row_groups import group_folds, is_clear_gain
from qmedoid.kernels.cross_entropy import log_softmax, row_losses

# Folds of the out-of-fold outputs, which begin at the weights of all rows.
_N_FOLDS = 5
_MOST_STEPS = 60
# Relative decrease of the loss at which L-BFGS stops.
_TOLERANCE = 1e-7
# Minimum gain in out-of-fold log-likelihood over the ridge, in standard errors.
_WORTH_IT = 1.0


class Multinomial(NamedTuple):
    """Intercepts, shape (C,); coefficients, (r, C); and out-of-fold outputs, (n, C)."""

    intercepts: Array
    coefficients: Array
    out_of_fold: Array


def fit_multinomial(
    rotated: Array, codes: Codes, penalty: float, start: tuple[Array, Array], folds: Codes
) -> Multinomial:
    """Fit to rows T, shape (n, r), from a start, and again without each fold for its rows."""
    intercepts, coefficients = _fitted(rotated, codes, penalty, start)
    out_of_fold = np.empty((len(codes), len(intercepts)))
    for fold in range(folds.max() + 1):
        held = folds == fold
        share = 1.0 - held.mean()
        own = _fitted(rotated[~held], codes[~held], share * penalty, (intercepts, coefficients))
        out_of_fold[held] = own[0] + rotated[held] @ own[1]
    return Multinomial(intercepts, coefficients, out_of_fold)


def deal_folds(codes: Codes, groups: Codes | None, rng: np.random.Generator) -> Codes:
    """Fold of every row; rows of one group are in one fold."""
    return group_folds(np.arange(len(codes)) if groups is None else groups, codes, _N_FOLDS, rng)


def is_likelier(candidate: Array, plain: Array, codes: Codes, groups: Codes | None) -> bool:
    """Whether out-of-fold outputs make the classes likelier than others do, both calibrated, beyond chance."""
    before, after = (
        row_losses(fit_calibration(-one, codes, "logistic", groups).apply(-one), codes) for one in (plain, candidate)
    )
    return is_clear_gain(before - after, groups, _WORTH_IT)


def _fitted(rotated: Array, codes: Codes, penalty: float, start: Sequence[Array]) -> tuple[Array, Array]:
    n, n_directions = rotated.shape
    n_classes = len(start[0])
    targets = np.eye(n_classes)[codes]
    # A typical curvature of each direction: in these units all of them are alike.
    curvature = 0.25 * (1.0 - 1.0 / n_classes) * np.concatenate([[n], np.einsum("ij,ij->j", rotated, rotated)])
    units = 1.0 / np.sqrt(curvature + penalty)[:, None]

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(1 + n_directions, n_classes) * units
        log_p = log_softmax(weights[0] + rotated @ weights[1:])
        missed = np.exp(log_p) - targets
        gradient = np.vstack([missed.sum(axis=0), rotated.T @ missed + penalty * weights[1:]])
        total = -float(log_p[np.arange(n), codes].sum()) + 0.5 * penalty * float((weights[1:] ** 2).sum())
        return total, (gradient * units).ravel()

    first = (np.vstack([start[0], start[1]]) / units).ravel()
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS, "ftol": _TOLERANCE})
    weights = found.x.reshape(1 + n_directions, n_classes) * units
    return weights[0], weights[1:]
