"""Exported circuits: what other tools read back is the same circuit."""

import io

import numpy as np
import pytest

pytest.importorskip("qiskit", reason="needs the extra quantum")

from qiskit import qasm3, qpy
from qiskit.quantum_info import Operator, Statevector

from qmedoid.methods.variational.ansatz import AngleMap, Ansatz
from qmedoid.methods.variational.model import Network, VariationalModel
from qmedoid.methods.variational.readout import make_readout
from qmedoid.quantum import export


@pytest.fixture(params=[(3, 2, 2), (2, 5, 1)])
def model(request):
    n_qubits, n_inputs, n_reps = request.param
    rng = np.random.default_rng(0)
    network = Network(Ansatz(n_qubits, n_inputs, n_reps), make_readout("strings", n_qubits, 2), np.ones(n_inputs))
    angle_map = AngleMap(rng.normal(size=n_inputs), rng.uniform(1, 2, n_inputs))
    return VariationalModel(angle_map, network, rng.normal(size=network.n_parameters))


def test_trained_circuit_gives_the_scores_of_the_model(model):
    record = np.random.default_rng(1).normal(size=(1, model.network.ansatz.n_inputs))
    circuit = export.trained_circuit(model)
    assert [p.name for p in circuit.parameters] == [f"x[{j}]" for j in range(record.shape[1])]
    state = Statevector(circuit.assign_parameters(model.encoded(record)[0]))
    measured = model.network.readout.observables @ state.probabilities()
    scores = model.network.readout.scores(measured[None, :], model.parameters.readout)
    np.testing.assert_allclose(scores, model.scores(record), atol=1e-12)


def test_qpy_comes_back_as_the_same_circuit(model):
    circuit = export.trained_circuit(model, measure=True)
    (again,) = qpy.load(io.BytesIO(export.qpy_bytes(circuit)))
    assert again == circuit


@pytest.mark.filterwarnings("ignore::qiskit.exceptions.ExperimentalWarning")
def test_openqasm_describes_the_same_operator(model):
    circuit = export.trained_circuit(model)
    # The reader that comes with Qiskit knows no inputs: they are bound in the text, as a user would.
    text, values = export.qasm_text(circuit), np.linspace(-1, 1, circuit.num_parameters)
    for j, value in enumerate(values):
        text = text.replace(f"input float[64] _x_{j}_;\n", "").replace(f"_x_{j}_", repr(float(value)))
    again = qasm3.loads_experimental(text)
    assert Operator(again) == Operator(circuit.assign_parameters(values))


def test_openqasm_has_one_input_per_feature_and_every_gate(model):
    circuit = export.trained_circuit(model)
    text = export.qasm_text(circuit)
    assert text.startswith("OPENQASM 3.0;")
    assert text.count("input float[64] _x_") == model.network.ansatz.n_inputs
    for gate, count in circuit.count_ops().items():
        assert sum(line.startswith((f"{gate}(", f"{gate} ")) for line in text.splitlines()) == count


def test_drawing_is_folded(model):
    drawing = export.drawing(export.trained_circuit(model))
    assert "Ry(x[0])" in drawing
    assert max(map(len, drawing.splitlines())) <= 120
