"""One bag of an evidence model: weights of its terms, and the outputs of rows that they have not seen."""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.evidence.design import Design
from qmedoid.fitting.evidence.left_out import Together
from qmedoid.fitting.evidence.logistic import fit_logistic
from qmedoid.fitting.evidence.ridge import Ridge, fit_ridge
from qmedoid.fitting.evidence.settings import RidgePath, Selection

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
