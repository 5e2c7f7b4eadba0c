import numpy as np
from numpy.typing import NDArray

PANEL: int

def nearest(
    rows: NDArray[np.float64],
    prototypes: NDArray[np.float64],
    panels: NDArray[np.float32] | None,
    center: NDArray[np.float64],
    scale: float,
    unit: float,
    own: NDArray[np.intp] | None,
    squared: NDArray[np.float64],
    indices: NDArray[np.intp],
) -> None: ...
