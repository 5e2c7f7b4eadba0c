from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.kernels.evidence import EvidencePlan

def judge(
    columns: NDArray[np.floating[Any]] | Sequence[NDArray[np.floating[Any]]],
    plan: EvidencePlan,
    outputs: NDArray[np.float64] | None = None,
    distance: NDArray[np.float64] | None = None,
    angle: NDArray[np.float64] | None = None,
    nearest: NDArray[np.intp] | None = None,
) -> int: ...
