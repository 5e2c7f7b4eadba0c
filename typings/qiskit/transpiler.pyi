from typing import Any

from qiskit import QuantumCircuit

class TranspilerError(Exception): ...

class PassManager:
    def run(self, circuits: QuantumCircuit) -> QuantumCircuit: ...

class Target:
    num_qubits: int | None
    dt: float | None
    operation_names: Any
    def __init__(self, *, num_qubits: int, dt: float | None = None) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

def generate_preset_pass_manager(
    optimization_level: int = 2,
    backend: Any = None,
    target: Target | None = None,
    *,
    initial_layout: list[int] | None = None,
    seed_transpiler: int | None = None,
) -> PassManager: ...
