"""Constraints of constructor parameters; every error says what is allowed and what was given."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, cast, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np

from qmedoid.exceptions import ParameterError
from qmedoid.metrics.thresholds import THRESHOLD_METRICS


@dataclass(frozen=True)
class Constraint:
    """The values that a parameter may have: in words, as the end of "must be …", and as a test."""

    text: str
    allows: Callable[[Any], bool]

    def __or__(self, other: "Constraint") -> "Constraint":
        return Constraint(f"{self.text} or {other.text}", lambda value: self.allows(value) or other.allows(value))


def whole(low: int, high: float = math.inf) -> Constraint:
    """A whole number from `low` up, to `high` where there is one."""
    text = f"an int >= {low}" if high == math.inf else f"an int from {low} to {high}"
    return Constraint(
        text, lambda value: isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= high
    )


def number(text: str, test: Callable[[float], bool]) -> Constraint:
    """A real number that passes a test."""
    return Constraint(
        text, lambda value: isinstance(value, Real) and not isinstance(value, bool) and test(float(value))
    )


def choice(words: Iterable[str]) -> Constraint:
    """One of a few words."""
    known = tuple(words)
    return Constraint("one of " + ", ".join(map(repr, known)), lambda value: isinstance(value, str) and value in known)


def instance(kind: type, text: str = "") -> Constraint:
    """An object of one class."""
    return Constraint(text or f"a {kind.__name__}", lambda value: isinstance(value, kind))


def grid(inner: Mapping[str, Constraint]) -> Constraint:
    """A mapping from some parameters to the values that are tried for each."""
    names = "; ".join(f"{name!r}: {constraint.text}" for name, constraint in inner.items())
    return Constraint(
        f"a dict of lists of values to try ({names})",
        lambda value: (
            isinstance(value, Mapping)
            and all(
                name in inner
                and isinstance(tried, list | tuple)
                and len(tried) > 0
                and all(map(inner[name].allows, tried))
                for name, tried in value.items()
            )
        ),
    )


def class_weights(words: Iterable[str]) -> Constraint:
    """Class weights; whether a dict fits the classes is asked when they are known."""
    return NONE | instance(Mapping, "a dict of class to weight") | choice(words)


def _are_positive(value: Any) -> bool:
    is_row = isinstance(value, tuple | list) or getattr(value, "ndim", None) == 1
    return (len(value) > 0 and all(map(POSITIVE.allows, value))) if is_row else POSITIVE.allows(value)


def _are(value: Any, *items: Constraint) -> bool:
    is_row = isinstance(value, tuple | list) and len(value) == len(items)
    return is_row and all(item.allows(one) for item, one in zip(items, value, strict=True))


NONE = Constraint("None", lambda value: value is None)
AUTO = Constraint("'auto'", lambda value: isinstance(value, str) and value == "auto")
FLAG = Constraint("True or False", lambda value: isinstance(value, bool | np.bool_))
SHARE = number("a number between 0 and 1", lambda value: 0 <= value <= 1)
INNER_SHARE = number("a number above 0 and below 1", lambda value: 0 < value < 1)
POSITIVE = number("a number above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = number("a number >= 0", lambda value: 0 <= value < math.inf)
SCALES = Constraint(
    "'learned', a number above 0, or one for every feature",
    lambda value: value == "learned" if isinstance(value, str) else _are_positive(value),
)
GAINS = Constraint(
    "four numbers (a, c, alpha, gamma), the first two above 0, the others >= 0",
    lambda value: _are(value, POSITIVE, POSITIVE, NOT_NEGATIVE, NOT_NEGATIVE),
)
PAIR = Constraint(
    "a pair (first, last) of ints with 1 <= first <= last",
    lambda value: _are(value, whole(1), whole(1)) and value[0] <= value[1],
)
CV = whole(2) | Constraint(
    "a splitter or an iterable of (train, validation) rows",
    lambda value: (hasattr(value, "split") or isinstance(value, Iterable)) and not isinstance(value, str | bytes),
)
CLASS_WEIGHT = class_weights(("balanced",))
SEED = NONE | whole(0, 2**32 - 1) | instance(np.random.RandomState, "a numpy.random.RandomState")
_FLOOR = number("a number above 0 and at most 1", lambda value: 0 < value <= 1)
_COST = POSITIVE | Constraint(
    "a matrix of what it costs to call a record of one class another", lambda value: not isinstance(value, Real | str)
)
RULE_CONSTRAINTS = {"alert_rate": INNER_SHARE, "min_precision": _FLOOR, "min_recall": _FLOOR, "cost": _COST}
"""Rules that an operating point names in a dict, with what is asked of each."""
OPERATING_POINT = Constraint(
    f"None, a number between 0 and 1, {choice(THRESHOLD_METRICS).text}, or a dict with one of "
    + ", ".join(f"{name!r} ({rule.text})" for name, rule in RULE_CONSTRAINTS.items()),
    lambda value: (
        all(name in RULE_CONSTRAINTS and RULE_CONSTRAINTS[name].allows(asked) for name, asked in value.items())
        if isinstance(value, Mapping) and len(value) == 1
        else (NONE | INNER_SHARE | choice(THRESHOLD_METRICS)).allows(value)
    ),
)
"""The parameter `operating_point`: where two classes are separated."""


def check_parameters(estimator: str, values: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise for the first parameter that its constraint does not allow."""
    for name, constraint in constraints.items():
        if not constraint.allows(values[name]):
            raise ParameterError(
                f"The {name!r} parameter of {estimator} must be {constraint.text}. Got {values[name]!r} instead."
            )


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(kind: type[T]) -> type[T]:
    """A class whose annotated fields are the parameters of its constructor, which only keeps them.

    A field has its constraint in its annotation; words and truth values are those of the type.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(kind)
    made._constraints = {one.name: found for one in fields(made) if (found := _constraint(one.type)) is not None}
    made.__init__.__annotations__ = get_type_hints(made.__init__)
    return kind


def _constraint(kind: Any) -> Constraint | None:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return cast("Constraint", inside[1])
    return choice(inside) if origin is Literal else FLAG if kind is bool else None
