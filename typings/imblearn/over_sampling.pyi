from typing import Any

class SMOTE:
    def __init__(self, **params: Any) -> None: ...
