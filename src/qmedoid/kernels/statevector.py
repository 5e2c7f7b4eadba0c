r"""A small family of circuits on many rows at once: states, expectation values and exact gradients.

Repetition r of the circuit turns every qubit by its angle of the row, :math:`R_y(\varphi_q)` (in the first repetition,
or in all with ``reupload``), entangles by the chains CX(q, q+1) and CZ(q, q+1), and turns every qubit by the weights
:math:`R_y(\theta_{2r,q})` and then :math:`R_z(\theta_{2r+1,q})`. The last row of R_z may be left out: it changes no
diagonal observable.

Qubit q is bit q of the basis index (the least significant first), as in Qiskit. Work is in the precision of the
angles, float64 or float32. A row's result depends on that row alone, bit for bit (by the NumPy twin up to rounding),
and sums over rows have a fixed order, whatever the number of threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.backend import compiled, in_chunks

Real = NDArray[np.floating]
State = NDArray[Any]

MAX_QUBITS = 12
"""The largest register that is simulated."""

# Amplitudes per call of the kernel or of its twin, few enough to share rows between threads.
_CHUNK_AMPLITUDES = 2**17
# Rows per call start at full tiles of either precision.
_ROWS_MULTIPLE = 16

_FLOAT64, _FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_COMPLEX: dict[np.dtype[Any], np.dtype[Any]] = {_FLOAT64: np.dtype(np.complex128), _FLOAT32: np.dtype(np.complex64)}


def states(angles: Real, weights: Real, *, reupload: bool, threads: int | None = None) -> State:
    """Final state of every row, complex of shape (n_rows, 2**n).

    Encoding angles of every qubit (n_rows, n), float64 or float32, decide the precision. Weights are rotation layers in
    order, R_y and R_z alternately, (2·L, n) or (2·L − 1, n). With `reupload` the angles enter in every repetition.
    """
    angles, weights = _check(angles, weights)
    out: State = np.empty((len(angles), 2 ** angles.shape[1]), dtype=_COMPLEX[angles.dtype])
    _fill("states", angles, threads, out, weights=weights, reupload=reupload)
    return out


def expectations(angles: Real, weights: Real, observables: Real, *, reupload: bool, threads: int | None = None) -> Real:
    """Expectation value of K diagonal observables, given by their eigenvalues (K, 2**n), shape (n_rows, K)."""
    angles, weights = _check(angles, weights)
    observables = _check_observables(observables, angles)
    out = np.empty((len(angles), len(observables)), dtype=angles.dtype)
    _fill("expectations", angles, threads, out, weights=weights, observables=observables, reupload=reupload)
    return out


def _fill(name: str, angles: Real, threads: int | None, out: State, **circuit: Any) -> None:
    """Fill `out` by one of the functions of the kernel, or by its twin."""
    sizes = max(_ROWS_MULTIPLE, _CHUNK_AMPLITUDES >> angles.shape[1]), 1
    in_chunks(f"statevector.{name}", _numpy_fill, angles, sizes, threads, circuit, {"out": out})


def _numpy_fill(angles: Real, weights: Real, reupload: bool, out: State, observables: Real | None = None) -> None:
    final = numpy_states(angles, weights, reupload)
    out[...] = final.T if observables is None else numpy_expectations(final, observables)


class Tape:
    """A forward pass on one thread that can be differentiated: it keeps the state of every row.

    Its expectation values are of shape (n_rows, K).
    """

    __slots__ = ("_angles", "_final", "_observables", "_reupload", "_weights", "expectations")

    def __init__(self, angles: Real, weights: Real, observables: Real, *, reupload: bool) -> None:
        angles, weights = _check(angles, weights)
        observables = _check_observables(observables, angles)
        self._angles, self._weights, self._observables, self._reupload = angles, weights, observables, reupload
        kernel = compiled("statevector")
        self.expectations: Real
        self._final: State
        if kernel is None:
            self._final = numpy_states(angles, weights, reupload)
            self.expectations = numpy_expectations(self._final, observables)
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
            return numpy_gradient(self._final, angles, weights, self._observables, upstream, self._reupload)
        by_weights, by_angles = np.empty(weights.shape), np.empty_like(angles)
        kernel.gradient(
            self._final, angles, weights, self._observables, upstream, self._reupload, by_weights, by_angles
        )
        return by_weights, by_angles


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


def numpy_states(angles: Real, weights: Real, reupload: bool) -> State:
    """The twin: final states, shape (2**n, rows): amplitudes first, so that every operation runs along the rows."""
    n = angles.shape[1]
    cosine, sine = _half_angle(angles.T)
    state: State = np.zeros((2**n, len(angles)), dtype=np.result_type(angles.dtype, np.complex64))
    state[0] = 1
    source, sign = entangler(n)
    for rep in range((len(weights) + 1) // 2):
        if rep == 0 or reupload:
            _rotate_y(state, cosine, sine)
        state = sign[:, None].astype(angles.dtype) * state[source]
        _rotate_y(state, *_half_angle(weights[2 * rep]))
        if 2 * rep + 1 < len(weights):
            state *= _phases(weights[2 * rep + 1])[:, None]
    return state


def numpy_expectations(state: State, observables: Real) -> Real:
    r"""⟨O_k⟩ of diagonal observables, :math:`\sum_s O_{ks}|\psi_s|^2`, shape (rows, K)."""
    probabilities = state.real**2 + state.imag**2
    values: Real = (observables @ probabilities).T
    return values


def numpy_gradient(
    state: State, angles: Real, weights: Real, observables: Real, upstream: Real, reupload: bool
) -> tuple[Real, Real]:
    """Gradient of Σ upstream·⟨O⟩ by weights (summed over rows) and by angles, from the final states (adjoint method).

    Gates are undone from the last to the first on the states and on their adjoints alike.
    """
    n = angles.shape[1]
    adjoint: State = (observables.T @ upstream.T) * state
    by_weights, by_angles = np.zeros(weights.shape), np.zeros((n, len(angles)), dtype=angles.dtype)
    cosine, sine = _half_angle(angles.T)
    source, sign = entangler(n)
    back = np.argsort(source)
    for rep in reversed(range((len(weights) + 1) // 2)):
        if 2 * rep + 1 < len(weights):
            turn = (adjoint.conj() * state).imag.sum(axis=1)
            by_weights[2 * rep + 1] = bit_signs(n) @ turn
            undo = _phases(-weights[2 * rep + 1])[:, None]
            state, adjoint = state * undo, adjoint * undo
        by_weights[2 * rep] = _y_gradient(state, adjoint).sum(axis=1)
        c, s = _half_angle(weights[2 * rep])
        state, adjoint = state.copy(), adjoint.copy()
        for psi in (state, adjoint):
            _rotate_y(psi, c, -s)
        state, adjoint = ((sign[:, None].astype(angles.dtype) * psi)[back] for psi in (state, adjoint))
        if rep == 0 or reupload:
            by_angles += _y_gradient(state, adjoint)
            for psi in (state, adjoint):
                _rotate_y(psi, cosine, -sine)
    return by_weights, by_angles.T


def entangler(n_qubits: int) -> tuple[Codes, Real]:
    """The CX chain followed by the CZ chain as a signed permutation: new[t] = sign[t] · old[source[t]]."""
    target = np.arange(2**n_qubits)
    source = target ^ ((target << 1) & (2**n_qubits - 1))
    sign = 1.0 - 2.0 * (np.bitwise_count(target & (target >> 1)) % 2)
    return source, sign


def bit_signs(n_qubits: int) -> Real:
    """Eigenvalues of Z on every qubit: +1 where its bit of the basis index is 0, else −1; shape (n, 2**n)."""
    bits = np.arange(2**n_qubits) >> np.arange(n_qubits)[:, None] & 1
    signs: Real = 1.0 - 2.0 * bits
    return signs


def _half_angle(angles: Real) -> tuple[Real, Real]:
    half = angles / 2
    return np.cos(half), np.sin(half)


def _rotate_y(state: State, cosine: Real, sine: Real) -> None:
    """R_y on every qubit in place; `cosine[q]` and `sine[q]` are numbers or one number per row."""
    for q in range(len(cosine)):
        zero, one = _pairs(state, q)
        # A copy of the old half: both new halves need it.
        old = zero.copy()
        zero *= cosine[q]
        zero -= sine[q] * one
        one *= cosine[q]
        one += sine[q] * old


def _y_gradient(state: State, adjoint: State) -> Real:
    """Re⟨λ|(−iY_q)|ψ⟩ of every qubit and row, shape (n, rows)."""
    n = len(state).bit_length() - 1
    rows = []
    for q in range(n):
        (psi0, psi1), (adj0, adj1) = _pairs(state, q), _pairs(adjoint, q)
        rows.append((adj1.conj() * psi0 - adj0.conj() * psi1).real.sum(axis=(0, 1)))
    return np.stack(rows)


def _pairs(state: State, qubit: int) -> tuple[State, State]:
    """Views of the amplitudes whose bit `qubit` is 0 and of those where it is 1."""
    view = state.reshape(len(state) >> (qubit + 1), 2, 2**qubit, state.shape[1])
    return view[:, 0], view[:, 1]


def _phases(angles: Real) -> State:
    """Diagonal of R_z on every qubit, shape (2**n,)."""
    turn: Real = bit_signs(len(angles)).T.astype(angles.dtype) @ (angles / 2)
    phases: State = np.exp(-1j * turn).astype(np.result_type(angles.dtype, np.complex64))
    return phases
