from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter
from qiskit.quantum_info import SparsePauliOp

_Result = TypeVar("_Result", covariant=True)

SamplerPubLike = QuantumCircuit | tuple[Any, ...] | SamplerPub

class BitArray:
    array: npt.NDArray[np.uint8]
    num_shots: int
    num_bits: int
    shape: tuple[int, ...]
    def __init__(self, array: npt.NDArray[np.uint8], num_bits: int) -> None: ...
    @classmethod
    def from_bool_array(cls, array: npt.NDArray[np.bool_], order: str = "big") -> BitArray: ...
    def bitcount(self) -> npt.NDArray[np.uint64]: ...

class DataBin:
    def __init__(self, *, shape: tuple[int, ...] = (), **data: Any) -> None: ...
    def __getitem__(self, key: str) -> BitArray: ...

class BindingsArray:
    def as_array(self, parameters: Sequence[Parameter] | None = None) -> npt.NDArray[np.float64]: ...

class SamplerPub:
    circuit: QuantumCircuit
    parameter_values: BindingsArray
    shape: tuple[int, ...]
    size: int
    shots: int
    @classmethod
    def coerce(cls, pub: SamplerPubLike, shots: int | None = None) -> SamplerPub: ...

class SamplerPubResult:
    data: DataBin
    def __init__(self, data: DataBin, metadata: Mapping[str, Any] | None = None) -> None: ...

class PrimitiveResult(Generic[_Result]):
    def __init__(self, pub_results: Iterable[_Result], metadata: Mapping[str, Any] | None = None) -> None: ...
    def __getitem__(self, index: int) -> _Result: ...

class BasePrimitiveJob(Generic[_Result]):
    def result(self) -> _Result: ...

class PrimitiveJob(BasePrimitiveJob[_Result]):
    def __init__(self, function: Callable[..., _Result], *args: object) -> None: ...
    def _submit(self) -> None: ...

class BaseSamplerV2:
    def run(
        self, pubs: Iterable[SamplerPubLike], *, shots: int | None = None
    ) -> BasePrimitiveJob[PrimitiveResult[SamplerPubResult]]: ...

class BackendSamplerV2(BaseSamplerV2):
    def __init__(self, *, backend: object, options: dict[str, object] | None = None) -> None: ...

class StatevectorSampler(BaseSamplerV2):
    def __init__(self, *, default_shots: int = 1024, seed: np.random.Generator | int | None = None) -> None: ...

class EstimatorData:
    def __getitem__(self, key: str) -> npt.NDArray[np.float64]: ...

class EstimatorPubResult:
    data: EstimatorData

class EstimatorResult:
    def __getitem__(self, index: int) -> EstimatorPubResult: ...

class EstimatorJob:
    def result(self) -> EstimatorResult: ...

EstimatorPub = tuple[QuantumCircuit, Sequence[Sequence[SparsePauliOp]], npt.NDArray[np.float64]]

class BaseEstimatorV2:
    def run(self, pubs: Iterable[EstimatorPub], *, precision: float | None = None) -> EstimatorJob: ...

class StatevectorEstimator(BaseEstimatorV2):
    def __init__(
        self, *, default_precision: float = 0.0, seed: np.random.Generator | int | None = None
    ) -> None: ...
