"""NumPy twin of the cross-entropy kernel."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


def cross_entropy(scores: Array, codes: Codes, weights: Array, gradient: Array | None = None) -> float:
    """Loss of scores (rows, C); fill its gradient, of the same shape, if there is one."""
    if scores.shape[1] == 2:
        return _two_class_cross_entropy(scores, codes, weights, gradient)
    log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    rows = np.arange(len(codes))
    if gradient is not None:
        np.exp(log_p, out=gradient)
        gradient[rows, codes] -= 1.0
        gradient *= weights[:, None]
    return -float(weights @ log_p[rows, codes])


def _two_class_cross_entropy(scores: Array, codes: Codes, weights: Array, gradient: Array | None) -> float:
    """The same for two classes, by the difference of their scores: half the work, at every step of a training."""
    # From class 0 the score of class 1 is the other's, and the difference counts as it is; from class 1 turned.
    signs = 1.0 - 2.0 * codes
    behind = signs * (scores[:, 1] - scores[:, 0])
    losses = np.logaddexp(0.0, behind)
    if gradient is not None:
        np.multiply(signs, weights * np.exp(behind - losses), out=gradient[:, 1])
        np.negative(gradient[:, 1], out=gradient[:, 0])
    return float(weights @ losses)
