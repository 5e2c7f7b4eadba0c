"""Levels of a category: texts are looked up by blanks and trailing zeros aside, and become rows of numbers."""

import re
from collections import Counter

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.sql.cells import cell_of, text_of
from qmedoid.export.sql.dialects import Dialect
from qmedoid.export.sql.stages import Stages
from qmedoid.model.contract import Column, Levels

_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d*)?")


class LevelReading:
    """The levels of one column: a code of each, one for a missing cell, one for any other text."""

    def __init__(self, stages: Stages, column: Column, encoding: Levels) -> None:
        self._stages, self._dialect, self._column, self._encoding = stages, stages.dialect, column, encoding
        self._text = self._trimmed = self._spelt = self._code = ""
        spelt = [_spelt(level) for level in encoding.levels]
        counts = Counter(spelt)
        # Where two levels share a spelling, neither is meant by it.
        self._spellings = {one: code for code, one in enumerate(spelt) if counts[one] == 1}
        self._spellings |= {_spelt(value): len(spelt) for value in column.missing_values}
        self._has_numbers = any(_NUMBER.fullmatch(one) for one in self._spellings)
        self._is_plain = spelt == list(encoding.levels)

    def cell(self) -> None:
        """The cell as a text."""
        text = text_of(self._dialect, self._column)
        if self._dialect.name == "sqlite":  # a cast leaves the collation of the column
            text += "||''"
        self._text = self._stages.add("t", _without_nan(self._dialect, self._column, text))

    def parts(self) -> None:
        """The text without blanks around it."""
        self._trimmed = self._stages.add("w", self._dialect.trimmed(self._text))

    def value(self) -> None:
        """The code: L of a missing cell, L + 1 of a text that is no level."""
        trimmed, count = self._trimmed, len(self._encoding.levels)
        spelt = self._dialect.exactly(_without_zeros(self._dialect, trimmed) if self._has_numbers else trimmed)
        other = f"CASE WHEN {trimmed}<>'' THEN {count + 1} ELSE {count} END"
        found = self._choice(spelt, self._spellings, other)
        if not self._is_plain:
            exact = {level: code for code, level in enumerate(self._encoding.levels)}
            found = self._choice(self._dialect.exactly(self._text), exact, found)
        self._code = self._stages.add("k", found)

    def _choice(self, text: str, codes: dict[str, int], other: str) -> str:
        if not codes:
            return other
        cases = " ".join(f"WHEN {self._dialect.string(level)} THEN {code}" for level, code in codes.items())
        return f"CASE {text} {cases} ELSE {other} END"

    def outputs(self) -> list[tuple[str, bool]]:
        """Of every number of the encoding a choice by the code."""
        return [(self._numbers(column), bool(np.isnan(column).any())) for column in self._encoding.values.T]

    def _numbers(self, values: Array) -> str:
        usual = Counter(values.tolist()).most_common(1)[0][0]
        by_value: dict[float, list[int]] = {}
        for code, value in enumerate(values.tolist()):
            if value != usual and not (np.isnan(value) and np.isnan(usual)):
                by_value.setdefault(value, []).append(code)
        if not by_value:
            return self._number(usual)
        cases = [
            f"WHEN {self._code} IN ({','.join(map(str, codes))}) THEN {self._number(value)}"
            for value, codes in by_value.items()
        ]
        if all(len(codes) == 1 for codes in by_value.values()):
            cases = [f"WHEN {codes[0]} THEN {self._number(value)}" for value, codes in by_value.items()]
            return f"CASE {self._code} {' '.join(cases)} ELSE {self._number(usual)} END"
        return f"CASE {' '.join(cases)} ELSE {self._number(usual)} END"

    def _number(self, value: float) -> str:
        return "NULL" if np.isnan(value) else self._dialect.number(value)

    def problem(self) -> str:
        """Missing, a new level, or one that was seen but not trained on."""
        count, found = len(self._encoding.levels), list[str]()
        if not self._column.missing:
            found.append(f"WHEN {self._code}={count} THEN 'missing'")
        untrained = [self._dialect.string(one) for one in self._column.levels if one not in self._encoding.levels]
        if not self._column.is_open:
            if untrained:
                known = f"{self._dialect.exactly(self._trimmed)} IN ({','.join(untrained)})"
                found.append(f"WHEN {self._code}={count + 1} AND {known} THEN 'level not trained'")
            found.append(f"WHEN {self._code}={count + 1} THEN 'new level'")
        return f"CASE {' '.join(found)} ELSE '' END" if found else "''"


def _spelt(level: str) -> str:
    """A level without blanks around it and, where it is a number, without trailing zeros."""
    level = level.strip()
    if "." not in level or not _NUMBER.fullmatch(level):
        return level
    level = level.rstrip("0").rstrip(".")
    return "0" if level == "-0" else level


def _without_zeros(dialect: Dialect, text: str) -> str:
    """A text without trailing zeros where it is a number with a point: what `_spelt` does."""
    if dialect.name == "sqlite":
        plain = " AND ".join(f"{text} NOT GLOB '{sign}'" for sign in ("*.*.*", "*[^-.0-9]*", "?*-*", "-.*", ".*"))
        no_zeros = f"{text} NOT GLOB '0[0-9]*' AND {text} NOT GLOB '-0[0-9]*' AND INSTR({text},'.')<=17"
        is_number = f"{text} GLOB '*.*' AND {plain} AND {no_zeros}"
    else:
        pattern = dialect.string("^-?(0|[1-9][0-9]{0,14})[.][0-9]*$")
        is_number = f"REGEXP_MATCHES({text},{pattern})" if dialect.name == "duckdb" else f"{text} ~ {pattern}"
    shorter = f"RTRIM(RTRIM({text},'0'),'.')"
    return f"CASE WHEN {is_number} THEN CASE {shorter} WHEN '-0' THEN '0' ELSE {shorter} END ELSE {text} END"


def _without_nan(dialect: Dialect, column: Column, text: str) -> str:
    """A text, NULL where the cell is a number that is NaN."""
    cell = cell_of(dialect, column)
    if dialect.name == "duckdb":
        return f"CASE WHEN TYPEOF({cell}) IN ('DOUBLE','FLOAT') AND {text}='nan' THEN NULL ELSE {text} END"
    if dialect.name == "postgres":
        kind = f"CAST(PG_TYPEOF({cell}) AS text) IN ('double precision','real')"
        return f"CASE WHEN {kind} AND {text}='NaN' THEN NULL ELSE {text} END"
    return text
