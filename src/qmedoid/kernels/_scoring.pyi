from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.kernels.scoring import ScoringPlan

TILE: int

def score(
    columns: NDArray[np.floating[Any]] | Sequence[NDArray[np.floating[Any]]],
    plan: ScoringPlan,
    angle: str,
    distance: NDArray[np.float64] | None = None,
    theta: NDArray[np.float64] | None = None,
    nearest: NDArray[np.intp] | None = None,
    scores: NDArray[np.float64] | None = None,
    labels: NDArray[np.intp] | None = None,
) -> int: ...
