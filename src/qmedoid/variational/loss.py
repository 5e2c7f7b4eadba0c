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


def cross_entropy(scores: Real, codes: Codes, weights: Real) -> tuple[float, Real]:
    r"""Loss :math:`-\sum_i w_i \log p_{i,y_i}` and its gradient by the scores, shape (n_rows, C)."""
    log_p = log_softmax(scores)
    rows = np.arange(len(codes))
    loss = -float(weights @ log_p[rows, codes])
    gradient = np.exp(log_p)
    gradient[rows, codes] -= 1.0
    gradient *= weights[:, None]
    return loss, gradient
