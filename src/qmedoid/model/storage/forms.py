"""Objects of stored classes to JSON and arrays, and back, by what :mod:`qmedoid.schema` declares at their fields."""

import math
import re
import types
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.model.storage.strict import plain
from qmedoid.schema import Given, Offsets, Packed, RefusedError, Tagged, Unstored, Values, Wording, shown, size

Arrays = dict[str, npt.NDArray[Any]]
"""Stored arrays by the path of their field."""
Scope = dict[str, Any]
Kind = TypeVar("Kind")
_OBJECTS: dict[Any, "_Object"] = {}
_DTYPES: dict[Any, Any] = {Array: "f8", Codes: "i8", Flags: "u1", tuple[int, ...]: "i8", str: "u1"}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", bytes: "a text"}


def write(value: Any, arrays: Arrays) -> Any:
    """JSON of an object of a stored class; its arrays are added."""
    return _object(type(value)).write(value, "", arrays)


def read(kind: type[Kind], value: Any, arrays: Arrays) -> Kind:
    """The object that `write` wrote; its arrays are taken, and everything is checked."""
    made: Kind = _object(kind).read(value, "", arrays, {})
    if arrays:
        raise RefusedError(f"it holds the unknown array {shown(next(iter(arrays)))}")
    return made


def stored_fields(kind: Any) -> dict[str, Any]:
    """How each field of a stored class is stored, in the order of reading."""
    hints = get_type_hints(kind, include_extras=True)
    forms = {name: _form(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    return dict(sorted(((n, form) for n, form in forms.items() if form is not None), key=lambda item: item[1].turn))


def _object(kind: Any) -> "_Object":
    if kind not in _OBJECTS:
        _OBJECTS[kind] = _Object(kind)
    return _OBJECTS[kind]


def _form(hint: Any, spec: Any = None) -> Any:
    """How a field of some type is stored; None if it is not."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _form(of[0], of[1])
    if isinstance(spec, Unstored):
        return None
    if isinstance(spec, Given):
        return _Wrapped(_form(spec.kind or hint), spec)
    if isinstance(spec, Tagged):
        return _Tagged(spec)
    if origin in (Union, types.UnionType):
        others = [one for one in of if one is not types.NoneType]
        if len(others) < len(of):
            return _Wrapped(_form(Union[tuple(others)], spec))  # noqa: UP007
        if all(one in _WORDS for one in others):
            return _Scalar(tuple(others), spec)
        return _Tagged(Tagged({one.__name__: one for one in others}.__getitem__, [one.__name__ for one in others]))
    if isinstance(spec, Packed):
        return _Packed(of[0], spec)
    if isinstance(spec, Offsets):
        return _Offsets(spec)
    if hint in _DTYPES and isinstance(spec, Values):
        return _Array(hint, spec)
    if origin is Literal:
        return _Scalar(str, Wording(of))
    if hint in _WORDS:
        return _Scalar(hint, spec)
    if hint is Any or origin is tuple:
        return _List(_form(of[0])) if of else _Free()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Mapping(_form(of[1]))
    return _object(hint)


class _Free:
    """Any JSON."""

    turn = 0
    is_json = True

    def write(self, value: Any, path: str, _arrays: Arrays) -> Any:
        return plain(value, path)

    def read(self, value: Any, _path: str, _arrays: Arrays, _scope: Scope) -> Any:
        return value


class _Scalar(_Free):
    """A text, a truth value or a number."""

    def __init__(self, kind: Any, spec: Any) -> None:
        self.kind, self.spec = kind, spec or {int: Values(most=2**53), float: Values()}.get(kind)
        self.is_free = self.spec in (Values(), Values(nan=True))

    def write(self, value: Any, path: str, _arrays: Arrays) -> Any:
        if self.kind is bytes:
            return value.hex()
        return plain(self.kind(value) if self.kind in (int, float) else value, path)

    def read(self, value: Any, path: str, _arrays: Arrays, scope: Scope) -> Any:
        kind, wanted, spec = self.kind, (str if self.kind is bytes else self.kind), self.spec
        if kind is float and type(value) is int and abs(value) < 2**1000:
            value = float(value)
        is_any = isinstance(kind, tuple)
        odd = is_any and isinstance(value, float) and not math.isfinite(value)
        if odd or type(value) not in (kind if is_any else (wanted,)):
            words = "a text, a number or a truth value" if is_any else _WORDS[kind]
            raise RefusedError(f"{path} must be {words}, and is {shown(value)}")
        if spec is None or (self.is_free and math.isfinite(value)):
            return value  # as most are, without the price of NumPy
        if isinstance(spec, Values):
            spec.refuse(value, f"{path} must be a", scope, "i8" if kind is int else "f8")
        elif value not in spec.allowed and not (spec.form and re.fullmatch(spec.form, value)):
            raise RefusedError(f"{path} must be {spec.words or f'one of {list(spec.allowed)}'}, and is {shown(value)}")
        return bytes.fromhex(value) if kind is bytes else value


class _Mapping(_Free):
    """An object with any keys."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        if not isinstance(value, dict):
            raise RefusedError(f"{path} must be an object, and is {shown(value)}")
        return {key: self.of.read(one, f"{path}.{key}", arrays, scope) for key, one in value.items()}


class _List(_Free):
    """A list."""

    def __init__(self, of: Any) -> None:
        self.of, self.turn = of, of.turn

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        return [self.of.write(one, f"{path}.{i}", arrays) for i, one in enumerate(value)]

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        if not isinstance(value, list):
            raise RefusedError(f"{path} must be a list, and is {shown(value)}")
        return tuple([self.of.read(one, f"{path}.{i}", arrays, scope) for i, one in enumerate(value)])


class _Wrapped(_Free):
    """Something that may be null, or is given symbols."""

    def __init__(self, of: Any, given: Given | None = None) -> None:
        self.of, self.given, self.turn, self.is_json = of, given, of.turn, of.is_json or given is None

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        return None if value is None else self.of.write(value, path, arrays)

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        if self.given is None:
            return None if value is None else self.of.read(value, path, arrays, scope)
        given = {name: size(of, scope) for name, of in (("M", self.given.M), ("C", self.given.C)) if of}
        if "C" in given:
            given["K"] = 1 if given["C"] == 2 else given["C"]
        return self.of.read(value, path, arrays, scope | given)


class _Object(_Free):
    """An object of a stored class."""

    turn = 2

    def __init__(self, kind: Any) -> None:
        self.kind, self.fields = kind, stored_fields(kind)
        self.names = [name for name, form in self.fields.items() if form.is_json]

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        described = {}
        for name, form in self.fields.items():
            one = form.write(getattr(value, name), f"{path}.{name}" if path else name, arrays)
            if form.is_json:
                described[name] = one
        return described

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        names, where = self.names, path or "it"
        if not isinstance(value, dict):
            raise RefusedError(f"{where} must be an object, and is {shown(value)}")
        if len(value) != len(names) or not all(map(value.__contains__, names)):
            missing, extra = [n for n in names if n not in value], [n for n in value if n not in names]
            found = f"lacks {shown(missing[0])}" if missing else f"has the unknown field {shown(extra[0])}"
            raise RefusedError(f"{where} {found}")
        known, made, start = dict(scope), {}, f"{path}." if path else ""
        for name, form in self.fields.items():
            known[name] = made[name] = form.read(value.get(name), start + name, arrays, known)
        try:
            result = self.kind(**made)
            if hasattr(result, "validate"):
                result.validate()
        except (ParameterError, RefusedError) as error:
            raise RefusedError(f"{where}: {str(error).rstrip('.')}") from None
        return result


class _Tagged(_Free):
    """An object of one of several classes."""

    turn = 2

    def __init__(self, spec: Tagged) -> None:
        self.spec = spec

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        for name in self.spec.names:
            if type(value) is self.spec.find(name):
                return {"type": name} | _object(type(value)).write(value, path, arrays)
        raise ModelError(
            f"The {type(value).__name__} at {path} cannot be stored: its type must be one of {sorted(self.spec.names)}."
        )

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        name = value.get("type") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self.spec.names:
            raise RefusedError(f"{path}.type must be one of {sorted(self.spec.names)}, and is {shown(name)}")
        rest = {key: one for key, one in value.items() if key != "type"}
        return _object(self.spec.find(name)).read(rest, path, arrays, scope)


class _Array(_Free):
    """An array."""

    turn = 1
    is_json = False

    def __init__(self, kind: Any, spec: Values) -> None:
        self.kind, self.spec, self.dtype = kind, spec, {Codes: np.intp, Flags: np.bool_}.get(kind, np.float64)

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        arrays[path] = np.ascontiguousarray(value, dtype=_DTYPES[self.kind])
        return "array"

    def read(self, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        if value not in (None, "array"):
            raise RefusedError(f"{path} must be null or 'array', and is {shown(value)}")
        return self.made(self.taken(path, arrays, self.spec.shape, scope))

    def taken(self, path: str, arrays: Arrays, shape: str, scope: Scope) -> npt.NDArray[Any]:
        """The stored array, checked."""
        array = arrays.pop(path, None)
        if array is None:
            raise RefusedError(f"it lacks the array {path!r}")
        self.spec.refuse(array, f"array {path!r} must hold", scope, _DTYPES[self.kind], shape)
        return array

    def made(self, part: npt.NDArray[Any]) -> Any:
        """What the field holds."""
        return tuple(part.tolist()) if self.kind == tuple[int, ...] else part.astype(self.dtype, copy=False)


class _Offsets(_Array):
    """Bounds of parts."""

    def __init__(self, spec: Offsets) -> None:
        super().__init__(Codes, Values(f"{spec.n_parts}+1"))
        self.offsets = spec

    def read(self, _value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        spec = self.offsets
        if size(spec.n_parts, scope) is None and path in arrays:
            scope[spec.n_parts] = max(arrays[path].size - 1, 0)
        array = self.taken(path, arrays, self.spec.shape, scope)
        total = size(spec.total, scope)
        total = scope.setdefault(spec.total, int(array[-1])) if total is None else total
        if array[0] != 0 or array[-1] != total or (np.diff(array) < spec.shortest).any():
            raise RefusedError(f"array {path!r} must rise from 0 to {total} in steps of at least {spec.shortest}")
        return self.made(array)


class _Packed(_Free):
    """Small arrays, or objects that hold some, end to end."""

    turn = 1
    is_json = False

    def __init__(self, kind: Any, spec: Packed) -> None:
        self.kind, self.spec = kind, spec
        self.fields = {"": _Array(kind, spec.values)} if kind in _DTYPES else stored_fields(kind)
        self.offsets = _Offsets(Offsets(spec.n_parts, "total", shortest=spec.shortest))
        self.flags = _Array(Flags, Values(below=2))

    def write(self, value: Any, path: str, arrays: Arrays) -> Any:
        for name, form in self.fields.items():
            where, column = f"{path}.{name}" if name else path, [getattr(one, name) if name else one for one in value]
            if form.is_json:  # one truth value of each
                arrays[where] = np.array(column, dtype="u1")
                continue
            if form.kind is str:
                column = [np.frombuffer(plain(text, path).encode(), dtype="u1") for text in column]
            dtype = _DTYPES[form.kind]
            arrays[where] = np.concatenate([np.zeros(0, dtype), *(np.asarray(one, dtype) for one in column)])
            if not self.spec.like:
                self.offsets.write(np.cumsum([0, *map(len, column)]), f"{path}.offsets", arrays)

    def read(self, _value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
        if self.spec.like:
            bounds = np.cumsum([0, *map(len, scope[self.spec.like])]).tolist()
        else:
            bounds = self.offsets.read(None, f"{path}.offsets", arrays, known := dict(scope)).tolist()
            scope[self.spec.n_parts] = known[self.spec.n_parts]
        if len(bounds) <= self.spec.fewest:
            raise RefusedError(f"array '{path}.offsets' must have at least {self.spec.fewest + 1} numbers")
        columns: dict[str, list[Any]] = {}
        for name, form in self.fields.items():
            where = f"{path}.{name}" if name else path
            if form.is_json:
                columns[name] = self.flags.taken(where, arrays, f"{len(bounds) - 1}", scope).astype(np.bool_).tolist()
                continue
            array = form.taken(where, arrays, f"{bounds[-1]}", scope)
            parts = pairwise(bounds)
            columns[name] = (
                _texts(array, parts, where) if form.kind is str else [form.made(array[a:b]) for a, b in parts]
            )
        if "" in columns:
            return tuple(columns[""])
        return tuple(self.kind(**dict(zip(columns, one, strict=True))) for one in zip(*columns.values(), strict=True))


def _texts(array: npt.NDArray[Any], parts: Iterable[tuple[int, int]], path: str) -> list[Any]:
    content = array.tobytes()
    try:
        return [content[a:b].decode() for a, b in parts]
    except UnicodeDecodeError:
        raise RefusedError(f"array {path!r} holds a text that is not UTF-8") from None
