from typing import Any

import numpy as np
import numpy.typing as npt

def validate_data(
    _estimator: Any,
    /,
    X: Any = "no_validation",
    y: Any = "no_validation",
    reset: bool = True,
    validate_separately: Any = False,
    skip_check_array: bool = False,
    **check_params: Any,
) -> Any: ...
def check_is_fitted(estimator: Any, attributes: Any = None, *, msg: str | None = None) -> None: ...
def check_consistent_length(*arrays: Any) -> None: ...
def column_or_1d(y: Any, *, dtype: Any = None, warn: bool = False) -> npt.NDArray[Any]: ...
def check_array(array: Any, **params: Any) -> npt.NDArray[np.float64]: ...
