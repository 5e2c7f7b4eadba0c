import numpy as np
from numpy.typing import NDArray

def spread(X: NDArray[np.float64]) -> float: ...
def totals(
    X: NDArray[np.float64], w: NDArray[np.float64], rows: NDArray[np.intp], out: NDArray[np.float64]
) -> None: ...
def all_totals(X: NDArray[np.float64], w: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def centre(
    X: NDArray[np.float64], pivot: NDArray[np.float64], Z: NDArray[np.float64], norms: NDArray[np.float64]
) -> None: ...
def moments(
    Z: NDArray[np.float64],
    norms: NDArray[np.float64],
    w: NDArray[np.float64],
    low: float,
    high: float,
    r0: float,
    out: NDArray[np.float64],
) -> None: ...
def bounds(
    Z: NDArray[np.float64],
    norms: NDArray[np.float64],
    rows: NDArray[np.intp],
    moments: NDArray[np.float64],
    r0: float,
    out: NDArray[np.float64],
) -> None: ...
