from typing import Any

class SVC:
    def __init__(self, **params: Any) -> None: ...

class LinearSVC:
    def __init__(self, **params: Any) -> None: ...
