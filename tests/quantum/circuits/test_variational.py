"""The variational circuit in Qiskit is the circuit that the simulator runs, amplitude by amplitude."""

import warnings

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit.circuit import Parameter
from qiskit.primitives import BackendSamplerV2
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit.quantum_info import Statevector
from qiskit.transpiler import generate_preset_pass_manager
from samplers import CountingSampler
from scipy import stats

from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import ExpectationFunction, Network
from qmedoid.methods.variational.readout import READOUT_KINDS, make_readout
from qmedoid.quantum import SamplerExpectations, SamplerSwapTest, StatevectorExpectations, variational_circuit


def random_case(ansatz, seed=0, rows=2):
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, ansatz.weight_shape), rng.uniform(-np.pi, np.pi, (rows, ansatz.n_inputs))


def simulated(ansatz, rotations, inputs):
    return statevector.states(ansatz.qubit_angles(inputs), rotations, reupload=ansatz.reupload)


def simulated_expectations(ansatz, rotations, inputs, observables):
    return statevector.expectations(ansatz.qubit_angles(inputs), rotations, observables, reupload=ansatz.reupload)


def names(circuit):
    return [parameter.name for parameter in circuit.parameters]


# --- the circuit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("final_rz", [False, True])
@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("extra", [-1, 0, 3])
@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_qiskit_and_the_simulator_prepare_the_same_state(n_qubits, extra, reupload, final_rz):
    ansatz = Ansatz(n_qubits, max(1, n_qubits + extra), 3, reupload=reupload, final_rz=final_rz)
    rotations, inputs = random_case(ansatz, seed=n_qubits, rows=1)
    state = Statevector(variational_circuit(ansatz, weights=rotations, inputs=inputs[0])).data
    # Amplitudes, not probabilities: the global phase is the same too.
    np.testing.assert_allclose(state, simulated(ansatz, rotations, inputs)[0], rtol=0, atol=1e-12)


def test_gates_stand_in_the_printed_order():
    """Two qubits, three inputs, two repetitions: every gate by name, angle and qubits."""
    circuit = variational_circuit(Ansatz(2, 3, 2, final_rz=True))
    gates = [
        (
            step.operation.name,
            *(p.name for p in step.operation.params),
            *(circuit.find_bit(q).index for q in step.qubits),
        )
        for step in circuit.data
    ]
    data = [("ry", "x[0]", 0), ("ry", "x[1]", 1), ("ry", "x[2]", 0), ("cx", 0, 1), ("cz", 0, 1)]
    first = [("ry", "theta[0]", 0), ("ry", "theta[1]", 1), ("rz", "theta[2]", 0), ("rz", "theta[3]", 1)]
    second = [("ry", "theta[4]", 0), ("ry", "theta[5]", 1), ("rz", "theta[6]", 0), ("rz", "theta[7]", 1)]
    assert gates == data + first + data + second
    # The default leaves the last row out.
    assert len(variational_circuit(Ansatz(2, 3, 2)).data) == len(gates) - 2
    assert names(variational_circuit(Ansatz(2, 3, 2)))[:6] == [f"theta[{k}]" for k in range(6)]


@pytest.mark.parametrize("measure", [False, True])
def test_registers_and_name(measure):
    circuit = variational_circuit(Ansatz(3, 2, 1), measure=measure)
    assert circuit.name == "variational"
    assert [(register.name, register.size) for register in circuit.qregs] == [("q", 3)]
    assert [(register.name, register.size) for register in circuit.cregs] == ([("outcome", 3)] if measure else [])
    measured = [step for step in circuit.data if step.operation.name == "measure"]
    pairs = [(circuit.find_bit(s.qubits[0]).index, circuit.find_bit(s.clbits[0]).index) for s in measured]
    assert pairs == ([(0, 0), (1, 1), (2, 2)] if measure else [])


def test_what_is_given_is_bound_and_the_rest_stays_open():
    ansatz = Ansatz(2, 11, 2)
    rotations, inputs = random_case(ansatz)
    theta, x = [f"theta[{k}]" for k in range(6)], [f"x[{j}]" for j in range(11)]
    assert names(variational_circuit(ansatz)) == theta + x
    assert names(variational_circuit(ansatz, weights=rotations)) == x
    assert names(variational_circuit(ansatz, inputs=inputs[0])) == theta
    bound = variational_circuit(ansatz, weights=rotations, inputs=inputs[0])
    assert names(bound) == []
    filled = variational_circuit(ansatz).assign_parameters([*rotations.ravel(), *inputs[0]])
    np.testing.assert_allclose(Statevector(filled).data, Statevector(bound).data, rtol=0, atol=1e-15)


# --- backends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("kind", READOUT_KINDS)
@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_network_scores_the_same_by_statevectors_of_its_circuits(n_qubits, kind, reupload):
    for n_inputs, final_rz in ((max(1, n_qubits - 1), False), (n_qubits + 2, True)):
        ansatz = Ansatz(n_qubits, n_inputs, 2, reupload=reupload, final_rz=final_rz)
        network = Network(ansatz, make_readout(kind, n_qubits, 2), np.linspace(0.5, 1.5, n_inputs))
        theta = np.random.default_rng(n_qubits).normal(size=network.n_parameters)
        inputs = random_case(ansatz)[1]
        measured = network.measured_scores(theta, inputs, StatevectorExpectations())
        np.testing.assert_allclose(measured, network.scores(theta, inputs), rtol=0, atol=1e-12)


def test_network_of_single_precision_is_measured_in_double():
    double, single = (
        Network(Ansatz(2, 2, 2), make_readout("strings", 2, 2), np.ones(2), precision=precision)
        for precision in ("float64", "float32")
    )
    theta, inputs = np.linspace(-1, 1, double.n_parameters), np.ones((1, 2)) / 3
    exact = StatevectorExpectations()
    np.testing.assert_array_equal(
        single.measured_scores(theta, inputs, exact), double.measured_scores(theta, inputs, exact)
    )


@pytest.mark.parametrize(("shots", "rows"), [(100, 200), (10_000, 40)])
def test_sampled_means_have_the_variance_of_their_observables(shots, rows):
    """Unbiased, and (⟨O²⟩ − ⟨O⟩²)/shots: bounds that are missed once in 10⁵ times."""
    ansatz = Ansatz(3, 3, 2)
    rotations, inputs = random_case(ansatz, seed=1, rows=1)
    observables = np.concatenate([make_readout(kind, 3, 2).observables for kind in READOUT_KINDS])
    exact = simulated_expectations(ansatz, rotations, inputs, observables)[0]
    variance = simulated_expectations(ansatz, rotations, inputs, observables**2)[0] - exact**2
    backend = SamplerExpectations(shots=shots, seed=shots)
    drawn = backend(ansatz, rotations, np.repeat(inputs, rows, axis=0), observables)
    standard = (drawn - exact) / np.sqrt(variance / shots)
    assert (np.abs(standard.mean(axis=0)) < 4.5 / np.sqrt(rows)).all()
    low, high = stats.chi2.ppf([0.5e-5, 1 - 0.5e-5], rows)
    squares = np.sum(standard**2, axis=0)
    assert ((low < squares) & (squares < high)).all()


@pytest.mark.parametrize("n_qubits", [8, 9, 10])
def test_outcomes_of_more_than_one_byte_are_read_in_order(n_qubits):
    ansatz = Ansatz(n_qubits, 1, 1)
    rotations = np.zeros(ansatz.weight_shape)
    rotations[0, [1, n_qubits - 1]] = np.pi
    flipped = 2 + 2 ** (n_qubits - 1)
    measured = SamplerExpectations(shots=3, seed=0)(ansatz, rotations, np.zeros((2, 1)), np.eye(2**n_qubits))
    np.testing.assert_array_equal(measured, np.eye(2**n_qubits)[[flipped, flipped]])


def test_no_rows_need_no_job():
    ansatz, sampler = Ansatz(2, 3, 1), CountingSampler()
    for backend in (StatevectorExpectations(), SamplerExpectations(sampler=sampler)):
        assert backend(ansatz, np.zeros((1, 2)), np.zeros((0, 3)), np.eye(4)).shape == (0, 4)
    assert sampler.jobs == []


# --- pass managers and samplers -------------------------------------------------------------------------------------


class CountingPasses:
    """A pass manager that counts what it rewrites."""

    runs = 0

    def run(self, circuit):
        self.runs += 1
        return circuit


def passes_of(machine, level):
    return generate_preset_pass_manager(optimization_level=level, backend=machine, seed_transpiler=1)


def test_pass_manager_runs_once_for_each_template():
    passes = CountingPasses()
    backend = SamplerExpectations(shots=5, seed=0, pass_manager=passes)
    for seed in range(3):
        for ansatz in (Ansatz(2, 2, 1), Ansatz(2, 2, 2)):
            backend(ansatz, *random_case(ansatz, seed), np.eye(4))
    assert passes.runs == 2
    backend = SamplerSwapTest(shots=5, seed=0, pass_manager=passes)
    for columns in (2, 3, 2, 3):
        backend(np.ones((1, columns)), np.ones((2, columns)))
    assert passes.runs == 4


@pytest.mark.parametrize("level", [1, 3])
def test_rewritten_templates_find_the_parameters_of_every_row(level):
    """Level 3 drops the last R_z, whose weights are parameters 9 to 11 of 16, before those of the inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = GenericBackendV2(num_qubits=4, noise_info=False, seed=1)
    ansatz = Ansatz(3, 4, 2, final_rz=True)
    rotations, inputs = random_case(ansatz, rows=3)
    sampler = BackendSamplerV2(backend=machine, options={"seed_simulator": 1})
    backend = SamplerExpectations(sampler=sampler, shots=20_000, pass_manager=passes_of(machine, level))
    drawn = backend(ansatz, rotations, inputs, np.eye(8))
    want = StatevectorExpectations()(ansatz, rotations, inputs, np.eye(8))
    np.testing.assert_allclose(drawn, want, rtol=0, atol=2.5 / np.sqrt(20_000))


def test_pass_managers_that_add_parameters_are_refused():
    class Adding:
        def run(self, circuit):
            more = circuit.copy()
            more.ry(Parameter("late"), 0)
            return more

    with pytest.raises(ModelError, match="new open parameters into the circuit, late"):
        SamplerExpectations(shots=5, seed=0, pass_manager=Adding())(Ansatz(1, 1, 1), [[0.0]], [[0.0]], np.eye(2))


# --- what is refused ------------------------------------------------------------------------------------------------


def test_weights_and_inputs_of_another_shape():
    ansatz = Ansatz(2, 3, 2)
    with pytest.raises(ParameterError, match=r"of shape \(3, 2\): 3 layers.*Got shape \(6,\) instead\.$"):
        variational_circuit(ansatz, weights=np.zeros(6))
    with pytest.raises(ParameterError, match=r"Got shape \(4, 2\) instead\. That is the shape for final_rz=True"):
        variational_circuit(ansatz, weights=np.zeros((4, 2)))
    with pytest.raises(ParameterError, match=r"Got shape \(3, 2\) instead\. That is the shape for final_rz=False"):
        variational_circuit(Ansatz(2, 3, 2, final_rz=True), weights=np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"shape \(2, 3\): a circuit takes one record of 3 angles.*use a backend"):
        variational_circuit(ansatz, inputs=np.zeros((2, 3)))
    with pytest.raises(DataError, match="inputs holds nan at position 1: pass finite numbers only"):
        variational_circuit(ansatz, inputs=[0.0, np.nan, 0.0])
    with pytest.raises(DataError, match="weights holds inf at position 2, 1: pass finite numbers only"):
        variational_circuit(ansatz, weights=[[0.0, 0.0], [0.0, 0.0], [0.0, np.inf]])


def test_backends_refuse_alike():
    ansatz, zeros = Ansatz(2, 3, 2), np.zeros
    backends: list[ExpectationFunction] = [StatevectorExpectations(), SamplerExpectations(shots=10, seed=0)]
    for backend in backends:
        with pytest.raises(ParameterError, match=r"weights of this ansatz must be of shape \(3, 2\)"):
            backend(ansatz, zeros((2, 2)), zeros((1, 3)), np.eye(4))
        with pytest.raises(DataError, match=r"inputs has shape \(1, 2\): this ansatz takes rows of 3 angles"):
            backend(ansatz, zeros((3, 2)), zeros((1, 2)), np.eye(4))
        with pytest.raises(DataError, match=r"Observables must be of shape \(K, 4\)\. Got shape \(8, 8\) instead"):
            backend(ansatz, zeros((3, 2)), zeros((1, 3)), np.eye(8))
