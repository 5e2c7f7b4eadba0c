import numpy as np
from numpy.typing import NDArray

def nearest_in_cells(
    rows: NDArray[np.float64],
    prototypes: NDArray[np.float64],
    names: NDArray[np.intp],
    starts: NDArray[np.intp],
    radii: NDArray[np.float64],
    own: NDArray[np.intp] | None,
    visits: NDArray[np.intp],
    to_centers: NDArray[np.float64],
    squared: NDArray[np.float64],
    indices: NDArray[np.intp],
) -> None: ...
