from typing import Any

class StandardScaler:
    def __init__(self, **params: Any) -> None: ...

class TargetEncoder:
    categories_: list[Any]
    encodings_: list[Any]
    target_mean_: Any
    def __init__(self, **params: Any) -> None: ...
    def fit_transform(self, X: Any, y: Any) -> Any: ...
