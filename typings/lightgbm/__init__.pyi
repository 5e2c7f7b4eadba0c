from typing import Any

class LGBMClassifier:
    def __init__(self, **params: Any) -> None: ...
