from typing import Any

class RandomForestClassifier:
    def __init__(self, **params: Any) -> None: ...
