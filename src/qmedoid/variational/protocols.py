"""What a network asks of whatever runs its circuit."""

from typing import Any, Protocol

import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.variational.ansatz import Ansatz


class ExpectationFunction(Protocol):
    """Anything that measures diagonal observables on the circuit of every row: a simulator or a machine.

    The variational backends of :mod:`qmedoid.circuits` are such functions.
    """

    def __call__(self, ansatz: Ansatz, rotations: Array, inputs: Array, observables: Array, /) -> npt.NDArray[Any]:
        """Expectation values, shape (n_rows, K).

        Parameters
        ----------
        ansatz : Ansatz
        rotations : ndarray of shape ``ansatz.weight_shape``
        inputs : ndarray of shape (n_rows, m)
            Angles, already multiplied by their scales.
        observables : ndarray of shape (K, 2**n)
            Eigenvalues at the basis states; qubit q is bit q of the index.
        """
        ...
