"""What texts are: types that those of a file have in common; numbers or dates in one spelling, or a category.

A spelling is a short text of the contract: ``""`` for plain numbers, else ``"1.234,5"`` (what parts thousands and
decimals, without the 5 where no cell has decimals) and a unit behind a blank, as in ``"1,234.5 %"``.
"""

import re
from collections.abc import Collection
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Flags
from qmedoid.exceptions import DataError
from qmedoid.model.contract import Column, Kind, split_spelling
from qmedoid.tables import cells
from qmedoid.tables.arrow import DECIMAL
from qmedoid.tables.cells import Cells
from qmedoid.tables.dates import Spelt, find_dates, look_like_dates
from qmedoid.tables.kinds import DateOrder, are_times_of_day, kind_of_type
from qmedoid.tables.text_files import maybe_thousands

# What Arrow's own parser takes; the patterns keep it from raising at the first cell that is something else.
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"^[+-]?(?i:inf|infinity)$"
_NOT_A_NUMBER = r"^(?i:[+-]?nan)?$"
_ZERO_PADDED = r"^0\d+$"
_COMMA_OR_WHOLE = r"^\s*[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?\s*$"
_WITH_POINT = r"^\s*[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\s*$"
POINT_MARK = " (with a point)"
"""What is put behind numbers with a point in a file with decimal commas, so that they are no numbers."""

_CURRENCY = (
    r"(?:US|R|A|C)?\$|[€£¥₹₩₽₺₫₴₪฿₱]|kr\.?|zł|Kč|Ft|Fr\.|USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|CNY|INR"
    r"|BRL|MXN|ZAR|TRY|RUB|KRW|SGD|HKD"
)
_BODY = r"\d(?:[\d.,' ]*\d)?[.,]?|[.,]\d+"
_PARTS = (
    rf"^(?P<open>\(?)(?P<before>[+-]?) ?(?P<left>(?:{_CURRENCY})?) ?(?P<inner>\(?)(?P<sign>[+-]?)(?P<body>{_BODY})"
    rf"(?P<power>(?:[eE][+-]?\d+)?)(?P<close>\)?) ?(?P<after>-?) ?(?P<right>(?:{_CURRENCY}|%)?)(?P<last>[-)]?)$"
)
# A number of 1 to 3 digits, and one with exactly three behind one point: 1275 or 1.275?
_SHORT = r"^[+-]?\d{1,3}$"
_GROUP_OR_FRACTION = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"
_POINTED = r"^[+-]?(\d+\.\d*|\.\d+)$"
_POINT_CURRENCIES = ("$", "US$", "£", "₹", "USD", "GBP")
"""Currencies of places where a comma parts thousands."""


def numbers_of_text(array: pa.Array, spelling: str) -> Cells:
    """Texts as numbers by the rule of a spelling; infinities stay, and what says that it is not a number is missing.

    Percentages are divided by 100, as a spreadsheet holds them. A percent sign must be there where the spelling has
    one, and no other unit than its own may be there.
    """
    text = pc.utf8_trim_whitespace(array)
    if not spelling:
        fits = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _INFINITE))
        parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
        absent = pc.match_substring_regex(text, _NOT_A_NUMBER)
        wrong = text.filter(pc.invert(pc.or_(fits, absent))).cast(pa.string())
        return Cells(parsed.to_numpy(zero_copy_only=False), wrong)
    form, unit = split_spelling(spelling)
    body, power, units, negative = _parts(text)
    fits = pc.fill_null(_fits(body, form), False)
    allowed = [unit] if unit == "%" else ["", unit]
    fits = pc.and_(fits, pc.is_in(units, value_set=pa.array(allowed, units.type)))
    body = pc.if_else(fits, body, pa.scalar(None, body.type))
    group, point, _ = _signs(form)
    if group:
        body = pc.replace_substring(body, group, "")
    if point == ",":
        body = pc.replace_substring(body, ",", ".")
    values = pc.binary_join_element_wise(body, power, "").cast(pa.float64()).to_numpy(zero_copy_only=False)
    is_negative = pc.fill_null(negative, False).to_numpy(zero_copy_only=False)
    values = np.where(is_negative, -values, values) / (100.0 if unit == "%" else 1.0)
    wrong = pc.and_(pc.invert(fits), pc.fill_null(pc.not_equal(text, ""), False))
    return Cells(values, text.filter(wrong).cast(pa.string()))


def zero_padded(text: pa.Array) -> pa.Array:
    """The texts that are whole numbers with leading zeros, which a number would lose."""
    return text.filter(pc.match_substring_regex(pc.utf8_trim_whitespace(text), _ZERO_PADDED))


def look_like_numbers(text: pa.Array) -> pa.Array:
    """Whether texts are numbers in any spelling."""
    body, *_ = _parts(pc.utf8_trim_whitespace(text))
    return pc.fill_null(reduce(pc.or_, (_fits(body, form) for form in _FORMS)), False)


def respelt(text: pa.Array, spelling: str) -> pa.Array:
    """Whether texts are numbers with other signs between thousands and decimals than a spelling has.

    So are those without the percent sign of a spelling: where some cells of a column are spelt otherwise, it is not
    known what the others mean.
    """
    form, unit = split_spelling(spelling or "1234.5")
    text = text.cast(pa.string())
    body, _, units, _ = _parts(pc.utf8_trim_whitespace(text))
    other = pc.and_(look_like_numbers(text), pc.invert(pc.fill_null(_fits(body, form), True)))
    if unit != "%":
        return other
    return pc.or_(other, pc.and_(look_like_numbers(text), pc.fill_null(pc.equal(units, ""), False)))


def find_spelling(text: pa.Array, decimal: str | None = None) -> Spelt:
    """The one spelling of all texts (trimmed) that look like numbers; `decimal` is for those that do not show it."""
    cells = text.drop_null().unique()
    cells = cells.filter(look_like_numbers(cells))
    if not len(cells):
        return Spelt(None)
    body, _, marks, _ = _parts(cells)
    units = [unit for unit in marks.unique().to_pylist() if unit]
    if len(units) > 1:
        examples = [_example(cells, pc.equal(marks, unit)) for unit in units[:2]]
        return Spelt(None, problem=f"{examples[0]!r} and {examples[1]!r} have two units")
    unit = units[0] if units else ""
    bare = pc.equal(marks, "")
    if unit == "%" and pc.any(bare).as_py():
        marked = _example(cells, pc.equal(marks, "%"))
        return Spelt(None, problem=f"{marked!r} has a percent sign and {_example(cells, bare)!r} has none")
    forms = _fitting(body)
    if not forms:
        best = max((*_FORMS, "1234.5", "1234,5"), key=lambda form: pc.sum(_fits(body, form)).as_py() or 0)
        fits = _fits(body, best)
        odd = f"{_example(cells, fits)!r} and {_example(cells, pc.invert(fits))!r}"
        return Spelt(None, problem=f"{odd} are not spelt alike")
    suffix = f" {unit}" if unit else ""
    if len(forms) == 1:
        return Spelt(forms[0] + suffix)
    if decimal is None and unit in _POINT_CURRENCIES:
        decimal = "."
    chosen = next((form for form in forms if _signs(form)[1] == decimal), None)
    return Spelt(None if chosen is None else chosen + suffix, ambiguous=".,")


def may_be_thousands(text: pa.Array) -> bool:
    """Whether the points of plain numbers may part thousands, as in ``1.275`` and ``935``.

    So it is where every point has three digits behind it and one to three before it, and all numbers without a point
    are below 1000: a column of fractions would show another number of digits.
    """
    is_grouped = is_short = False
    for part in (text.slice(0, 256), text):  # the first cells tell of most columns that they hold fractions
        part = pc.utf8_trim_whitespace(part)
        grouped, short = (pc.match_substring_regex(part, pattern) for pattern in (_GROUP_OR_FRACTION, _SHORT))
        numbers = pc.match_substring_regex(part, r"^[+-]?[\d.]+$")
        if pc.any(pc.and_(numbers, pc.invert(pc.or_(grouped, short)))).as_py():
            return False
        is_grouped, is_short = pc.any(grouped).as_py(), pc.any(short).as_py()
    return bool(is_grouped and is_short)


def example_of_thousands(text: pa.Array) -> str | None:
    """A cell of at least five different ones that all look like ``1.275`` and ``20.628``; None where some do not."""
    for part in (text.slice(0, 256), text):
        cells = pc.utf8_trim_whitespace(part).drop_null()
        if not pc.all(pc.match_substring_regex(cells, _GROUP_OR_FRACTION), min_count=0).as_py():
            return None
    different = cells.unique()
    return str(different[0].as_py()) if len(different) >= 5 else None


def shows_points(text: pa.Array) -> bool:
    """Whether texts are numbers with a decimal point without doubt."""
    text = pc.utf8_trim_whitespace(text)
    pointed, grouped = (pc.match_substring_regex(text, pattern) for pattern in (_POINTED, _GROUP_OR_FRACTION))
    return bool(pc.any(pc.and_(pointed, pc.invert(grouped))).as_py())


_FORMS = ("1,234.5", "1.234,5", "1 234.5", "1 234,5", "1'234.5", "1'234,5")


def _signs(form: str) -> tuple[str, str, bool]:
    """What parts thousands (or nothing), the decimal sign, and whether it was seen."""
    before, _, after = form.partition("234")
    return before[1:], after[:1] or ("," if before[1:] == "." else "."), bool(after)


def _parts(text: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Body, power, unit and whether it is negative, of texts that look like numbers; null where a text does not.

    Typographic minus signs, blanks and apostrophes count as the plain ones.
    """
    text = pc.replace_substring_regex(text, "[\u00a0\u2007\u2008\u2009\u202f]", " ")
    text = pc.replace_substring_regex(text, "[\u2212\u2013\ufe63\uff0d]", "-")
    text = pc.replace_substring_regex(text, "[\u2019\u02bc\u00b4]", "'")
    parts = pc.extract_regex(text, _PARTS)
    field = {name: pc.struct_field(parts, name) for name in ("body", "power", "open", "inner", "close", "last")}
    signs = pc.binary_join_element_wise(*(pc.struct_field(parts, name) for name in ("before", "sign", "after")), "")
    last, opened = field["last"], pc.binary_join_element_wise(field["open"], field["inner"], "")
    signs = pc.binary_join_element_wise(signs, pc.replace_substring(last, ")", ""), "")
    closed = pc.binary_join_element_wise(field["close"], pc.replace_substring(last, "-", ""), "")
    braces = pc.binary_join_element_wise(opened, closed, "")
    units = pc.binary_join_element_wise(pc.struct_field(parts, "left"), pc.struct_field(parts, "right"), "|")
    unit = pc.utf8_trim(units, "|")
    # One sign at most, braces that are closed and in no company, and one unit.
    is_one = pc.and_(
        pc.is_in(pc.binary_join_element_wise(braces, signs, ""), value_set=pa.array(["", "+", "-", "()"], text.type)),
        pc.invert(pc.match_substring(unit, "|")),
    )
    nothing = pa.scalar(None, text.type)
    body = pc.if_else(is_one, field["body"], nothing)
    negative = pc.or_(pc.equal(braces, "()"), pc.equal(signs, "-"))
    return body, field["power"], pc.if_else(is_one, unit, nothing), negative


def _fitting(body: pa.Array) -> list[str]:
    """The forms that read all bodies, by which signs occur and where; two where it is open what a sign means."""
    has = {sign: pc.any(pc.match_substring(body, sign)).as_py() for sign in (",", ".", " ", "'")}
    if has[" "] or has["'"]:
        if (has[" "] and has["'"]) or (has[","] and has["."]):
            return []
        form = f"1{' ' if has[' '] else chr(39)}234{',5' if has[','] else '.5' if has['.'] else ''}"
        return [form] if _all_fit(body, form) else []
    if not (has[","] or has["."]):
        return ["1234"]
    if has[","] and has["."]:
        return [form for form in ("1,234.5", "1.234,5") if _all_fit(body, form)]
    if has["."] and not may_be_thousands(body):
        # Numbers of one size with three decimals each are far more usual than thousands alone.
        return [form for form in ("1234.5", "1.234") if _all_fit(body, form)][:1]
    return [form for form in (("1,234", "1234,5") if has[","] else ("1234.5", "1.234")) if _all_fit(body, form)]


def _all_fit(body: pa.Array, form: str) -> bool:
    return bool(pc.all(_fits(body, form)).as_py())


def _fits(body: pa.Array, form: str) -> pa.Array:
    """Whether what stands between signs and units is written in a form."""
    group, sign, is_shown = _signs(form)
    point = re.escape(sign)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+|\d+)" if group else r"\d+"
    # Where no decimals were seen it is open what a sign before three digits means.
    decimals = r"\d*" if is_shown else r"(?:\d{1,2}|\d{4,})?"
    return pc.match_substring_regex(body, rf"^(?:{whole}(?:{point}{decimals})?|{point}\d+)$")


def _example(cells: pa.Array, chosen: pa.Array) -> str:
    return str(cells.filter(chosen)[0].as_py())


def in_other_spelling(wrong: pa.Array, column: Column) -> pa.Array:
    """Those of the cells that were not read which are numbers or dates all the same, spelt otherwise."""
    if column.kind == "date":
        return wrong.filter(look_like_dates(wrong))
    marked = pc.or_(pc.ends_with(wrong, POINT_MARK), pc.match_substring_regex(wrong, _DOUBTFUL))
    return wrong.filter(pc.or_(marked, respelt(wrong, column.spelling)))


def doubtful_points(given: pa.Array, spelling: str) -> tuple[Flags, pa.Array] | None:
    """Which cells may have thousands for decimals, and their texts; None where others show what the sign means.

    With a spelling that parts thousands, as 1.234,5, the decimals of 1,275 are doubtful where every decimal sign has
    three digits behind it and one to three before it, and no thousands are parted as the spelling has it.
    """
    if not spelling:
        is_doubtful, is_shown = may_be_thousands(given), shows_points(given)
    else:
        group, point, has_decimals = _signs(split_spelling(spelling)[0])
        body = _parts(pc.utf8_trim_whitespace(given))[0].drop_null()
        decimals = body.filter(pc.match_substring(body, point))
        fit = pc.match_substring_regex(decimals, rf"^[1-9]\d{{0,2}}{re.escape(point)}\d{{3}}$")
        is_open = has_decimals and group and not pc.any(pc.match_substring(body, group)).as_py()
        is_doubtful, is_shown = bool(is_open and len(decimals) and pc.all(fit).as_py()), False
    if not is_doubtful:
        return None if is_shown else (np.zeros(len(given), dtype=bool), pa.array([], pa.string()))
    text = pc.utf8_trim_whitespace(given)
    doubtful = pc.fill_null(pc.match_substring_regex(text, _DOUBTFUL), False)
    return doubtful.to_numpy(zero_copy_only=False), text.filter(doubtful).cast(pa.string())


_DOUBTFUL = r"^[^.,]*[1-9]\d{0,2}[.,]\d{3}[^.,\d]*$"


def comma_numbers(texts: Any) -> Any:
    """Numbers with a decimal comma as texts with a point; what has a point already is marked to be no number."""
    is_number = pc.fill_null(pc.match_substring_regex(texts, _COMMA_OR_WHOLE), False)
    has_point = pc.fill_null(pc.match_substring_regex(texts, _WITH_POINT), False)
    if pc.any(has_point).as_py():
        # It is shown to people as an example of what is wrong.
        texts = pc.if_else(has_point, pc.binary_join_element_wise(texts, POINT_MARK, ""), texts)
    return pc.if_else(is_number, pc.replace_substring(texts, ",", "."), texts)


_MANY_ROWS = 100
"""Rows from which on codes recur and measured values do not."""
# ICD-9 among numbers such as 250.83: V45, E909. Not O5 and l2, where a letter was typed for a digit.
_CODE = r"^(?:[A-HJ-NP-Za-hj-kmnp-z][A-Za-z]?-?\d[\dA-Za-z.\-]*|\d+[A-Za-z]\d+)$"
_PLAIN_NUMBER = r"^(\d+(\.\d+)?|(?i:nan))$"
MOSTLY = 0.9
"""A text column is one of numbers if at least this share of its cells are."""


class TextRead(NamedTuple):
    """A column of texts as it is read: kind and spelling for the contract, the cells of a number or a date, and a note.

    The note says how the column is read, or what is in the way of reading it as numbers or dates.
    """

    kind: Kind
    spelling: str = ""
    read: cells.Cells | None = None
    note: str | None = None


def read_text(name: str, text: pa.Array, decimal: str | None, date_order: DateOrder | None) -> TextRead:
    """What a column of trimmed texts is; at least one cell is given.

    `decimal` and `date_order` are taken where the cells do not show theirs. A `DataError` says that cells can be
    numbers or dates in more than one way, and nothing shows in which.
    """
    plain, given = cells.read(text, "number"), len(text) - text.null_count
    is_number = given - len(plain.wrong) >= MOSTLY * given and bool(np.isfinite(plain.values).any())
    if is_number and (padded := zero_padded(text)) is not None and len(padded):
        such = f"cells such as {padded[0].as_py()!r} begin with zeros"
        return TextRead("category", note=f"column {name!r}: {such}: taken as texts")
    if is_number and not len(plain.wrong):
        return _thousands_or_fractions(name, text, decimal) or TextRead(
            "number", "", plain, _doubt(name, text, decimal)
        )
    spelt = _spelt_numbers(name, text, given, decimal)
    if spelt.read is not None and (not is_number or len(spelt.read.wrong) < len(plain.wrong)):
        return spelt
    if is_number and not pc.any(respelt(plain.wrong, "")).as_py():
        code = _code_among_numbers(text, plain.wrong)
        if code is None:
            return TextRead("number", "", plain)
        such = f"cells such as {code!r} look like codes"
        return TextRead("category", note=f"column {name!r}: {such}: taken as texts, numbers among them too")
    return _spelt_dates(name, text, date_order) or spelt


def _doubt(name: str, text: pa.Array, decimal: str | None) -> str | None:
    """What is said of numbers whose points may all part thousands, where nothing shows that they do not."""
    example = None if decimal == "." else example_of_thousands(text)
    if example is None:
        return None
    return (
        f"column {name!r} is read as numbers with a decimal point: {example!r} is {float(example):g}, not "
        f"{example.replace('.', '')}; every cell has three digits after its point, which may separate thousands: "
        "--decimal , reads them that way, --decimal . says that it is a decimal point (decimal=',' or '.' in Python)"
    )


def _code_among_numbers(text: pa.Array, wrong: pa.Array) -> str | None:
    """A cell that shows that texts, most of them numbers, are codes such as those of ICD-9; None where none does.

    Codes are plain numbers but for a few that have letters, as ``V45`` and ``E909`` among ``250.83``, and they recur
    in a table of many rows. `text` are the cells without blanks around them, `wrong` those that are not numbers.
    """
    codes = wrong.filter(pc.match_substring_regex(wrong, _CODE))
    if 2 * len(codes) < len(wrong) or not len(codes):
        return None
    numbers = text.filter(pc.invert(pc.is_in(text, value_set=wrong.unique().cast(text.type)))).drop_null()
    if not pc.all(pc.match_substring_regex(numbers, _PLAIN_NUMBER)).as_py():
        return None
    recurs = 2 * len(numbers.unique()) <= len(numbers)
    if not recurs and (len(text) >= _MANY_ROWS or len(codes.unique()) < 2):
        return None
    found: str = codes[0].as_py()
    return found


def _thousands_or_fractions(name: str, text: pa.Array, decimal: str | None) -> TextRead | None:
    """Plain numbers whose points may part thousands, by what else is known; None where there is no such doubt."""
    if decimal == "," and pc.any(pc.match_substring(text, ".")).as_py():
        return _as_number(name, text, "1234.5" if shows_points(text) else "1.234")
    if not may_be_thousands(text):
        return None
    pointed = text.filter(pc.match_substring(text, "."))[0].as_py()
    short = text.filter(pc.invert(pc.match_substring(text, ".")))[0].as_py()
    if decimal is None:
        meant = pointed.replace(".", "")
        raise DataError(
            f"Column {name!r} holds {pointed!r} and {short!r}. The first is {meant} or {float(pointed):g}, and "
            "nothing shows which. Say --decimal , if its points part thousands, or --decimal . if they are "
            "decimal points (decimal=',' or '.' in Python)."
        )
    return _as_number(name, text, "1.234" if decimal == "," else "1234.5")


def _spelt_numbers(name: str, text: pa.Array, given: int, decimal: str | None) -> TextRead:
    """Texts as numbers in one spelling, or as a category with what is in the way."""
    found = find_spelling(text)
    if found.ambiguous and found.spelling is None and decimal is not None:
        found = find_spelling(text, decimal)
    if found.spelling is None and not (found.ambiguous or found.problem):
        return TextRead("category")
    if found.spelling is not None:
        read = _as_number(name, text, found.spelling)
        enough = read.read is not None and given - len(read.read.wrong) >= MOSTLY * given
        return read if enough else TextRead("category")
    if (pc.sum(look_like_numbers(text)).as_py() or 0) < MOSTLY * given:
        return TextRead("category")
    if found.ambiguous:
        example = text.filter(pc.match_substring_regex(text, "[.,]"))[0].as_py()
        raise DataError(
            f"Column {name!r} holds {example!r}, whose sign may part thousands or decimals, and nothing shows "
            "which. Say --decimal . or --decimal , (decimal='.' or ',' in Python)."
        )
    return TextRead("category", note=f"column {name!r} is taken as texts, not as numbers: {found.problem}")


def _as_number(name: str, text: pa.Array, spelling: str) -> TextRead:
    read = cells.read(text, "number", spelling)
    usable = np.flatnonzero(~np.isnan(read.values))
    if not len(usable):
        return TextRead("category")
    # The longest of the first cells shows most of the spelling.
    place = max(usable[:100].tolist(), key=lambda row: len(text[row].as_py()))
    note = f"column {name!r} is read as numbers: {text[place].as_py()!r} is {read.values[place]:.15g}"
    return TextRead("number", spelling, read, note)


def _spelt_dates(name: str, text: pa.Array, date_order: DateOrder | None) -> TextRead | None:
    """Texts as dates in one order, a category with what is in the way, or None where they are no dates."""
    found = find_dates(text)
    if found is None:
        return None
    if found.ambiguous:
        if date_order is None:
            raise DataError(
                f"Column {name!r} holds dates such as {text.drop_null()[0].as_py()!r}, and no cell shows whether day "
                "or month comes first. Say --date-order day-first or month-first (date_order='day-first' in Python)."
            )
        found = find_dates(text, date_order) or found
    if found.spelling is None:
        return TextRead("category", note=f"column {name!r} is taken as texts, not as dates: {found.problem}")
    note = None
    if found.spelling:
        words = "the day first" if found.spelling[0] == "d" else "the month first"
        note = f"column {name!r} is read as dates with {words}, as in {text.drop_null()[0].as_py()!r}"
    return TextRead("date", found.spelling, cells.read(text, "date", found.spelling), note)


def rows_per_day(column: pa.ChunkedArray) -> float | None:
    """Mean rows of the days of a column of moments; None where it holds numbers, which name no day."""
    if kind_of_type(column.type) != "date":
        return None
    moments = cells.read(column, "date").values
    if are_times_of_day(moments):
        return None
    days = moments[~np.isnat(moments)].astype("M8[D]")
    return len(days) / len(np.unique(days)) if len(days) else None


_FEW = 256
"""Cells that show of most columns what they are not."""
_MOMENTS = (pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns"))
_TYPES = (pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *_MOMENTS, pa.float64())
"""Types that texts are read as, the narrowest first: those that Arrow's reader infers."""
_TRUTHS = ("1", "True", "TRUE", "true", "0", "False", "FALSE", "false")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+")
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


def infer_types(texts: pa.Table, decimal: str, kept: Collection[str] = ()) -> pa.Table:
    """The table with the types that the texts of each column have in common; columns in `kept` stay texts.

    So do whole numbers with leading zeros, and numbers that can be read in more than one way. Metadata name the decimal
    sign that other columns show.
    """
    columns = []
    for name, text in zip(texts.column_names, texts.columns, strict=True):
        column = text if name in kept else _typed(text, decimal)
        if column.type == pa.int64():
            # Leading zeros are those of codes, such as those of places, not of quantities.
            begins = pc.or_(pc.starts_with(text, "0"), pc.starts_with(text, " "))
            maybe = text.filter(pc.and_(begins, pc.greater(pc.binary_length(text), 1)))
            column = text if len(zero_padded(maybe)) else column
        elif pa.types.is_floating(column.type):
            values = column.to_numpy()
            given = values[~np.isnan(values)]
            if decimal == "." and maybe_thousands(values):
                whole = text.combine_chunks()
                # Texts go on to `read_text`, which asks or leaves a note, unless another column shows the point.
                column = text if may_be_thousands(whole) or example_of_thousands(whole) is not None else column
            elif len(given) and (given == np.trunc(given)).all() and np.abs(given).max() >= 2**53:
                # Whole numbers with more digits than a float has, unless they are written as 1e20.
                column = text if pc.all(pc.match_substring_regex(text, r"^\s*[+-]?\d+\s*$")).as_py() else column
        columns.append(column)
    shown = "," if decimal == "," else "." if any(map(_show_points, columns, texts.columns)) else None
    return pa.Table.from_arrays(columns, names=texts.column_names, metadata={DECIMAL: shown} if shown else None)


def _typed(text: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Texts in the first type of `_TYPES` that all of them can be read as, numbers and days with blanks around them."""
    if text.null_count == len(text):
        return pa.chunked_array([pa.nulls(len(text))])
    # What has a fraction can be read as a float alone.
    is_fraction = decimal == "." and _FRACTION.fullmatch(text[0].as_py() or "") is not None
    if is_fraction and (column := _read_as(text, pa.float64(), decimal)) is not None:
        return column
    first = pc.ascii_trim(text.slice(0, _FEW), " \t")
    for kind in _TYPES[-1:] if is_fraction else _TYPES:
        if _read_as(first, kind, decimal) is None:
            continue
        column = _read_as(text, kind, decimal)
        if column is None and not (pa.types.is_timestamp(kind) or pa.types.is_boolean(kind)):
            column = _read_as(pc.ascii_trim(text, " \t"), kind, decimal)
        if column is not None:
            return column
    return text


def _read_as(text: pa.ChunkedArray, kind: pa.DataType, decimal: str) -> pa.ChunkedArray | None:
    """Texts as cells of a type, as Arrow's reader of CSV takes them; None where one of them cannot be."""
    if pa.types.is_boolean(kind):
        if not pc.all(pc.is_in(text.drop_null(), value_set=pa.array(_TRUTHS))).as_py():
            return None
    elif pa.types.is_time(kind):
        if not pc.all(pc.match_substring_regex(text, _TIME)).as_py():
            return None
        return pc.binary_join_element_wise("1970-01-01", text, " ").cast(pa.timestamp("s")).cast(kind)
    elif pa.types.is_floating(kind) and decimal == ",":
        if pc.any(pc.match_substring(text, ".")).as_py():
            return None
        text = pc.replace_substring(text, ",", ".")
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return None


def _show_points(column: pa.ChunkedArray, text: pa.ChunkedArray) -> bool:
    """Whether cells that are read with a decimal point cannot be whole numbers with points between thousands."""
    if not pa.types.is_floating(column.type):
        return False
    values = column.to_numpy()
    fractions = values[np.isfinite(values) & (values != np.trunc(values))]
    return bool(len(fractions)) and (not maybe_thousands(fractions) or shows_points(text.combine_chunks()))
