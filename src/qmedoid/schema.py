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
