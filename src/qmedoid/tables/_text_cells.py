"""Texts as numbers, truth values, dates and places among levels, whole columns at a time."""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Codes
from qmedoid.tables.cells import Cells, as_floats, as_text

# What Arrow's own parsers take; the patterns keep them from raising at the first cell that is something else.
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_FRACTION = r"^-?(0|[1-9]\d{0,14})\.\d*$"
_ZERO_PADDED = r"^0\d+$"
_INFINITE = r"^[+-]?(?i:inf|infinity)$"
_NOT_A_NUMBER = r"^(?i:[+-]?nan)?$"
_DAY = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_HOUR, _MINUTES = r"([01]\d|2[0-3])", r":[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_TIME, _CLOCK = f"{_HOUR}{_MINUTES}", f"[T ]{_HOUR}({_MINUTES})?"
_ZONE = rf"(Z|[+-]{_HOUR}(:?[0-5]\d)?)"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")


def without_empty(text: pa.Array) -> pa.Array:
    """Texts without blanks around them, and with null for empty ones."""
    text = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def zero_padded(text: pa.Array) -> pa.Array:
    """The texts that are whole numbers with leading zeros, which a number would lose."""
    return text.filter(pc.match_substring_regex(_trimmed(text), _ZERO_PADDED))


def places_of_text(text: pa.Array, levels: tuple[str, ...]) -> Codes:
    """The place of each text among L levels: L where it is missing or empty, L + 1 where it is none of them."""
    place = pc.index_in(text, value_set=_value_set(levels, text.type))
    codes: Codes = place.fill_null(len(levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)
    if place.null_count:
        # An empty text that is a level stays one. What is written otherwise than its level is rare.
        others = np.flatnonzero(codes > len(levels))
        codes[others] = _places_of_spellings(text.take(pa.array(others)), levels)
    return codes


@lru_cache(maxsize=256)
def _value_set(levels: tuple[str, ...], kind: pa.DataType) -> pa.Array:
    return pa.array(levels, kind)


def _places_of_spellings(text: pa.Array, levels: tuple[str, ...]) -> Codes:
    """The places of texts that are written as no level is, blanks and trailing zeros aside."""
    trimmed = pc.utf8_trim_whitespace(text)
    spellings, places = _spellings(levels, text.type)
    place = as_floats(pc.index_in(_in_one_spelling(trimmed), value_set=spellings))
    unseen = np.isnan(place)
    codes: Codes = np.where(unseen, len(levels) + 1, places[np.where(unseen, 0, place).astype(np.intp)])
    missing = pc.fill_null(pc.equal(trimmed, ""), True).to_numpy(zero_copy_only=False)
    codes[missing & unseen] = len(levels)
    return codes


@lru_cache(maxsize=256)
def _spellings(levels: tuple[str, ...], kind: pa.DataType) -> tuple[pa.Array, Codes]:
    """The levels in their common spelling, and the place of each; where two share one, neither is meant by it."""
    spelt = _in_one_spelling(pc.utf8_trim_whitespace(pa.array(levels, kind)))
    counts = spelt.value_counts()
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    own = np.flatnonzero(~pc.is_in(spelt, value_set=shared).to_numpy(zero_copy_only=False))
    # One place more, for texts that are none of these where there are no levels at all.
    return spelt.take(pa.array(own)), np.append(own, 0).astype(np.intp)


def _in_one_spelling(text: pa.Array) -> pa.Array:
    """Texts with numbers such as 1.0 and 2.50 as they are written where a column holds numbers."""
    fits = pc.fill_null(pc.match_substring_regex(text, _FRACTION), False)
    if not pc.any(fits).as_py():
        return text
    parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
    return pc.if_else(fits, text_of_floats(parsed).cast(text.type), text)


def text_of_floats(array: pa.Array) -> pa.Array:
    """Floats as texts, each by itself; 3.0 was 3 before a missing cell made floats of whole numbers, NaN is missing."""
    values = as_floats(array)
    with np.errstate(invalid="ignore"):
        is_whole = (np.abs(values) < 2**53) & (values == np.trunc(values))
    whole = pa.array(np.where(is_whole, values, 0).astype(np.int64)).cast(pa.string())
    other = pa.array(values, mask=np.isnan(values)).cast(pa.string())
    return pc.if_else(pa.array(is_whole), whole, other)


def numbers_of_text(array: pa.Array) -> Cells:
    """Texts as numbers; infinities stay, and what says that it is not a number is missing."""
    text = _trimmed(array)
    fits = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _INFINITE))
    parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
    absent = pc.match_substring_regex(text, _NOT_A_NUMBER)
    return Cells(as_floats(parsed), text.filter(pc.invert(pc.or_(fits, absent))).cast(pa.string()))


def truths_of_text(array: pa.Array) -> Cells:
    """Texts as 1 and 0."""
    words = pc.utf8_lower(_trimmed(array))
    place = pc.index_in(words, value_set=pa.array(_TRUE + _FALSE, words.type))
    places = as_floats(place)
    values = np.where(np.isnan(places), np.nan, places < len(_TRUE))
    given = pc.fill_null(pc.not_equal(words, ""), False)
    return Cells(values, array.filter(pc.and_(place.is_null(), given)).cast(pa.string()))


def dates_of_text(array: pa.Array) -> Cells:
    """Texts of ISO dates, with or without a time of day and a zone, in microseconds since 1970.

    Times alone are on the first day of that year, as those that a file holds as times.
    """
    text = _trimmed(array)
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
        kept = pc.if_else(_day_exists(short), short, pa.scalar(None, short.type))
        return kept.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp("us"))


def _day_exists(text: pa.Array) -> pa.Array:
    parts = [pc.utf8_slice_codeunits(text, start, stop).fill_null("1") for start, stop in ((0, 4), (5, 7), (8, 10))]
    year, month, day = (part.cast(pa.int64()).to_numpy(zero_copy_only=False) for part in parts)
    first = (12 * (year - 1970) + month - 1).astype("M8[M]")
    length = (first + 1).astype("M8[D]") - first.astype("M8[D]")
    return pa.array(day <= length.astype(np.int64))


def _trimmed(array: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(as_text(array))
