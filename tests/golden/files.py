"""Golden values as files: rounded, written readably, and compared."""

import json
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "values"
DIGITS = 9
"""Significant digits that are written."""
CLOSE = 1e-6
"""Numbers are the same that differ by no more than this, absolutely or relatively."""
_NOTHING = 1e-12


def path_of(name: str) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, Any]:
    """The values of a case as they are kept."""
    values: dict[str, Any] = json.loads(path_of(name).read_text(encoding="utf-8"))
    return values


def write(name: str, values: dict[str, Any]) -> None:
    """Keep the values of a case."""
    FOLDER.mkdir(exist_ok=True)
    path_of(name).write_text(json.dumps(rounded(values), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Plain values with numbers of `DIGITS` digits; what is nothing but rounding becomes 0."""
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        return 0.0 if abs(value) < _NOTHING else float(f"{value:.{DIGITS}g}")
    return value


def differences(found: Any, kept: Any, where: str = "") -> list[str]:
    """Where values differ: numbers that are not close, and everything else that is not equal."""
    if isinstance(found, dict) and isinstance(kept, dict):
        lacking = [f"{where}.{key}: kept or found only once" for key in found.keys() ^ kept.keys()]
        return lacking + [
            one for key in found if key in kept for one in differences(found[key], kept[key], f"{where}.{key}")
        ]
    if isinstance(found, list) and isinstance(kept, list):
        if len(found) != len(kept):
            return [f"{where}: {len(found)} parts, and {len(kept)} are kept"]
        pairs = enumerate(zip(found, kept, strict=True))
        return [one for place, (new, old) in pairs for one in differences(new, old, f"{where}[{place}]")]
    if isinstance(found, float) and isinstance(kept, float):
        is_same = math.isclose(found, kept, rel_tol=CLOSE, abs_tol=CLOSE)
    else:
        is_same = type(found) is type(kept) and found == kept
    return [] if is_same else [f"{where}: {found!r}, and {kept!r} is kept"]
