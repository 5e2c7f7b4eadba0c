from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit

class BitArray:
    array: npt.NDArray[np.uint8]
    num_shots: int
    def bitcount(self) -> npt.NDArray[np.uint64]: ...

class DataBin:
    def __getitem__(self, key: str) -> BitArray: ...

class SamplerPubResult:
    data: DataBin

class PrimitiveResult:
    def __getitem__(self, index: int) -> SamplerPubResult: ...

class BasePrimitiveJob:
    def result(self) -> PrimitiveResult: ...

class BaseSamplerV2:
    def run(
        self, pubs: Iterable[tuple[QuantumCircuit, npt.NDArray[np.float64]]], *, shots: int | None = None
    ) -> BasePrimitiveJob: ...

class StatevectorSampler(BaseSamplerV2):
    def __init__(self, *, default_shots: int = 1024, seed: np.random.Generator | int | None = None) -> None: ...
