"""How the columns of a contract become numbers: plain arrays, fitted elsewhere and applied elsewhere.

Every column of a contract has one encoding, and an encoding gives one or more numbers per record.
"""

from dataclasses import dataclass
from typing import Literal

from qmedoid.arrays import Array

DatePart = Literal["days", "month", "weekday", "hour"]
DATE_PARTS: tuple[DatePart, ...] = ("days", "month", "weekday", "hour")
"""Days since 1970 with their fraction, month from 1, weekday from Monday = 0, hour of the day with its fraction."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A number or a boolean (0 or 1) as it is.

    Attributes
    ----------
    fill : float
        What stands in for a missing cell; NaN where missing cells are refused.
    indicator : bool
        Whether a second number says that the cell was missing.
    """

    fill: float
    indicator: bool = False

    @property
    def width(self) -> int:
        """Numbers per record."""
        return 2 if self.indicator else 1

    def output_names(self, name: str) -> tuple[str, ...]:
        """What the numbers are called."""
        return (name, f"{name} is missing") if self.indicator else (name,)


@dataclass(frozen=True, eq=False)
class Dates:
    """A date or time as a few numbers.

    Attributes
    ----------
    parts : tuple of {"days", "month", "weekday", "hour"}
    fills : ndarray of shape (parts,)
        What stands in for the parts of a missing date.
    indicator : bool
        Whether one more number says that the cell was missing.
    """

    parts: tuple[DatePart, ...]
    fills: Array
    indicator: bool = False

    @property
    def width(self) -> int:
        """Numbers per record."""
        return len(self.parts) + self.indicator

    def output_names(self, name: str) -> tuple[str, ...]:
        """What the numbers are called."""
        missing = (f"{name} is missing",) if self.indicator else ()
        return tuple(f"{name}: {part}" for part in self.parts) + missing


@dataclass(frozen=True, eq=False)
class Levels:
    """A category: each level has its row of numbers.

    Attributes
    ----------
    levels : tuple of str
        L different texts, in ascending order.
    values : ndarray of shape (L + 2, width)
        A row for each level, then that of a missing cell, then that of a level not seen in training.
    outputs : tuple of str
        What each number says: ``"=level"``, ``" is missing"``, ``": frequency"``, ``": target mean"``...
    """

    levels: tuple[str, ...]
    values: Array
    outputs: tuple[str, ...]

    @property
    def width(self) -> int:
        """Numbers per record."""
        return len(self.outputs)

    def output_names(self, name: str) -> tuple[str, ...]:
        """What the numbers are called."""
        return tuple(name + output for output in self.outputs)


Encoding = Numbers | Dates | Levels
