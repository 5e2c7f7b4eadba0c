"""NumPy twin of the statevector kernel: one array operation per gate over all rows at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Codes

Real = NDArray[np.floating]
State = NDArray[Any]


def run(angles: Real, weights: Real, reupload: bool) -> State:
    """Final states, shape (2**n, rows): amplitudes first, so that every operation runs along the rows."""
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


def expectations(state: State, observables: Real) -> Real:
    r"""⟨O_k⟩ of diagonal observables, :math:`\sum_s O_{ks}|\psi_s|^2`, shape (rows, K)."""
    probabilities = state.real**2 + state.imag**2
    values: Real = (observables @ probabilities).T
    return values


def gradient(
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
