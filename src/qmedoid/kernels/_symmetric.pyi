import numpy as np
from numpy.typing import NDArray

def grow(
    bins: NDArray[np.uint8],
    codes: NDArray[np.intp],
    held_bins: NDArray[np.uint8],
    held_codes: NDArray[np.intp],
    candidates: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    start: NDArray[np.float64],
    rate: float,
    l2: float,
    patience: int,
    least_gain: float,
    columns: NDArray[np.int32],
    cuts: NDArray[np.int32],
    leaves: NDArray[np.float64],
    losses: NDArray[np.float64],
) -> int: ...
