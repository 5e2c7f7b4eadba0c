from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Split = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

class BaseCrossValidator:
    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]: ...

class KFold(BaseCrossValidator):
    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None: ...

class StratifiedKFold(BaseCrossValidator):
    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None: ...

class PredefinedSplit(BaseCrossValidator):
    def __init__(self, test_fold: Any) -> None: ...

class StratifiedShuffleSplit(BaseCrossValidator):
    def __init__(
        self, n_splits: int = 10, *, test_size: Any = None, train_size: Any = None, random_state: Any = None
    ) -> None: ...

def check_cv(cv: Any = 5, y: Any = None, *, classifier: bool = False) -> BaseCrossValidator: ...
def train_test_split(*arrays: Any, **options: Any) -> list[Any]: ...
