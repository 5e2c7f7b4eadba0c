"""Dates and times: microseconds since 1970, and the parts that a model reads."""

from collections.abc import Callable

from qmedoid.export.sql.cells import cell_of, filled, is_held, text_of
from qmedoid.export.sql.dialects import Dialect
from qmedoid.export.sql.stages import Stages
from qmedoid.model.contract import Column, DatePart, Dates

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


def _moment(dialect: Dialect, cell: str, is_spelt: bool) -> str:
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


def _days(dialect: Dialect, moment: str) -> str:
    return f"CAST({moment} AS {dialect.double})/{dialect.number(_DAY)}"


def _hour(dialect: Dialect, moment: str) -> str:
    return f"CAST({_of_day(moment)} AS {dialect.double})/{dialect.number(_HOUR)}"


def _weekday(dialect: Dialect, moment: str) -> str:
    """From Monday = 0: the first day of 1970 was a Thursday."""
    divided = "//" if dialect.name == "duckdb" else "/"
    whole = f"(({moment}-{_of_day(moment)}){divided}{_DAY})"
    return f"CAST((({whole}+3)%7+7)%7 AS {dialect.double})"


def _month(dialect: Dialect, moment: str) -> str:
    if dialect.name == "duckdb":
        return f"CAST(MONTH(MAKE_TIMESTAMP({moment})) AS DOUBLE)"
    if dialect.name == "sqlite":
        seconds = f"({moment}-{_of_day(moment)})/{_SECOND}"
        return f"CAST(STRFTIME('%m',{seconds},'unixepoch') AS REAL)"
    start = f"(TIMESTAMP '1970-01-01'+({moment}-{_of_day(moment)})/{_DAY}*INTERVAL '1 day')"
    return f"CAST(EXTRACT(MONTH FROM {start}) AS double precision)"


_PARTS: dict[DatePart, Callable[[Dialect, str], str]] = {
    "days": _days, "hour": _hour, "weekday": _weekday, "month": _month,
}  # fmt: skip
