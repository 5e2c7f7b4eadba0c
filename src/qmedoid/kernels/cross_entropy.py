r"""Cross-entropy :math:`-\sum_i w_i \log p_{i,y_i}` of class scores, whose softmax is p, with its gradient.

It is a kernel because a training asks for it at every step, on batches so small that NumPy's calls would take longer
than the arithmetic.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from qmedoid.exceptions import DataError
from qmedoid.kernels import _cross_entropy_numpy
from qmedoid.kernels._backend import compiled

Array = NDArray[np.float64]
Real = NDArray[Any]
Codes = NDArray[np.intp]


def cross_entropy_value(scores: Real, codes: Codes, weights: Real) -> float:
    """Loss of scores (n_rows, C); codes are 0 to C − 1. Sums are in double precision."""
    loss: float = _kernel()(*_check(scores, codes, weights))
    return loss


def cross_entropy(scores: Real, codes: Codes, weights: Real) -> tuple[float, Real]:
    """Loss and its gradient by the scores, shape (n_rows, C), in their precision."""
    plain = _check(scores, codes, weights)
    gradient = np.empty(scores.shape)
    loss: float = _kernel()(*plain, gradient)
    return loss, gradient.astype(scores.dtype, copy=False)


def _kernel() -> Any:
    return (compiled("cross_entropy") or _cross_entropy_numpy).cross_entropy


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
