"""How the fields of a model are stored: declared where they are defined, and checked as they are read.

A stored class is a dataclass, a named tuple or a class whose annotations are the arguments that make it. Numbers of
NumPy are stored as arrays, by the path of their field; everything else is JSON::

    medoids: Annotated[Array, Values("P M")]
    medoid_classes: Annotated[Codes, Values("P", below="C", every=True)]
    alpha: Annotated[float, Values(least=0, most=1)]
    neighbors: Neighbors | None

A text is declared by a tuple of those that are allowed, or by a regular expression; bytes are stored in hexadecimal
digits. An object is given the names of what M and C are for it, its columns and classes, by a mapping; with C it has K
outputs: 1 for two classes, else C.

A name in a shape or a bound is a field that was read before (of a list or an array its length), a symbol that was
given, or a symbol that is bound where it is met first. Texts and single numbers of an object are read first, then
arrays, then other objects. What a declaration cannot say, a method ``validate`` may: it raises a `RefusedError`.
Nothing is made whose size a file merely claims: arrays have the sizes that the file has.
"""

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

MODERATE = 1e100
"""Weights and scores of a model are far smaller than this, and lengths larger than its inverse."""
MOST_ROWS = 2**53
"""Counts of rows are below this."""
Bound = float | str | None
Kind = TypeVar("Kind")
_ORDERS = {"rises": operator.gt, "never falls": operator.ge, "falls": operator.lt}
_BOUNDS = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}


class RefusedError(Exception):
    """Why a model file is not read; `load` turns it into a `ModelError`."""

    def __init__(self, reason: str, role: str = "") -> None:
        super().__init__(reason)
        self.role = role


@dataclass(frozen=True, kw_only=True)
class Values:
    """Numbers of a shape and a range; without a shape one number, which is stored as JSON.

    Attributes
    ----------
    shape : str
        Lengths, each a name, a number or a sum of these, as in ``"L+2 outputs"``.
    least, above, most, below : float or str
        Bounds; the name of an array bounds number by number. Whole numbers are at least 0 by default.
    largest : float
        Bound of the magnitude.
    nan, infinite, zero : bool
        Whether numbers may be NaN, infinite or 0.
    every : bool
        Whether every whole number below `below` must occur.
    order : {"rises", "never falls", "falls"}
        Of the numbers of an array; within the parts whose bounds the field `within` has, if any.
    first : int or None
        The first number.
    last : str
        Name of the last number, which is bound where it is no field.
    length : tuple of int
        Bounds of the first length.
    """

    shape: str = field(default="", kw_only=False)
    least: Bound = None
    above: Bound = None
    most: Bound = None
    below: Bound = None
    largest: float = np.inf
    nan: bool = False
    infinite: bool = False
    zero: bool = True
    every: bool = False
    order: str = ""
    within: str = ""
    first: int | None = None
    last: str = ""
    length: tuple[int, int] = (0, 2**62)

    def refuse(self, values: Any, what: str, scope: dict[str, Any], dtype: str, shape: str = "") -> None:
        """Raise where numbers are not as declared.

        Symbols and fields by name are in `scope`, where symbols of the shape that are not there yet are bound.
        """
        numbers = "number"
        if isinstance(values, np.ndarray):
            numbers = "numbers"
            _refuse_shape(values, what, scope, np.dtype(dtype), shape.split())
        if dtype == "f8" and not np.isfinite(values).all():
            wrong = ~np.isfinite(values) & ~(self.nan & np.isnan(values)) & ~(self.infinite & np.isinf(values))
            if wrong.any():
                raise RefusedError(f"{what} {'' if self.infinite else 'finite '}{numbers}, not {_first(values, wrong)}")
        least = 0 if self.least is self.above is None and dtype != "f8" and self.largest == np.inf else self.least
        bounds = (least, "at least"), (self.above, "above"), (self.most, "at most"), (self.below, "below")
        for bound, word in (
            bounds if self.largest == np.inf else ((-self.largest, "at least"), (self.largest, "at most"))
        ):
            if bound is not None:
                limit = lookup(bound, scope) if isinstance(bound, str) else bound
                fits = np.asarray(_BOUNDS[word](values, limit))
                if not fits.all():
                    named = f"those of {bound!r}" if isinstance(limit, np.ndarray) else f"{limit:.12g}"
                    raise RefusedError(f"{what} {numbers} {word} {named}, not {_first(values, ~fits)}")
        if not self.zero and not np.all(values):
            raise RefusedError(f"{what} {numbers} other than 0")
        if self.shape:
            self._refuse_array(values, what, scope)

    def _refuse_array(self, array: npt.NDArray[Any], what: str, scope: dict[str, Any]) -> None:
        fewest, most = self.length
        if not fewest <= len(array) <= most:
            limit = f"at least {fewest}" if len(array) < fewest else f"at most {most}"
            raise RefusedError(f"{what} {limit} numbers or rows, not {len(array)}")
        if self.order:
            keeps = _ORDERS[self.order](array[1:], array[:-1])
            if self.within and len(array):
                keeps[scope[self.within][1:-1] - 1] = True
            if not keeps.all():
                raise RefusedError(f"{what} numbers of which each {self.order}{' within its part' * bool(self.within)}")
        if self.first is not None and array[0] != self.first:
            raise RefusedError(f"{what} {self.first} at its start, not {array[0]}")
        if self.last:
            last = lookup(self.last, scope) if self.last in scope or not len(array) else int(array[-1])
            if not len(array) or array[-1] != last:
                raise RefusedError(f"{what} {last} at its end, which is {self.last}")
            scope[self.last] = last
        if self.every and len(np.unique(array)) != lookup(str(self.below), scope):
            raise RefusedError(f"{what} every number below {lookup(str(self.below), scope)}, and lacks one")


def _refuse_shape(array: npt.NDArray[Any], what: str, scope: dict[str, Any], dtype: Any, names: list[str]) -> None:
    sizes = [size(name, scope) for name in names]
    fits = all(known in (None, found) for known, found in zip(sizes, array.shape, strict=False))
    if array.dtype != dtype or array.ndim != len(sizes) or not fits:
        lengths = ", ".join("any" if known is None else str(known) for known in sizes)
        raise RefusedError(f"{what} {dtype} of shape ({lengths}), not {array.dtype} of {array.shape}")
    for name, known, found in zip(names, sizes, array.shape, strict=True):
        if known is None:
            scope[name.removesuffix("+1")] = found - name.endswith("+1")


class RowNumbers(Values):
    """Row numbers of the training table."""


def renumbered(value: Kind, rows: npt.NDArray[np.intp]) -> Kind:
    """A stored object whose training row i is row ``rows[i]`` of a larger table; those that it holds alike."""
    changed: dict[str, Any] = {}
    for name, hint in get_type_hints(type(value), include_extras=True).items():
        own, specs = getattr(value, name), getattr(hint, "__metadata__", ())
        if any(isinstance(one, Unstored) for one in specs):
            continue
        if any(isinstance(one, RowNumbers) for one in specs):
            changed[name] = rows[own].astype(np.intp)
        elif isinstance(own, tuple) and own and all(is_dataclass(one) for one in own):
            changed[name] = tuple(renumbered(one, rows) for one in own)
        elif is_dataclass(own) and get_origin(hint) is not ClassVar:
            changed[name] = renumbered(own, rows)
    made: Kind = replace(value, **changed)  # type: ignore[type-var]
    return made


def part_bounds(n_parts: str, total: str, *, shortest: int = 1, fewest: int = 0) -> Values:
    """Bounds of at least `fewest` parts of `total` things, from 0, each at least `shortest` (0 or 1) long."""
    order = "rises" if shortest else "never falls"
    return Values(f"{n_parts}+1", order=order, first=0, last=total, length=(fewest + 1, 2**62))


class Packed(NamedTuple):
    """A list of texts, of small arrays, or of objects that hold some, stored as one array for each of their fields.

    Attributes
    ----------
    bounds : Values or str
        Of the parts, as `part_bounds` has them with "total"; or a field whose parts have the same lengths.
    values : Values
        Range of the numbers of small arrays.
    """

    bounds: Values | str
    values: Values = Values()


class Tagged(NamedTuple):
    """An object of one of several classes, stored with the name of its class."""

    find: Callable[[str], type[Any]]
    names: Collection[str]


class Unstored:
    """A field that is not stored: it has its default when it is read."""


def size(name: str, scope: dict[str, Any]) -> int | None:
    """A length: a number, the length of what has a name, or a sum of these; None for a symbol that is not bound."""
    if name.isdecimal():
        return int(name)
    if "+" in name:
        sizes = [size(part, scope) for part in name.split("+")]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    if "." not in name and name not in scope:
        return None
    value = lookup(name, scope)
    return int(value) if isinstance(value, int | np.integer) else len(value)


def lookup(name: str, scope: dict[str, Any]) -> Any:
    """What has a name, such as ``"network.n_parameters"``; of the lists that members of a list hold, their lengths."""
    first, *rest = name.split(".")
    value = scope[first]
    for one in rest:
        value = sum(len(getattr(member, one)) for member in value) if type(value) is tuple else getattr(value, one)
    return value


def _first(values: Any, wrong: Any) -> str:
    return shown(values[wrong].flat[0].item() if isinstance(values, np.ndarray) else values)


def shown(value: Any) -> str:
    """A value in a message: at most a few dozen characters of it."""
    if isinstance(value, list | dict | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a huge number"
    return short(repr(value))


def short(text: str) -> str:
    """A text in a message, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:77] + "..."
