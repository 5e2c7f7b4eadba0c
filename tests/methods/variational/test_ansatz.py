"""The circuit's shape (algorithm 15): simulator against dense matrices, order of bits, numbers of weights."""

import numpy as np
import pytest
from dense_circuit import dense_state
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz, weight_shape


def simulated(ansatz, rotations, inputs):
    return statevector.states(ansatz.qubit_angles(inputs), rotations, reupload=ansatz.reupload)


def random_case(ansatz, seed=0, rows=2):
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, ansatz.weight_shape), rng.uniform(-np.pi, np.pi, (rows, ansatz.n_inputs))


@pytest.mark.parametrize("final_rz", [False, True])
@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("extra", [-1, 0, 1, 4])
@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_simulator_is_the_dense_matrices(n_qubits, extra, reupload, final_rz):
    """Fewer inputs than qubits, as many, and more: then some qubits are turned by several."""
    ansatz = Ansatz(n_qubits, max(1, n_qubits + extra), 2, reupload=reupload, final_rz=final_rz)
    rotations, inputs = random_case(ansatz, seed=n_qubits)
    want = [dense_state(ansatz, rotations, row) for row in inputs]
    np.testing.assert_allclose(simulated(ansatz, rotations, inputs), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_input_j_turns_qubit_j_mod_n_and_the_chain_runs_upwards(n_qubits):
    """Half a turn of qubit q by an input comes first: the chain CX(q, q+1) flips every qubit above it."""
    ansatz = Ansatz(n_qubits, 2 * n_qubits + 1, 1)
    for j, q in enumerate(ansatz.input_qubits):
        assert q == j % n_qubits
        inputs = np.pi * np.eye(ansatz.n_inputs)[j : j + 1]
        probabilities = np.abs(simulated(ansatz, np.zeros(ansatz.weight_shape), inputs)[0]) ** 2
        flipped = sum(2**k for k in range(q, n_qubits))
        np.testing.assert_allclose(probabilities, np.eye(2**n_qubits)[flipped], atol=1e-15)


@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_angle_of_a_qubit_is_the_sum_of_its_inputs(n_qubits, n_inputs, seed):
    ansatz = Ansatz(n_qubits, n_inputs, 1)
    inputs = np.random.default_rng(seed).normal(size=(4, n_inputs))
    want = [[sum(row[q::n_qubits]) for q in range(n_qubits)] for row in inputs]
    np.testing.assert_allclose(ansatz.qubit_angles(inputs), want, rtol=0, atol=1e-14)
    assert ansatz.qubit_angles(inputs.astype(np.float32)).dtype == np.float32


# --- weights --------------------------------------------------------------------------------------------------------


def test_two_layers_per_repetition_but_for_the_last():
    assert weight_shape(4, 1) == (1, 4)
    assert weight_shape(4, 3) == (5, 4)
    assert weight_shape(4, 3, final_rz=True) == (6, 4)
    assert Ansatz(2, 7, 3).weight_shape == (5, 2)
    assert Ansatz(2, 7, 3, final_rz=True).weight_shape == (6, 2)


@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_last_rz_changes_no_diagonal_observable(n_qubits, n_reps, reupload, seed):
    """Fact 16: n weights of the printed circuit that no read-out in the Z basis can see."""
    printed = Ansatz(n_qubits, 3, n_reps, reupload=reupload, final_rz=True)
    default = Ansatz(n_qubits, 3, n_reps, reupload=reupload)
    rotations, inputs = random_case(printed, seed)
    observables = np.random.default_rng(seed).normal(size=(5, 2**n_qubits))
    angles = printed.qubit_angles(inputs)
    with_rz = statevector.expectations(angles, rotations, observables, reupload=reupload)
    without = statevector.expectations(angles, rotations[:-1], observables, reupload=reupload)
    assert rotations[:-1].shape == default.weight_shape
    np.testing.assert_allclose(with_rz, without, rtol=0, atol=1e-12)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [*(("n_qubits", value, "from 1 to 12") for value in (0, -1, 13, 2.0, True)),
     *(("n_reps", value, ">= 1") for value in (0, -1, 1.5)), ("n_inputs", 0, ">= 1")],
)  # fmt: skip
def test_sizes_that_cannot_be_are_refused(name, value, limit):
    with pytest.raises(ParameterError, match=rf"'{name}' of an ansatz must be an int {limit}\. Got {value!r} instead"):
        Ansatz(**{"n_qubits": 2, "n_inputs": 1, "n_reps": 1, name: value})
