"""Circuits for other tools: as QPY, as OpenQASM 3 or 2, or drawn as text, with what is needed to read their outcomes.

They are written and never read back: a saved model rebuilds its circuits from their settings. A description, made by
:mod:`qmedoid.quantum.circuit_export`, goes with the circuit. In QPY it is ``circuit.metadata["qmedoid"]``; in
OpenQASM it is the JSON object in the only line that begins with ``// qmedoid: ``. Every number is written so that it is
read back as the same double: neither format rounds an angle to a multiple of π.
"""

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
from qiskit import QuantumCircuit, qasm3, qpy

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.methods.variational.model import VariationalModel
from qmedoid.quantum.circuits.compact_swap import CircuitForm, form_named
from qmedoid.quantum.circuits.variational import variational_circuit

METADATA = "qmedoid"
"""Key of the description in the metadata of a circuit."""
COMMENT = f"// {METADATA}: "
"""Beginning of the line with the description in OpenQASM."""
# Gates of qelib1.inc that these circuits are made of.
_GATES = frozenset({"h", "ry", "rz", "cx", "cz"})


def trained_circuit(
    model: VariationalModel, inputs: npt.ArrayLike | None = None, *, measure: bool = False
) -> QuantumCircuit:
    """The circuit of a variational model with its trained rotations; inputs not given stay open as ``x[j]``.

    `VariationalModel.encoded` gives the values of x for given records.
    """
    rotations = model.parameters.rotations
    return variational_circuit(model.network.ansatz, weights=rotations, inputs=inputs, measure=measure)


PAIR_CIRCUITS: Mapping[str, CircuitForm] = {
    "swap-test": form_named("compact_swap"),
    "interference": form_named("interference"),
}
"""Circuits that compare a record with a medoid, by name."""


def pair_circuit(kind: str, n_features: int) -> QuantumCircuit:
    """The circuit that compares vectors with `n_features` entries; its angles stay open as ``theta[k]``.

    :func:`qmedoid.quantum.circuits.compact_swap_angles` and
    :func:`qmedoid.quantum.circuits.interference_angles` give their values for a record and a medoid.
    """
    return PAIR_CIRCUITS[kind].template(n_features)


def bound_pair_circuit(kind: str, x: Array, y: Array) -> tuple[QuantumCircuit, list[float]]:
    """The circuit that compares two vectors, and the angles of its rotations in the order of ``theta[k]``."""
    angles: list[float] = PAIR_CIRCUITS[kind].angles(x, y).tolist()
    return pair_circuit(kind, len(x)).assign_parameters(angles), angles


def described(circuit: QuantumCircuit, description: Mapping[str, Any]) -> QuantumCircuit:
    """The circuit, with a description of plain values in its metadata."""
    circuit.metadata = {**(circuit.metadata or {}), METADATA: dict(description)}
    return circuit


def qpy_bytes(circuit: QuantumCircuit) -> bytes:
    """The circuit in Qiskit's own format."""
    out = io.BytesIO()
    qpy.dump(circuit, out)
    return out.getvalue()


def qasm_text(circuit: QuantumCircuit) -> str:
    """The circuit in OpenQASM 3; what is left open is an ``input`` with an underscore for each bracket."""
    # As constants, angles within 1e-9 of a multiple of π would be written as that multiple.
    return _with_description(qasm3.dumps(circuit, disable_constants=True), circuit)


def qasm2_text(circuit: QuantumCircuit) -> str:
    """The circuit in OpenQASM 2, which has no open angles.

    Qiskit's own writer takes angles within 1e-12 of a multiple of π for that multiple; this one keeps every digit. A
    controlled swap, which not every copy of qelib1.inc has, is written as two CNOTs around a Toffoli gate.

    Raises
    ------
    ParameterError
        An angle is open.
    """
    if circuit.num_parameters:
        raise ParameterError(
            f"OpenQASM 2 has no open angles, and this circuit has {circuit.num_parameters}: bind them to a record (a "
            "table and --row, or data and row=), or write OpenQASM 3 (--format qasm)."
        )
    lines = ["OPENQASM 2.0;", 'include "qelib1.inc";']
    lines += [f"qreg {register.name}[{register.size}];" for register in circuit.qregs]
    lines += [f"creg {register.name}[{register.size}];" for register in circuit.cregs]
    qubit_names = {bit: f"{one.name}[{k}]" for one in circuit.qregs for k, bit in enumerate(one)}
    bit_names = {bit: f"{one.name}[{k}]" for one in circuit.cregs for k, bit in enumerate(one)}
    for one in circuit.data:
        name, qubits = one.operation.name, [qubit_names[qubit] for qubit in one.qubits]
        if name == "measure":
            lines.append(f"measure {qubits[0]} -> {bit_names[one.clbits[0]]};")
        elif name == "cswap":
            control, first, second = qubits
            flip = f"cx {second},{first};"
            lines += [flip, f"ccx {control},{first},{second};", flip]
        elif name in _GATES:
            angles = ",".join(_real(float(angle)) for angle in one.operation.params)
            lines.append(f"{name}{f'({angles})' if angles else ''} {','.join(qubits)};")
        else:
            raise ParameterError(f"The gate {name!r} has no form in OpenQASM 2 here: write OpenQASM 3 (--format qasm).")
    return _with_description("\n".join(lines) + "\n", circuit)


def drawing(circuit: QuantumCircuit, *, width: int = 120) -> str:
    """The circuit drawn as text, folded at a width."""
    return str(circuit.draw(output="text", fold=width))


def _real(value: float) -> str:
    """A number with all its digits; the grammar of OpenQASM 2 wants a point before an exponent."""
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + mark + exponent


def _with_description(text: str, circuit: QuantumCircuit) -> str:
    """The text with the description in its second line: the version of the language must stay in the first."""
    description = (circuit.metadata or {}).get(METADATA)
    if description is None:
        return text
    version, _, rest = text.partition("\n")
    # Without characters beyond ASCII there is no sign that another reader could take for the end of the line.
    return f"{version}\n{COMMENT}{json.dumps(description, ensure_ascii=True, allow_nan=False)}\n{rest}"
