"""Copies of a trained circuit side by side: each is read as it is alone, state by state."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')

from qiskit.primitives import BitArray, StatevectorSampler
from qiskit.providers.fake_provider import GenericBackendV2
from tests.quantum.counts import chances_of, run

from qmedoid.exceptions import ParameterError
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum import Device
from qmedoid.quantum.devices.sampling import CircuitBatch, counted, state_counts

GENERIC = GenericBackendV2(8, seed=3, noise_info=True)


def circuit(n_qubits, n_inputs, n_reps=2, seed=0):
    ansatz = Ansatz(n_qubits=n_qubits, n_inputs=n_inputs, n_reps=n_reps)
    return ansatz, np.random.default_rng(seed).normal(size=ansatz.weight_shape)


def exact(ansatz, rotations, inputs):
    """Probabilities of the basis states by the simulator of the package, shape (rows, 2**n)."""
    angles = ansatz.qubit_angles(inputs)
    return np.abs(statevector.states(angles, rotations, reupload=ansatz.reupload)) ** 2


@pytest.mark.parametrize(("n_qubits", "n_inputs"), [(1, 2), (2, 1), (3, 5)])
def test_packed_copies_have_the_states_of_the_simulator(n_qubits, n_inputs):
    ansatz, rotations = circuit(n_qubits, n_inputs)
    pack = Device(n_qubits=10).trained_pack(ansatz, rotations, 3)
    assert (pack.n_copies, pack.n_angles, pack.n_bits) == (3, n_inputs, n_qubits)
    inputs = np.random.default_rng(1).normal(size=(4 * 3, n_inputs))
    found = chances_of(Device(), CircuitBatch(pack, inputs.reshape(4, -1), 1))
    expected = exact(ansatz, rotations, inputs).reshape(4, 3, -1)
    np.testing.assert_allclose(found, expected[..., 1] if n_qubits == 1 else expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_copies", [1, 2])
def test_copies_on_a_device_compute_the_same_without_its_noise(n_copies):
    ansatz, rotations = circuit(3, 2)
    device = Device(GENERIC)
    pack = device.trained_pack(ansatz, rotations, n_copies)
    assert pack.n_copies == n_copies
    assert len({qubit for place in pack.qubits for qubit in place}) == 3 * n_copies
    assert (pack.shrink < 1.0).all()
    inputs = np.random.default_rng(2).normal(size=(5 * n_copies, 2))
    found = chances_of(Device(), CircuitBatch(pack, inputs.reshape(5, -1), 1)).reshape(-1, 8)
    np.testing.assert_allclose(found, exact(ansatz, rotations, inputs), rtol=0, atol=1e-12)


def test_counts_are_drawn_from_the_chances_of_a_copy():
    ansatz, rotations = circuit(2, 2)
    device = Device(n_qubits=6, seed=5)
    batch = CircuitBatch(
        device.trained_pack(ansatz, rotations, 3), np.random.default_rng(3).normal(size=(2, 6)), 20_000
    )
    (counts,) = run(device, [batch])
    assert batch.can_have(counts)
    chances = chances_of(device, batch)
    scores = (counts - 20_000 * chances) / np.sqrt(20_000 * chances * (1.0 - chances))
    assert np.abs(scores).max() < 4.5


def test_any_sampler_counts_states_in_the_same_order():
    ansatz, rotations = circuit(2, 1)
    device = Device(sampler=StatevectorSampler(seed=np.random.default_rng(0)), n_qubits=4)
    batch = CircuitBatch(device.trained_pack(ansatz, rotations, 2), np.array([[0.4, -1.0]]), 40_000)
    (counts,) = run(device, [batch])
    np.testing.assert_allclose(counts / 40_000, chances_of(Device(), batch), atol=0.015)


def test_states_are_counted_bit_by_bit():
    rng = np.random.default_rng(4)
    bits = rng.integers(2, size=(3, 50, 12)).astype(bool)
    outcome = BitArray.from_bool_array(bits, order="little")
    counts = counted(outcome, 3)
    for circuit_, part in np.ndindex(3, 4):
        own = bits[circuit_, :, 3 * part : 3 * part + 3] @ [1, 2, 4]
        np.testing.assert_array_equal(counts[circuit_, part], np.bincount(own, minlength=8))
    ones = counted(outcome, 1)
    np.testing.assert_array_equal(counts[..., 1::2].sum(axis=-1), ones[:, ::3])
    np.testing.assert_array_equal(state_counts(ones, 50)[..., 1], ones)
    assert (state_counts(ones, 50).sum(axis=-1) == 50).all()
    assert state_counts(counts, 50) is counts


def test_counts_that_cannot_be_are_noticed():
    ansatz, rotations = circuit(2, 1)
    batch = CircuitBatch(Device(n_qubits=4).trained_pack(ansatz, rotations, 2), np.zeros((1, 2)), 8)
    right = np.array([[[8, 0, 0, 0], [2, 2, 2, 2]]])
    assert batch.can_have(right)
    for wrong in (right[..., :2], right + 1, right - [0, 0, 0, 1], right - [1, 0, 0, 0], right * 2):
        assert not batch.can_have(wrong)


def test_other_weights_are_another_circuit_and_too_few_qubits_are_refused():
    (ansatz, first), (_, second) = circuit(3, 2), circuit(3, 2, seed=1)
    device = Device(n_qubits=6)
    packs = [device.trained_pack(ansatz, rotations, 2) for rotations in (first, second, first)]
    assert packs[0] is packs[2]
    assert packs[0].sha256 != packs[1].sha256
    with pytest.raises(ParameterError, match=r"The trained circuit takes 3 qubits.*refine='simulated'"):
        Device(n_qubits=2).trained_pack(ansatz, first, 1)
    with pytest.raises(ParameterError, match=r"takes 11 qubits, and a simulated device has at most 10.*refine="):
        Device().trained_pack(*circuit(11, 1, n_reps=1), 1)  # before any distance is measured
