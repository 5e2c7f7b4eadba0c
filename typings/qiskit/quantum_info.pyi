from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit
from qiskit.circuit import Instruction
from qiskit_aer.noise import QuantumError

class Statevector:
    def __init__(self, data: QuantumCircuit) -> None: ...
    def probabilities(self, qargs: Sequence[int] | None = None) -> npt.NDArray[np.float64]: ...

class Operator:
    def __init__(self, data: Instruction) -> None: ...

class SuperOp:
    def __init__(self, data: Instruction | QuantumError) -> None: ...

class PTM:
    data: npt.NDArray[np.complex128]
    def __init__(self, data: Operator | SuperOp) -> None: ...

class SparsePauliOp:
    @staticmethod
    def from_sparse_list(
        obj: Sequence[tuple[str, Sequence[int], float]], num_qubits: int
    ) -> SparsePauliOp: ...
    def apply_layout(self, layout: Any) -> SparsePauliOp: ...
