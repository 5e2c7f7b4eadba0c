from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.floating]

LANES: dict[int, int]

def tape_size(n_rows: int, n_qubits: int, itemsize: int) -> int: ...
def states(angles: Real, weights: Real, reupload: bool, out: NDArray[Any]) -> None: ...
def expectations(
    angles: Real, weights: Real, observables: Real, reupload: bool, out: Real, tape: Real | None = None
) -> None: ...
def gradient(
    tape: Real,
    angles: Real,
    weights: Real,
    observables: Real,
    upstream: Real,
    reupload: bool,
    by_weights: NDArray[np.float64],
    by_angles: Real,
) -> None: ...
