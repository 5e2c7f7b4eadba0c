"""Constraints of constructor parameters; every error says what is allowed and what was given."""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

from numpy.random import RandomState

from qmedoid.exceptions import ParameterError


class Constraint(Protocol):
    """The allowed values of a parameter, as a test and in words."""

    def allows(self, value: Any) -> bool:
        """Whether the value is allowed."""

    def __str__(self) -> str:
        """The allowed values, as the end of "must be …"."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` up, to `high` where there is one."""

    low: int
    high: int | None = None

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        if not isinstance(value, Integral) or isinstance(value, bool):
            return False
        return self.low <= int(value) and (self.high is None or int(value) <= self.high)

    def __str__(self) -> str:
        return f"an int >= {self.low}" if self.high is None else f"an int from {self.low} to {self.high}"


@dataclass(frozen=True)
class Number:
    """A real number within limits; `text` says which."""

    text: str
    test: Callable[[float], bool]

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Real) and not isinstance(value, bool) and self.test(float(value))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.words))


@dataclass(frozen=True)
class AnyOf:
    """What at least one of several constraints allows; None as an option allows None."""

    options: tuple[Constraint | None, ...]

    def allows(self, value: Any) -> bool:
        """Whether one of the options allows the value."""
        return any(value is None if one is None else one.allows(value) for one in self.options)

    def __str__(self) -> str:
        return " or ".join(map(str, self.options))


@dataclass(frozen=True)
class Instance:
    """An object of one class."""

    kind: type

    def allows(self, value: Any) -> bool:
        """Whether the value is such an object."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return f"a {self.kind.__name__}"


@dataclass(frozen=True)
class Described:
    """Anything else: a test and its words."""

    text: str
    test: Callable[[Any], bool]

    def allows(self, value: Any) -> bool:
        """Whether the value passes the test."""
        return self.test(value)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Grid:
    """A mapping from some parameters to the values that are tried for each."""

    inner: Mapping[str, Constraint]

    def allows(self, value: Any) -> bool:
        """Whether every name is known and every value allowed."""
        return isinstance(value, Mapping) and all(
            name in self.inner
            and isinstance(tried, list | tuple)
            and len(tried) > 0
            and all(self.inner[name].allows(one) for one in tried)
            for name, tried in value.items()
        )

    def __str__(self) -> str:
        names = "; ".join(f"{name!r}: {constraint}" for name, constraint in self.inner.items())
        return f"a dict of lists of values to try ({names})"


def optional(constraint: Constraint) -> AnyOf:
    """None, or what a constraint allows."""
    return AnyOf((None, constraint))


def _is_scales(value: Any) -> bool:
    if isinstance(value, str):
        return value == "learned"
    if isinstance(value, Real):
        return POSITIVE.allows(value)
    several = list(value) if isinstance(value, tuple | list) or getattr(value, "ndim", None) == 1 else []
    return len(several) > 0 and all(POSITIVE.allows(scale) for scale in several)


def _is_cv(value: Any) -> bool:
    splits = hasattr(value, "split") or isinstance(value, Iterable)
    return Whole(2).allows(value) or (splits and not isinstance(value, str | bytes))


def _items(value: Any, constraints: tuple[Constraint, ...]) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == len(constraints)
        and all(constraint.allows(one) for one, constraint in zip(value, constraints, strict=True))
    )


FLAG = Described("True or False", lambda value: isinstance(value, bool) or type(value).__name__ == "bool")
SHARE = Number("a number between 0 and 1", lambda value: 0 <= value <= 1)
INNER_SHARE = Number("a number above 0 and below 1", lambda value: 0 < value < 1)
POSITIVE = Number("a number above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = Number("a number >= 0", lambda value: 0 <= value < math.inf)
SCALES = Described("'learned', a number above 0, or one for every feature", _is_scales)
GAINS = Described(
    "four numbers (a, c, alpha, gamma), the first two above 0, the others >= 0",
    lambda value: _items(value, (POSITIVE, POSITIVE, NOT_NEGATIVE, NOT_NEGATIVE)),
)
SIZES = Described(
    "a pair (first, last) of ints with 1 <= first <= last",
    lambda value: _items(value, (Whole(1), Whole(1))) and value[0] <= value[1],
)
FOLDER = Described(
    "the path of a folder", lambda value: isinstance(value, str | os.PathLike) and bool(os.fspath(value))
)
CV = Described("an int >= 2, a splitter or an iterable of (train, validation) rows", _is_cv)
SEED = Described(
    "None, an int from 0 to 2**32 - 1, or a numpy.random.RandomState",
    lambda value: value is None or isinstance(value, RandomState) or Whole(0, 2**32 - 1).allows(value),
)


def class_weights(words: tuple[str, ...]) -> Described:
    """Class weights; whether a dict fits the classes is asked when they are known."""
    return Described(
        "None, a dict of class to weight, or one of " + ", ".join(map(repr, words)),
        lambda value: value is None or isinstance(value, Mapping) or (isinstance(value, str) and value in words),
    )


def check_parameters(estimator: str, values: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise for the first parameter that its constraint does not allow."""
    for name, constraint in constraints.items():
        if not constraint.allows(values[name]):
            raise ParameterError(
                f"The {name!r} parameter of {estimator} must be {constraint}. Got {values[name]!r} instead."
            )
