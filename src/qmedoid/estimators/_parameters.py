"""Checks of constructor parameters, with one shape of error: what is allowed, and what was given."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
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
class Share:
    """A number between 0 and 1."""

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1

    def __str__(self) -> str:
        return "a number between 0 and 1"


@dataclass(frozen=True)
class Positive:
    """A finite number above 0."""

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf

    def __str__(self) -> str:
        return "a number above 0"


@dataclass(frozen=True)
class NotNegative:
    """A finite number from 0 up."""

    def allows(self, value: Any) -> bool:
        """Whether the value is such a number."""
        return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < math.inf

    def __str__(self) -> str:
        return "a number >= 0"


@dataclass(frozen=True)
class Gains:
    """The four numbers of SPSA."""

    def allows(self, value: Any) -> bool:
        """Whether the value is a positive a and c, and an α and γ that are not negative."""
        return (
            isinstance(value, tuple | list)
            and len(value) == 4
            and all(Positive().allows(gain) for gain in value[:2])
            and all(NotNegative().allows(power) for power in value[2:])
        )

    def __str__(self) -> str:
        return "four numbers (a, c, alpha, gamma), the first two above 0, the others >= 0"


@dataclass(frozen=True)
class InputScales:
    """The word "learned", a number, or several."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        if isinstance(value, str):
            return value == "learned"
        if isinstance(value, Real):
            return Positive().allows(value)
        several = list(value) if isinstance(value, tuple | list) or getattr(value, "ndim", None) == 1 else []
        return len(several) > 0 and all(Positive().allows(scale) for scale in several)

    def __str__(self) -> str:
        return "'learned', a number above 0, or one for every feature"


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
class Some:
    """A list of some of these words, at least one."""

    words: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is such a list."""
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        return is_list and len(value) > 0 and all(one in self.words for one in value)

    def __str__(self) -> str:
        return "a list of some of " + ", ".join(map(repr, self.words))


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
class Folder:
    """A path."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one."""
        return isinstance(value, str | os.PathLike) and bool(os.fspath(value))

    def __str__(self) -> str:
        return "the path of a folder"


@dataclass(frozen=True)
class Either:
    """What one of two constraints allows."""

    first: Constraint
    second: Constraint

    def allows(self, value: Any) -> bool:
        """Whether the value is allowed by either."""
        return self.first.allows(value) or self.second.allows(value)

    def __str__(self) -> str:
        return f"{self.first} or {self.second}"


@dataclass(frozen=True)
class Estimator:
    """An estimator of one class."""

    kind: type

    def allows(self, value: Any) -> bool:
        """Whether the value is such an estimator."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return f"a {self.kind.__name__}"


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


def check_parameters(estimator: str, values: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise for the first parameter that its constraint does not allow."""
    for name, constraint in constraints.items():
        if not constraint.allows(values[name]):
            raise ParameterError(
                f"The {name!r} parameter of {estimator} must be {constraint}. Got {values[name]!r} instead."
            )
