"""Circuits for other tools: as QPY, as OpenQASM 3, or drawn as text.

They are written and never read back: a saved model rebuilds its circuits from their settings.
"""

import io

from qiskit import QuantumCircuit, qasm3, qpy

from qmedoid.circuits.compact_swap import compact_swap_template
from qmedoid.circuits.variational import variational_circuit
from qmedoid.variational.model import VariationalModel


def trained_circuit(model: VariationalModel, *, measure: bool = False) -> QuantumCircuit:
    """The circuit of a variational model with its trained rotations; the inputs stay open as ``x[j]``.

    `VariationalModel.encoded` gives the values of x for given records.
    """
    return variational_circuit(model.network.ansatz, weights=model.parameters.rotations, measure=measure)


def swap_test_circuit(n_features: int) -> QuantumCircuit:
    """The compact SWAP test of vectors with `n_features` entries; its angles stay open as ``theta[k]``.

    :func:`qmedoid.circuits.compact_swap_angles` gives their values for a record and a medoid.
    """
    return compact_swap_template(n_features)


def qpy_bytes(circuit: QuantumCircuit) -> bytes:
    """The circuit in Qiskit's own format."""
    out = io.BytesIO()
    qpy.dump(circuit, out)
    return out.getvalue()


def qasm_text(circuit: QuantumCircuit) -> str:
    """The circuit in OpenQASM 3; what is left open is an ``input`` with an underscore for each bracket."""
    return qasm3.dumps(circuit)


def drawing(circuit: QuantumCircuit, *, width: int = 120) -> str:
    """The circuit drawn as text, folded at a width."""
    return str(circuit.draw(output="text", fold=width))
