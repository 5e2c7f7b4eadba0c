"""Cells of columns as the numbers that a model reads: numbers, dates, levels, and what is wrong with them.

How a column is read is a generator: it adds expressions to the stage, waits for the next one three times, and gives the
expressions of its encoded columns, each with whether it is NULL where the cell is refused; a text that says what is
wrong with the cell, empty where nothing is; and a condition under which the cell is refused all the same, or none. So
no text is written twice.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.sql.dialects import RECORD, SqlDialect, Stages, in_parts, joined
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import COMPOUND, Column, DatePart, Dates, Encoding, Levels, Numbers, split_spelling
from qmedoid.tables.arrow import MISSING
from qmedoid.tables.numbers import needs_unit

TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
"""Words for truth values."""
Reading = Iterator[tuple[list[tuple[str, bool]], str, str] | None]
# Types of cells by their names in lower case; SQLite has no other types than numbers and texts.
_TYPES = {
    "boolean": "^bool",
    "number": "int(eger)?$|^(decimal|numeric|double|float|real|bignum)",
    "date": "^(date|time|interval)",
}
_LIKE_NUMBER = re.compile(r"[-+]?[\d.]+([eE][-+]?\d+)?")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d*)?")


def read_columns(
    stages: Stages, columns: Sequence[tuple[Column, Encoding, int]], wanted: Collection[int]
) -> tuple[dict[int, str], str, str]:
    """Names of the encoded columns, of whether a record is refused (1 or 0), and of all issues.

    Columns come with the number of their first encoded column; the `wanted` ones of these get names.
    """
    readings, dialect = list[Reading](), stages.dialect
    odd_types = stages.add("a", joined([_odd_type(dialect, column, encoding) for column, encoding, _ in columns]))
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
    encoded, refused, problems = dict[int, str](), [f"{odd_types}<>''"], list[str]()
    for (column, _, first), reading in zip(columns, readings, strict=True):
        found = next(reading)
        assert found is not None, "after three stages a column is read"
        outputs, issue, is_refused = found
        problem = stages.add("i", issue)
        name = dialect.string(f"; {column.name}: ")
        problems.append(f"CASE {problem} WHEN '' THEN '' ELSE {name}||{problem} END")
        refused += [is_refused] if is_refused else []
        for place, (expression, may_lack) in enumerate(outputs, start=first):
            if place in wanted:
                encoded[place] = stages.add("e", expression)
                refused += [f"{encoded[place]} IS NULL"] if may_lack else []
    stages.next()
    is_refused = in_parts(refused, lambda some: f"({' OR '.join(some)})")
    issues = f"CASE {odd_types} WHEN '' THEN {joined(problems)} ELSE {odd_types} END"
    return encoded, stages.add("u", f"CASE WHEN {is_refused} THEN 1 ELSE 0 END"), stages.add("i", issues)


def _odd_type(dialect: SqlDialect, column: Column, encoding: Encoding) -> str:
    """An issue where the type of a cell cannot hold what the column held, else an empty text.

    Of a category it may have lost how the levels are written: ``007`` read as a number, ``yes`` as a truth value.
    """
    odd = ["date"]
    if isinstance(encoding, Levels):
        odd += [] if _truth_levels(column, encoding) else ["boolean"]
        numbers = [
            bool(_NUMBER.fullmatch(one)) for one in map(str.strip, encoding.levels) if _LIKE_NUMBER.fullmatch(one)
        ]
        if (numbers and not all(numbers)) or not (numbers or column.is_open):
            odd += ["number"]
    elif isinstance(encoding, Dates):
        odd = ["boolean"] if column.spelling == "yyyymmdd" else ["boolean", "number"]
    elif column.spelling.endswith(" %") and dialect.name == "duckdb":
        odd += ["boolean", "number"]  # is 20.6 as much as 20.6 %, or as 2060 %?
    cell, said = _cell_of(dialect, column), dialect.string(f"; {column.name}: of type ")
    if dialect.name == "sqlite" and "number" not in odd:
        return "''"
    name = f"CAST(PG_TYPEOF({cell}) AS text)" if dialect.name == "postgres" else f"TYPEOF({cell})"
    is_odd = f"{name} IN ('integer','real')"
    if dialect.name != "sqlite":
        is_odd = dialect.matches(f"LOWER({name})", "|".join(_TYPES[kind] for kind in odd))
    return f"CASE WHEN {is_odd} THEN {said}||{name} ELSE '' END"


def _truth_levels(column: Column, encoding: Levels) -> tuple[str, str] | None:
    """The levels that a database takes for true and false, where each is one level; else None."""
    words = [
        [one for one in column.levels or encoding.levels if one.strip().lower() in of] for of in (TRUE[:4], FALSE[:4])
    ]
    return (words[0][0], words[1][0]) if len(words[0]) == len(words[1]) == 1 else None


def _cell_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record."""
    return f"{RECORD}.{dialect.identifier(column.name)}"


def _trimmed_of(dialect: SqlDialect, column: Column) -> str:
    """The cell of a record without blanks around it if it is a text, else NULL."""
    return dialect.if_text(_cell_of(dialect, column), dialect.trimmed(_text_of(dialect, column)), "NULL")


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


def _state(dialect: SqlDialect, column: Column, text: str) -> str:
    """What a cell is if it is not read: 1 missing, 2 a text with digits, which is written otherwise, 0 another text.

    The trimmed text is NULL where the cell is none.
    """
    is_missing = dialect.is_one_of(text, (*MISSING, *column.missing_values))
    is_missing += "" if column.kind == "date" else f" OR LOWER({text})='nan'"
    return f"CASE WHEN {text} IS NULL THEN 1 WHEN {is_missing} THEN 1 WHEN {dialect.has_digits(text)} THEN 2 ELSE 0 END"


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
        words = dialect.is_one_of(given, [one.lower() for one in MISSING])
        blank, unread = stages.add("b", f"CASE WHEN NOT {words} THEN 0 ELSE 1 END"), ""
    else:
        typed, text = stages.add("c", _typed_number(dialect, column)), stages.add("t", _trimmed_of(dialect, column))
        yield None
        value = f"CASE WHEN {text} IS NULL THEN {typed} ELSE {_number_of(dialect, text, column.spelling)} END"
        cell = typed if dialect.name == "postgres" else stages.add("c", value)
        blank = stages.add("b", _state(dialect, column, text))
        unread = f"{cell} IS NULL AND {blank}=2"
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
    yield outputs + [_absent(dialect, is_there)] * encoding.indicator, problem, unread


def _typed_number(dialect: SqlDialect, column: Column) -> str:
    """A cell of a type of numbers, NULL where it is of another type; PostgreSQL reads texts, too."""
    cell = _cell_of(dialect, column)
    if dialect.name == "sqlite":
        return f"CASE WHEN TYPEOF({cell}) IN ('integer','real') THEN CAST({cell} AS REAL) END"
    if dialect.name == "duckdb":
        return f"NULLIF({dialect.if_text(cell, 'NULL', f'TRY_CAST({cell} AS DOUBLE)')},CAST('nan' AS DOUBLE))"
    if any(value[-1:].isalpha() for value in column.missing_values):
        words = ",".join(map(dialect.string, column.missing_values))
        text = dialect.exactly(dialect.trimmed(_text_of(dialect, column)))
        cell = f"CASE WHEN {text} IN ({words}) THEN NULL ELSE {cell} END"
    return f"NULLIF(CAST({cell} AS float8),float8'NaN')"


def _number_of(dialect: SqlDialect, text: str, spelling: str) -> str:
    """The number of a trimmed text, NULL where it is none."""
    if dialect.name == "duckdb":
        # DuckDB's own reading of a text takes 1_000 for a number.
        plain = f"NULLIF(TRY_CAST(REPLACE({text},'_','?') AS DOUBLE),CAST('nan' AS DOUBLE))"
        return _spelt_number(dialect, text, spelling) if spelling else plain
    is_number = f"{text} NOT GLOB '*[^-+.0-9eE]*' AND JSON_VALID({text})"
    return "NULL" if spelling else f"CASE WHEN {is_number} THEN CAST({text} AS REAL) END"


def _spelt_number(dialect: SqlDialect, text: str, spelling: str) -> str:
    """In DuckDB the number of a text by a spelling such as ``"1.234,5 %"``; NULL where it is none.

    Texts of durations, magnitudes and numbers that must have a unit are none: such a column holds numbers.
    """
    if spelling in COMPOUND:
        return "NULL"
    form, is_scaled, unit, _ = split_spelling(spelling)
    if is_scaled or (needs_unit(spelling) and unit != "%"):
        return "NULL"
    group, after = form[1 : form.index("234")], form[form.index("234") + 3 :]
    point = after[:1] or ("," if group == "." else ".")
    mark, sign, unit_mark = (re.escape(one) for one in (group, point, unit))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|\d+)" if group else r"\d+"
    decimals = r"\d*" if after else r"(?:\d{1,2}|\d{4,})?"
    number = rf"((?:{whole}(?:{sign}{decimals})?|{sign}\d+)(?:[eE][-+]?\d+)?)"
    before, behind = (
        ("", " ?%") if unit == "%" else (f"(?:{unit_mark} ?)?", f"(?: ?{unit_mark})?") if unit else ("", "")
    )
    pattern = dialect.string(f"^([-+]?) ?{before}{number}{behind}$")
    clean = f"TRANSLATE({text},{dialect.string(_TYPOGRAPHIC)},{dialect.string(_PLAIN)})"
    digits = f"REGEXP_EXTRACT({clean},{pattern},1)||REGEXP_EXTRACT({clean},{pattern},2)"
    digits = f"REPLACE({digits},{dialect.string(group)},'')" if group else digits
    value = f"TRY_CAST(REPLACE({digits},',','.') AS DOUBLE)"
    return f"{value}/{dialect.number(100.0)}" if unit == "%" else value


# Blanks, minus signs and apostrophes of typesetters, and what they are read as.
_TYPOGRAPHIC = "\u00a0\u2007\u2008\u2009\u202f\u2212\u2013\ufe63\uff0d\u2019\u02bc\u00b4"
_PLAIN = "     ----'''"

_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_ZONE = "[-+][0-9][0-9]:[0-9][0-9]"


def _date(stages: Stages, column: Column, encoding: Dates) -> Reading:
    """A date or time, with or without a zone; one with a zone is in universal time."""
    dialect, cell = stages.dialect, _cell_of(stages.dialect, column)
    text = stages.add("t", _trimmed_of(dialect, column))
    if dialect.name == "sqlite":
        yield None
        body, minutes = _time_and_zone(text)
        time, zone = stages.add("t", body), stages.add("m", minutes)
        yield None
        moment = stages.add("m", _sqlite_moment(time, zone))
    else:
        moment = stages.add("m", _typed_moment(dialect, cell))
        yield None
        if dialect.name == "duckdb":
            of_text = _moment_of(text, column.spelling)
            moment = stages.add("m", f"CASE WHEN {text} IS NULL THEN {moment} ELSE {of_text} END")
        yield None
    blank = stages.add("b", _state(dialect, column, text))
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
    unread = f"{moment} IS NULL AND {blank}=2" if column.spelling and dialect.name == "sqlite" else ""
    yield outputs + [_absent(dialect, is_there)] * encoding.indicator, problem, unread


def _time_and_zone(text: str) -> tuple[str, str]:
    """In SQLite the text of a moment without its zone, and the minutes of the zone."""
    zone = f"????-??-??[T ]*{_ZONE}"
    body = (
        f"CASE WHEN {text} GLOB '????-??-??[T ]*Z' THEN SUBSTR({text},1,LENGTH({text})-1) "
        f"WHEN {text} GLOB '{zone}' THEN SUBSTR({text},1,LENGTH({text})-6) "
        f"WHEN {text} GLOB '[0-2][0-9]:*' THEN '1970-01-01T'||{text} ELSE {text} END"
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


def _typed_moment(dialect: SqlDialect, cell: str) -> str:
    """Microseconds since 1970 of a cell of a type of dates or times."""
    if dialect.name == "postgres":
        return f"CAST(EXTRACT(EPOCH FROM {cell})*{_SECOND} AS bigint)"
    with_zone, plain, time = (f"EPOCH_US(TRY_CAST({cell} AS {kind}))" for kind in ("TIMESTAMPTZ", "TIMESTAMP", "TIME"))
    zoned = f"WHEN 'TIMESTAMP WITH TIME ZONE' THEN {with_zone}"
    return f"CASE TYPEOF({cell}) {zoned} WHEN 'TIME' THEN {time} WHEN 'VARCHAR' THEN NULL ELSE {plain} END"


def _moment_of(text: str, spelling: str) -> str:
    """In DuckDB microseconds since 1970 of a trimmed text, NULL where it is no date."""
    with_zone, plain, time = (f"EPOCH_US(TRY_CAST({text} AS {kind}))" for kind in ("TIMESTAMPTZ", "TIMESTAMP", "TIME"))
    has_zone = f"REGEXP_MATCHES({text},'[T ].*(Z|[-+][0-9][0-9](:?[0-9][0-9])?)$')"
    cases = f"WHEN {has_zone} THEN {with_zone} WHEN REGEXP_MATCHES({text},'^[0-9]{{2}}:') THEN {time} ELSE {plain}"
    if spelling:
        day, sign, month = list(spelling[:3])
        first, is_spelt = f"%{day}{sign}%{month}{sign}%Y", f"^[0-9]{{1,2}}[{sign}][0-9]{{1,2}}[{sign}][0-9]{{4}}"
        if spelling == "yyyymmdd":
            first, is_spelt = "%Y%m%d", "^[0-9]{8}$"
        formats = ",".join(f"'{first}{clock}'" for clock in ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f"))
        clear = f"REGEXP_REPLACE({text},'[T ,]+',' ')"
        spelt = f"WHEN REGEXP_MATCHES({text},'{is_spelt}') THEN EPOCH_US(TRY_STRPTIME({clear},[{formats}]))"
        return f"CASE {spelt} {cases} END"
    return f"CASE {cases} END"


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


def _levels(stages: Stages, column: Column, encoding: Levels) -> Reading:
    """The levels of one column: a code of each, L for a missing cell, L + 1 for any other text."""
    dialect, count = stages.dialect, len(encoding.levels)
    spelt = [_spelt(level) for level in encoding.levels]
    counts = Counter(spelt)
    # Where two levels share a spelling, neither is meant by it.
    spellings = {one: code for code, one in enumerate(spelt) if counts[one] == 1}
    spellings |= {_spelt(value): count for value in column.missing_values}
    text, cell = _text_of(dialect, column), _cell_of(dialect, column)
    if (truths := _truth_levels(column, encoding)) and dialect.name != "sqlite":
        kind = f"TYPEOF({cell})" if dialect.name == "duckdb" else f"UPPER(CAST(PG_TYPEOF({cell}) AS text))"
        true, false = map(dialect.string, truths)
        text = f"CASE WHEN {kind}='BOOLEAN' THEN CASE {text} WHEN 'true' THEN {true} ELSE {false} END ELSE {text} END"
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
    is_blank = dialect.is_one_of(trimmed, MISSING)
    found = _choice(dialect, plain, spellings, f"CASE WHEN NOT {is_blank} THEN {count + 1} ELSE {count} END")
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
    yield outputs, f"CASE {' '.join(cases)} ELSE '' END" if cases else "''", ""


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
        is_number = dialect.matches(text, r"^-?(0|[1-9][0-9]{0,14})[.][0-9]*$")
    shorter = f"RTRIM(RTRIM({text},'0'),'.')"
    return f"CASE WHEN {is_number} THEN CASE {shorter} WHEN '-0' THEN '0' ELSE {shorter} END ELSE {text} END"
