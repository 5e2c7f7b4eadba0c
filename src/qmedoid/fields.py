"""Strict JSON and arrays, checked field by field and array by array as they are read.

JSON has no spelling for NaN and the infinities. Here they are objects with the one key ``$float``:
``{"$float": "nan"}``, ``{"$float": "inf"}`` and ``{"$float": "-inf"}``.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError

LARGEST_JSON = 2**25
"""Bytes of the largest JSON file that is read."""
# Values of the largest file: each takes memory far beyond its bytes.
_MOST_VALUES = 2**21
_DEEPEST = 32
_KEY = "$float"
_NAMES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
Choice = TypeVar("Choice", bound=str)
Kind = TypeVar("Kind")
Arrays = dict[str, npt.NDArray[Any]]
"""Stored arrays by name."""


class RefusedError(Exception):
    """Why a model file is not read; `load` turns it into a `ModelError`."""

    def __init__(self, reason: str, role: str = "") -> None:
        super().__init__(reason)
        self.role = role


@contextmanager
def inside(role: str) -> Iterator[None]:
    """Name the file whose contents are refused."""
    try:
        yield
    except RefusedError as refused:
        raise refused if refused.role else RefusedError(str(refused), role) from None


def written(value: Any) -> bytes:
    """JSON for a reader: indented, texts as they are."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def compact(value: Any) -> bytes:
    """JSON on one line with sorted keys, in ASCII: the form that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """A value as JSON takes it: lists, texts, numbers, truth values, None, and NaN in its spelling."""
    if depth > _DEEPEST:
        raise ModelError(f"{where} is nested deeper than {_DEEPEST} levels: a model file keeps flat values only.")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _utf8(value, where)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_KEY: repr(float(value))}
    if isinstance(value, Mapping):
        if _KEY in value or not all(isinstance(key, str) for key in value):
            raise ModelError(f"{where} has keys that are not texts, or the key {_KEY!r}, which is reserved.")
        return {_utf8(key, where): plain(one, f"{where}[{key!r}]", depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(one, where, depth + 1) for one in value]
    raise ModelError(
        f"{where} is a {type(value).__name__}, which a model file cannot hold: it holds numbers, texts, truth values, "
        "None, lists and mappings of texts to these."
    )


def restored(value: Any, depth: int = 0) -> Any:
    """The value that `plain` wrote."""
    if depth > _DEEPEST + 1:
        raise RefusedError(f"it is nested deeper than {_DEEPEST} levels")
    if isinstance(value, list):
        return [restored(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if _KEY not in value:
        return {key: restored(one, depth + 1) for key, one in value.items()}
    name = value[_KEY]
    if len(value) > 1 or not isinstance(name, str) or name not in _NAMES:
        raise RefusedError(f"{shown(value)} is not one of the numbers {', '.join(_NAMES)}")
    return _NAMES[name]


def parsed(content: bytes) -> Any:
    """JSON from bytes that may hold anything; duplicate keys, bare NaN and lone surrogates are refused."""
    if len(content) > LARGEST_JSON:
        raise RefusedError(f"it has {len(content)} bytes, and at most {LARGEST_JSON} are read")
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
        raise RefusedError(f"it holds more than {_MOST_VALUES} values")
    try:
        value = json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        if b"\\ud" in content or b"\\uD" in content:  # may be half of a pair, which no text may hold
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise RefusedError("it is nested too deep") from None
    except ValueError as error:  # of the decoder, of JSON, or of a number of too many digits
        raise RefusedError(f"it is not JSON ({_short(str(error))})") from None
    return value


def shown(value: Any) -> str:
    """A value in a message: at most a few dozen characters of it."""
    if isinstance(value, list | dict | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a huge number"
    return _short(repr(value))


class Fields:
    """The fields of a JSON object, none missing and none unknown, each checked as it is taken."""

    def __init__(self, value: Any, where: str, names: Sequence[str]) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise RefusedError(f"{where} must be an object, and is {shown(value)}")
        if set(value) != set(names):
            missing, extra = [n for n in names if n not in value], [n for n in value if n not in names]
            found = f"lacks {shown(missing[0])}" if missing else f"has the unknown field {shown(extra[0])}"
            raise RefusedError(f"{where} {found}")
        self._value: dict[str, Any] = value

    def raw(self, name: str) -> Any:
        """The value as it is."""
        return self._value[name]

    def text(self, name: str) -> str:
        """A text."""
        return self._of_type(name, str, "a text")

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._of_type(name, bool, "true or false")

    def choice(self, name: str, allowed: Sequence[Choice]) -> Choice:
        """One of a few texts."""
        value = self.text(name)
        for one in allowed:
            if value == one:
                return one
        raise RefusedError(f"{self.where}.{name} must be one of {list(allowed)}, and is {shown(value)}")

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self._value[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RefusedError(
                f"{self.where}.{name} must be a whole number from {low} to {high}, and is {shown(value)}"
            )
        return value

    def real(self, name: str, *, infinite: bool = False) -> float:
        """A number, finite unless infinities are allowed; never NaN."""
        value = restored(self._value[name])
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
            value = float(value)
        if not isinstance(value, float) or math.isnan(value) or (math.isinf(value) and not infinite):
            raise RefusedError(
                f"{self.where}.{name} must be a {'' if infinite else 'finite '}number, and is {shown(value)}"
            )
        return value

    def list(self, name: str) -> list[Any]:
        """A list."""
        return self._of_type(name, list, "a list")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self.list(name)
        for value in values:
            if not isinstance(value, str):
                raise RefusedError(f"{self.where}.{name} must hold texts only, and holds {shown(value)}")
        return tuple(values)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object, with NaN and infinities restored."""
        value = restored(self._value[name])
        if not isinstance(value, dict):
            raise RefusedError(f"{self.where}.{name} must be an object, and is {shown(value)}")
        return value

    def _of_type(self, name: str, kind: type[Kind], what: str) -> Kind:
        value = self._value[name]
        if not isinstance(value, kind):
            raise RefusedError(f"{self.where}.{name} must be {what}, and is {shown(value)}")
        return value


def _utf8(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{where} holds a text that is not Unicode: {text[:60]!a}.") from None
    return str(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has a key twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:77] + "..."


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
