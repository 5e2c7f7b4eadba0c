"""Backends of the variational circuit: one template for all weights, one stream of draws."""

import warnings

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit.circuit import Parameter
from qiskit.primitives import BackendSamplerV2, StatevectorSampler
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit.transpiler import generate_preset_pass_manager

from qmedoid.exceptions import ModelError
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import exact_expectations
from qmedoid.quantum import SamplerExpectations, SamplerSwapTest


def random_case(ansatz, seed=0, rows=2):
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, ansatz.weight_shape), rng.uniform(-np.pi, np.pi, (rows, ansatz.n_inputs))


class CountingPasses:
    """A pass manager that counts what it rewrites."""

    def __init__(self, inner=None):
        self.inner, self.runs = inner, 0

    def run(self, circuit):
        self.runs += 1
        return circuit if self.inner is None else self.inner.run(circuit)


@pytest.fixture
def machine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield GenericBackendV2(num_qubits=4, noise_info=False, seed=1)


def passes_of(machine, level=3):
    return generate_preset_pass_manager(optimization_level=level, backend=machine, seed_transpiler=1)


# --- one stream of draws --------------------------------------------------------------------------------------------


def test_draws_go_on_from_call_to_call():
    ansatz = Ansatz(2, 2, 1)
    rotations, inputs = random_case(ansatz, rows=4)
    rows = np.concatenate([inputs, inputs])
    backend = SamplerExpectations(shots=100, seed=5)
    first, second = (backend(ansatz, rotations, inputs, np.eye(4)) for _ in range(2))
    assert not np.array_equal(first, second)
    whole = SamplerExpectations(shots=100, seed=5)(ansatz, rotations, rows, np.eye(4))
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)


# --- one template ---------------------------------------------------------------------------------------------------


def test_pass_manager_runs_once_for_each_ansatz():
    passes = CountingPasses()
    backend = SamplerExpectations(shots=5, seed=0, pass_manager=passes)
    for seed in range(3):
        for ansatz in (Ansatz(2, 2, 1), Ansatz(2, 2, 2)):
            rotations, inputs = random_case(ansatz, seed)
            backend(ansatz, rotations, inputs, np.eye(4))
    assert passes.runs == 2


def test_pass_manager_runs_once_for_each_length_of_vectors():
    passes = CountingPasses()
    backend = SamplerSwapTest(shots=5, seed=0, pass_manager=passes)
    for columns in (2, 3, 2, 3):
        backend(np.ones((1, columns)), np.ones((2, columns)))
    assert passes.runs == 2


@pytest.mark.parametrize("level", [1, 3])
def test_rewritten_templates_find_the_parameters_of_every_row(machine, level):
    """Level 3 drops the last R_z, whose weights are parameters 9 to 11 of 16, before those of the inputs."""
    ansatz, rng = Ansatz(3, 4, 2, final_rz=True), np.random.default_rng(0)
    rotations, inputs = rng.uniform(-3, 3, ansatz.weight_shape), rng.uniform(-3, 3, (3, 4))
    sampler = BackendSamplerV2(backend=machine, options={"seed_simulator": 1})
    backend = SamplerExpectations(sampler=sampler, shots=20_000, pass_manager=passes_of(machine, level))
    drawn = backend(ansatz, rotations, inputs, np.eye(8))
    want = exact_expectations(ansatz, rotations, inputs, np.eye(8))
    np.testing.assert_allclose(drawn, want, rtol=0, atol=2.5 / np.sqrt(20_000))


def test_pass_managers_that_add_parameters_are_refused():
    class Adding:
        def run(self, circuit):
            more = circuit.copy()
            more.ry(Parameter("late"), 0)
            return more

    ansatz = Ansatz(1, 1, 1)
    with pytest.raises(ModelError, match="new open parameters into the circuit, late"):
        SamplerExpectations(shots=5, seed=0, pass_manager=Adding())(ansatz, [[0.0]], [[0.0]], np.eye(2))


# --- samplers of a runtime service ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_options_of_a_runtime_sampler_are_left_to_it():
    runtime = pytest.importorskip("qiskit_ibm_runtime")
    fake = pytest.importorskip("qiskit_ibm_runtime.fake_provider").FakeManilaV2()
    ansatz = Ansatz(2, 2, 1)
    rotations, inputs = random_case(ansatz)
    passes = passes_of(fake, 1)
    options = {"twirling": {"enable_gates": True}, "dynamical_decoupling": {"enable": True}}
    sampler = runtime.SamplerV2(mode=fake, options=options | {"simulator": {"seed_simulator": 3}})
    drawn = SamplerExpectations(sampler=sampler, shots=2000, pass_manager=passes)(ansatz, rotations, inputs, np.eye(4))
    want = exact_expectations(ansatz, rotations, inputs, np.eye(4))
    # Shots, and a few percent of noise.
    np.testing.assert_allclose(drawn, want, rtol=0, atol=0.15)
    assert sampler.options.twirling.enable_gates


def test_a_sampler_that_is_passed_is_used_as_it_is():
    sampler = StatevectorSampler(seed=np.random.default_rng(3))
    ansatz = Ansatz(1, 1, 1)
    drawn = SamplerExpectations(sampler=sampler, shots=40)(ansatz, [[0.5]], [[0.4]], np.eye(2))
    np.testing.assert_array_equal(drawn, SamplerExpectations(seed=3, shots=40)(ansatz, [[0.5]], [[0.4]], np.eye(2)))
