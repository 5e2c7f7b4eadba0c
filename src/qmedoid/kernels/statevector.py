r"""A small family of circuits on many rows at once: states, expectation values and exact gradients.

Repetition r of the circuit turns every qubit by its angle of the row, :math:`R_y(\varphi_q)` (in the first repetition,
or in all with ``reupload``), entangles by the chains CX(q, q+1) and CZ(q, q+1), and turns every qubit by the weights
:math:`R_y(\theta_{2r,q})` and then :math:`R_z(\theta_{2r+1,q})`. The last row of R_z may be left out: it changes no
diagonal observable.

Qubit q is bit q of the basis index (the least significant first), as in Qiskit. Work is in the precision of the
angles, float64 or float32. A row's result depends on that row alone, bit for bit, and sums over rows have a fixed
order, whatever the number of threads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels import _statevector_numpy as twin
from qmedoid.kernels._threads import thread_count

Real = NDArray[np.floating]
State = NDArray[Any]

MAX_QUBITS = 12
"""The largest register that is simulated."""

# Amplitudes per chunk of rows that the twin works on.
_CHUNK_AMPLITUDES = 2**17


def states(angles: Real, weights: Real, *, reupload: bool, threads: int | None = None) -> State:
    """Final state of every row, complex of shape (n_rows, 2**n).

    Parameters
    ----------
    angles : ndarray of shape (n_rows, n)
        Encoding angle of every qubit; float64 or float32 decides the precision.
    weights : ndarray of shape (2·L, n) or (2·L − 1, n)
        Rotation layers in order, R_y and R_z alternately.
    reupload : bool
        Whether the angles enter in every repetition or in the first only.
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on.
    """
    angles, weights = _check(angles, weights)
    thread_count(threads)
    return np.ascontiguousarray(np.concatenate([twin.run(part, weights, reupload).T for part in _chunks(angles)]))


def expectations(angles: Real, weights: Real, observables: Real, *, reupload: bool, threads: int | None = None) -> Real:
    """Expectation value of K diagonal observables, given by their eigenvalues (K, 2**n), shape (n_rows, K)."""
    angles, weights = _check(angles, weights)
    observables = _check_observables(observables, angles)
    thread_count(threads)
    return np.concatenate(
        [twin.expectations(twin.run(part, weights, reupload), observables) for part in _chunks(angles)]
    )


@dataclass(frozen=True)
class Tape:
    """A forward pass that can be differentiated: its inputs, its final states and its expectation values.

    Made by :func:`record`; meant for batches, because it keeps the state of every row.
    """

    angles: Real
    weights: Real
    observables: Real
    reupload: bool
    final: State
    expectations: Real

    def gradient(self, upstream: Real) -> tuple[Real, Real]:
        """Gradient of a loss from its gradient by the expectation values, shape (n_rows, K).

        Returns
        -------
        by_weights : ndarray like the weights
            Summed over rows.
        by_angles : ndarray of shape (n_rows, n)
        """
        upstream = np.ascontiguousarray(upstream, dtype=self.angles.dtype)
        return twin.gradient(self.final, self.angles, self.weights, self.observables, upstream, self.reupload)


def record(angles: Real, weights: Real, observables: Real, *, reupload: bool) -> Tape:
    """Run the circuit on a batch and keep what its gradient needs."""
    angles, weights = _check(angles, weights)
    observables = _check_observables(observables, angles)
    final = twin.run(angles, weights, reupload)
    return Tape(angles, weights, observables, reupload, final, twin.expectations(final, observables))


def _chunks(angles: Real) -> list[Real]:
    rows = max(1, _CHUNK_AMPLITUDES >> angles.shape[1])
    return [angles[start : start + rows] for start in range(0, max(1, len(angles)), rows)]


def _check(angles: Real, weights: Real) -> tuple[Real, Real]:
    """Contiguous arrays of one precision whose shapes go together."""
    if angles.dtype not in (np.float64, np.float32):
        raise ParameterError(f"Angles must be float64 or float32. Got {angles.dtype} instead.")
    if angles.ndim != 2 or not 1 <= angles.shape[1] <= MAX_QUBITS:
        raise ParameterError(
            f"Angles must be of shape (rows, qubits) with 1 to {MAX_QUBITS} qubits. Got shape {angles.shape} instead."
        )
    if weights.ndim != 2 or len(weights) < 1 or weights.shape[1] != angles.shape[1]:
        raise ParameterError(
            f"Weights must be of shape (rotation layers, {angles.shape[1]}) with at least one layer. "
            f"Got shape {weights.shape} instead."
        )
    return np.ascontiguousarray(angles), np.ascontiguousarray(weights, dtype=angles.dtype)


def _check_observables(observables: Real, angles: Real) -> Real:
    size = 2 ** angles.shape[1]
    if observables.ndim != 2 or observables.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {observables.shape} instead.")
    return np.ascontiguousarray(observables, dtype=angles.dtype)
