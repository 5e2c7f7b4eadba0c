"""Arrow without pandas: a process that sees no data frame starts twice as fast."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Refuse:
    """Says that pandas is not installed."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept away from Arrow", name=name)
        return None


def keep_pandas_away() -> None:
    """Have Arrow settle now that there is no pandas, for the life of this process.

    Arrow imports pandas, where installed, at the first array that it makes from Python or hands to NumPy: to ask
    whether it is a series. That takes longer than scoring a thousand rows. It asks once, so it is made to ask while
    pandas cannot be found. Afterwards pandas can be imported by others, but Arrow does not know it: for a command
    line, not for a library. Nothing is done where pandas is there already.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    refuse = _Refuse()
    sys.meta_path.insert(0, refuse)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(refuse)
