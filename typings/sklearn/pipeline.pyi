from typing import Any

class Pipeline:
    steps: list[tuple[str, Any]]

def make_pipeline(*steps: Any, **options: Any) -> Any: ...
