"""Cells of an Arrow column as numbers, dates or texts; what is not of the kind becomes missing and is handed back."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.intp]

LARGEST = 1e150
"""Numbers beyond this have squares that leave the range of double precision; models do not take them."""

# What Arrow's own parser takes; the pattern keeps it from raising at the first cell that is something else.
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_NO_NUMBER = r"^[+-]?(?i:nan|inf|infinity)$"
_DAY = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK = r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


class Cells(NamedTuple):
    """A column as an array, and the texts of the cells that are not of the kind.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Floats with NaN, or dates with NaT, where a cell is missing or not of the kind.
    wrong : pyarrow.Array of str
        The cells that are not of the kind, in order.
    """

    values: npt.NDArray[Any]
    wrong: pa.Array


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array; no copy is made where it is one already."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def numbers(column: pa.Array | pa.ChunkedArray) -> Cells:
    """Cells as numbers, truth values as 0 and 1. Floats without missing cells are not copied."""
    array = _decoded(column)
    kind = array.type
    if is_text(kind):
        return _numbers_of_text(array)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        array = array.cast(pa.float64(), safe=False)
    elif pa.types.is_duration(kind):
        seconds = array.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return Cells(np.asarray(_as_floats(seconds) / 1e6), _no_text())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _all_wrong(array, np.full(len(array), np.nan))
    return Cells(_as_floats(array), _no_text())


def truths(column: pa.Array | pa.ChunkedArray) -> Cells:
    """Cells as truth values, 0 or 1: booleans, these numbers, or words such as true and no."""
    array = _decoded(column)
    if is_text(array.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(_plain_text(array)))
        place = pc.index_in(words, value_set=pa.array(_TRUE + _FALSE))
        values = np.where(_as_floats(place) < len(_TRUE), 1.0, 0.0)
        values[place.is_null().to_numpy(zero_copy_only=False)] = np.nan
        given = pc.fill_null(pc.not_equal(words, ""), False)
        return Cells(values, array.filter(pc.and_(place.is_null(), given)).cast(pa.string()))
    values, wrong = numbers(array)
    if pa.types.is_boolean(array.type) or len(wrong):
        return Cells(values, wrong)
    other = ~np.isnan(values) & (values != 0) & (values != 1)
    if not other.any():
        return Cells(values, wrong)
    return Cells(np.where(other, np.nan, values), array.filter(pa.array(other)).cast(pa.string()))


def dates(column: pa.Array | pa.ChunkedArray) -> Cells:
    """Cells as microseconds since 1970, in universal time where they have a zone; times of day are on its first day."""
    array = _decoded(column)
    kind = array.type
    wrong = _no_text()
    if is_text(kind):
        return _dates_of_text(array)
    if pa.types.is_time32(kind) or pa.types.is_time64(kind):
        array = array.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us"), safe=False)
    else:
        return _all_wrong(array, np.full(len(array), np.datetime64("NaT", "us")))
    return Cells(array.to_numpy(zero_copy_only=False), wrong)


def texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Cells as texts, null where they are missing or empty."""
    array = _decoded(column)
    text = _plain_text(array) if is_text(array.type) else _as_text(array)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def level_codes(column: pa.Array | pa.ChunkedArray, levels: tuple[str, ...]) -> tuple[Codes, pa.Array]:
    """The place of each cell among the levels: L where it is missing, L + 1 where it is none of them.

    Returns
    -------
    codes : ndarray of shape (n,)
    unseen : pyarrow.Array of str
        The cells that are none of the levels.
    """
    array = one_chunk(column)
    if pa.types.is_dictionary(array.type):
        # Each level is looked up once, however many rows hold it.
        inner, _ = level_codes(array.dictionary, levels)
        table = np.append(inner, len(levels))
        places = array.indices.fill_null(len(inner)) if array.null_count else array.indices
        codes: Codes = table[places.to_numpy(zero_copy_only=False)]
    else:
        text = _plain_text(array) if is_text(array.type) else _as_text(array)
        place = pc.index_in(text, value_set=_value_set(levels, text.type))
        codes = place.fill_null(len(levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)
        if place.null_count:
            missing = pc.fill_null(pc.equal(text, ""), True).to_numpy(zero_copy_only=False)
            # An empty text that is a level stays one.
            codes[missing & (codes > len(levels))] = len(levels)
    unseen = codes == len(levels) + 1
    return codes, texts(array.filter(pa.array(unseen))) if unseen.any() else _no_text()


@lru_cache(maxsize=256)
def _value_set(levels: tuple[str, ...], kind: pa.DataType) -> pa.Array:
    return pa.array(levels, kind)


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = one_chunk(column)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _plain_text(array: pa.Array) -> pa.Array:
    """Texts of a type that Arrow's functions on texts take."""
    return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array


def _as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_floating(array.type):
        # 3.0 was 3 before a missing cell made a column of floats out of whole numbers.
        values = array.drop_null().to_numpy(zero_copy_only=False)
        if (np.abs(values) < 2**53).all() and (values == np.trunc(values)).all():
            array = array.cast(pa.int64())
    try:
        return array.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())


def _as_floats(array: pa.Array) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    # The scoring kernel reads both of these in place.
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _numbers_of_text(array: pa.Array) -> Cells:
    text = pc.utf8_trim_whitespace(_plain_text(array))
    fits = pc.match_substring_regex(text, _NUMBER)
    parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
    word = pc.or_(pc.match_substring_regex(text, _NO_NUMBER), pc.equal(text, ""))
    wrong = text.filter(pc.invert(pc.or_(fits, word)))
    return Cells(_as_floats(parsed), wrong.cast(pa.string()))


def _dates_of_text(array: pa.Array) -> Cells:
    text = pc.utf8_trim_whitespace(_plain_text(array))
    day = pc.match_substring_regex(text, _DAY + "$")
    local = pc.match_substring_regex(text, _DAY + _CLOCK + "$")
    zoned = pc.match_substring_regex(text, _DAY + _CLOCK + _ZONE + "$")
    nothing = pa.scalar(None, text.type)
    plain = _timestamps(pc.if_else(pc.or_(day, local), text, nothing), None)
    universal = _timestamps(pc.if_else(zoned, text, nothing), "UTC")
    parsed = pc.coalesce(plain, universal)
    wrong = pc.and_(parsed.is_null(), pc.fill_null(pc.not_equal(text, ""), False))
    return Cells(parsed.to_numpy(zero_copy_only=False), text.filter(wrong).cast(pa.string()))


def _timestamps(text: pa.Array, zone: str | None) -> pa.Array:
    """Texts that look like ISO dates; days that their month does not have become null."""
    # The parser refuses digits beyond its unit: nine of them, the most there are, fit into six.
    short = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    try:
        return short.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        last = pc.cast(pc.utf8_slice_codeunits(short, 8, 10), pa.int8())
        month = pc.cast(pc.utf8_slice_codeunits(short, 5, 7), pa.int8())
        year = pc.cast(pc.utf8_slice_codeunits(short, 0, 4), pa.int16())
        kept = pc.if_else(_day_exists(year, month, last), short, pa.scalar(None, short.type))
        return kept.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp("us"))


def _day_exists(year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    years, months, days = (part.fill_null(1).to_numpy(zero_copy_only=False) for part in (year, month, day))
    first = (years.astype(np.int64) - 1970).astype("M8[Y]").astype("M8[M]") + (months.astype(np.int64) - 1)
    lengths = ((first + 1).astype("M8[D]") - first.astype("M8[D]")).astype(np.int64)
    return pa.array(days <= lengths)


def _all_wrong(array: pa.Array, values: npt.NDArray[Any]) -> Cells:
    return Cells(values, _as_text(array.drop_null()))


def _no_text() -> pa.Array:
    return pa.array([], pa.string())
