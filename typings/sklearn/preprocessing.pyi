from typing import Any

class StandardScaler:
    def __init__(self, **params: Any) -> None: ...
