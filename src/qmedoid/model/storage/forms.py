"""Objects of stored classes to JSON and arrays, and back, by what :mod:`qmedoid.schema` declares at their fields."""

import math
import operator
import re
import types
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.model.storage.strict import plain
from qmedoid.schema import Packed, RefusedError, Tagged, Unstored, Values, shown

Arrays = dict[str, npt.NDArray[Any]]
"""Stored arrays by the path of their field."""
Form = tuple[str, Any, Any]
"""How a field is stored: what it holds, of what, and its declaration."""
Scope = dict[str, Any]
Kind = TypeVar("Kind")
_DTYPES: dict[Any, Any] = {Array: "f8", Codes: "i8", Flags: "u1", tuple[int, ...]: "i8", str: "u1"}
_MADE: dict[Any, Any] = {Codes: np.intp, Flags: np.bool_}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", bytes: "a text"}
_USUAL = {int: Values(most=2**53), float: Values()}
_FREE = (Values(), Values(nan=True))
_ORDERS = {"rises": operator.gt, "never falls": operator.ge, "falls": operator.lt}
_BOUNDS = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}


def write(value: Any, arrays: Arrays) -> Any:
    """JSON of an object of a stored class; its arrays are added."""
    return _written(("object", type(value), None), value, "", arrays)


def read(kind: type[Kind], value: Any, arrays: Arrays) -> Kind:
    """The object that `write` wrote; its arrays are taken, and everything is checked."""
    made: Kind = _object(kind, value, "", arrays, {})
    if arrays:
        raise RefusedError(f"it holds the unknown array {shown(next(iter(arrays)))}")
    return made


@cache
def stored_fields(kind: Any) -> dict[str, Form]:
    """How each field of a stored class is stored, in the order of reading: JSON, then arrays, then objects."""
    hints = get_type_hints(kind, include_extras=True)
    forms = {name: _form(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    return dict(
        sorted(((n, form) for n, form in forms.items() if form[0] != "unstored"), key=lambda one: _turn(one[1]))
    )


def _form(hint: Any, spec: Any = None) -> Form:
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _form(of[0], of[1])
    if isinstance(spec, Unstored):
        return "unstored", None, None
    if isinstance(spec, Mapping):
        return "given", _form(hint), spec
    if isinstance(spec, Tagged):
        return "tagged", spec.find, spec.names
    if origin in (Union, types.UnionType):
        others = [one for one in of if one is not types.NoneType]
        if len(others) < len(of):
            return "null", _form(Union[tuple(others)], spec), None  # noqa: UP007
        if all(one in _WORDS for one in others):
            return "scalar", tuple(others), None
        kinds = {one.__name__: one for one in others}
        return "tagged", kinds.__getitem__, kinds
    if isinstance(spec, Packed):
        return "packed", of[0], spec
    if origin is tuple and spec is None:
        return "list", _form(of[0]), None
    if hint in _DTYPES and isinstance(spec, Values):
        return "array", hint, spec
    if origin is Literal:
        return "scalar", str, of
    if hint in _WORDS:
        return "scalar", hint, spec or _USUAL.get(hint)
    if hint is Any:
        return "any", None, None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mapping", _form(of[1]), None
    return "object", hint, None


def _turn(form: Form) -> int:
    holds, of, _ = form
    if holds in ("list", "null", "given"):
        return _turn(of)
    return {"array": 1, "packed": 1, "object": 2, "tagged": 2}.get(holds, 0)


@cache
def _json_names(kind: Any) -> list[str]:
    return [name for name, form in stored_fields(kind).items() if _is_json(form)]


def _is_json(form: Form) -> bool:
    return _is_json(form[1]) if form[0] == "given" else form[0] not in ("array", "packed")


def _written(form: Form, value: Any, path: str, arrays: Arrays) -> Any:
    """JSON of the value of a field; None where it is arrays alone."""
    holds, of, spec = form
    match holds:
        case "null" | "given":
            return None if value is None else _written(of, value, path, arrays)
        case "scalar":
            return value.hex() if of is bytes else plain(of(value) if of in (int, float) else value, path)
        case "list":
            return [_written(of, one, f"{path}.{i}", arrays) for i, one in enumerate(value)]
        case "object":
            described = {
                name: _written(own, getattr(value, name), f"{path}.{name}" if path else name, arrays)
                for name, own in stored_fields(of).items()
            }
            return {name: described[name] for name in _json_names(of)}
        case "tagged":
            for name in spec:
                if type(value) is of(name):
                    return {"type": name, **_written(("object", type(value), None), value, path, arrays)}
            raise ModelError(
                f"The {type(value).__name__} at {path} cannot be stored: its type must be one of {sorted(spec)}."
            )
        case "array":
            arrays[path] = np.ascontiguousarray(value, dtype=_DTYPES[of])
            return "array"
        case "packed":
            _pack(of, spec, value, path, arrays)
            return None
    return plain(value, path)


def _read(form: Form, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
    """The value of a field, checked; `scope` has the fields that were read before, and symbols."""
    holds, of, spec = form
    match holds:
        case "scalar":
            if spec is None and type(value) is of:
                return value
            return _scalar(of, spec, value, path, scope)
        case "null":
            return None if value is None else _read(of, value, path, arrays, scope)
        case "given":
            given = {symbol: _size(name, scope) for symbol, name in spec.items()}
            if "C" in given:
                given["K"] = 1 if given["C"] == 2 else given["C"]
            return _read(of, value, path, arrays, scope | given)
        case "list":
            if not isinstance(value, list):
                raise RefusedError(f"{path} must be a list, and is {shown(value)}")
            return tuple([_read(of, one, f"{path}.{i}", arrays, scope) for i, one in enumerate(value)])
        case "mapping":
            if not isinstance(value, dict):
                raise RefusedError(f"{path} must be an object, and is {shown(value)}")
            if of[0] == "any":
                return value
            return {key: _read(of, one, f"{path}.{key}", arrays, scope) for key, one in value.items()}
        case "object":
            return _object(of, value, path, arrays, scope)
        case "tagged":
            name = value.get("type") if isinstance(value, dict) else None
            if not isinstance(name, str) or name not in spec:
                raise RefusedError(f"{path}.type must be one of {sorted(spec)}, and is {shown(name)}")
            return _object(of(name), {key: one for key, one in value.items() if key != "type"}, path, arrays, scope)
        case "array":
            if value not in (None, "array"):
                raise RefusedError(f"{path} must be null or 'array', and is {shown(value)}")
            return _made(of, _taken(of, spec, path, arrays, scope))
        case "packed":
            return _unpacked(of, spec, path, arrays, scope)
    return value


def _scalar(kind: Any, spec: Any, value: Any, path: str, scope: Scope) -> Any:
    """A text, a truth value or a number."""
    wanted = str if kind is bytes else kind
    if kind is float and type(value) is int and abs(value) < 2**1000:
        value = float(value)
    is_any = isinstance(kind, tuple)
    odd = is_any and isinstance(value, float) and not math.isfinite(value)
    if odd or type(value) not in (kind if is_any else (wanted,)):
        words = "a text, a number or a truth value" if is_any else _WORDS[kind]
        raise RefusedError(f"{path} must be {words}, and is {shown(value)}")
    if spec is None or (spec in _FREE and math.isfinite(value)):
        return value  # as most are, without the price of NumPy
    if isinstance(spec, Values):
        _refuse(spec, value, f"{path} must be a", scope, "i8" if kind is int else "f8")
    elif isinstance(spec, tuple) and value not in spec:
        raise RefusedError(f"{path} must be one of {list(spec)}, and is {shown(value)}")
    elif isinstance(spec, str) and not re.fullmatch(spec, value):
        raise RefusedError(f"{path} must match {spec}, and is {shown(value)}")
    return bytes.fromhex(value) if kind is bytes else value


def _object(kind: Any, value: Any, path: str, arrays: Arrays, scope: Scope) -> Any:
    """An object of a stored class, which has all of its fields and no other."""
    names, where = _json_names(kind), path or "it"
    if not isinstance(value, dict):
        raise RefusedError(f"{where} must be an object, and is {shown(value)}")
    if len(value) != len(names) or not all(map(value.__contains__, names)):
        missing, extra = [n for n in names if n not in value], [n for n in value if n not in names]
        found = f"lacks {shown(missing[0])}" if missing else f"has the unknown field {shown(extra[0])}"
        raise RefusedError(f"{where} {found}")
    known, made, start = dict(scope), {}, f"{path}." if path else ""
    for name, form in stored_fields(kind).items():
        known[name] = made[name] = _read(form, value.get(name), start + name, arrays, known)
    try:
        result = kind(**made)
        if hasattr(result, "validate"):
            result.validate()
    except (ParameterError, RefusedError) as error:
        raise RefusedError(f"{where}: {str(error).rstrip('.')}") from None
    return result


def _taken(kind: Any, spec: Values, path: str, arrays: Arrays, scope: Scope, shape: str = "") -> npt.NDArray[Any]:
    """A stored array, checked."""
    array = arrays.pop(path, None)
    if array is None:
        raise RefusedError(f"it lacks the array {path!r}")
    _refuse(spec, array, f"array {path!r} must hold", scope, _DTYPES[kind], shape or spec.shape)
    return array


def _made(kind: Any, part: npt.NDArray[Any]) -> Any:
    """What a field of arrays holds."""
    if kind == tuple[int, ...]:
        return tuple(part.tolist())
    return part.astype(_MADE.get(kind, np.float64), copy=False)


def packed_fields(kind: Any, spec: Packed) -> dict[str, tuple[Any, Values]]:
    """The arrays of packed parts by the name of their field, which small arrays and texts have none of."""
    if kind in _DTYPES:
        return {"": (kind, spec.values)}
    # A truth value of each part is an array of all of them.
    return {
        n: (of, own) if h == "array" else (bool, Values(below=2)) for n, (h, of, own) in stored_fields(kind).items()
    }


def _pack(kind: Any, spec: Packed, value: Any, path: str, arrays: Arrays) -> None:
    """Add small arrays, texts or objects that hold some, end to end."""
    for name, (of, _) in packed_fields(kind, spec).items():
        where, column = f"{path}.{name}" if name else path, [getattr(one, name) if name else one for one in value]
        if of is bool:
            arrays[where] = np.array(column, dtype="u1")
            continue
        if of is str:
            column = [np.frombuffer(plain(text, path).encode(), dtype="u1") for text in column]
        dtype = _DTYPES[of]
        arrays[where] = np.concatenate([np.zeros(0, dtype), *(np.asarray(one, dtype) for one in column)])
        if not isinstance(spec.bounds, str):
            arrays[f"{path}.offsets"] = np.cumsum([0, *map(len, column)]).astype("i8")


def _unpacked(kind: Any, spec: Packed, path: str, arrays: Arrays, scope: Scope) -> Any:
    """What `_pack` has put end to end."""
    if isinstance(spec.bounds, str):
        bounds = np.cumsum([0, *map(len, scope[spec.bounds])]).tolist()
    else:
        bounds = _taken(Codes, spec.bounds, f"{path}.offsets", arrays, scope).tolist()
        del scope["total"]
    columns: dict[str, list[Any]] = {}
    for name, (of, own) in packed_fields(kind, spec).items():
        where = f"{path}.{name}" if name else path
        if of is bool:
            flags = _taken(Flags, own, where, arrays, scope, f"{len(bounds) - 1}")
            columns[name] = flags.astype(np.bool_).tolist()
            continue
        array = _taken(of, own, where, arrays, scope, f"{bounds[-1]}")
        try:
            ends = pairwise(bounds)
            if of is str:
                content = array.tobytes()
                columns[name] = [content[a:b].decode() for a, b in ends]
            else:
                whole = _made(of, array)
                columns[name] = [whole[a:b] for a, b in ends]
        except UnicodeDecodeError:
            raise RefusedError(f"array {where!r} holds a text that is not UTF-8") from None
    if "" in columns:
        return tuple(columns[""])
    return tuple(kind(**dict(zip(columns, one, strict=True))) for one in zip(*columns.values(), strict=True))


def _refuse(spec: Values, values: Any, what: str, scope: Scope, dtype: str, shape: str = "") -> None:
    """Raise where numbers are not as declared.

    Symbols and fields by name are in `scope`, where symbols of the shape that are not there yet are bound.
    """
    numbers = "number"
    if isinstance(values, np.ndarray):
        numbers = "numbers"
        _refuse_shape(values, what, scope, np.dtype(dtype), shape.split())
    if dtype == "f8" and not np.isfinite(values).all():
        wrong = ~np.isfinite(values) & ~(spec.nan & np.isnan(values)) & ~(spec.infinite & np.isinf(values))
        if wrong.any():
            raise RefusedError(f"{what} {'' if spec.infinite else 'finite '}{numbers}, not {_first(values, wrong)}")
    least = 0 if spec.least is spec.above is None and dtype != "f8" and spec.largest == np.inf else spec.least
    bounds = (least, "at least"), (spec.above, "above"), (spec.most, "at most"), (spec.below, "below")
    for bound, word in bounds if spec.largest == np.inf else ((-spec.largest, "at least"), (spec.largest, "at most")):
        if bound is not None:
            limit = _lookup(bound, scope) if isinstance(bound, str) else bound
            fits = _BOUNDS[word](values, limit)
            if fits is not True and (fits is False or not fits.all()):
                named = f"those of {bound!r}" if isinstance(limit, np.ndarray) else f"{limit:.12g}"
                raise RefusedError(f"{what} {numbers} {word} {named}, not {_first(values, np.logical_not(fits))}")
    if not spec.zero and not np.all(values):
        raise RefusedError(f"{what} {numbers} other than 0")
    if spec.shape:
        _refuse_array(spec, values, what, scope)


def _refuse_array(spec: Values, array: npt.NDArray[Any], what: str, scope: Scope) -> None:
    fewest, most = spec.length
    if not fewest <= len(array) <= most:
        limit = f"at least {fewest}" if len(array) < fewest else f"at most {most}"
        raise RefusedError(f"{what} {limit} numbers or rows, not {len(array)}")
    if spec.order:
        keeps = _ORDERS[spec.order](array[1:], array[:-1])
        if spec.within and len(array):
            keeps[scope[spec.within][1:-1] - 1] = True
        if not keeps.all():
            raise RefusedError(f"{what} numbers of which each {spec.order}{' within its part' * bool(spec.within)}")
    if spec.first is not None and array[0] != spec.first:
        raise RefusedError(f"{what} {spec.first} at its start, not {array[0]}")
    if spec.last:
        last = _lookup(spec.last, scope) if spec.last in scope or not len(array) else int(array[-1])
        if not len(array) or array[-1] != last:
            raise RefusedError(f"{what} {last} at its end, which is {spec.last}")
        scope[spec.last] = last
    if spec.every and len(np.unique(array)) != _lookup(str(spec.below), scope):
        raise RefusedError(f"{what} every number below {_lookup(str(spec.below), scope)}, and lacks one")


def _refuse_shape(array: npt.NDArray[Any], what: str, scope: Scope, dtype: Any, names: list[str]) -> None:
    sizes = [_size(name, scope) for name in names]
    fits = all(known in (None, found) for known, found in zip(sizes, array.shape, strict=False))
    if array.dtype != dtype or array.ndim != len(sizes) or not fits:
        lengths = ", ".join("any" if known is None else str(known) for known in sizes)
        raise RefusedError(f"{what} {dtype} of shape ({lengths}), not {array.dtype} of {array.shape}")
    for name, known, found in zip(names, sizes, array.shape, strict=True):
        if known is None:
            scope[name.removesuffix("+1")] = found - name.endswith("+1")


def _size(name: str, scope: Scope) -> int | None:
    """A length: a number, the length of what has a name, or a sum of these; None for a symbol that is not bound."""
    if name.isdecimal():
        return int(name)
    if "+" in name:
        sizes = [_size(part, scope) for part in name.split("+")]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    if "." not in name and name not in scope:
        return None
    value = _lookup(name, scope)
    return int(value) if isinstance(value, int | np.integer) else len(value)


def _lookup(name: str, scope: Scope) -> Any:
    """What has a name, such as ``"network.n_parameters"``; of the lists that members of a list hold, their lengths."""
    first, *rest = name.split(".")
    value = scope[first]
    for one in rest:
        value = sum(len(getattr(member, one)) for member in value) if type(value) is tuple else getattr(value, one)
    return value


def _first(values: Any, wrong: Any) -> str:
    return shown(values[wrong].flat[0].item() if isinstance(values, np.ndarray) else values)
