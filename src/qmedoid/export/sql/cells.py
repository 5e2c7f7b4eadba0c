"""Cells of columns as the numbers that a model reads: numbers, dates, levels, and what is wrong with them.

How a column is read is a generator: it adds expressions to the stage, waits for the next one three times, and gives the
expressions of its encoded columns, each with whether it is NULL where the cell is refused, and a text that says what is
wrong with the cell, empty where nothing is. So no text is written twice.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.sql.dialects import RECORD, SqlDialect, Stages, joined
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import Column, DatePart, Dates, Encoding, Levels, Numbers

TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
"""Words for truth values."""
Reading = Iterator[tuple[list[tuple[str, bool]], str] | None]


def read_columns(
    stages: Stages, columns: Sequence[tuple[Column, Encoding, int]], wanted: Collection[int]
) -> tuple[dict[int, str], list[str], str]:
    """Names of the encoded columns, those that are NULL where a cell is refused, and the name of all issues.

    Columns come with the number of their first encoded column; the `wanted` ones of these get names.
    """
    readings: list[Reading] = []
    for column, encoding, _ in columns:
        if isinstance(encoding, Levels):
            readings.append(_levels(stages, column, encoding))
        elif isinstance(encoding, Dates):
            readings.append(_date(stages, column, encoding))
        else:
            readings.append(_number(stages, column, encoding))
    for _ in range(3):
        for reading in readings:
            next(reading)
        stages.next()
    encoded, fragile, problems = dict[int, str](), list[str](), list[str]()
    for (column, _, first), reading in zip(columns, readings, strict=True):
        found = next(reading)
        assert found is not None, "after three stages a column is read"
        outputs, issue = found
        problem = stages.add("i", issue)
        name = stages.dialect.string(f"; {column.name}: ")
        problems.append(f"CASE {problem} WHEN '' THEN '' ELSE {name}||{problem} END")
        for place, (expression, may_lack) in enumerate(outputs, start=first):
            if place in wanted:
                encoded[place] = stages.add("e", expression)
                fragile += [encoded[place]] if may_lack else []
    stages.next()
    return encoded, fragile, stages.add("i", joined(problems))


def _cell_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record."""
    return f"{RECORD}.{dialect.identifier(column.name)}"


def _text_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record as a text."""
    return f"CAST({_cell_of(dialect, column)} AS {dialect.text})"


def _is_held(dialect: SqlDialect, column: Column, value: str) -> str:
    """Whether a number is one of the missing values of its column; empty where the column has none."""
    # In a column of single precision it is the nearest of these.
    whole = [f"{number:.0f}" for number in column.missing_numbers] if column.kind == "date" else []
    given = {one for number in column.missing_numbers for one in (number, float(np.float32(number)))}
    listed = whole or [dialect.number(number) for number in sorted(given)]
    return f"{value} IN ({','.join(listed)})" if listed else ""


def _is_word(dialect: SqlDialect, column: Column) -> str:
    """Whether the text of a cell is one of the missing values of its column; empty where the column has none."""
    words = ",".join(dialect.string(value) for value in column.missing_values)
    text = dialect.exactly(dialect.trimmed(_text_of(dialect, column)))
    return f"{text} IN ({words})" if words else ""


def _filled(dialect: SqlDialect, value: str, is_there: str, fill: float) -> tuple[str, bool]:
    """A value, or what fills it where it is not there; NULL where missing cells are refused."""
    if np.isnan(fill):
        return f"CASE WHEN {is_there} THEN {value} END", True
    return f"CASE WHEN {is_there} THEN {value} ELSE {dialect.number(fill)} END", False


def _absent(dialect: SqlDialect, is_there: str) -> tuple[str, bool]:
    """1 where a value is not there, else 0."""
    return f"CASE WHEN {is_there} THEN {dialect.number(0.0)} ELSE {dialect.number(1.0)} END", False


def _number(stages: Stages, column: Column, encoding: Numbers) -> Reading:
    """A number or a truth value."""
    dialect = stages.dialect
    if column.kind == "boolean":
        given = stages.add("w", f"LOWER({dialect.trimmed(_text_of(dialect, column))})")
        yield None
        word = dialect.exactly(given)
        yes, no = (",".join(dialect.string(one) for one in words) for words in (TRUE, FALSE))
        one, zero = dialect.number(1.0), dialect.number(0.0)
        cell = stages.add("c", f"CASE WHEN {word} IN ({yes}) THEN {one} WHEN {word} IN ({no}) THEN {zero} END")
        blank = stages.add("b", f"CASE WHEN {word} NOT IN ('','nan') THEN 0 ELSE 1 END")
    else:
        number, is_blank = _number_and_blank(dialect, column)
        if missing_word := _is_word(dialect, column):
            is_blank = f"CASE WHEN {missing_word} THEN 1 ELSE {is_blank} END"
        cell, blank = stages.add("c", number), stages.add("b", is_blank)
        yield None
    yield None
    yield None
    held = _is_held(dialect, column, cell)
    is_there = f"ABS({cell})<={dialect.number(LARGEST)}" + (f" AND NOT {held}" if held else "")
    missing = "''" if column.missing else "'missing'"
    problem = (
        f"CASE {f'WHEN {held} THEN {missing} ' if held else ''}WHEN {is_there} THEN '' "
        f"WHEN {cell} IS NOT NULL THEN 'too large' WHEN {blank}=1 THEN {missing} ELSE 'no {column.kind}' END"
    )
    outputs = [_filled(dialect, cell, is_there, encoding.fill)]
    yield outputs + [_absent(dialect, is_there)] * encoding.indicator, problem


def _number_and_blank(dialect: SqlDialect, column: Column) -> tuple[str, str]:
    """A number, NULL where the cell is none, and 1 where the cell is blank."""
    cell, text = _cell_of(dialect, column), dialect.trimmed(_text_of(dialect, column))
    if dialect.name == "postgres":
        if (word := _is_word(dialect, column)) and any(value[-1:].isalpha() for value in column.missing_values):
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


def _date(stages: Stages, column: Column, encoding: Dates) -> Reading:
    """A date or time, with or without a zone; one with a zone is in universal time."""
    dialect = stages.dialect
    cell, text = _cell_of(dialect, column), dialect.trimmed(_text_of(dialect, column))
    is_blank = f"{cell} IS NULL" if dialect.name == "postgres" else f"{cell} IS NULL OR {text}=''"
    blank = stages.add("b", f"CASE WHEN {is_blank} THEN 1 ELSE 0 END")
    if dialect.name == "sqlite":
        is_text = "0" if column.spelling else f"TYPEOF({cell})='text'"
        given = stages.add("t", f"CASE WHEN {is_text} THEN {text} END")
        yield None
        body, minutes = _time_and_zone(given)
        time, zone = stages.add("t", body), stages.add("m", minutes)
        yield None
        moment = stages.add("m", _sqlite_moment(time, zone))
    else:
        moment = stages.add("m", _moment(dialect, cell, bool(column.spelling)))
        yield None
        yield None
    yield None
    held = _is_held(dialect, column, moment)
    is_there = f"NOT {held}" if held else f"{moment} IS NOT NULL"
    outputs = [
        _filled(dialect, _part(dialect, part, moment), is_there, fill)
        for part, fill in zip(encoding.parts, encoding.fills.tolist(), strict=True)
    ]
    missing = "''" if column.missing else "'missing'"
    is_blank = f"{blank}=1" + (f" OR {held}" if held else "")
    problem = f"CASE WHEN {is_there} THEN '' WHEN {is_blank} THEN {missing} ELSE 'no date' END"
    yield outputs + [_absent(dialect, is_there)] * encoding.indicator, problem


def _time_and_zone(text: str) -> tuple[str, str]:
    """In SQLite the text of a moment without its zone, and the minutes of the zone."""
    zone = f"????-??-??[T ]*{_ZONE}"
    body = (
        f"CASE WHEN {text} GLOB '????-??-??[T ]*Z' THEN SUBSTR({text},1,LENGTH({text})-1) "
        f"WHEN {text} GLOB '{zone}' THEN SUBSTR({text},1,LENGTH({text})-6) ELSE {text} END"
    )
    minutes = f"(CAST(SUBSTR({text},-5,2) AS INTEGER)*60+CAST(SUBSTR({text},-2) AS INTEGER))"
    sign = f"CASE SUBSTR({text},-6,1) WHEN '-' THEN 1 ELSE (-1) END"
    return body, f"CASE WHEN {text} GLOB '{zone}' THEN {sign}*{minutes} ELSE 0 END"


def _sqlite_moment(t: str, zone: str) -> str:
    """In SQLite microseconds since 1970 of a text without its zone, NULL where it is no date."""
    hours = "[T ][0-2][0-9]:[0-5][0-9]"
    is_time = (
        f"LENGTH({t})=10 OR SUBSTR({t},11) GLOB '{hours}' OR SUBSTR({t},11) GLOB '{hours}:[0-5][0-9]' OR "
        f"(SUBSTR({t},11,10) GLOB '{hours}:[0-5][0-9].' AND SUBSTR({t},21) NOT GLOB '*[^0-9]*' AND LENGTH({t})>20)"
    )
    is_date = f"DATE(SUBSTR({t},1,10),'+0 days')=SUBSTR({t},1,10) AND ({is_time}) AND SUBSTR({t},12,2)<'24'"
    days = f"CAST(JULIANDAY(SUBSTR({t},1,10))-2440587.5e0 AS INTEGER)*{_DAY}"
    clock = "+".join(
        f"CAST(SUBSTR({t},{start},2) AS INTEGER)*{unit}" for start, unit in ((12, _HOUR), (15, _MINUTE), (18, _SECOND))
    )
    rest = f"CAST(SUBSTR(SUBSTR({t},21)||'000000',1,6) AS INTEGER)"
    return f"CASE WHEN {is_date} THEN {days}+{clock}+{rest}+{zone}*{_MINUTE} END"


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


def _part(dialect: SqlDialect, part: DatePart, moment: str) -> str:
    """A part of a date; days of the week count from Monday, and the first day of 1970 was a Thursday."""
    double, of_day = dialect.double, _of_day(moment)
    if part == "days":
        return f"CAST({moment} AS {double})/{dialect.number(_DAY)}"
    if part == "hour":
        return f"CAST({of_day} AS {double})/{dialect.number(_HOUR)}"
    if part == "weekday":
        whole = f"(({moment}-{of_day}){'//' if dialect.name == 'duckdb' else '/'}{_DAY})"
        return f"CAST((({whole}+3)%7+7)%7 AS {double})"
    if dialect.name == "duckdb":
        return f"CAST(MONTH(MAKE_TIMESTAMP({moment})) AS DOUBLE)"
    if dialect.name == "sqlite":
        return f"CAST(STRFTIME('%m',({moment}-{of_day})/{_SECOND},'unixepoch') AS REAL)"
    start = f"(TIMESTAMP '1970-01-01'+({moment}-{of_day})/{_DAY}*INTERVAL '1 day')"
    return f"CAST(EXTRACT(MONTH FROM {start}) AS double precision)"


_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d*)?")


def _levels(stages: Stages, column: Column, encoding: Levels) -> Reading:
    """The levels of one column: a code of each, L for a missing cell, L + 1 for any other text."""
    dialect, count = stages.dialect, len(encoding.levels)
    spelt = [_spelt(level) for level in encoding.levels]
    counts = Counter(spelt)
    # Where two levels share a spelling, neither is meant by it.
    spellings = {one: code for code, one in enumerate(spelt) if counts[one] == 1}
    spellings |= {_spelt(value): count for value in column.missing_values}
    text, cell = _text_of(dialect, column), _cell_of(dialect, column)
    # A number that is NaN is a missing cell.
    if dialect.name == "sqlite":  # a cast leaves the collation of the column
        text += "||''"
    elif dialect.name == "duckdb":
        text = f"CASE WHEN TYPEOF({cell}) IN ('DOUBLE','FLOAT') AND {text}='nan' THEN NULL ELSE {text} END"
    else:
        kind = f"CAST(PG_TYPEOF({cell}) AS text) IN ('double precision','real')"
        text = f"CASE WHEN {kind} AND {text}='NaN' THEN NULL ELSE {text} END"
    text = stages.add("t", text)
    yield None
    trimmed = stages.add("w", dialect.trimmed(text))
    yield None
    has_numbers = any(_NUMBER.fullmatch(one) for one in spellings)
    plain = dialect.exactly(_without_zeros(dialect, trimmed) if has_numbers else trimmed)
    found = _choice(dialect, plain, spellings, f"CASE WHEN {trimmed}<>'' THEN {count + 1} ELSE {count} END")
    if spelt != list(encoding.levels):
        exact = {level: code for code, level in enumerate(encoding.levels)}
        found = _choice(dialect, dialect.exactly(text), exact, found)
    code = stages.add("k", found)
    yield None
    cases = [] if column.missing else [f"WHEN {code}={count} THEN 'missing'"]
    if not column.is_open:
        untrained = [dialect.string(one) for one in column.levels if one not in encoding.levels]
        if untrained:
            known = f"{dialect.exactly(trimmed)} IN ({','.join(untrained)})"
            cases.append(f"WHEN {code}={count + 1} AND {known} THEN 'level not trained'")
        cases.append(f"WHEN {code}={count + 1} THEN 'new level'")
    outputs = [(_by_code(dialect, code, numbers), bool(np.isnan(numbers).any())) for numbers in encoding.values.T]
    yield outputs, f"CASE {' '.join(cases)} ELSE '' END" if cases else "''"


def _choice(dialect: SqlDialect, text: str, codes: Mapping[str, int], other: str) -> str:
    if not codes:
        return other
    cases = " ".join(f"WHEN {dialect.string(level)} THEN {code}" for level, code in codes.items())
    return f"CASE {text} {cases} ELSE {other} END"


def _by_code(dialect: SqlDialect, code: str, values: Array) -> str:
    """A choice of a number by the code."""

    def number(value: float) -> str:
        return "NULL" if np.isnan(value) else dialect.number(value)

    usual = Counter(values.tolist()).most_common(1)[0][0]
    by_value: dict[float, list[int]] = {}
    for own, value in enumerate(values.tolist()):
        if value != usual and not (np.isnan(value) and np.isnan(usual)):
            by_value.setdefault(value, []).append(own)
    if not by_value:
        return number(usual)
    if all(len(codes) == 1 for codes in by_value.values()):
        cases = [f"WHEN {codes[0]} THEN {number(value)}" for value, codes in by_value.items()]
        return f"CASE {code} {' '.join(cases)} ELSE {number(usual)} END"
    cases = [f"WHEN {code} IN ({','.join(map(str, codes))}) THEN {number(value)}" for value, codes in by_value.items()]
    return f"CASE {' '.join(cases)} ELSE {number(usual)} END"


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
