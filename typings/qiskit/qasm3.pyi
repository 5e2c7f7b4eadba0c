from collections.abc import Sequence

from qiskit import QuantumCircuit

def dumps(
    circuit: QuantumCircuit,
    *,
    includes: Sequence[str] = ...,
    basis_gates: Sequence[str] = ...,
    disable_constants: bool = False,
) -> str: ...
