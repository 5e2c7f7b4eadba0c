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
_WIDTH = 118


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
    path_of(name).write_text(_text(rounded(values)) + "\n", encoding="utf-8")


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
    is_same = _close(found, kept) if isinstance(found, float) and isinstance(kept, float) else _equal(found, kept)
    return [] if is_same else [f"{where}: {found!r}, and {kept!r} is kept"]


def _close(found: float, kept: float) -> bool:
    return math.isclose(found, kept, rel_tol=CLOSE, abs_tol=CLOSE)


def _equal(found: Any, kept: Any) -> bool:
    return type(found) is type(kept) and bool(found == kept)


def _text(value: Any, indent: int = 0) -> str:
    """JSON in which what fits a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (indent and len(line) + indent <= _WIDTH):
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {_text(item, indent + 1)}" for key, item in value.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    if not any(isinstance(item, dict | list) for item in value):
        return _packed([json.dumps(item, ensure_ascii=False) for item in value], pad)
    return "[\n" + ",\n".join(pad + _text(item, indent + 1) for item in value) + "\n" + " " * indent + "]"


def _packed(items: list[str], pad: str) -> str:
    """A list of plain values on as few lines as they need."""
    lines = [pad]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH:
            lines.append(pad)
        lines[-1] += f"{item}, "
    return "[\n" + "\n".join(line.rstrip() for line in lines).rstrip(",") + "\n" + pad[:-1] + "]"
