"""Class probabilities from class scores, and the loss of a training, which is a kernel."""

from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.kernels.cross_entropy import cross_entropy, cross_entropy_value

__all__ = ["cross_entropy", "cross_entropy_value", "log_softmax"]

Real = npt.NDArray[Any]


def log_softmax(scores: Real) -> Real:
    """Logarithms of the class probabilities, shape (n_rows, C)."""
    # Classes first: NumPy reduces along the long axis of a few rows much faster than along many short ones.
    by_class: Real = np.array(scores.T, order="C")
    by_class -= by_class.max(axis=0)
    by_class -= np.log(np.exp(by_class).sum(axis=0))
    return by_class.T
