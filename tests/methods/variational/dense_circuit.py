"""The variational circuit by matrices alone: one Kronecker product per gate, in the order in which it is printed."""

from functools import reduce

import numpy as np

X = np.array([[0, 1], [1, 0]])
Y = np.array([[0, -1j], [1j, 0]])
Z = np.diag([1, -1])
ZERO, ONE = np.diag([1, 0]), np.diag([0, 1])


def turn(pauli, angle):
    """exp(−i·angle/2·P)."""
    return np.cos(angle / 2) * np.eye(2) - 1j * np.sin(angle / 2) * pauli


def on(gates, n):
    """Gates by qubit, nothing on the others; the last factor is qubit 0, the least significant bit of the index."""
    return reduce(np.kron, [gates.get(q, np.eye(2)) for q in reversed(range(n))])


def controlled(gate, control, target, n):
    return on({control: ZERO}, n) + on({control: ONE, target: gate}, n)


def dense_state(ansatz, rotations, inputs):
    """Final state of one row of scaled angles."""
    n = ansatz.n_qubits
    gates = []
    for rep in range(ansatz.n_reps):
        if rep == 0 or ansatz.reupload:
            gates += [on({j % n: turn(Y, angle)}, n) for j, angle in enumerate(inputs)]
        gates += [controlled(X, q, q + 1, n) for q in range(n - 1)]
        gates += [controlled(Z, q, q + 1, n) for q in range(n - 1)]
        gates += [on({q: turn(Y, angle)}, n) for q, angle in enumerate(rotations[2 * rep])]
        if 2 * rep + 1 < len(rotations):
            gates += [on({q: turn(Z, angle)}, n) for q, angle in enumerate(rotations[2 * rep + 1])]
    # Not by BLAS, whose threads cost more than products as small as these.
    return reduce(lambda state, gate: np.einsum("ij,j->i", gate, state), gates, np.eye(2**n)[0])


def dense_expectations(ansatz, rotations, inputs, observables):
    """⟨ψ|diag(O_k)|ψ⟩ of every row, shape (rows, K)."""
    states = [dense_state(ansatz, rotations, row) for row in inputs]
    return np.einsum("rs,ks,rs->rk", np.conj(states), observables, states).real
