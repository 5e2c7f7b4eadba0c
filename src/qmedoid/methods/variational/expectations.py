"""The simulator as one more backend, and circuits with other rotations for every row on any backend."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import ExpectationFunction, checked_expectations


@runtime_checkable
class RowwiseExpectations(Protocol):
    """A backend that runs circuits of different rotations together, as in one job."""

    def by_row(self, ansatz: Ansatz, rotations: Array, inputs: Array, observables: Array, /) -> npt.NDArray[Any]:
        """Expectation values, shape (n_rows, K), with rotations (n_rows, layers, n), those of every row."""
        ...


def exact_expectations(ansatz: Ansatz, rotations: Array, inputs: Array, observables: Array, /) -> npt.NDArray[Any]:
    """Exact expectation values by the simulator, called as backends are.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid.methods.variational.ansatz import Ansatz
    >>> from qmedoid.methods.variational.expectations import exact_expectations
    >>> z = np.array([[1.0, -1.0]])
    >>> exact_expectations(Ansatz(1, 1, 1), np.zeros((1, 1)), np.array([[0.0], [np.pi]]), z).round(9)
    array([[ 1.],
           [-1.]])
    """
    angles = ansatz.qubit_angles(np.asarray(inputs, dtype=np.float64))
    return statevector.expectations(angles, rotations, observables, reupload=ansatz.reupload)


def expectations_of_settings(
    backend: ExpectationFunction, ansatz: Ansatz, rotations: Array, inputs: Array, observables: Array
) -> Array:
    """Expectation values of the same rows at several settings, shape (S, n_rows, K).

    A backend that can takes all of them in one call, else there is a call for each setting.

    Parameters
    ----------
    rotations : ndarray of shape (S, layers, n)
    inputs : ndarray of shape (S, n_rows, m)
    """
    n_settings, n_rows, _ = inputs.shape
    if isinstance(backend, RowwiseExpectations):
        repeated = np.repeat(rotations, n_rows, axis=0)
        found = backend.by_row(ansatz, repeated, inputs.reshape(n_settings * n_rows, -1), observables)
    else:
        found = np.concatenate([backend(ansatz, *one, observables) for one in zip(rotations, inputs, strict=True)])
    values = checked_expectations(found, n_settings * n_rows, len(observables))
    return values.reshape(n_settings, n_rows, -1)
