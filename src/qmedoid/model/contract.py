"""The contract of a table, its columns and their kinds, and the encodings that turn columns into numbers.

Every column of a contract has one encoding, which gives one or more numbers per record.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from qmedoid.arrays import Array
from qmedoid.schema import Packed, Values, part_bounds

Kind = Literal["number", "category", "boolean", "date"]
Label = str | int | float | bool
"""A class as it stands in the target column."""
_NUMBER_FORM = re.compile(
    r"(?P<form>1(?:[ ']?234(?:[.,]5)?|,234(?:\.5)?|\.234(?:,5)?))(?P<scaled>k?)"
    r"(?: (?P<unit>[^\s\d,?]([^,?]{0,18}[^\s,?])?)(?P<may_lack>\??))?"
)
_AMOUNT, _SECONDS = r"\d+(?:\.\d+)?", r"(?P<s>[0-5]\d(?:[.,]\d+)?)"
COMPOUND: Mapping[str, str] = {
    "h:mm:ss": rf"(?:(?P<d>\d+) days?,? )?(?P<h>\d+):(?P<m>[0-5]\d):{_SECONDS}",
    "h:mm": r"(?P<h>\d+):(?P<m>[0-5]\d)",
    "m:ss": rf"(?P<m>\d+):{_SECONDS}",
    "h:mm[:ss]": rf"(?P<h>\d+):(?P<m>[0-5]\d)(?::{_SECONDS})?",
    "[h:]mm:ss": rf"(?:(?P<h>\d+):)?(?P<m>\d+):{_SECONDS}",
    "1h 30m": (
        rf"(?:(?P<w>{_AMOUNT}) ?(?:w|wks?|weeks?)[., ]*)?(?:(?P<d>{_AMOUNT}) ?(?:d|days?)[., ]*)?"
        rf"(?:(?P<h>{_AMOUNT}) ?(?:h|hrs?|hours?|std)[., ]*)?(?:and )?(?:(?P<m>{_AMOUNT}) ?(?:m|mins?|minutes?)[., ]*)?"
        rf"(?:and )?(?:(?P<s>{_AMOUNT}) ?(?:s|secs?|seconds?)\.?)?"
    ),
    "PT1H30M": (
        rf"P(?:(?P<w>\d+)W)?(?:(?P<d>{_AMOUNT})D)?(?:T(?:(?P<h>{_AMOUNT})H)?(?:(?P<m>{_AMOUNT})M)?"
        rf"(?:(?P<s>{_AMOUNT})S)?)?"
    ),
    "5'11\"": (
        r"(?P<feet>\d+) ?(?:'|ft\.?|feet|foot),? ?(?:(?P<inches>(?:1[01]|\d)(?:\.\d+)?) ?(?:\"|''|in\.?|inch|inches)?)?"
    ),
}
"""Patterns of numbers of several parts, in any case and maybe behind a minus sign: durations in seconds, and inches."""
FACTORS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "feet": 12, "inches": 1}
"""What the parts of `COMPOUND` are multiplied by."""
_PLAIN_NUMBER = re.compile(r"-?\d{1,310}(\.\d+)?(e[+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_ORDERS = ("d.m.y", "d/m/y", "d-m-y", "m.d.y", "m/d/y", "m-d-y")
DATE_SPELLINGS = (*_ORDERS, *(order + "y" for order in _ORDERS), "yyyymmdd")
"""Orders of day, month and year that a text does not show by itself, yy of two digits, and dates as whole numbers."""


def is_spelling(kind: Kind, spelling: str) -> bool:
    """Whether a text is a spelling of columns of a kind."""
    if kind == "number":
        return spelling in COMPOUND or _NUMBER_FORM.fullmatch(spelling) is not None
    return kind == "date" and spelling in DATE_SPELLINGS


def split_spelling(spelling: str) -> tuple[str, bool, str, bool]:
    """Signs of a spelling that is none of `COMPOUND`, whether letters such as k and M multiply, unit, may it be absent.

    ``"1.234,5k kg?"`` is ``("1.234,5", True, "kg", True)``.
    """
    found = _NUMBER_FORM.fullmatch(spelling)
    if found is None:
        raise ValueError(f"{spelling!r} is no spelling of numbers, such as '1.234,5' or '1,234.5 %'.")
    return found["form"], bool(found["scaled"]), found["unit"] or "", bool(found["may_lack"])


@dataclass(frozen=True)
class Column:
    """A column that a model was fitted on.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "boolean", "date"}
    missing : bool
        Whether cells were missing in the training rows.
    levels : tuple of str
        Of a closed category: all that the training rows held, and names that were seen besides (in held-out rows
        of the same file), which no encoding knows. Another level breaks the contract.
    is_open : bool
        Of a category: whether it has enough levels that new ones are expected. Of a number or a date: whether it
        stood in a column of texts, so that a few cells of another kind are expected; they count as missing.
    spelling : str
        How texts of the column are read. Of a number: ``"1.234,5"`` and its like, without the 5 where no cell
        had decimals, with a k where letters such as k and M multiply, and a unit behind a blank, as in ``"1,234.5 kg"``
        (``kg?`` where some numbers had none); or one of `COMPOUND`. Of a date: one of `DATE_SPELLINGS`. Nothing
        stands for plain numbers and for dates that begin with the year or name the month. Texts in another spelling
        break the contract.
    missing_values : tuple of str
        What stands for a missing cell besides an empty one, such as ``"0"`` or ``"-999"``: numbers as Python writes
        them, dates in the ISO format, words of texts, levels. Cells that are equal to one are read as missing.
    """

    name: str
    kind: Kind
    missing: bool = False
    levels: tuple[str, ...] = ()
    is_open: bool = False
    spelling: str = ""
    missing_values: tuple[str, ...] = ()

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """Those of `missing_values` that are numbers; of dates microseconds since 1970."""
        if self.kind == "category":
            return ()
        if self.kind == "date":
            days = (text for text in self.missing_values if _DATE.fullmatch(text))
            return tuple(float(np.datetime64(day, "us").astype(np.int64)) for day in days)
        return tuple(float(text) for text in self.missing_values if _PLAIN_NUMBER.fullmatch(text))


@dataclass(frozen=True)
class Contract:
    """Columns, target and what was left out.

    Attributes
    ----------
    columns : tuple of Column
        In the order of the training table.
    target : str or None
        The column that held the classes, where it had a name.
    left_out : mapping of str to str
        Columns of the training table that no model reads, each with the reason.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import MedoidClassifier
    >>> contract = MedoidClassifier(method="evidence", random_state=0).fit(X, y).model_.contract
    >>> len(contract.names), contract.columns[0].kind
    (4, 'number')
    """

    columns: tuple[Column, ...]
    target: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def encoded_names(self, encodings: "Sequence[Encoding]") -> list[str]:
        """Names of the columns once encoded."""
        pairs = zip(self.columns, encodings, strict=True)
        return [column.name + output for column, encoding in pairs for output in encoding.outputs]


DatePart = Literal["days", "month", "weekday", "hour"]
DATE_PARTS: tuple[DatePart, ...] = ("days", "month", "weekday", "hour")
"""Days since 1970 with their fraction, month from 1, weekday from Monday = 0, hour of the day with its fraction."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A number or a boolean (0 or 1) as it is.

    Attributes
    ----------
    fill : float
        Value for a missing cell; NaN where missing cells are refused.
    indicator : bool
        Whether a second number says that the cell was missing.
    """

    fill: Annotated[float, Values(nan=True)]
    indicator: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """What each number says."""
        return ("", " is missing") if self.indicator else ("",)


@dataclass(frozen=True, eq=False)
class Dates:
    """A date or time as a few numbers.

    Attributes
    ----------
    parts : tuple of {"days", "month", "weekday", "hour"}
    fills : ndarray of shape (parts,)
        Values for the parts of a missing date.
    indicator : bool
        Whether one more number says that the cell was missing.
    """

    parts: tuple[DatePart, ...]
    fills: Annotated[Array, Values("parts", nan=True)]
    indicator: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """What each number says."""
        return (*(f": {part}" for part in self.parts), *([" is missing"] if self.indicator else []))


@dataclass(frozen=True, eq=False)
class Levels:
    """A category: each level has its row of numbers.

    Attributes
    ----------
    levels : tuple of str
        L different texts, in ascending order.
    values : ndarray of shape (L + 2, len(outputs))
        A row for each level, then that of a missing cell, then that of a level not seen in training.
    outputs : tuple of str
        What each number says: ``"=level"``, ``" is missing"``, ``": frequency"``, ``": target mean"``...
    """

    levels: Annotated[tuple[str, ...], Packed(part_bounds("L", "total", shortest=0))]
    values: Annotated[Array, Values("L+2 outputs", nan=True)]
    outputs: tuple[str, ...]


Encoding = Numbers | Dates | Levels
