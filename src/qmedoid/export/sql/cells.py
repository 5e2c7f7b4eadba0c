"""Cells of a column as the numbers that a model reads, and what is wrong with them."""

from typing import Protocol

import numpy as np

from qmedoid.export.sql.dialects import Dialect
from qmedoid.export.sql.stages import RECORD, Stages
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import Column, Numbers

TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
"""Words for truth values."""


class Reading(Protocol):
    """How the cells of one column are read: stage by stage, so that no text is written twice."""

    def cell(self) -> None:
        """Add what is read of the user's table."""

    def parts(self) -> None:
        """Add what is made of that."""

    def value(self) -> None:
        """Add what is made of the parts."""

    def outputs(self) -> list[tuple[str, bool]]:
        """The encoded columns: expressions, and whether each is NULL where the cell is refused."""

    def problem(self) -> str:
        """A text that says what is wrong with the cell, empty where nothing is."""


def cell_of(dialect: Dialect, column: Column) -> str:
    """The cell of a record."""
    return f"{RECORD}.{dialect.identifier(column.name)}"


def text_of(dialect: Dialect, column: Column) -> str:
    """The cell of a record as a text."""
    return f"CAST({cell_of(dialect, column)} AS {dialect.text})"


def is_held(dialect: Dialect, column: Column, value: str) -> str:
    """Whether a number is one of the missing values of its column; empty where the column has none."""
    # In a column of single precision it is the nearest of these.
    whole = [f"{number:.0f}" for number in column.missing_numbers] if column.kind == "date" else []
    given = {one for number in column.missing_numbers for one in (number, float(np.float32(number)))}
    listed = whole or [dialect.number(number) for number in sorted(given)]
    return f"{value} IN ({','.join(listed)})" if listed else ""


def is_word(dialect: Dialect, column: Column) -> str:
    """Whether the text of a cell is one of the missing values of its column; empty where the column has none."""
    words = ",".join(dialect.string(value) for value in column.missing_values)
    text = dialect.exactly(dialect.trimmed(text_of(dialect, column)))
    return f"{text} IN ({words})" if words else ""


def filled(dialect: Dialect, value: str, is_there: str, fill: float) -> tuple[str, bool]:
    """A value, or what fills it where it is not there; NULL where missing cells are refused."""
    if np.isnan(fill):
        return f"CASE WHEN {is_there} THEN {value} END", True
    return f"CASE WHEN {is_there} THEN {value} ELSE {dialect.number(fill)} END", False


class NumberReading:
    """A number or a truth value."""

    def __init__(self, stages: Stages, column: Column, encoding: Numbers) -> None:
        self._stages, self._dialect, self._column, self._encoding = stages, stages.dialect, column, encoding
        self._cell = self._blank = self._word = ""

    def cell(self) -> None:
        """The number, NULL where it is none, and whether the cell is blank; of a truth value the word."""
        if self._column.kind == "boolean":
            word = f"LOWER({self._dialect.trimmed(text_of(self._dialect, self._column))})"
            self._word = self._stages.add("w", word)
            return
        number, blank = _number(self._dialect, self._column)
        if word := is_word(self._dialect, self._column):
            blank = f"CASE WHEN {word} THEN 1 ELSE {blank} END"
        self._cell = self._stages.add("c", number)
        self._blank = self._stages.add("b", blank)

    def parts(self) -> None:
        """Of a truth value the number."""
        if not self._word:
            return
        word = self._dialect.exactly(self._word)
        yes, no = (",".join(self._dialect.string(one) for one in words) for words in (TRUE, FALSE))
        one, zero = self._dialect.number(1.0), self._dialect.number(0.0)
        self._cell = self._stages.add(
            "c", f"CASE WHEN {word} IN ({yes}) THEN {one} WHEN {word} IN ({no}) THEN {zero} END"
        )
        self._blank = self._stages.add("b", f"CASE WHEN {word} NOT IN ('','nan') THEN 0 ELSE 1 END")

    def value(self) -> None:
        """Nothing more."""

    @property
    def _is_there(self) -> str:
        held = is_held(self._dialect, self._column, self._cell)
        return f"ABS({self._cell})<={self._dialect.number(LARGEST)}" + (f" AND NOT {held}" if held else "")

    def outputs(self) -> list[tuple[str, bool]]:
        """The number, and whether it was missing where that is asked for."""
        found = [filled(self._dialect, self._cell, self._is_there, self._encoding.fill)]
        if self._encoding.indicator:
            zero, one = self._dialect.number(0.0), self._dialect.number(1.0)
            found.append((f"CASE WHEN {self._is_there} THEN {zero} ELSE {one} END", False))
        return found

    def problem(self) -> str:
        """Missing, no number, or too large."""
        missing = "''" if self._column.missing else "'missing'"
        held = is_held(self._dialect, self._column, self._cell)
        return (
            f"CASE {f'WHEN {held} THEN {missing} ' if held else ''}WHEN {self._is_there} THEN '' "
            f"WHEN {self._cell} IS NOT NULL THEN 'too large' "
            f"WHEN {self._blank}=1 THEN {missing} ELSE 'no {self._column.kind}' END"
        )


def _number(dialect: Dialect, column: Column) -> tuple[str, str]:
    """A number, NULL where the cell is none, and 1 where the cell is blank."""
    cell, text = cell_of(dialect, column), dialect.trimmed(text_of(dialect, column))
    if dialect.name == "postgres":
        if (word := is_word(dialect, column)) and any(value[-1:].isalpha() for value in column.missing_values):
            cell = f"CASE WHEN {word} THEN NULL ELSE {cell} END"
        number = f"NULLIF(CAST({cell} AS float8),float8'NaN')"
        return number, f"CASE WHEN {number} IS NULL THEN 1 ELSE 0 END"
    if dialect.name == "duckdb":
        number = f"NULLIF(TRY_CAST({cell} AS DOUBLE),CAST('nan' AS DOUBLE))"
        if column.spelling:  # a text such as 1.275 may stand for a thousand times as much
            number = f"CASE TYPEOF({cell}) WHEN 'VARCHAR' THEN NULL ELSE {number} END"
        return number, f"CASE WHEN {cell} IS NULL OR LOWER({text}) IN ('','nan') THEN 1 ELSE 0 END"
    number = f"CASE WHEN TYPEOF({cell}) IN ('integer','real') THEN CAST({cell} AS REAL)"
    if not column.spelling:
        plain = f"{text} NOT GLOB '*[^-+.0-9eE]*' AND JSON_VALID({text})"
        number += f" WHEN TYPEOF({cell})='text' AND {plain} THEN CAST({text} AS REAL)"
    return number + " END", f"CASE WHEN {cell} IS NULL OR {text}='' THEN 1 ELSE 0 END"
