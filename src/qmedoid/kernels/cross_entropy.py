r"""Cross-entropy :math:`-\sum_i w_i \log p_{i,y_i}` of class scores, whose softmax is p, with its gradient.

It is a kernel because a training asks for it at every step, on batches so small that NumPy's calls would take longer
than the arithmetic.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.kernels.backend import compiled

Real = NDArray[Any]


def cross_entropy(scores: Real, codes: Codes, weights: Real, gradient: Array | None = None) -> float:
    """Loss of scores (n_rows, C); fill its gradient by the scores, of their shape and in double precision, if wanted.

    Codes are 0 to C − 1. Sums are in double precision.
    """
    kernel, plain = compiled("cross_entropy"), _check(scores, codes, weights)
    loss: float = (numpy_cross_entropy if kernel is None else kernel.cross_entropy)(*plain, gradient)
    return loss


def _check(scores: Real, codes: Codes, weights: Real) -> tuple[Array, Codes, Array]:
    """The arrays as the kernel reads them."""
    if scores.ndim != 2 or scores.shape[1] < 1 or not scores.shape[:1] == codes.shape == weights.shape:
        raise DataError(
            "Scores must be of shape (rows, classes), with a code and a weight for every row. "
            f"Got shapes {scores.shape}, {codes.shape} and {weights.shape} instead."
        )
    return (
        np.ascontiguousarray(scores, dtype=np.float64),
        np.ascontiguousarray(codes, dtype=np.intp),
        np.ascontiguousarray(weights, dtype=np.float64),
    )


def log_softmax(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Logarithms of the class probabilities, shape (n_rows, C)."""
    # Classes first: NumPy reduces along the long axis of a few rows much faster than along many short ones.
    by_class: npt.NDArray[Any] = np.array(scores.T, order="C")
    by_class -= by_class.max(axis=0)
    by_class -= np.log(np.exp(by_class).sum(axis=0))
    return by_class.T


def row_losses(scores: Array, codes: Codes) -> Array:
    """Minus the log-likelihood of every row, shape (n,), from class scores (n, C)."""
    losses: Array = -log_softmax(scores)[np.arange(len(codes)), codes]
    return losses


def numpy_cross_entropy(scores: Array, codes: Codes, weights: Array, gradient: Array | None = None) -> float:
    """Loss of scores (rows, C); fill its gradient, of the same shape, if there is one."""
    if scores.shape[1] == 2:
        # By the difference of the scores, turned from class 1: half the work, and small losses keep their digits.
        signs = 1.0 - 2.0 * codes
        behind = signs * (scores[:, 1] - scores[:, 0])
        losses = np.logaddexp(0.0, behind)
        if gradient is not None:
            np.multiply(signs, weights * np.exp(behind - losses), out=gradient[:, 1])
            np.negative(gradient[:, 1], out=gradient[:, 0])
        return float(weights @ losses)
    log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    rows = np.arange(len(codes))
    if gradient is not None:
        np.exp(log_p, out=gradient)
        gradient[rows, codes] -= 1.0
        gradient *= weights[:, None]
    return -float(weights @ log_p[rows, codes])
