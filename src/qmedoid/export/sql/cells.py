"""Cells of a column as the numbers that a model reads: numbers, dates, levels, and what is wrong with them."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.sql.dialects import SqlDialect
from qmedoid.export.sql.stages import RECORD, Stages
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import Column, DatePart, Dates, Levels, Numbers

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


def cell_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record."""
    return f"{RECORD}.{dialect.identifier(column.name)}"


def text_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record as a text."""
    return f"CAST({cell_of(dialect, column)} AS {dialect.text})"


def is_held(dialect: SqlDialect, column: Column, value: str) -> str:
    """Whether a number is one of the missing values of its column; empty where the column has none."""
    # In a column of single precision it is the nearest of these.
    whole = [f"{number:.0f}" for number in column.missing_numbers] if column.kind == "date" else []
    given = {one for number in column.missing_numbers for one in (number, float(np.float32(number)))}
    listed = whole or [dialect.number(number) for number in sorted(given)]
    return f"{value} IN ({','.join(listed)})" if listed else ""


def is_word(dialect: SqlDialect, column: Column) -> str:
    """Whether the text of a cell is one of the missing values of its column; empty where the column has none."""
    words = ",".join(dialect.string(value) for value in column.missing_values)
    text = dialect.exactly(dialect.trimmed(text_of(dialect, column)))
    return f"{text} IN ({words})" if words else ""


def filled(dialect: SqlDialect, value: str, is_there: str, fill: float) -> tuple[str, bool]:
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


def _number(dialect: SqlDialect, column: Column) -> tuple[str, str]:
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


_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_ZONE = "[-+][0-9][0-9]:[0-9][0-9]"


class DateReading:
    """A date or time, with or without a zone; one with a zone is in universal time."""

    def __init__(self, stages: Stages, column: Column, encoding: Dates) -> None:
        self._stages, self._dialect, self._column, self._encoding = stages, stages.dialect, column, encoding
        self._text = self._moment = self._blank = self._time = self._of_day = ""

    def cell(self) -> None:
        """The moment, or in SQLite the text of it, and whether the cell is blank."""
        cell = cell_of(self._dialect, self._column)
        text = self._dialect.trimmed(text_of(self._dialect, self._column))
        blank = f"{cell} IS NULL" if self._dialect.name == "postgres" else f"{cell} IS NULL OR {text}=''"
        self._blank = self._stages.add("b", f"CASE WHEN {blank} THEN 1 ELSE 0 END")
        if self._dialect.name == "sqlite":
            is_text = "0" if self._column.spelling else f"TYPEOF({cell})='text'"
            self._text = self._stages.add("t", f"CASE WHEN {is_text} THEN {text} END")
        else:
            self._moment = self._stages.add("m", _moment(self._dialect, cell, bool(self._column.spelling)))

    def parts(self) -> None:
        """In SQLite the text without its zone, and the moment by it."""
        if not self._text:
            return
        text, zone = self._text, f"????-??-??[T ]*{_ZONE}"
        body = (
            f"CASE WHEN {text} GLOB '????-??-??[T ]*Z' THEN SUBSTR({text},1,LENGTH({text})-1) "
            f"WHEN {text} GLOB '{zone}' THEN SUBSTR({text},1,LENGTH({text})-6) ELSE {text} END"
        )
        minutes = f"(CAST(SUBSTR({text},-5,2) AS INTEGER)*60+CAST(SUBSTR({text},-2) AS INTEGER))"
        sign = f"CASE SUBSTR({text},-6,1) WHEN '-' THEN 1 ELSE (-1) END"
        self._time = self._stages.add("t", body)
        self._zone = self._stages.add("m", f"CASE WHEN {text} GLOB '{zone}' THEN {sign}*{minutes} ELSE 0 END")

    def value(self) -> None:
        """In SQLite the moment."""
        if not self._text:
            return
        t = self._time
        hours = "[T ][0-2][0-9]:[0-5][0-9]"
        is_time = (
            f"LENGTH({t})=10 OR SUBSTR({t},11) GLOB '{hours}' OR SUBSTR({t},11) GLOB '{hours}:[0-5][0-9]' OR "
            f"(SUBSTR({t},11,10) GLOB '{hours}:[0-5][0-9].' AND SUBSTR({t},21) NOT GLOB '*[^0-9]*' AND LENGTH({t})>20)"
        )
        is_date = f"DATE(SUBSTR({t},1,10),'+0 days')=SUBSTR({t},1,10) AND ({is_time}) AND SUBSTR({t},12,2)<'24'"
        days = f"CAST(JULIANDAY(SUBSTR({t},1,10))-2440587.5e0 AS INTEGER)*{_DAY}"
        clock = "+".join(
            f"CAST(SUBSTR({t},{start},2) AS INTEGER)*{unit}"
            for start, unit in ((12, _HOUR), (15, _MINUTE), (18, _SECOND))
        )
        rest = f"CAST(SUBSTR(SUBSTR({t},21)||'000000',1,6) AS INTEGER)"
        moment = f"{days}+{clock}+{rest}+{self._zone}*{_MINUTE}"
        self._moment = self._stages.add("m", f"CASE WHEN {is_date} THEN {moment} END")

    @property
    def _is_there(self) -> str:
        held = is_held(self._dialect, self._column, self._moment)
        return f"NOT {held}" if held else f"{self._moment} IS NOT NULL"

    def outputs(self) -> list[tuple[str, bool]]:
        """The parts of the date, and whether it was missing where that is asked for."""
        is_there, dialect = self._is_there, self._dialect
        found = [
            filled(dialect, _PARTS[part](dialect, self._moment), is_there, fill)
            for part, fill in zip(self._encoding.parts, self._encoding.fills.tolist(), strict=True)
        ]
        if self._encoding.indicator:
            zero, one = dialect.number(0.0), dialect.number(1.0)
            found.append((f"CASE WHEN {is_there} THEN {zero} ELSE {one} END", False))
        return found

    def problem(self) -> str:
        """Missing, or no date."""
        missing = "''" if self._column.missing else "'missing'"
        held = is_held(self._dialect, self._column, self._moment)
        is_blank = f"{self._blank}=1" + (f" OR {held}" if held else "")
        return f"CASE WHEN {self._is_there} THEN '' WHEN {is_blank} THEN {missing} ELSE 'no date' END"


def _moment(dialect: SqlDialect, cell: str, is_spelt: bool) -> str:
    """Microseconds since 1970 of a cell, NULL where it is no date."""
    if dialect.name == "postgres":
        return f"CAST(EXTRACT(EPOCH FROM {cell})*{_SECOND} AS bigint)"
    with_zone, plain = (f"EPOCH_US(TRY_CAST({cell} AS {kind}))" for kind in ("TIMESTAMPTZ", "TIMESTAMP"))
    text = f"TRY_CAST({cell} AS VARCHAR)"
    has_zone = f"REGEXP_MATCHES({text},'[T ].*(Z|[-+][0-9][0-9](:?[0-9][0-9])?) *$')"
    of_text = "NULL" if is_spelt else f"CASE WHEN {has_zone} THEN {with_zone} ELSE {plain} END"
    return (
        f"CASE TYPEOF({cell}) WHEN 'TIMESTAMP WITH TIME ZONE' THEN {with_zone} WHEN 'VARCHAR' THEN {of_text} "
        f"WHEN 'TIME' THEN EPOCH_US(TRY_CAST({cell} AS TIME)) ELSE {plain} END"
    )


def _of_day(moment: str) -> str:
    """Microseconds since midnight, also before 1970."""
    return f"((({moment}%{_DAY})+{_DAY})%{_DAY})"


def _days(dialect: SqlDialect, moment: str) -> str:
    return f"CAST({moment} AS {dialect.double})/{dialect.number(_DAY)}"


def _hour(dialect: SqlDialect, moment: str) -> str:
    return f"CAST({_of_day(moment)} AS {dialect.double})/{dialect.number(_HOUR)}"


def _weekday(dialect: SqlDialect, moment: str) -> str:
    """From Monday = 0: the first day of 1970 was a Thursday."""
    divided = "//" if dialect.name == "duckdb" else "/"
    whole = f"(({moment}-{_of_day(moment)}){divided}{_DAY})"
    return f"CAST((({whole}+3)%7+7)%7 AS {dialect.double})"


def _month(dialect: SqlDialect, moment: str) -> str:
    if dialect.name == "duckdb":
        return f"CAST(MONTH(MAKE_TIMESTAMP({moment})) AS DOUBLE)"
    if dialect.name == "sqlite":
        seconds = f"({moment}-{_of_day(moment)})/{_SECOND}"
        return f"CAST(STRFTIME('%m',{seconds},'unixepoch') AS REAL)"
    start = f"(TIMESTAMP '1970-01-01'+({moment}-{_of_day(moment)})/{_DAY}*INTERVAL '1 day')"
    return f"CAST(EXTRACT(MONTH FROM {start}) AS double precision)"


_PARTS: dict[DatePart, Callable[[SqlDialect, str], str]] = {
    "days": _days,
    "hour": _hour,
    "weekday": _weekday,
    "month": _month,
}


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


def _without_zeros(dialect: SqlDialect, text: str) -> str:
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


def _without_nan(dialect: SqlDialect, column: Column, text: str) -> str:
    """A text, NULL where the cell is a number that is NaN."""
    cell = cell_of(dialect, column)
    if dialect.name == "duckdb":
        return f"CASE WHEN TYPEOF({cell}) IN ('DOUBLE','FLOAT') AND {text}='nan' THEN NULL ELSE {text} END"
    if dialect.name == "postgres":
        kind = f"CAST(PG_TYPEOF({cell}) AS text) IN ('double precision','real')"
        return f"CASE WHEN {kind} AND {text}='NaN' THEN NULL ELSE {text} END"
    return text
