"""Packed circuits as bytes and back, so that a run that goes on another day runs the same circuits."""

import io
import json
from typing import Any

import numpy as np
from qiskit import QuantumCircuit, qpy

from qmedoid.quantum.circuits.rotations import OUTCOME
from qmedoid.quantum.devices.packs import Pack

_MAGIC = b"QISKIT"
# From this version on a parameter expression is a list of operations; before, it is a text that is evaluated.
_LEAST_VERSION = 13


def pack_to_bytes(pack: Pack) -> bytes:
    """A packed circuit: a head in JSON, then the circuit in QPY."""
    head = json.dumps(
        {
            "n_copies": pack.n_copies,
            "n_angles": pack.n_angles,
            "n_bits": pack.n_bits,
            "order": pack.order.tolist(),
            "qubits": pack.qubits,
            "shrink": pack.shrink.tolist(),
        }
    ).encode()
    out = io.BytesIO()
    qpy.dump(pack.circuit, out)
    return len(head).to_bytes(8, "little") + head + out.getvalue()


def pack_from_bytes(content: bytes) -> Pack:
    """The packed circuit that was written; reading it runs no code.

    Raises
    ------
    ValueError
        The bytes are no packed circuit.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    head: dict[str, Any] = json.loads(content[8:end])
    circuit = _circuit(content[end:])
    order = np.array(head["order"], dtype=np.intp)
    pack = Pack(
        circuit, int(head["n_copies"]), int(head["n_angles"]), order,
        tuple(tuple(map(int, place)) for place in head["qubits"]), np.array(head["shrink"], dtype=np.float64),
        int(head.get("n_bits", 1)),
    )  # fmt: skip
    n_angles = pack.n_copies * pack.n_angles
    registers = [(register.name, register.size) for register in circuit.cregs]
    if (
        registers != [(OUTCOME, pack.n_copies * pack.n_bits)]
        or pack.n_bits < 1
        or len(order) != circuit.num_parameters
        or not np.array_equal(np.unique(order), np.sort(order))
        or not np.all((order >= 0) & (order < n_angles))
        or len(pack.shrink) != pack.n_copies
    ):
        raise ValueError("its circuit is not what its head says")
    return pack


def _circuit(content: bytes) -> QuantumCircuit:
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC)] < _LEAST_VERSION:
        raise ValueError("it holds no circuit in QPY of a version that can be read")
    try:
        circuits = qpy.load(io.BytesIO(content))
    except Exception as error:  # whatever bytes make Qiskit raise
        raise ValueError(f"its circuit cannot be read ({type(error).__name__}: {error})") from error
    if len(circuits) != 1 or not isinstance(circuits[0], QuantumCircuit):
        raise ValueError("it holds something else than one circuit")
    return circuits[0]
