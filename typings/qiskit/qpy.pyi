from typing import BinaryIO

from qiskit import QuantumCircuit

def dump(programs: QuantumCircuit, file_obj: BinaryIO) -> None: ...
