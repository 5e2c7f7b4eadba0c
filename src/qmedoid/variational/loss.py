"""Cross-entropy of class scores, weighted row by row, with its gradient."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Real = npt.NDArray[Any]
Codes = npt.NDArray[np.intp]


def log_softmax(scores: Real) -> Real:
    """Logarithms of the class probabilities, shape (n_rows, C)."""
    shifted: Real = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def cross_entropy(scores: Real, codes: Codes, weights: Real) -> tuple[float, Real]:
    r"""Loss :math:`-\sum_i w_i \log p_{i,y_i}` and its gradient by the scores, shape (n_rows, C)."""
    log_p = log_softmax(scores)
    rows = np.arange(len(codes))
    loss = -float(weights @ log_p[rows, codes])
    gradient = np.exp(log_p)
    gradient[rows, codes] -= 1.0
    gradient *= weights[:, None]
    return loss, gradient
