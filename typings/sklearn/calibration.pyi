from typing import Any

class CalibratedClassifierCV:
    def __init__(self, estimator: Any = ..., **params: Any) -> None: ...
