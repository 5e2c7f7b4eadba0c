from typing import Any

class SimpleImputer:
    def __init__(self, **params: Any) -> None: ...
