from typing import Any

# Arrow ships no types of its own; what is used of it is checked by the tests.
def __getattr__(name: str) -> Any: ...
