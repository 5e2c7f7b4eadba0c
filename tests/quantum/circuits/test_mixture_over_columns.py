"""The compact SWAP test reads what a draw of a column and a circuit of three qubits reads."""

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit import QuantumCircuit
from qiskit.quantum_info import DensityMatrix, Statevector, partial_trace

from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.quantum import compact_swap_circuit

# Of a probability from 1/2 to 1 that is a sum of up to 128 squares: about 16 roundings of 2.2e-16. How a processor
# sums decides how many of them add up; with kernels of OpenBLAS for old ones 1.1e-15 was seen.
CLOSE = 4e-15


def cases():
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 4, 5, 8, 13, 30):
        yield f"random-{d}", *rng.normal(size=(2, d))
    yield "norms-1e-6", *(rng.normal(size=(2, 5)) * np.array([[1e-6], [1.0]]))
    yield "zeros", np.array([1.0, 0.0, 0.0, -2.0, 0.0]), np.array([0.0, 3.0, 0.0, 1.0, 0.5])
    yield "orthogonal", np.array([1.0, 0.0]), np.array([0.0, 1.0])
    yield "opposite", np.array([1.0, -2.0, 0.5]), np.array([-1.0, 2.0, -0.5])
    yield "equal", np.array([1.0, -2.0, 0.5]), np.array([1.0, -2.0, 0.5])


CASES = [pytest.param(x, y, id=name) for name, x, y in cases()]


def p0_of(circuit):
    """Probability that the ancilla, the first qubit, reads 0."""
    return float(np.sum(np.abs(Statevector(circuit).data[0::2]) ** 2))


def directions(x, y):
    return x / np.linalg.norm(x), y / np.linalg.norm(y)


def column_circuit(x, y, k):
    """The SWAP test of the whole vectors' norms with the qubit of column k alone: ancilla, phi and one qubit of psi."""
    of_x, of_y = directions(x, y)
    circuit = QuantumCircuit(3)
    circuit.ry(2.0 * np.arctan2(-np.linalg.norm(y), np.linalg.norm(x)), 1)
    circuit.ry(2.0 * np.arctan2(of_y[k], of_x[k]), 2)
    circuit.h(0)
    circuit.cswap(0, 1, 2)
    circuit.h(0)
    return circuit


def weights(x, y):
    """Chance that the other qubits of psi read column k."""
    of_x, of_y = directions(x, y)
    return (of_x**2 + of_y**2) / 2.0


@pytest.mark.parametrize(("x", "y"), CASES)
def test_the_ancilla_reads_a_mixture_over_columns(x, y):
    of_columns = [p0_of(column_circuit(x, y, k)) for k in range(len(x))]
    assert weights(x, y).sum() == pytest.approx(1.0, rel=0, abs=CLOSE)
    found = p0_of(compact_swap_circuit(x, y, measure=False))
    assert found == pytest.approx(weights(x, y) @ of_columns, rel=0, abs=CLOSE)
    assert found == pytest.approx((1.0 + compact_swap_test(x, y).overlap.item()) / 2.0, rel=0, abs=CLOSE)


@pytest.mark.parametrize(("x", "y"), [case for case in CASES if case.values[0].all() and case.values[1].all()])
def test_it_is_a_mixture_of_compact_swap_tests_of_one_column_too(x, y):
    """With weights Z_k/Z, where each column has norms of its own."""
    shares = (x**2 + y**2) / np.sum(x**2 + y**2)
    of_columns = [p0_of(compact_swap_circuit(x[k : k + 1], y[k : k + 1], measure=False)) for k in range(len(x))]
    found = p0_of(compact_swap_circuit(x, y, measure=False))
    assert found == pytest.approx(shares @ of_columns, rel=0, abs=CLOSE)


@pytest.mark.parametrize(("x", "y"), [case for case in CASES if len(case.values[0]) <= 8])
def test_the_state_that_is_read_is_that_mixture(x, y):
    """All of the state of ancilla, phi and psi[0] at the end, not the ancilla alone."""
    circuit = compact_swap_circuit(x, y, measure=False)
    left = partial_trace(Statevector(circuit), list(range(3, circuit.num_qubits))).data
    mixture = sum(w * DensityMatrix(column_circuit(x, y, k)).data for k, w in enumerate(weights(x, y)))
    np.testing.assert_allclose(left, mixture, rtol=0, atol=CLOSE)


def test_columns_differ_and_the_register_is_entangled():
    """The mixture is one of different circuits: without the other qubits the state is not pure."""
    x, y = np.random.default_rng(5).normal(size=(2, 4))
    circuit = compact_swap_circuit(x, y, measure=False)
    left = partial_trace(Statevector(circuit), list(range(3, circuit.num_qubits)))
    assert left.purity().real < 0.9
    of_columns = [p0_of(column_circuit(x, y, k)) for k in range(4)]
    assert np.ptp(of_columns) > 0.1
    # Equal weights are another number.
    assert abs(np.mean(of_columns) - p0_of(circuit)) > 0.01
