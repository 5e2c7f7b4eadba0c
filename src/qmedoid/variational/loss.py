"""Cross-entropy of class scores, weighted row by row, with its gradient."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Real = npt.NDArray[Any]
Codes = npt.NDArray[np.intp]


def log_softmax(scores: Real) -> Real:
    """Logarithms of the class probabilities, shape (n_rows, C)."""
    # Classes first: NumPy reduces along the long axis of a few rows much faster than along many short ones.
    by_class: Real = np.array(scores.T, order="C")
    by_class -= by_class.max(axis=0)
    by_class -= np.log(np.exp(by_class).sum(axis=0))
    return by_class.T


def cross_entropy_value(scores: Real, codes: Codes, weights: Real) -> float:
    r"""Loss :math:`-\sum_i w_i \log p_{i,y_i}`."""
    if scores.shape[1] == 2:
        return float(weights @ np.logaddexp(0.0, _signs(scores, codes) * (scores[:, 1] - scores[:, 0])))
    return -float(weights @ log_softmax(scores)[np.arange(len(codes)), codes])


def cross_entropy(scores: Real, codes: Codes, weights: Real) -> tuple[float, Real]:
    """Loss and its gradient by the scores, shape (n_rows, C)."""
    if scores.shape[1] == 2:
        return _two_class_cross_entropy(scores, codes, weights)
    log_p = log_softmax(scores)
    rows = np.arange(len(codes))
    loss = -float(weights @ log_p[rows, codes])
    gradient = np.exp(log_p)
    gradient[rows, codes] -= 1.0
    gradient *= weights[:, None]
    return loss, gradient


def _two_class_cross_entropy(scores: Real, codes: Codes, weights: Real) -> tuple[float, Real]:
    """The same for two classes, by the difference of their scores: half the work, at every step of a training."""
    signs = _signs(scores, codes)
    behind = signs * (scores[:, 1] - scores[:, 0])
    losses = np.logaddexp(0.0, behind)
    wrong = np.exp(behind - losses)
    wrong *= weights
    gradient = np.empty_like(scores)
    np.multiply(signs, wrong, out=gradient[:, 1])
    np.negative(gradient[:, 1], out=gradient[:, 0])
    return float(weights @ losses), gradient


def _signs(scores: Real, codes: Codes) -> Real:
    """From class 0 the score of class 1 is the other's, and the difference counts as it is; from class 1 turned."""
    signs: Real = codes.astype(scores.dtype)
    signs *= -2.0
    signs += 1.0
    return signs
