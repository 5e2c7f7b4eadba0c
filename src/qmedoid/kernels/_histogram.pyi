import numpy as np
from numpy.typing import NDArray

class Boosting:
    def __init__(
        self,
        bins: NDArray[np.uint8],
        n_bins: NDArray[np.int32],
        codes: NDArray[np.intp],
        start: NDArray[np.float64],
        rate: float,
        l2: float,
        least_rows: int,
    ) -> None: ...
    def step(
        self,
        masks: NDArray[np.uint8],
        columns: NDArray[np.int32],
        cuts: NDArray[np.int32],
        values: NDArray[np.float64],
        n_rows: NDArray[np.int32],
    ) -> int: ...

def add_trees(
    bins: NDArray[np.uint8],
    columns: NDArray[np.int32],
    cuts: NDArray[np.int32],
    values: NDArray[np.float64],
    outputs: NDArray[np.float64],
) -> None: ...
def losses(outputs: NDArray[np.float64], codes: NDArray[np.intp], found: NDArray[np.float64]) -> None: ...
