"""The sampler of unentangled blocks: its distributions are exact, and its shots follow them."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("qiskit_aer")
pytest.importorskip("qiskit_ibm_runtime")

from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Gate, Parameter, ParameterVector
from qiskit.circuit.library import get_standard_gate_name_mapping
from qiskit.primitives import StatevectorSampler
from qiskit.quantum_info import Statevector, SuperOp
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, QuantumError, depolarizing_error, pauli_error
from qiskit_ibm_runtime.fake_provider import FakeSherbrooke, FakeTorino
from scipy.stats import chisquare

from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.quantum import BlockSampler
from qmedoid.quantum.devices.blocks import MAX_QUBITS, device_noise

DEVICES = {"torino": FakeTorino, "sherbrooke": FakeSherbrooke}
IDEAL = NoiseModel()


@cache
def device(name):
    return DEVICES[name]()


@pytest.fixture(params=DEVICES)
def backend(request):
    return device(request.param)


def connected_qubits(backend, n, rng):
    """A random walk on the device until it has seen n qubits."""
    qubits = [int(rng.integers(backend.num_qubits))]
    neighbors = backend.coupling_map.neighbors
    while len(qubits) < n:
        ways = [qubit for here in qubits for qubit in {*neighbors(here)} - {*qubits}]
        if not ways:  # a corner of a directed map
            return connected_qubits(backend, n, rng)
        qubits.append(int(rng.choice(ways)))
    return qubits


def device_circuit(backend, n, rng, n_gates=12):
    """Random gates of a device on n of its qubits, which they join; measured in any order."""
    qubits = connected_qubits(backend, n, rng)
    angles = ParameterVector("angles", 3)
    circuit = QuantumCircuit(QuantumRegister(backend.num_qubits, "q"), ClassicalRegister(n, "out"))
    pairs = [pair for pair in backend.coupling_map.get_edges() if {*pair} <= {*qubits}]
    two_qubit_gate = getattr(circuit, "cz" if "cz" in backend.operation_names else "ecr")

    def turn(qubit):
        circuit.sx(qubit)
        circuit.rz(angles[int(rng.integers(3))] * 2 - angles[0] / 3 + rng.normal(), qubit)
        circuit.sx(qubit)

    for qubit in qubits:
        turn(qubit)
    for pair in pairs:
        two_qubit_gate(*pair)
    for _ in range(n_gates):
        qubit = int(rng.choice(qubits))
        match rng.integers(3):
            case 0:
                circuit.x(qubit)
            case 1 if pairs:
                two_qubit_gate(*pairs[rng.integers(len(pairs))])
            case _:
                turn(qubit)
    circuit.barrier()
    circuit.measure(rng.permutation(qubits), range(n))
    return circuit


def measured_qubits(circuit):
    measures = [item for item in circuit.data if item.operation.name == "measure"]
    places = {circuit.find_bit(item.clbits[0]).index: circuit.find_bit(item.qubits[0]).index for item in measures}
    return [places[clbit] for clbit in sorted(places)]


def without_measurements(circuit):
    copy = circuit.copy_empty_like()
    copy.data = [item for item in circuit.data if item.operation.name != "measure"]
    return copy


def part_of(noise, qubits, rewrite):
    """The noise of some qubits: Aer reads the whole of a large device anew for every run."""
    part = NoiseModel(noise.basis_gates)
    for name, errors in noise._local_quantum_errors.items():
        for place, error in errors.items():
            if {*place} <= {*qubits} and name != "reset":
                part.add_quantum_error(rewrite(error), name, place)
    return part


def by_aer(circuit, values, noise):
    """Distributions of the circuit's qubits before they are read, as Aer's density matrix has them."""
    bare = without_measurements(circuit)
    bare.save_probabilities(measured_qubits(circuit))
    simulator = AerSimulator(method="density_matrix", noise_model=noise)
    result = simulator.run([bare.assign_parameters(row) for row in values]).result()
    return np.array([result.data(row)["probabilities"] for row in range(len(values))])


def read(backend, probabilities, qubits):
    """What is read of them, by the readout errors that the device states."""
    matrix = np.eye(1)
    for qubit in qubits:
        error = backend.target["measure"][qubit,].error
        matrix = np.kron([[1 - error, error], [error, 1 - error]], matrix)
    return probabilities @ matrix


# Aer drops terms of an error whose probability is 1e-10 or less. Written as one channel, none is.
@pytest.mark.parametrize(
    ("rewrite", "tolerance"), [(lambda error: error, 2e-8), (lambda error: QuantumError(SuperOp(error)), 1e-9)]
)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_distributions_are_those_of_aers_density_matrix(backend, n, rewrite, tolerance):
    rng = np.random.default_rng([n, 21])
    circuit = device_circuit(backend, n, rng)
    values = rng.uniform(-np.pi, np.pi, (3, circuit.num_parameters))
    ((clbits, probabilities),) = BlockSampler(backend, seed=0).block_probabilities(circuit, values)
    qubits = measured_qubits(circuit)
    noise = part_of(device_noise(backend).model, qubits, rewrite)
    expected = read(backend, by_aer(circuit, values, noise), qubits)
    assert clbits == tuple(range(n))
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=tolerance)
    assert np.abs(probabilities - by_aer(circuit, values, None)).max() > 1e-3, "noise matters here"


def standard_rotations():
    gates = get_standard_gate_name_mapping().values()
    return [gate.name for gate in gates if isinstance(gate, Gate) and gate.num_qubits and len(gate.params) == 1]


@pytest.mark.parametrize("name", standard_rotations())
def test_every_standard_rotation_is_exact_at_any_angle(name):
    gate = get_standard_gate_name_mapping()[name]
    angle = Parameter("angle")
    circuit = QuantumCircuit(gate.num_qubits)
    for wall in (0.3, -0.8):
        for qubit in range(gate.num_qubits):
            circuit.u(1.1, wall, 0.4 + qubit, qubit)
        if wall > 0:
            circuit.append(gate.base_class(angle), range(gate.num_qubits))
    values = np.array([0.7, -5.1, 9.9, 1e3])
    measured = circuit.measure_all(inplace=False)
    probabilities = joint(BlockSampler(IDEAL, seed=0).block_probabilities(measured, values[:, np.newaxis]))
    expected = [Statevector(circuit.assign_parameters([value])).probabilities() for value in values]
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_without_noise_distributions_are_those_of_the_statevector(n):
    rng = np.random.default_rng(n)
    a, b = Parameter("a"), Parameter("b")
    circuit = QuantumCircuit(n)
    expressions = [a, b + np.pi, 2 * a - b / 3]
    for _ in range(8):
        first, *other = (int(qubit) for qubit in rng.permutation(n)[:2])
        angle = expressions[rng.integers(len(expressions))]
        circuit.h(first)
        circuit.u(angle, 0.4, 1.2, first)
        if other:
            circuit.crx(angle, *other, first)
    values = rng.normal(size=(4, 2))
    measured = circuit.measure_all(inplace=False)
    probabilities = joint(BlockSampler(IDEAL, seed=0).block_probabilities(measured, values))
    expected = [Statevector(circuit.assign_parameters(row)).probabilities() for row in values]
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-12)


def joint(blocks):
    """The distribution of all classical bits together, bit 0 the least significant; blocks are independent."""
    n_bits = sum(len(clbits) for clbits, _ in blocks)
    numbers = np.arange(2**n_bits)
    product = np.ones((len(blocks[0][1]), 2**n_bits))
    for clbits, probabilities in blocks:
        outcomes = sum((numbers >> clbit & 1) << place for place, clbit in enumerate(clbits))
        product *= probabilities[:, outcomes]
    return product


def three_blocks():
    """Blocks of one, two and three qubits, and four of their six qubits measured crosswise."""
    angles = ParameterVector("angles", 3)
    circuit = QuantumCircuit(QuantumRegister(6, "q"), ClassicalRegister(4, "out"))
    circuit.ry(angles[0], 2)
    circuit.ry(angles[1], 0)
    circuit.cx(0, 4)
    circuit.ry(angles[2], 5)
    circuit.cx(5, 1)
    circuit.ry(0.9, 1)
    circuit.cx(1, 3)
    circuit.barrier()
    circuit.measure([2, 4, 5, 3], [3, 1, 0, 2])
    return circuit


def some_noise():
    noise = NoiseModel(["ry", "cx"])
    noise.add_all_qubit_quantum_error(depolarizing_error(0.1, 2), "cx")
    noise.add_quantum_error(depolarizing_error(0.5, 2), "cx", [5, 1])  # instead of that of all qubits
    noise.add_quantum_error(pauli_error([("X", 0.2), ("I", 0.8)]), "ry", [5])
    noise.add_all_qubit_readout_error([[0.95, 0.05], [0.1, 0.9]])
    return noise


def test_shots_follow_the_product_of_the_blocks():
    values = np.array([[0.4, 1.3, 2.0], [1.5, 0.5, 1.0]])
    sampler = BlockSampler(some_noise(), seed=5)
    expected = joint(sampler.block_probabilities(three_blocks(), values))
    outcomes = sampler.run([(three_blocks(), values)], shots=40_000).result()[0].data.out
    for row, distribution in enumerate(expected):
        counts = np.bincount(outcomes.array[row, :, 0], minlength=16)
        assert chisquare(counts, 40_000 * distribution).pvalue > 1e-3


def test_default_and_local_errors_are_those_of_aer():
    values = np.array([[0.4, 1.3, 2.0]])
    expected = joint(BlockSampler(some_noise(), seed=5).block_probabilities(three_blocks(), values))
    simulator = AerSimulator(method="density_matrix", noise_model=some_noise(), seed_simulator=3)
    counts = simulator.run(three_blocks().assign_parameters(values[0]), shots=40_000).result().get_counts()
    seen = [counts.get(f"{number:04b}", 0) for number in range(16)]
    assert chisquare(seen, 40_000 * expected[0]).pvalue > 1e-3


def test_errors_of_measurements_and_of_labels_are_those_of_aer():
    noise = NoiseModel(["x", "sx"])
    noise.add_all_qubit_quantum_error(pauli_error([("X", 0.2), ("I", 0.8)]), "x")
    noise.add_all_qubit_quantum_error(pauli_error([("X", 0.4), ("I", 0.6)]), "mine")
    noise.add_quantum_error(pauli_error([("X", 0.1), ("I", 0.9)]), "measure", [1])
    circuit = QuantumCircuit(3, 3)
    circuit.x(0)
    circuit.x(2, label="mine")
    circuit.measure(range(3), range(3))
    blocks = BlockSampler(noise, seed=0).block_probabilities(circuit)
    ones = [probabilities[1] for _, probabilities in blocks]
    np.testing.assert_allclose(ones, [0.8, 0.1, 0.6], rtol=0, atol=1e-12)
    counts = AerSimulator(noise_model=noise, seed_simulator=1).run(circuit, shots=40_000).result().get_counts()
    for place, one in enumerate(ones):
        seen = sum(count for outcome, count in counts.items() if outcome[::-1][place] == "1")
        assert abs(seen / 40_000 - one) < 5 * np.sqrt(one * (1 - one) / 40_000)


def test_bits_go_where_qiskits_own_sampler_puts_them():
    rng = np.random.default_rng(8)
    circuit = QuantumCircuit(QuantumRegister(14, "q"), ClassicalRegister(11, "first"), ClassicalRegister(3, "second"))
    circuit.x([qubit for qubit in range(14) if rng.integers(2)])
    circuit.cx(3, 7)
    circuit.cx(7, 12)
    circuit.measure(rng.permutation(14)[:12], rng.permutation(14)[:12])
    ours, theirs = (sampler.run([circuit], shots=2).result()[0] for sampler in (ideal(), StatevectorSampler(seed=1)))
    assert set(ours.data) == {"first", "second"}
    for name in ours.data:
        assert ours.data[name] == theirs.data[name]
        assert ours.data[name].get_counts() == theirs.data[name].get_counts()
    assert ours.metadata == theirs.metadata


def ideal(seed=1):
    return BlockSampler(IDEAL, seed=seed)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_arrays_have_the_shape_of_the_parameters(shape):
    values = np.random.default_rng(0).normal(size=(*shape, 3))
    result = ideal().run([(three_blocks(), values), (three_blocks(), values, 7)], shots=20).result()
    assert [pub.data.shape for pub in result] == [shape, shape]
    assert [pub.data.out.num_shots for pub in result] == [20, 7]
    assert result[0].data.out.array.shape == (*shape, 20, 1)
    for _, probabilities in ideal().block_probabilities(three_blocks(), values):
        assert probabilities.shape[:-1] == shape
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=0, atol=1e-12)


def shots_of(job):
    return job.result()[0].data.out.array


def test_seed_decides_and_goes_on_from_job_to_job():
    pub = (three_blocks(), [[0.4, 1.3, 2.0]] * 2)
    ours, same, other = ideal(), ideal(np.random.default_rng(1)), ideal(2)
    first, second = shots_of(ours.run([pub])), shots_of(ours.run([pub]))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, shots_of(other.run([pub])))
    jobs = [same.run([pub]) for _ in range(2)]
    # Read in the other order: a job's shots do not depend on when it is run.
    assert np.array_equal(second, shots_of(jobs[1]))
    assert np.array_equal(first, shots_of(jobs[0]))


def test_barriers_join_nothing_and_what_is_not_measured_is_left_out():
    circuit = QuantumCircuit(4, 2)
    circuit.x(0)
    circuit.h([1, 2])
    circuit.barrier()
    circuit.measure([0, 3], [0, 1])
    blocks = ideal().block_probabilities(circuit)
    assert [clbits for clbits, _ in blocks] == [(0,), (1,)]
    np.testing.assert_allclose([probabilities for _, probabilities in blocks], [[0, 1], [1, 0]], rtol=0, atol=1e-15)


def test_nothing_measured_is_noted():
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    with pytest.warns(QMedoidWarning, match="measures nothing"):
        job = ideal().run([circuit], shots=3)
    assert job.result()[0].data.c.bitcount().tolist() == [0, 0, 0]


def refused():
    a, b = Parameter("a"), Parameter("b")
    mid = QuantumCircuit(1, 2)
    mid.measure(0, 0)
    mid.x(0)
    yield mid, "goes on after a measurement"
    again = QuantumCircuit(1, 2)
    again.measure([0, 0], [0, 1])
    yield again, "goes on after a measurement"
    reset = QuantumCircuit(1, 1)
    reset.reset(0)
    yield reset, "operation 'reset'"
    branch = QuantumCircuit(2, 1)
    branch.measure(0, 0)
    with branch.if_test((0, True)):
        branch.x(1)
    yield branch, "operation 'if_else'"
    twice = QuantumCircuit(2, 1)
    twice.measure([0, 1], [0, 0])
    yield twice, "classical bit 0"
    wide = QuantumCircuit(MAX_QUBITS + 1, 1)
    for qubit in range(MAX_QUBITS):
        wide.cx(qubit, qubit + 1)
    wide.measure(0, 0)
    yield wide, f"join {MAX_QUBITS + 1} qubits"
    two = QuantumCircuit(1, 1)
    two.u(Parameter("a"), Parameter("b"), 0, 0)
    yield two, "not a standard gate of one angle"
    axis = QuantumCircuit(1, 1)
    axis.r(0.3, Parameter("a"), 0)
    yield axis, "not a rotation by its parameter"
    for angle in (a * b, b.sin() + a, a.abs()):
        curved = QuantumCircuit(1, 1)
        curved.rx(angle, 0)
        curved.measure(0, 0)
        yield curved, "not linear in the circuit's parameters"
    wait = QuantumCircuit(1, 1)
    wait.delay(100, 0)
    yield wait, "operation 'delay'"


@pytest.mark.parametrize(("circuit", "message"), [*refused()])
def test_circuits_that_are_not_blocks_are_refused_before_they_run(circuit, message):
    with pytest.raises(ParameterError, match=message):
        ideal().run([(circuit, np.zeros(circuit.num_parameters))])


def test_gates_without_noise_are_refused():
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    for source in (device("torino"), some_noise()):
        with pytest.raises(ParameterError, match=r"no operation 'h'.*Transpile"):
            BlockSampler(source, seed=0).run([circuit])
    apart = QuantumCircuit(133, 1)
    apart.cz(0, 77)
    with pytest.raises(ParameterError, match="no operation 'cz' on the qubits"):
        BlockSampler(device("torino"), seed=0).run([apart])
    outside = QuantumCircuit(134, 1)
    outside.measure(133, 0)
    with pytest.raises(ParameterError, match="no operation 'measure' on the qubits"):
        BlockSampler(device("torino"), seed=0).run([outside])


def test_what_a_sampler_cannot_be_made_of_is_refused():
    together = NoiseModel()
    together.add_readout_error(np.kron([[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]), [0, 1])
    with pytest.raises(ParameterError, match="one readout error per qubit"):
        BlockSampler(together, seed=0)
    with pytest.raises(ParameterError, match="BackendV2"):
        BlockSampler("torino", seed=0)
    with pytest.raises(ParameterError, match="'seed'"):
        BlockSampler(IDEAL, seed=None)
