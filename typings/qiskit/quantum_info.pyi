from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit

class Statevector:
    def __init__(self, data: QuantumCircuit) -> None: ...
    def probabilities(self, qargs: Sequence[int] | None = None) -> npt.NDArray[np.float64]: ...
