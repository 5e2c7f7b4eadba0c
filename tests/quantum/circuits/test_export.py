"""Exported circuits: what other tools read back is the same circuit."""

import numpy as np
import pytest

pytest.importorskip("qiskit", reason="needs the extra quantum")

from qiskit import qasm3
from qiskit.quantum_info import Operator

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
