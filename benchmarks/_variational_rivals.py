"""The same circuits by other libraries, each written the fast way its documentation offers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from _variational_runs import Array, Expectations
from qmedoid.kernels.statevector import bit_signs, entangler
from qmedoid.methods.variational.model import Batch, Network

Gradient = Callable[[Array, Batch], tuple[float, Array]]
"""From a parameter vector and a batch to the loss and its gradient."""


def pennylane_circuit(network: Network, **options: Any) -> Any:
    """A QNode from inputs, all rows in one run of the simulator (parameter broadcasting), to probabilities."""
    import pennylane as qml

    ansatz = network.ansatz
    n = ansatz.n_qubits

    @qml.qnode(qml.device("default.qubit", wires=n), **options)
    def circuit(inputs: Any, rotations: Any) -> Any:
        for rep in range(ansatz.n_reps):
            for q in range(n):
                qml.RY(inputs[..., q], wires=q)
            for gate in (qml.CNOT, qml.CZ):
                for q in range(n - 1):
                    gate(wires=[q, q + 1])
            for q in range(n):
                qml.RY(rotations[2 * rep, q], wires=q)
            if 2 * rep + 1 < len(rotations):
                for q in range(n):
                    qml.RZ(rotations[2 * rep + 1, q], wires=q)
        return qml.probs(wires=range(n - 1, -1, -1))  # qubit 0 is the last bit of the index

    return circuit


def pennylane_expectations(network: Network) -> Expectations:
    circuit = pennylane_circuit(network, diff_method=None)
    observables = network.readout.observables
    return lambda angles, rotations: np.asarray(circuit(angles, rotations)) @ observables.T


def qiskit_expectations(network: Network) -> Expectations:
    """SamplerQNN of qiskit-machine-learning with its exact sampler; two outputs by parity."""
    from qiskit_machine_learning.neural_networks import SamplerQNN
    from qiskit_machine_learning.primitives import QMLSampler

    from qmedoid.quantum import variational_circuit

    circuit = variational_circuit(network.ansatz)
    # Parameters in the order of their index: sorted by name, theta[10] comes before theta[2].
    by_vector = {
        name: sorted((p for p in circuit.parameters if p.vector.name == name), key=lambda p: p.index)
        for name in ("x", "theta")
    }
    qnn = SamplerQNN(
        circuit=circuit,
        sampler=QMLSampler(shots=None),
        input_params=by_vector["x"],
        weight_params=by_vector["theta"],
        interpret=lambda index: index.bit_count() % 2,
        output_shape=2,
    )
    return lambda angles, rotations: qnn.forward(angles, rotations.ravel())


def loss_by(xp: Any, network: Network, expectations: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Mean cross-entropy of the trained string read-out of two classes in the array module `xp`."""
    n_rotations, shape = network.sizes[0], network.ansatz.weight_shape

    def loss(theta: Any, inputs: Any, signs: Any) -> Any:
        values = expectations(inputs, theta[:n_rotations].reshape(shape))
        score = values @ theta[n_rotations + 1 :] + theta[n_rotations]
        return xp.mean(xp.logaddexp(0.0, -signs * score))

    return loss


def _signs(batch: Batch) -> Array:
    return 2.0 * batch.codes - 1.0


def pennylane_gradient(network: Network) -> Gradient:
    """By backpropagation through the simulator."""
    import pennylane as qml
    from pennylane import numpy as pnp

    circuit = pennylane_circuit(network, interface="autograd", diff_method="backprop")
    observables = network.readout.observables.T
    gradient = qml.grad(loss_by(pnp, network, lambda x, w: circuit(x, w) @ observables), argnums=[0])

    def run(theta: Array, batch: Batch) -> tuple[float, Array]:
        inputs, signs = (pnp.array(part, requires_grad=False) for part in (batch.inputs, _signs(batch)))
        found = gradient(pnp.array(theta, requires_grad=True), inputs, signs)
        return float(gradient.forward), np.asarray(found[0] if isinstance(found, tuple) else found)

    return run


def jax_gradient(network: Network) -> Gradient:
    """A statevector of all rows written in jax.numpy and compiled with its gradient.

    Of several ways to write it this was the fastest: a product state to begin with, rows first, and all that the rows
    share of a repetition (entangler, R_y, R_z) as one matrix.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    n, n_reps = network.ansatz.n_qubits, network.ansatz.n_reps
    source, sign = entangler(n)
    observables = network.readout.observables.T
    permutation, bits = sign[:, None] * np.eye(2**n)[source], bit_signs(n).T

    def repetition(rotations: Any, rep: int) -> Any:
        cosine, sine = jnp.cos(rotations[2 * rep] / 2), jnp.sin(rotations[2 * rep] / 2)
        unitary = jnp.ones((1, 1))
        for q in range(n):
            unitary = jnp.kron(jnp.array([[cosine[q], -sine[q]], [sine[q], cosine[q]]]), unitary)
        unitary = unitary @ permutation
        if 2 * rep + 1 < len(rotations):
            unitary = jnp.exp(-1j * (bits @ (rotations[2 * rep + 1] / 2)))[:, None] * unitary
        return unitary

    def probabilities(inputs: Any, rotations: Any) -> Any:
        cosine, sine = jnp.cos(inputs / 2), jnp.sin(inputs / 2)
        state = jnp.ones((len(inputs), 1))
        for q in range(n):
            state = jnp.concatenate([state * cosine[:, [q]], state * sine[:, [q]]], axis=1)
        for rep in range(n_reps):
            for q in range(n if rep else 0):
                c, s = cosine[:, q, None, None], sine[:, q, None, None]
                pairs = state.reshape(len(inputs), -1, 2, 2**q)
                zero, one = pairs[:, :, 0], pairs[:, :, 1]
                state = jnp.stack((c * zero - s * one, c * one + s * zero), axis=2).reshape(len(inputs), -1)
            state = state @ repetition(rotations, rep).T
        return jnp.abs(state) ** 2

    compiled = jax.jit(jax.value_and_grad(loss_by(jnp, network, lambda x, w: probabilities(x, w) @ observables)))

    def run(theta: Array, batch: Batch) -> tuple[float, Array]:
        loss, gradient = compiled(theta, batch.inputs, _signs(batch))
        return float(loss), np.asarray(gradient)

    return run
