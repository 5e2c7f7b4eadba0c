"""Arrays and scalings as plain values, fit for JSON."""

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.geometry.scaling import RankScaling, Scaling

# Little-endian types from small to large; the last holds every number of a model.
_TYPES = ("u1", "i2", "i4", "f4", "f8")


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as type, shape and base64 text; its values come back exactly, the sign of a zero aside."""
    given = np.ascontiguousarray(array, dtype=np.float64)
    kind = next(name for name in _TYPES if _holds(given, name))
    text = base64.b64encode(given.astype("<" + kind if kind != "u1" else kind).tobytes()).decode("ascii")
    return {"type": kind, "shape": list(given.shape), "data": text}


def _holds(values: npt.NDArray[np.float64], kind: str) -> bool:
    if kind == "f8":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        if kind != "f4" and not np.isfinite(values).all():
            return False
        back = values.astype(kind).astype(np.float64)
    return bool(np.array_equal(back, values, equal_nan=True))


def rank_scaling(given: RankScaling) -> dict[str, Any]:
    """Knots and scores of every column."""
    return {name: packed(getattr(given, name)) for name in ("offsets", "values", "scores")}


def scaling(given: Scaling) -> dict[str, Any]:
    """Centers and scales of the columns."""
    return {"center": packed(given.center), "scale": packed(given.scale)}
