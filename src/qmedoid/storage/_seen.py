"""Hashes of the rows that a model was fitted on, as they are stored."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.fields import Fields, RefusedError, Shelf, whole
from qmedoid.model.seen import KEY_BYTES, MOST_KEPT, SeenRows

_ARRAY = "seen.hashes"
_KEY = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")


def packed(seen: SeenRows | None, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any] | None:
    """What the manifest says of the hashes, which are added to the arrays; None where there are none."""
    if seen is None:
        return None
    arrays[_ARRAY] = whole(seen.hashes)
    return {"key": seen.key.hex(), "is_sample": bool(seen.is_sample)}


def read(value: Any, shelf: Shelf) -> SeenRows | None:
    """The hashes, or None where there are none."""
    if value is None:
        return None
    fields = Fields(value, "seen", ("key", "is_sample"))
    key = fields.text("key")
    if not _KEY.fullmatch(key):
        raise RefusedError(f"seen.key must hold {2 * KEY_BYTES} hexadecimal digits, and does not")
    hashes = shelf.whole(_ARRAY, None, below=2**63).astype(np.int64)
    if not 1 <= len(hashes) <= MOST_KEPT or not (hashes[1:] > hashes[:-1]).all():
        raise RefusedError(f"array {_ARRAY!r} must hold from 1 to {MOST_KEPT} ascending numbers, and does not")
    return SeenRows(bytes.fromhex(key), hashes, fields.flag("is_sample"))
