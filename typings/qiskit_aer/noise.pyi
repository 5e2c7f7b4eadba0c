from collections.abc import Mapping
from typing import Any

from qiskit.providers import BackendV2
from qiskit.transpiler import PassManager

class NoiseModel:
    basis_gates: list[str]
    noise_instructions: list[str]
    @classmethod
    def from_backend(cls, backend: BackendV2) -> NoiseModel: ...
    def is_ideal(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _pass_manager(self) -> PassManager | None: ...

class QuantumError:
    @staticmethod
    def from_dict(error: Mapping[str, object]) -> QuantumError: ...
