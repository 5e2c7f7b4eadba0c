"""Checks of constructor parameters, with one shape of error: what is allowed, and what was given."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

from numpy.random import RandomState

from qmedoid.exceptions import ParameterError


class Constraint(Protocol):
    """What a parameter may be, in words and as a test."""

    def allows(self, value: Any) -> bool:
        """Whether the value is allowed."""

    def __str__(self) -> str:
        """The allowed values, as the end of "must be …"."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` up."""

    low: int

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= self.low

    def __str__(self) -> str:
        return f"an int >= {self.low}"


@dataclass(frozen=True)
class Share:
    """A number between 0 and 1."""

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1

    def __str__(self) -> str:
        return "a number between 0 and 1"


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
class Flag:
    """True or False."""

    def allows(self, value: Any) -> bool:
        """Whether the value is a truth value."""
        return isinstance(value, bool) or type(value).__name__ == "bool"

    def __str__(self) -> str:
        return "True or False"


@dataclass(frozen=True)
class Pair:
    """Two whole numbers, the first at least `low` and not above the second."""

    low: int

    def allows(self, value: Any) -> bool:
        """Whether the value is such a pair."""
        return (
            isinstance(value, tuple | list)
            and len(value) == 2
            and all(Whole(self.low).allows(v) for v in value)
            and value[0] <= value[1]
        )

    def __str__(self) -> str:
        return f"a pair (first, last) of ints with {self.low} <= first <= last"


@dataclass(frozen=True)
class Optional:
    """None, or what another constraint allows."""

    inner: Constraint

    def allows(self, value: Any) -> bool:
        """Whether the value is None or allowed."""
        return value is None or self.inner.allows(value)

    def __str__(self) -> str:
        return f"None or {self.inner}"


@dataclass(frozen=True)
class Folds:
    """A number of folds, a splitter of scikit-learn, or the splits themselves."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        splits = hasattr(value, "split") or isinstance(value, Iterable)
        return Whole(2).allows(value) or (splits and not isinstance(value, str | bytes))

    def __str__(self) -> str:
        return "an int >= 2, a splitter or an iterable of (train, validation) rows"


@dataclass(frozen=True)
class Seed:
    """What scikit-learn takes for a random state."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one."""
        seed = Whole(0).allows(value) and int(value) < 2**32
        return seed or value is None or isinstance(value, RandomState)

    def __str__(self) -> str:
        return "None, an int from 0 to 2**32 - 1, or a numpy.random.RandomState"


def check_parameters(estimator: str, values: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise for the first parameter that its constraint does not allow."""
    for name, constraint in constraints.items():
        if not constraint.allows(values[name]):
            raise ParameterError(
                f"The {name!r} parameter of {estimator} must be {constraint}. Got {values[name]!r} instead."
            )
