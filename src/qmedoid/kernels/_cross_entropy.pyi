import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def cross_entropy(scores: Array, codes: NDArray[np.intp], weights: Array, gradient: Array | None = None) -> float: ...
