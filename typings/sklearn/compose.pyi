from typing import Any

class ColumnTransformer:
    def __init__(self, transformers: Any, **params: Any) -> None: ...
