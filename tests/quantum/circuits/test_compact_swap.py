"""The circuit against the closed form against dense matrices."""

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit.quantum_info import Statevector

from qmedoid.exceptions import DataError
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.quantum import StatevectorSwapTest, compact_swap_circuit
from qmedoid.quantum.circuits.compact_swap import form_named

# 2·p0 − 1 of up to 128 amplitudes, each the product of up to five rotations.
S_ERROR = 1e-14


def dense_state(x, y, swapped=0):
    """The final state by matrices alone. Index bit 0 is the ancilla, bit 1 phi, bits 2 and up psi."""
    # Dividing by a power of two first keeps squares in range and changes no ratio.
    top = 2.0 ** np.floor(np.log2(max(np.abs(x).max(), np.abs(y).max())))
    nx, ny = np.linalg.norm(x / top), np.linalg.norm(y / top)
    psi = np.zeros(2 ** (1 + (len(x) - 1).bit_length()))
    for k, (xk, yk) in enumerate(zip(unit(x), unit(y), strict=True)):
        psi[2 * k], psi[2 * k + 1] = xk / np.sqrt(2), yk / np.sqrt(2)
    phi = np.array([nx, -ny]) / np.hypot(nx, ny)
    state = np.kron(psi, np.kron(phi, [1.0, 0.0]))

    index = np.arange(len(state))
    phi_bit, psi_bit = index >> 1 & 1, index >> (2 + swapped) & 1
    moved = np.where((index & 1 == 1) & (phi_bit != psi_bit), index ^ (1 << 1 | 1 << (2 + swapped)), index)
    controlled_swap = np.eye(len(state))[moved]
    hadamard = np.kron(np.eye(len(state) // 2), np.array([[1, 1], [1, -1]]) / np.sqrt(2))
    return hadamard @ controlled_swap @ hadamard @ state


def unit(v):
    scaled = v / np.abs(v).max()
    return scaled / np.linalg.norm(scaled)


def overlap_of(state):
    """s = p0 − p1 of index bit 0."""
    return np.sum(np.abs(state[0::2]) ** 2) - np.sum(np.abs(state[1::2]) ** 2)


def cases():
    rng = np.random.default_rng(2)
    for d in range(1, 10):
        yield f"random-{d}", *rng.normal(size=(2, d))
    x, y = rng.normal(size=(2, 5))
    yield "tiny", 1e-150 * x, 1e-150 * y
    yield "huge", 1e150 * x, 1e150 * y
    yield "parallel", x, 2.5 * x
    yield "opposite", x, -x
    yield "opposite-unequal", x, -3.0 * x
    yield "orthogonal", np.array([1.0, 2.0, 0.0]), np.array([-2.0, 1.0, 0.0])
    yield "equal", x, x.copy()
    yield "nearly-equal", x, x * (1 + 1e-9)
    yield "norms-1e-6", 1e-6 * x, y
    yield "norms-1e-300", 1e-150 * x, 1e150 * y
    yield "decades", np.array([1.0, 1e-5, 1e-10, 1e-15]), np.array([1e-12, 1e-7, -1e-3, 1.0])
    yield "one-hot", np.eye(7)[3], np.eye(7)[6]
    yield "negative", -np.abs(x), -np.abs(y)


CASES = [pytest.param(x, y, id=name) for name, x, y in cases()]


@pytest.mark.parametrize(("x", "y"), CASES)
def test_circuit_prepares_and_swaps_as_the_matrices_do(x, y):
    state = Statevector(compact_swap_circuit(x, y, measure=False)).data
    # Y rotations bring no phase, so the amplitudes themselves agree.
    np.testing.assert_allclose(state, dense_state(x, y), rtol=0, atol=S_ERROR)


@pytest.mark.parametrize(("x", "y"), CASES)
def test_circuit_closed_form_and_matrices_agree(x, y):
    circuit, closed = StatevectorSwapTest()(x, y), compact_swap_test(x, y)
    s = closed.overlap.item()
    assert circuit.overlap.item() == pytest.approx(s, rel=0, abs=S_ERROR)
    assert overlap_of(dense_state(x, y)) == pytest.approx(s, rel=0, abs=S_ERROR)

    # D = √(2Zs): an error e of s is one of about √Z·e/√(2s) in D, and of √(2Ze) where s vanishes.
    norms = [np.linalg.norm(v / np.abs(v).max()) * np.abs(v).max() for v in (x, y)]
    scale = np.hypot(*norms)
    allowed = scale * min(S_ERROR / np.sqrt(s / 2) if s > 0 else np.inf, np.sqrt(2 * S_ERROR))
    assert abs(circuit.distance.item() - closed.distance.item()) <= allowed
    if s > 0.01:
        assert circuit.distance.item() == pytest.approx(closed.distance.item(), rel=1e-12)

    # cos = Z(1 − 2s)/(2‖x‖‖y‖): an error e of s is one of Z/(‖x‖‖y‖)·e in the cosine, and arccos turns an error c
    # of its argument into at most arccos(1 − c).
    amplified = S_ERROR * (scale / norms[0]) * (scale / norms[1])
    assert abs(np.cos(circuit.angle.item()) - np.cos(closed.angle.item())) <= amplified
    assert abs(circuit.angle.item() - closed.angle.item()) <= np.arccos(max(-1.0, 1 - amplified))


def test_only_qubit_0_of_psi_tells_x_from_y():
    x = np.array([1.0, -2.0, 3.0, 0.5])
    y = np.array([0.2, 1.0, -1.0, 2.0])
    right = compact_swap_test(x, y).overlap.item()
    assert overlap_of(dense_state(x, y, swapped=0)) == pytest.approx(right, rel=0, abs=S_ERROR)
    for wrong in (1, 2):
        assert abs(overlap_of(dense_state(x, y, swapped=wrong)) - right) > 0.05
        # Through any other qubit a vector would differ from itself.
        assert overlap_of(dense_state(x, x, swapped=wrong)) > 0.05
    assert overlap_of(dense_state(x, x, swapped=0)) == pytest.approx(0, abs=S_ERROR)


def test_registers_and_bit_order():
    circuit = compact_swap_circuit([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert [(register.name, register.size) for register in circuit.qregs] == [("ancilla", 1), ("phi", 1), ("psi", 3)]
    assert [(register.name, register.size) for register in circuit.cregs] == [("outcome", 1)]
    (swap,) = (instruction for instruction in circuit.data if instruction.operation.name == "cswap")
    psi = circuit.qregs[2]
    assert list(swap.qubits) == [circuit.qregs[0][0], circuit.qregs[1][0], psi[0]]
    (measurement,) = (instruction for instruction in circuit.data if instruction.operation.name == "measure")
    assert list(measurement.qubits) == [circuit.qregs[0][0]]
    assert not compact_swap_circuit([1.0], [2.0], measure=False).cregs


@pytest.mark.parametrize(("d", "qubits"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (9, 5)])
def test_size_of_the_circuit(d, qubits):
    counts = form_named("compact_swap").template(d).count_ops()
    assert counts["ry"] == 2**qubits
    assert counts.get("cx", 0) == 2**qubits - 2
    assert counts["cswap"] == 1


@pytest.mark.parametrize(("x", "y", "name"), [([0.0, 0.0], [1.0, 2.0], "x"), ([1.0, 2.0], [0.0, -0.0], "y")])
def test_zero_vectors_cannot_be_prepared(x, y, name):
    with pytest.raises(DataError, match=f"{name} is a zero vector.* use compact_swap_test, which handles zero vectors"):
        compact_swap_circuit(x, y)


def test_vectors_that_are_refused():
    with pytest.raises(DataError, match="x has 2 entries and y has 3: both need the same number"):
        compact_swap_circuit([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="y holds nan at position 1: pass finite numbers only"):
        compact_swap_circuit([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(DataError, match=r"x has shape \(1, 2\): pass one vector"):
        compact_swap_circuit([[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(DataError, match=r"x has shape \(0,\): pass one vector of at least one entry"):
        compact_swap_circuit([], [])
