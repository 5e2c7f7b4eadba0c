from typing import Any

class LogisticRegression:
    def __init__(self, **params: Any) -> None: ...
