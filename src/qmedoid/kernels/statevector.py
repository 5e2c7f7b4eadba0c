r"""A small family of circuits on many rows at once: states, expectation values and exact gradients.

Repetition r of the circuit turns every qubit by its angle of the row, :math:`R_y(\varphi_q)` (in the first repetition,
or in all with ``reupload``), entangles by the chains CX(q, q+1) and CZ(q, q+1), and turns every qubit by the weights
:math:`R_y(\theta_{2r,q})` and then :math:`R_z(\theta_{2r+1,q})`. The last row of R_z may be left out: it changes no
diagonal observable.

Qubit q is bit q of the basis index (the least significant first), as in Qiskit. Work is in the precision of the
angles, float64 or float32. A row's result depends on that row alone, bit for bit (by the NumPy twin up to rounding),
and sums over rows have a fixed order, whatever the number of threads.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import row_slices
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels._backend import compiled, thread_count

Real = NDArray[np.floating]
State = NDArray[Any]

MAX_QUBITS = 12
"""The largest register that is simulated."""

# Amplitudes per call of a kernel, small enough to share rows between threads; and the same for the _twin().
_CHUNK_AMPLITUDES = 2**18
_TWIN_AMPLITUDES = 2**17
# Rows per call start at full tiles of either precision.
_ROWS_MULTIPLE = 16

_FLOAT64, _FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_COMPLEX: dict[np.dtype[Any], np.dtype[Any]] = {_FLOAT64: np.dtype(np.complex128), _FLOAT32: np.dtype(np.complex64)}


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
    out: State = np.empty((len(angles), 2 ** angles.shape[1]), dtype=_COMPLEX[angles.dtype])
    kernel = compiled("statevector")

    def run(rows: slice) -> None:
        if kernel is None:
            out[rows] = _twin().run(angles[rows], weights, reupload).T
        else:
            kernel.states(angles[rows], weights, reupload, out[rows])

    _for_rows(run, angles, kernel is not None, threads)
    return out


def expectations(angles: Real, weights: Real, observables: Real, *, reupload: bool, threads: int | None = None) -> Real:
    """Expectation value of K diagonal observables, given by their eigenvalues (K, 2**n), shape (n_rows, K)."""
    angles, weights = _check(angles, weights)
    observables = _check_observables(observables, angles)
    out = np.empty((len(angles), len(observables)), dtype=angles.dtype)
    kernel = compiled("statevector")

    def run(rows: slice) -> None:
        if kernel is None:
            out[rows] = _twin().expectations(_twin().run(angles[rows], weights, reupload), observables)
        else:
            kernel.expectations(angles[rows], weights, observables, reupload, out[rows])

    _for_rows(run, angles, kernel is not None, threads)
    return out


class Tape:
    """A forward pass that can be differentiated: its inputs, its final states and its expectation values.

    Made by :func:`record`; meant for batches, because it keeps the state of every row.

    Attributes
    ----------
    expectations : ndarray of shape (n_rows, K)
    """

    __slots__ = ("_angles", "_final", "_observables", "_reupload", "_weights", "expectations")

    def __init__(self, angles: Real, weights: Real, observables: Real, reupload: bool) -> None:
        self._angles, self._weights, self._observables, self._reupload = angles, weights, observables, reupload
        kernel = compiled("statevector")
        self.expectations: Real
        self._final: State
        if kernel is None:
            self._final = _twin().run(angles, weights, reupload)
            self.expectations = _twin().expectations(self._final, observables)
        else:
            self._final = np.empty(kernel.tape_size(*angles.shape, angles.itemsize), dtype=angles.dtype)
            self.expectations = np.empty((len(angles), len(observables)), dtype=angles.dtype)
            kernel.expectations(angles, weights, observables, reupload, self.expectations, self._final)

    def gradient(self, upstream: Real) -> tuple[Real, Real]:
        """Gradient of a loss from its gradient by the expectation values, shape (n_rows, K).

        Returns
        -------
        by_weights : ndarray like the weights
            Summed over rows, in double precision.
        by_angles : ndarray of shape (n_rows, n)
        """
        angles, weights = self._angles, self._weights
        if upstream.shape != self.expectations.shape:
            raise DataError(
                f"The gradient by the expectation values must be of shape {self.expectations.shape}. "
                f"Got shape {upstream.shape} instead."
            )
        upstream = _plain(upstream, angles.dtype)
        kernel = compiled("statevector")
        if kernel is None:
            by_twin: tuple[Real, Real] = _twin().gradient(
                self._final, angles, weights, self._observables, upstream, self._reupload
            )
            return by_twin
        by_weights, by_angles = np.empty(weights.shape), np.empty_like(angles)
        kernel.gradient(
            self._final, angles, weights, self._observables, upstream, self._reupload, by_weights, by_angles
        )
        return by_weights, by_angles


def record(angles: Real, weights: Real, observables: Real, *, reupload: bool) -> Tape:
    """Run the circuit on a batch, on one thread, and keep what its gradient needs."""
    angles, weights = _check(angles, weights)
    return Tape(angles, weights, _check_observables(observables, angles), reupload)


def _for_rows(run: Callable[[slice], None], angles: Real, fast: bool, threads: int | None) -> None:
    """Call a function for one chunk of rows after the other, on several threads where that pays."""
    n_rows, n_qubits = angles.shape
    chunk = max(_ROWS_MULTIPLE, (_CHUNK_AMPLITUDES if fast else _TWIN_AMPLITUDES) >> n_qubits)
    # Small batches come by the hundred: that one thread will do is clear without asking how many there are.
    workers = 1 if threads is None and n_rows <= chunk else thread_count(threads)
    if n_rows <= chunk:
        run(slice(0, n_rows))
        return
    chunks = list(row_slices(n_rows, chunk))
    if workers == 1 or not fast:
        for rows in chunks:
            run(rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, len(chunks))) as pool:
        for _ in pool.map(run, chunks):
            pass


def _twin() -> ModuleType:
    """The twin, imported only where it is used."""
    from qmedoid.kernels import _statevector_numpy

    return _statevector_numpy


def _check(angles: Real, weights: Real) -> tuple[Real, Real]:
    """Contiguous arrays of one precision whose shapes go together."""
    if angles.dtype != _FLOAT64 and angles.dtype != _FLOAT32:
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
    return _plain(angles, angles.dtype), _plain(weights, angles.dtype)


def _check_observables(observables: Real, angles: Real) -> Real:
    size = 2 ** angles.shape[1]
    if observables.ndim != 2 or observables.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {observables.shape} instead.")
    return _plain(observables, angles.dtype)


def _plain(values: Real, dtype: np.dtype[Any]) -> Real:
    """The array as kernels read it: of that type, row after row and aligned."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.aligned else array.copy()
