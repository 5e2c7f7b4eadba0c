from typing import Any

class Pipeline:
    def __init__(self, steps: list[tuple[str, Any]], **params: Any) -> None: ...
