import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int32]

def add_leaves(
    rows: Array, columns: Places, thresholds: Array, leaves: Array, output: Places, outputs: Array
) -> None: ...
