from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qiskit import Clbit

class Qubit: ...

class ParameterExpression:
    parameters: set[Parameter]
    def gradient(self, param: Parameter) -> ParameterExpression | complex: ...
    def bind(self, parameter_values: Mapping[Parameter, float]) -> ParameterExpression: ...
    def __float__(self) -> float: ...

class Parameter(ParameterExpression):
    name: str

class ParameterVector:
    def __init__(self, name: str, length: int) -> None: ...
    def __iter__(self) -> Iterator[ParameterExpression]: ...

class Instruction:
    name: str
    label: str | None
    params: list[Any]

class Gate(Instruction):
    base_class: type[Gate]
    def __init__(self, *parameters: float) -> None: ...
    def to_mutable(self) -> Gate: ...

class Barrier(Instruction): ...

class Delay(Instruction):
    duration: object

class Measure(Instruction): ...

class CircuitInstruction:
    operation: Instruction
    qubits: Sequence[Qubit]
    clbits: Sequence[Clbit]
