"""Texts as dates: ISO, and as spreadsheets write them: with points or slashes, the month by name, eight digits.

What begins with the year or names the month reads itself. Of other dates a column has one order and one sign between
day, month and year, which is its spelling: ``"d.m.y"``, ``"m/d/y"`` and so on, with ``yy`` for years of two digits.
Names of time zones are read where they mean one zone.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.tables.cells import Cells, as_text, ascii_digits

# What Arrow's own parsers take; the patterns keep them from raising at the first cell that is something else.
_DAY = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_HOUR, _MINUTES = r"([01]\d|2[0-3])", r":[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_TIME, _CLOCK = f"{_HOUR}{_MINUTES}", f"[T ]{_HOUR}({_MINUTES})?"
_ZONE = rf"(Z|[+-]{_HOUR}(:?[0-5]\d)?)"
_ANY_CLOCK = r"(?:[T ,]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d{2}:?\d{2})?))?"
_SIGNS = {".": r"\.", "/": "/", "-": "-"}
_YEAR_FIRST = rf"^(\d{{4}})[./-](\d{{1,2}})[./-](\d{{1,2}}){_ANY_CLOCK}$"
_MONTH_NAMES = (
    "jan(?:uary|uar)? feb(?:ruary|ruar)? mar(?:ch)?|mär(?:z)?|mrz apr(?:il)? may|mai june?|juni july?|juli aug(?:ust)? "
    "sept?(?:ember)? o[ck]t(?:ober)? nov(?:ember)? de[cz](?:ember)?"
)
_MONTHS = tuple(_MONTH_NAMES.split())
_DAY_OF_MONTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_ANY_MONTH = "|".join(_MONTHS)
_SHORT_YEAR = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}([T ,].*)?$"
_AFTERNOON, _MORNING, _NOON, _BEFORE_NOON = r"(?i)p\.?m\.?$", r"(?i)a\.?m\.?$", r"[T ]12:", r"[T ](?:0\d|1[01]):"
_MOST_WRONG = 0.1
"""Share of the cells of dates that may be none, as of numbers."""
ZONES = {
    **dict.fromkeys(("UTC", "GMT", "WET"), "Z"), **dict.fromkeys(("CET", "MEZ", "WEST"), "+01:00"),
    **dict.fromkeys(("CEST", "MESZ", "EET"), "+02:00"), **dict.fromkeys(("EEST", "MSK"), "+03:00"), "JST": "+09:00",
    "KST": "+09:00", "AEST": "+10:00", "AEDT": "+11:00", "EST": "-05:00", "EDT": "-04:00", "CDT": "-05:00",
    "MST": "-07:00", "MDT": "-06:00", "PST": "-08:00", "PDT": "-07:00",
}  # fmt: skip
_NAMED_ZONE, _CLOCKED = r":\d\d(?:\.\d+)? ?[A-Z]{3,5}$", r"\d[T ,]+\d{1,2}:\d\d"
ZONED = r":\d\d(?:\.\d+)? ?(?:Z|[+-]\d{2}:?\d{2}|[A-Z]{3,5})$"
_HALF_DAY = np.timedelta64(12, "h")


class Spelt(NamedTuple):
    """The spelling of a column, None where no one reads all its cells that look like numbers, or dates.

    `ambiguous` is a sign that can mean one thing or another: that of decimals, or that between day and month; `problem`
    is what is in the way; empty where there is nothing to say.
    """

    spelling: str | None
    ambiguous: str = ""
    problem: str = ""


def _iso_dates(text: pa.Array) -> Cells:
    """Trimmed texts of ISO dates, with or without a time of day and a zone; times alone are on the first day."""
    alone = pc.fill_null(pc.match_substring_regex(text, f"^{_TIME}$"), False)
    if pc.any(alone).as_py():
        text = pc.if_else(alone, pc.binary_join_element_wise("1970-01-01", text, "T"), text)
    nothing = pa.scalar(None, text.type)
    local = pc.match_substring_regex(text, f"{_DAY}({_CLOCK})?$")
    zoned = pc.match_substring_regex(text, f"{_DAY}{_CLOCK}{_ZONE}$")
    plain = _timestamps(pc.if_else(local, text, nothing), None)
    universal = _timestamps(pc.if_else(zoned, text, nothing), "UTC")
    parsed = pc.coalesce(plain, universal)
    wrong = pc.and_(parsed.is_null(), pc.fill_null(pc.not_equal(text, ""), False))
    return Cells(parsed.to_numpy(zero_copy_only=False), text.filter(wrong).cast(pa.string()))


def _timestamps(text: pa.Array, zone: str | None) -> pa.Array:
    """Texts that look like ISO dates; days that their month does not have become null."""
    # The parser refuses more digits than its unit has: of the nine there may be, six are kept.
    short = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    try:
        return short.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        parts = [
            pc.utf8_slice_codeunits(short, start, stop).fill_null("1") for start, stop in ((0, 4), (5, 7), (8, 10))
        ]
        is_day = _day_exists(*(part.cast(pa.int64()).to_numpy(zero_copy_only=False) for part in parts))
        kept = pc.if_else(pa.array(is_day), short, pa.scalar(None, short.type))
        return kept.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp("us"))


def _day_exists(year: Codes, month: Codes, day: Codes) -> Flags:
    """Whether months, from 1 to 12, have a day."""
    first = (12 * (year - 1970) + month - 1).astype("M8[M]")
    length = (first + 1).astype("M8[D]") - first.astype("M8[D]")
    return np.asarray(day <= length.astype(np.int64))


def dates_spelt(array: pa.Array, spelling: str) -> Cells:
    """Texts or whole numbers as dates in microseconds, by the rule of a spelling."""
    if spelling == "yyyymmdd" and not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        days = _days(values)
        wrong = array.filter(pa.array(np.isnat(days) & ~np.isnan(values)))
        return Cells(days, as_text(wrong).cast(pa.string()))
    text = ascii_digits(pc.utf8_trim_whitespace(as_text(array)))
    plain = _iso_dates(text)
    if not len(plain.wrong):
        return plain
    iso = _in_iso(text, spelling)
    # Half a day is added after the rest is read: Arrow's parser knows no clock of twelve hours.
    late, early = (pc.fill_null(pc.match_substring_regex(text, half), False) for half in (_AFTERNOON, _MORNING))
    noon, before = (pc.fill_null(pc.match_substring_regex(iso, hour), False) for hour in (_NOON, _BEFORE_NOON))
    values, wrong = _iso_dates(iso)
    shift = pc.subtract(pc.and_(late, before).cast(pa.int8()), pc.and_(early, noon).cast(pa.int8()))
    values = values + shift.to_numpy() * _HALF_DAY
    if not len(wrong):
        return Cells(values, wrong)
    is_wrong = pc.and_(pa.array(np.isnat(values)), pc.fill_null(pc.not_equal(text, ""), False))
    return Cells(values, text.filter(is_wrong).cast(pa.string()))


def find_dates(text: pa.Array, order: str | None = None) -> Spelt | None:
    """The order of day, month and year in a column of trimmed texts, or None where it holds no dates.

    `order`, ``"day-first"`` or ``"month-first"``, is taken where no cell shows it.
    """
    given = ascii_digits(text.drop_null().unique())
    cells = _with_offsets(given)
    first = cells.slice(0, 100)
    times = pc.match_substring_regex(first, r"^\d{1,2}:\d{2}|^\d{4}-\d{2}-\d{2}")
    found_dates = pc.or_(times, pc.and_(look_like_dates(first), pc.invert(pc.match_substring_regex(first, r"^\d+$"))))
    if not len(first) or 2 * (pc.sum(found_dates).as_py() or 0) < len(first):
        return None
    zoned, clocked = (given.filter(pc.match_substring_regex(given, one)) for one in (ZONED, _CLOCKED))
    unknown = zoned.filter(pc.match_substring_regex(_with_offsets(zoned), "[A-Y]$"))
    if len(unknown):
        return Spelt(None, problem=f"{_first(unknown)} ends in a name that is no time zone, or that of more than one")
    local = clocked.filter(pc.invert(pc.match_substring_regex(clocked, ZONED)))
    if len(zoned) and len(local):
        return Spelt(None, problem=f"{_first(zoned)} has a time zone and {_first(local)} has none")
    found = _spelling(cells, order)
    if found.spelling is None or len(dates_spelt(cells, found.spelling).wrong):
        # Cells that are no day in any order, such as 31/11/2023, show none.
        found = _spelling(cells.filter(other_dates(cells)), order)
    if found.spelling is None or not len(wrong := dates_spelt(cells, found.spelling).wrong):
        return found
    all_cells = _with_offsets(ascii_digits(text))
    is_wrong = pc.is_in(all_cells, value_set=wrong.cast(all_cells.type))
    if pc.sum(is_wrong).as_py() <= _MOST_WRONG * (len(text) - text.null_count):
        return found
    return None if 2 * len(wrong) > len(cells) else Spelt(None, problem=f"{_first(wrong)} is no date")


def _spelling(cells: pa.Array, order: str | None) -> Spelt:
    """The order of day, month and year that all cells have in common which show one."""
    numeric = {
        one: cells.filter(pc.match_substring_regex(cells, _numeric(*one))) for one in product(_SIGNS, _YEAR_DIGITS)
    }
    signs = [one for one, found in numeric.items() if len(found)]
    if len(signs) > 1:
        return Spelt(None, problem=f"{_first(numeric[signs[0]])} and {_first(numeric[signs[1]])} are not alike")
    if not signs:
        return Spelt("")
    (sign, year), cells = signs[0], numeric[signs[0]]
    parts = [
        pc.replace_substring_regex(cells, _numeric(sign, year), rf"\{place}").cast(pa.int64()) for place in (1, 2, 3)
    ]
    y = "y" if year == _YEAR_DIGITS[0] else "yy"
    spellings = {"day-first": f"d{sign}m{sign}{y}", "month-first": f"m{sign}d{sign}{y}"}
    if y == "yy" and pc.max(parts[2]).as_py() <= 31 and len(parts[2].unique()) > len(parts[0].unique()):
        return Spelt(None, problem=f"{_first(cells)} may begin or end with the year")
    over = [pc.greater(part, 12) for part in parts[:2]]
    shows = [pc.any(flags).as_py() for flags in over]
    if all(shows):
        first, second = (_first(cells.filter(flags)) for flags in over)
        return Spelt(None, problem=f"{first} has the day first and {second} the month")
    if any(shows):
        return Spelt(spellings["day-first" if shows[0] else "month-first"])
    if order is None and y == "yy":  # or a version such as 1.2.10
        how = "--date-order day-first or month-first says it (date_order='day-first' in Python)"
        return Spelt(None, problem=f"nothing shows whether {_first(cells)} begins with the day or the month; {how}")
    return Spelt(None, ambiguous=sign) if order is None else Spelt(spellings[order])


def other_dates(text: pa.Array) -> pa.Array:
    """Whether texts are dates or times by some spelling: not 2024-02-30, and not 31/11/2023."""
    found = pc.match_substring_regex(text, _SHORT_YEAR)
    orders = [f"{first}{sign}{second}{sign}y" for sign in _SIGNS for first, second in ("dm", "md")]
    for spelling in ("", "yyyymmdd", *orders):
        found = pc.or_(found, pa.array(~np.isnat(dates_spelt(text, spelling).values)))
    return found


def look_like_dates(text: pa.Array) -> pa.Array:
    """Whether texts are dates in any order."""
    found = pc.match_substring_regex(text, _SHORT_YEAR)
    for pattern in (_YEAR_FIRST, _named(_ANY_MONTH), r"^\d{8}$", *map(_numeric, _SIGNS)):
        found = pc.or_(found, pc.match_substring_regex(text, pattern))
    return pc.fill_null(found, False)


def _days(values: Array) -> npt.NDArray[np.datetime64]:
    """Numbers of eight digits as days; NaT where there is no such day."""
    fits = (values >= 10_000_000) & (values < 100_000_000) & (values == np.trunc(values))
    whole = np.where(fits, values, 19700101).astype(np.int64)
    year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
    fits &= (month >= 1) & (month <= 12) & (day >= 1)
    fits &= _day_exists(year, np.clip(month, 1, 12), day)
    months = (12 * (year - 1970) + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = (months.astype("M8[D]") + (day - 1)).astype("M8[us]")
    return np.where(fits, days, np.datetime64("NaT", "us"))


_YEAR_DIGITS = (r"\d{4}", r"\d{2}")


def _numeric(sign: str, year: str = _YEAR_DIGITS[0]) -> str:
    mark = _SIGNS[sign]
    return rf"^(\d{{1,2}}){mark}(\d{{1,2}}){mark}({year}){_ANY_CLOCK}$"


def _named(month: str) -> str:
    return (
        rf"(?i)^(?:{_DAY_OF_MONTH}[-. /]*(?:{month})\.?|(?:{month})\.? {_DAY_OF_MONTH})[-., /]*(\d{{4}}){_ANY_CLOCK}$"
    )


def _with_offsets(text: pa.Array) -> pa.Array:
    """Texts of dates with the offsets of time zones for their names."""
    if pc.any(pc.match_substring_regex(text, _NAMED_ZONE)).as_py():
        for name, offset in ZONES.items():
            text = pc.replace_substring_regex(text, rf"(:\d\d(?:\.\d+)?) ?{name}$", rf"\1{offset}")
    return pc.replace_substring_regex(text, r"(:\d\d(?:\.\d+)?) ([+-]\d{2}:?\d{2}|Z)$", r"\1\2")


def _in_iso(text: pa.Array, spelling: str) -> pa.Array:
    """Texts with their dates in ISO order, as far as they are read by the spelling."""
    if pc.any(pc.match_substring_regex(text, r"[A-Z]$|:[\d.]+ [+-]|^\d:")).as_py():
        text = pc.replace_substring_regex(_with_offsets(text), r"^(\d):", r"0\1:")
    iso = pc.replace_substring_regex(text, _YEAR_FIRST, r"\1-\2-\3T\4")
    if pc.any(pc.match_substring_regex(iso, _named(_ANY_MONTH))).as_py():
        for number, month in enumerate(_MONTHS, 1):
            iso = pc.replace_substring_regex(iso, _named(month), rf"\3-{number}-\1\2T\4")
    if spelling == "yyyymmdd":
        iso = pc.replace_substring_regex(iso, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3T")
    elif spelling:
        to = r"\3-\2-\1T\4" if spelling[0] == "d" else r"\3-\1-\2T\4"
        years = {_YEAR_DIGITS[0]: ""}
        if spelling.endswith("yy"):
            years = {r"[0-5]\d|6[0-8]": "20", r"69|[7-9]\d": "19"}
        for year, century in years.items():
            iso = pc.replace_substring_regex(iso, _numeric(spelling[1], year), century + to)
    iso = pc.replace_substring_regex(iso, r"(?i) ?[ap]\.?m\.?$", "")
    iso = pc.replace_substring_regex(iso, r"-(\d)-", r"-0\1-")
    iso = pc.replace_substring_regex(iso, r"-(\d)T", r"-0\1T")
    iso = pc.replace_substring_regex(iso, r"T(\d):", r"T0\1:")
    return pc.replace_substring_regex(iso, "T$", "")


def _first(cells: pa.Array) -> str:
    return repr(cells[0].as_py())
