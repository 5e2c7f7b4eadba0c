"""The interference circuit against the closed form, and its price."""

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit.quantum_info import Statevector

from qmedoid.exceptions import DataError
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.quantum import interference_circuit
from qmedoid.quantum.circuits.compact_swap import FORMS, shape_of


def vectors(d, rng):
    """Ordinary pairs, pairs with zero entries, equal and opposite ones, and norms far apart."""
    x, y = rng.normal(size=(2, d))
    yield x, y
    yield 1e100 * x, 1e100 * y
    yield 1e-100 * x, 1e-100 * y
    yield 1e-100 * x, 1e100 * y
    yield x, x
    yield x, -x
    if d > 2:
        holes = np.where(rng.random(d) < 0.5, 0.0, x)
        holes[0] = 1.0
        yield holes, np.where(holes == 0.0, y, 0.0) + np.eye(d)[-1]


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("d", [*range(1, 11), 13, 16, 17, 30, 33, 64])
def test_the_statevector_has_the_overlap_of_the_closed_form(form, d):
    for x, y in vectors(d, np.random.default_rng(d)):
        template = form.template(d, measure=False)
        circuit = template.assign_parameters(form.angles(x, y))
        p1 = Statevector(circuit).probabilities([0])[1]
        assert form.overlap(p1) == pytest.approx(compact_swap_test(x, y).overlap[0, 0], rel=0, abs=1e-12)
        assert form.chance(form.overlap(p1)) == pytest.approx(p1, rel=0, abs=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_angles_of_many_pairs_are_those_of_each(form):
    rng = np.random.default_rng(1)
    for d in (1, 2, 3, 8, 11):
        X, Y = rng.normal(size=(2, 20, d)) * 10.0 ** rng.integers(-100, 100, size=(2, 20, 1))
        together = form.angles(X, Y)
        for row, x, y in zip(together, X, Y, strict=True):
            np.testing.assert_allclose(row, form.angles(x, y), rtol=0, atol=1e-13)
        assert together.shape[1] == len(form.template(d).parameters)


def test_one_column_takes_one_qubit_and_no_gate_between_qubits():
    template = FORMS["interference"].template
    assert template(1).num_qubits == 1
    gates = [template(d).num_nonlocal_gates() for d in (1, 2, 4, 8, 16, 32)]
    assert gates == [0, 1, 4, 11, 26, 57]
    assert [shape_of(d) for d in (1, 2, 3, 4, 5, 8, 9)] == [0, 1, 2, 2, 3, 3, 4]


def test_a_measured_circuit_reads_the_index_qubit():
    circuit = interference_circuit([3.0, 1.0], [1.0, 2.0])
    assert circuit.find_bit(circuit.data[-1].qubits[0]).registers[0][0].name == "index"


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([0.0, 0.0], [1.0, 2.0], "zero vector"),
        ([1.0, np.nan], [1.0, 2.0], "position 1"),
        ([1.0], [1.0, 2.0], "same number"),
        ([], [], "at least one entry"),
        ([[1.0], [2.0]], [[1.0]], "2 rows of x and 1 of y"),
    ],
)
def test_vectors_that_have_no_state_are_refused(x, y, said):
    with pytest.raises(DataError, match=said):
        FORMS["interference"].angles(x, y)
