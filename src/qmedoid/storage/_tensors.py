"""Arrays in the safetensors format, read only after every length and offset in the file was found to be right.

The format: 8 bytes with the length of a header, the header as JSON (name to type, shape, first and last byte), then
the bytes of the arrays, without gaps.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.storage._json import Fields, RefusedError, parsed, shown

_TYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
_MOST_DIMENSIONS = 2


class _Place(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


def tensors_parsed(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file that may hold anything."""
    start = 8 + int.from_bytes(content[:8], "little")
    if len(content) < 8 or start > len(content):
        raise RefusedError("its header is longer than the file")
    header = parsed(content[8:start])
    if not isinstance(header, dict):
        raise RefusedError("its header is not an object")
    places = {name: _place(f"array {shown(name)}", entry) for name, entry in header.items()}
    # Before anything is copied: arrays that share bytes could ask for many times the memory of the file.
    _check_gapless(places.values(), len(content) - start)
    body = memoryview(content)[start:]
    return {name: _array(body, place) for name, place in places.items()}


def _place(where: str, entry: Any) -> _Place:
    fields = Fields(entry, where, ("dtype", "shape", "data_offsets"))
    dtype = _TYPES[fields.choice("dtype", tuple(_TYPES))]
    shape, offsets = _counts(fields, "shape"), _counts(fields, "data_offsets")
    if len(shape) > _MOST_DIMENSIONS or len(offsets) != 2:
        raise RefusedError(f"{where} must have at most {_MOST_DIMENSIONS} dimensions, a first and a last byte")
    first, last = offsets
    if last - first != math.prod(shape) * dtype.itemsize:
        raise RefusedError(f"{where} has a shape that does not agree with its bytes")
    return _Place(dtype, shape, first, last)


def _array(body: memoryview, place: _Place) -> npt.NDArray[Any]:
    """A copy, so that it is aligned and owns its memory."""
    array = np.frombuffer(body[place.first : place.last], dtype=place.dtype).reshape(place.shape)
    return array.astype(place.dtype.newbyteorder("="))


def _counts(fields: Fields, name: str) -> tuple[int, ...]:
    values = fields.list(name)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
            raise RefusedError(f"{fields.where}.{name} must hold counts, and holds {shown(value)}")
    return tuple(values)


def _check_gapless(places: Iterable[_Place], length: int) -> None:
    end = 0
    for place in sorted(places, key=lambda place: (place.first, place.last)):
        if place.first != end:
            raise RefusedError("its arrays overlap or leave gaps")
        end = place.last
    if end != length:
        raise RefusedError("its arrays and its length do not agree")


MODERATE = 1e100
"""Weights and scores of a model are far smaller than this."""


class Shelf:
    """Arrays by name, taken one by one and checked; `done` refuses what nobody took."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays

    def floats(self, name: str, *shape: int | None, nan: bool = False) -> Array:
        """Finite numbers of a shape, None where any length will do; NaN only where it is allowed."""
        array = self._take(name, np.dtype(np.float64), shape)
        if np.isinf(array).any() or not (nan or np.isfinite(array).all()):
            raise RefusedError(f"array {name!r} holds numbers that are not finite")
        return array

    def moderate(self, name: str, *shape: int | None, largest: float = MODERATE) -> Array:
        """Numbers whose products with some others, and their sums, stay within the range of a double."""
        array = self.floats(name, *shape)
        if (np.abs(array) > largest).any():
            raise RefusedError(f"array {name!r} holds numbers beyond ±{largest:g}")
        return array

    def scales(self, name: str, *shape: int | None) -> Array:
        """Finite numbers other than 0."""
        array = self.floats(name, *shape)
        if not array.all():
            raise RefusedError(f"array {name!r} holds a 0, by which nothing can be divided")
        return array

    def whole(self, name: str, *shape: int | None, below: int) -> Codes:
        """Whole numbers from 0 on and below a bound."""
        array = self._take(name, np.dtype(np.int64), shape)
        if array.size and not 0 <= array.min() <= array.max() < below:
            raise RefusedError(f"array {name!r} must hold numbers from 0 to {below - 1}, and holds others")
        return array.astype(np.intp)

    def offsets(self, name: str, count: int | None, total: int, *, step: int) -> Codes:
        """Bounds of `count` parts, from 0 to `total`, each at least `step` long."""
        array = self.whole(name, None if count is None else count + 1, below=total + 1)
        if len(array) == 0 or array[0] != 0 or array[-1] != total or (np.diff(array) < step).any():
            raise RefusedError(f"array {name!r} must ascend from 0 to {total}, and does not")
        return array

    def bytes(self, name: str) -> bytes:
        """Bytes of any number."""
        return self._take(name, np.dtype(np.uint8), (None,)).tobytes()

    def done(self) -> None:
        """Refuse arrays that were not taken."""
        if self._arrays:
            raise RefusedError(f"it holds the unknown array {shown(next(iter(self._arrays)))}")

    def _take(self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        array = self._arrays.pop(name, None)
        if array is None:
            raise RefusedError(f"it lacks the array {name!r}")
        fits = len(array.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise RefusedError(
                f"array {name!r} must be {dtype} of shape ({wanted}), and is {array.dtype} of {array.shape}"
            )
        return array


def floats(values: Any) -> Array:
    """Numbers as they are stored."""
    return np.ascontiguousarray(values, dtype=np.float64)


def whole(values: Any) -> npt.NDArray[np.int64]:
    """Whole numbers as they are stored."""
    return np.ascontiguousarray(values, dtype=np.int64)
