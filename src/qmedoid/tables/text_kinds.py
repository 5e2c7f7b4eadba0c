"""What texts are: types that those of a file have in common; numbers or dates in one spelling, or a category."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.exceptions import DataError
from qmedoid.model.contract import COMPOUND, Column, Kind, split_spelling
from qmedoid.tables import cells
from qmedoid.tables.arrow import DECIMAL, shortened, without_missing, words_among
from qmedoid.tables.dates import ZONED, find_dates, look_like_dates, other_dates
from qmedoid.tables.kinds import DateOrder, are_times_of_day, kind_of_type
from qmedoid.tables.numbers import (
    DOUBTFUL,
    MOSTLY,
    example_of_thousands,
    find_compound,
    find_spelling,
    look_like_numbers,
    may_be_thousands,
    names_durations,
    needs_unit,
    respelt,
    shows_points,
    what_is_in_the_way,
    zero_padded,
)
from qmedoid.tables.text_files import NOTHING, maybe_thousands

_COMMA_OR_WHOLE = r"^\s*[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?\s*$"
_WITH_POINT = r"^\s*[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\s*$"
POINT_MARK = " (with a point)"
"""What is put behind numbers with a point in a file with decimal commas, so that they are no numbers."""


def in_other_spelling(wrong: pa.Array, column: Column) -> pa.Array:
    """Those of the cells that were not read which are numbers or dates all the same, spelt otherwise."""
    if column.kind == "date":
        return wrong.filter(other_dates(wrong))
    marked = pc.or_(pc.ends_with(wrong, POINT_MARK), pc.match_substring_regex(wrong, DOUBTFUL))
    return wrong.filter(pc.or_(marked, respelt(wrong, column.spelling)))


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
        if (settled := _thousands_or_fractions(name, text, decimal)) is not None:
            return settled
        note, example = None, None if decimal == "." else example_of_thousands(text)
        if example is not None:
            note = (
                f"column {name!r} is read as numbers with a decimal point: {example!r} is {float(example):g}, not "
                f"{example.replace('.', '')}; every cell has three digits after its point, which may separate "
                "thousands: --decimal , reads them that way, --decimal . says that it is a decimal point (decimal=',' "
                "or '.' in Python)"
            )
        return TextRead("number", "", plain, note)
    # One look tells of most columns that too few cells have digits.
    of_rows, of_levels = (pc.match_substring_regex(one, r"\pN") for one in (text.drop_null(), text.unique()))
    if pc.sum(of_rows).as_py() < MOSTLY * given and 2 * (pc.sum(of_levels).as_py() or 0) < len(of_levels):
        return TextRead("category")
    spelt = _spelt_numbers(name, text, given, decimal)
    if spelt.read is not None and (not is_number or len(spelt.read.wrong) < len(plain.wrong)):
        return spelt
    if is_number and not pc.any(respelt(plain.wrong, "")).as_py():
        code = _code_among_numbers(text, plain.wrong)
        if code is None:
            return TextRead("number", "", plain)
        such = f"cells such as {code!r} look like codes"
        return TextRead("category", note=f"column {name!r}: {such}: taken as texts, numbers among them too")
    if (compound := find_compound(name, text)) is not None:
        return _as_number(name, text, compound)
    found = _spelt_dates(name, text, date_order) or spelt
    if found.kind == "category" and found.note is None:
        if problem := what_is_in_the_way(text):
            return found._replace(note=_as_texts(name, "numbers", problem))
        n_numbers = given - len(plain.wrong)
        if given > n_numbers >= given / 2 and _code_among_numbers(text, plain.wrong) is None:
            such = f"others, such as {shortened(plain.wrong[0].as_py())!r}, are not"
            said = f"column {name!r} is taken as texts: {n_numbers:,} of {given:,} cells are numbers, and {such}"
            return found._replace(note=said)
    return found


def _as_texts(name: str, what: str, problem: str) -> str:
    return f"column {name!r} is taken as texts, not as {what}: {problem}"


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
    return TextRead("category", note=_as_texts(name, "numbers", found.problem))


def _as_number(name: str, text: pa.Array, spelling: str) -> TextRead:
    """Texts as numbers in a spelling, or a category where some are numbers that it does not read."""
    read = cells.read(text, "number", spelling)
    usable = np.flatnonzero(~np.isnan(read.values))
    if not len(usable):
        return TextRead("category")
    # The longest of the first cells shows most of the spelling.
    place = max(usable[:100].tolist(), key=lambda row: len(text[row].as_py()))
    example = text[place].as_py()
    odd = read.wrong.filter(respelt(read.wrong, spelling))
    if len(odd):
        problem = f"{example!r} and {odd[0].as_py()!r} are not spelt alike"
        return TextRead("category", note=_as_texts(name, "numbers", problem))
    how, more = "numbers", ""
    if spelling in COMPOUND:
        how = "lengths in inches" if "'" in spelling else "durations in seconds"
        more = f" ({spelling})" if ":" in spelling else ""
        if ":" in spelling and not len(cells.read(text, "date").wrong):
            more += "; --date reads times of day (roles='date' in Python)"
    else:
        _, _, unit, may_lack = split_spelling(spelling)
        how += f" with the unit {unit!r}" if needs_unit(spelling) or may_lack else ""
        more = "; numbers without a unit count as such, too" if may_lack else ""
    note = f"column {name!r} is read as {how}: {example!r} is {read.values[place]:.15g}{more}"
    return TextRead("number", spelling, read, note)


def read_durations(name: str, text: pa.Array) -> TextRead:
    """Texts such as 7:13 as durations, where a user says that they are numbers."""
    spelling = find_compound(name, text, insists=True)
    return TextRead("category") if spelling is None else _as_number(name, text, spelling)


def _spelt_dates(name: str, text: pa.Array, date_order: DateOrder | None) -> TextRead | None:
    """Texts as dates in one order, a category with what is in the way, or None where they are no dates."""
    found = find_dates(text, date_order)
    if found is None:
        return None
    example = text.drop_null()[0].as_py()
    if found.ambiguous:
        raise DataError(
            f"Column {name!r} holds dates such as {example!r}, and no cell shows whether day "
            "or month comes first. Say --date-order day-first or month-first (date_order='day-first' in Python)."
        )
    if found.spelling is None:
        return TextRead("category", note=_as_texts(name, "dates", found.problem))
    said = []
    if found.spelling:
        said.append("the day first" if found.spelling[0] == "d" else "the month first")
    if found.spelling.endswith("yy"):
        said.append("years of two digits, 69 to 99 of the last century and 00 to 68 of this one")
    if cells.ascii_digits(text) is not text:
        said.append("digits of another script")
    zoned = text.filter(pc.match_substring_regex(text, ZONED))
    if len(zoned):
        said, example = [*said, "times in universal time"], zoned[0].as_py()
    note = f"column {name!r} is read as dates with {' and '.join(said)}, as in {example!r}" if said else None
    short = text.filter(pc.match_substring_regex(text, r"^\d:"))
    if len(short):
        such = f"as in {short[0].as_py()!r}; --number reads durations (roles='number' in Python)"
        note = f"column {name!r} is read as times of day, {such}"
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
_NAMES = ("NA", "N/A", "n/a", "null", "NULL", "None", "-", "n.a.", "N.A.")
"""Words for a missing cell that people also write for a level: that there is none."""
_RECURRING = 5
"""Rows of a level on average, at least, where a word for a missing cell may be one."""
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+")
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


def infer_types(
    texts: pa.Table,
    decimal: str,
    kept: Collection[str] = (),
    target: str | None = None,
    missing: Mapping[str, Collection[Any]] = NOTHING,
) -> pa.Table:
    """The table with the types that the texts of each column have in common; columns in `kept` stay texts.

    So do whole numbers with leading zeros, and numbers that can be read in more than one way. Metadata name the decimal
    sign that other columns show. Words for missing cells become null; not so in the `target`, those that are `missing`
    by name (where ``""`` is, no other word is), and one that has the rows of a level.
    """
    columns = []
    for name, text in zip(texts.column_names, texts.columns, strict=True):
        column = text if name in kept else _typed(text, decimal)
        if column.type == pa.string() and (words := words_among(text)):
            bare = pa.chunked_array([without_missing(one) for one in text.chunks])
            column = bare if name in kept else _typed(bare, decimal)
            said = missing.get(name, ())
            if name == target or (column.type == pa.string() and "" in said):
                column = bare = text
            elif column.type == pa.string():
                levels = {*_level_words(words, bare), *(word for word in words if word in said)}
                column = bare = pa.chunked_array([without_missing(one, levels) for one in text.chunks])
            text = bare
        if column.type == pa.int64():
            # Leading zeros are those of codes, such as those of places, not of quantities.
            begins = pc.or_(pc.starts_with(text, "0"), pc.starts_with(text, " "))
            maybe = text.filter(pc.and_(begins, pc.greater(pc.binary_length(text), 1)))
            # So are hexadecimal numbers, which Arrow reads.
            is_code = len(zero_padded(maybe)) or pc.any(pc.match_substring_regex(maybe, "^ *0[xX]")).as_py()
            column = text if is_code else column
        elif pa.types.is_time(column.type) and names_durations(name):
            column = text
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
    shown = "," if decimal == "," else None
    for column, text in zip(columns, texts.columns, strict=True) if shown is None else ():
        # Do cells that are read with a decimal point show that they are no whole numbers with points between thousands?
        values = column.to_numpy() if pa.types.is_floating(column.type) else np.zeros(0)
        fractions = values[np.isfinite(values) & (values != np.trunc(values))]
        if len(fractions) and (not maybe_thousands(fractions) or shows_points(text.combine_chunks())):
            shown = "."
            break
    return pa.Table.from_arrays(columns, names=texts.column_names, metadata={DECIMAL: shown} if shown else None)


def _level_words(words: Mapping[str, int], text: pa.ChunkedArray) -> list[str]:
    """The word for a missing cell that has as many rows as a level of the column, if it is the only one that has.

    The levels are names, each of some rows: among numbers, and where cells do not recur, a word says that one is
    missing. So do words that programs write for it, and none has.
    """
    different = text.drop_null().unique()
    given = len(text) - text.null_count
    if not len(different) or given < _RECURRING * len(different):
        return []
    found = [word for word, count in words.items() if word in _NAMES and count * len(different) >= given]
    odd = pc.sum(pc.or_(look_like_numbers(different), look_like_dates(different))).as_py()
    return found if len(found) == 1 and 2 * odd < len(different) else []


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
