"""Cells of an Arrow column as numbers, truth values, dates, texts or codes.

What is not of the kind becomes missing and is handed back. Arrow's functions on texts take longer to import than a
small table of numbers takes to be scored: they are imported where a text turns up.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import ranks
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.model.contract import Column, Kind
from qmedoid.spelling import ODD_LETTERS, look
from qmedoid.tables.arrow import number_blocks

Floats = npt.NDArray[np.float64]
_NOTHING = pa.nulls(0, pa.string())  # made without a look for pandas, which is slow to import
_LAST_SECOND = 2**63 // 10**6
"""Seconds from 1970 that microseconds can count to."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_FRACTION = r"^-?(0|[1-9]\d{0,14})\.\d*$"
LARGEST = 1e150
"""Numbers beyond this have squares that leave the range of double precision; models do not take them."""


def is_usable(values: npt.NDArray[Any]) -> Flags:
    """Which numbers a model takes: none that are missing, infinite or beyond `LARGEST`."""
    if values.dtype == np.float32:
        return np.asarray(np.isfinite(values))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values) <= LARGEST)


class Cells(NamedTuple):
    """A column as floats with NaN, or dates with NaT, where a cell is missing or not of the kind; those in order."""

    values: npt.NDArray[Any]
    wrong: pa.Array


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array; no copy is made where it is one already."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    # Few of Arrow's functions take views of texts.
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


TEXT_TYPES = frozenset((pa.string(), pa.large_string(), pa.string_view()))


def read(given: pa.Array | pa.ChunkedArray, kind: Kind | Column, spelling: str = "") -> Cells:
    """Cells as numbers, truth values (0 or 1) or dates (microseconds since 1970); texts by a spelling.

    A column of a contract has its kind and spelling, and says what stands for missing cells. Floats without missing
    cells are not copied. Dates with a zone are in universal time; times of day are on the first day.
    """
    if isinstance(kind, Column):
        return read(without_missing_values(given, kind), kind.kind, kind.spelling)
    array = decoded(given)
    if kind == "date":
        return _dates(array, spelling)
    return _truths(array) if kind == "boolean" else _numbers(array, spelling)


def without_missing_values(given: pa.Array | pa.ChunkedArray, column: Column) -> pa.Array | pa.ChunkedArray:
    """The cells of a column; those that hold one of its `missing_values` are null."""
    if not column.missing_values:
        return given
    import pyarrow.compute as pc

    array = one_chunk(given)
    if not pa.types.is_dictionary(array.type):
        return pc.if_else(pa.array(_holds(array, column)), pa.scalar(None, array.type), array)
    held = np.flatnonzero(_holds(one_chunk(array.dictionary), column))
    is_held = pc.fill_null(pc.is_in(array.indices, value_set=pa.array(held, array.indices.type)), False)
    indices = pc.if_else(is_held, pa.scalar(None, array.indices.type), array.indices)
    return pa.DictionaryArray.from_arrays(indices, array.dictionary)


def with_missing_values_out(table: Any, columns: Sequence[Column]) -> Any:
    """A table or batch in which cells are null that hold one of the `missing_values` of their column."""
    for column in columns:
        if column.missing_values and column.name in table.schema.names:
            cells = without_missing_values(table.column(column.name), column)
            table = table.set_column(table.schema.names.index(column.name), column.name, cells)
    return table


def _holds(array: pa.Array, column: Column) -> Flags:
    """Which cells hold one of the `missing_values` of their column: by their text, and by what they are read as."""
    found = np.zeros(len(array), dtype=np.bool_)
    if column.kind == "category" or array.type in TEXT_TYPES:
        codes, _ = level_codes(array, column.missing_values)
        found |= codes < len(column.missing_values)
    if column.missing_numbers:
        values = read(array, column.kind, column.spelling).values
        values = floats(values) if column.kind == "date" else values
        for number in column.missing_numbers:  # a number in single precision is compared in single precision
            found |= values == number
    return found


def _numbers(array: pa.Array, spelling: str) -> Cells:
    kind = array.type
    if kind in TEXT_TYPES:
        from qmedoid.tables.numbers import numbers_of_text

        return numbers_of_text(array, spelling)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        array = array.cast(pa.float64(), safe=False)
    elif pa.types.is_duration(kind):
        return _all_right(_as_floats(array.cast(pa.int64())) / _PER_SECOND[kind.unit])
    elif pa.types.is_time(kind) and spelling:
        return _all_right(_as_floats(array.cast(pa.time64("us"), safe=False).cast(pa.int64())) / 10**6)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return Cells(np.full(len(array), np.nan), as_text(array.drop_null()))
    return _all_right(_as_floats(array))


def _all_right(values: npt.NDArray[Any]) -> Cells:
    return Cells(values, _NOTHING)


def floats(values: npt.NDArray[Any]) -> Floats:
    """Numbers, or dates in microseconds since 1970, in double precision; NaN where they are missing."""
    if values.dtype.kind != "M":
        return values.astype(np.float64)
    return np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64).astype(np.float64))


def _as_floats(array: pa.Array) -> npt.NDArray[Any]:
    """Numbers as floats, missing ones as NaN; the scoring kernel reads both precisions in place."""
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _truths(array: pa.Array) -> Cells:
    """Booleans, the numbers 0 and 1, or words such as true and no."""
    if array.type in TEXT_TYPES:
        import pyarrow.compute as pc

        words = pc.utf8_lower(pc.utf8_trim_whitespace(array))
        place = pc.index_in(words, value_set=pa.array(_TRUE + _FALSE, words.type))
        unread = pc.and_(place.is_null(), pc.fill_null(pc.not_equal(words, ""), False))
        places = _as_floats(place)
        values = np.where(np.isnan(places), np.nan, places < len(_TRUE))
        return Cells(values, array.filter(unread).cast(pa.string()))
    values, wrong = _numbers(array, "")
    other = ~np.isnan(values) & (values != 0) & (values != 1)
    if not other.any():
        return Cells(values, wrong)
    return Cells(np.where(other, np.nan, values), as_text(array.filter(pa.array(other))))


def _dates(array: pa.Array, spelling: str) -> Cells:
    kind = array.type
    if kind in TEXT_TYPES or (spelling == "yyyymmdd" and (pa.types.is_integer(kind) or pa.types.is_floating(kind))):
        from qmedoid.tables.dates import dates_spelt

        return dates_spelt(array, spelling)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moments(array)
    if not pa.types.is_time(kind):
        return Cells(np.full(len(array), np.datetime64("NaT", "us")), as_text(array.drop_null()))
    array = array.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    return _all_right(array.to_numpy(zero_copy_only=False))


def _moments(array: pa.Array) -> Cells:
    """Days and times in microseconds; those that are too far away to be written so are not of the kind."""
    kind = array.type
    try:
        near = array.cast(pa.timestamp("us"), safe=getattr(kind, "unit", None) != "ns")
        return _all_right(near.to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        is_day = pa.types.is_date32(kind)
        counts = array.cast(pa.int32() if is_day else pa.int64()).cast(pa.int64())
        unit = "days" if is_day else getattr(kind, "unit", "ms")
        values = counts.fill_null(0).to_numpy()
        far = np.abs(values.astype(np.float64)) >= _LAST_SECOND * _PER_SECOND.get(unit, 1 / 86_400)
        near = pa.array(np.where(far, 0, values), mask=far | array.is_null().to_numpy(zero_copy_only=False))
        wrong = pa.array([f"{value} {unit} since 1970" for value in values[far].tolist()], pa.string())
        near = near.cast(pa.int32() if is_day else pa.int64()).cast(kind).cast(pa.timestamp("us"))
        return Cells(near.to_numpy(zero_copy_only=False), wrong)


def texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Cells as texts without blanks around them, null where they are missing or empty."""
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(as_text(decoded(column)))
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def ascii_digits(text: pa.Array) -> pa.Array:
    """Texts with the digits 0 to 9 for those of other scripts, and for the signs that stand between these."""
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(text)).as_py():
        return text
    zeros = other_zeros()
    pattern = f"[{''.join(f'{zero}-{chr(ord(zero) + 9)}' for zero in zeros)}]"
    if not pc.any(pc.match_substring_regex(text, pattern)).as_py():
        return text
    for zero in zeros:
        digits = [chr(ord(zero) + value) for value in range(10)]
        if pc.any(pc.match_substring_regex(text, f"[{zero}-{digits[9]}]")).as_py():
            for value, digit in enumerate(digits):
                text = pc.replace_substring(text, digit, str(value))
    for sign, plain in DIGIT_SIGNS.items():
        text = pc.replace_substring(text, sign, plain)
    return text


DIGIT_SIGNS = dict(zip("٫٬٪．，％：／＋－", ".,%.,%:/+-", strict=True))
"""Signs that stand between digits of other scripts, and those that mean the same."""


@lru_cache(maxsize=1)
def other_zeros() -> list[str]:
    """Zeros of the basic plane but that of ASCII; one to nine follow each."""
    return [chr(code) for code in range(128, 2**16) if unicodedata.decimal(chr(code), -1) == 0]


def as_text(array: pa.Array) -> pa.Array:
    """Cells as texts of a type that all of Arrow's functions take.

    Of floats each is written by itself: 3.0 was 3 before a missing cell made floats of whole numbers, NaN is missing.
    """
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array
    if pa.types.is_floating(array.type):
        import pyarrow.compute as pc

        values = _as_floats(array)
        with np.errstate(invalid="ignore"):
            is_whole = (np.abs(values) < 2**53) & (values == np.trunc(values))
        whole = pa.array(np.where(is_whole, values, 0).astype(np.int64)).cast(pa.string())
        other = pa.array(values, mask=np.isnan(values)).cast(pa.string())
        return pc.if_else(pa.array(is_whole), whole, other)
    try:
        return array.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())


def joined_texts(parts: Sequence[pa.Array], sign: str) -> pa.Array:
    """Texts of several arrays with a sign between those that are there; null where none is.

    One pair after the other: Arrow's own way to skip nulls drops rows in which all are null.
    """
    import pyarrow.compute as pc

    joined = parts[0]
    for part in parts[1:]:
        joined = pc.coalesce(pc.binary_join_element_wise(joined, part, sign), joined, part)
    return joined


def in_one_look(table: pa.Table, skip: Collection[str] = ()) -> tuple[pa.Table, dict[str, str]]:
    """A table in which texts of a column that look the same are written as the most frequent of them; and notes."""
    import pyarrow.compute as pc

    notes = {}
    for name in table.column_names:
        column = table.column(name)
        is_category = pa.types.is_dictionary(column.type)
        if name in skip or (column.type.value_type if is_category else column.type) not in TEXT_TYPES:
            continue
        column = as_text(decoded(column)) if is_category else column
        counts = column.value_counts()
        if not pc.any(pc.match_substring_regex(counts.field("values"), ODD_LETTERS)).as_py():
            continue
        rows, best = Counter[str](), {"": ""}
        for text, count in zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True):
            rows[text or ""] += count
        for text in sorted(rows, key=lambda one: (-rows[one], one)):
            best.setdefault(look(text), text)
        changed = {text: one for text in rows if (one := best[look(text)]).strip() != text.strip()}
        if not changed:
            continue
        place = pc.index_in(column, value_set=pa.array([*changed], column.type))
        column = pc.if_else(place.is_valid(), pa.array([*changed.values()], column.type).take(place), column)
        column = column.dictionary_encode() if is_category else column
        table = table.set_column(table.column_names.index(name), name, column)
        first, other = next(iter(changed.items()))
        shown = repr(first) if first.isascii() else ascii(first)
        which = (
            "one text looks like another and is"
            if len(changed) == 1
            else f"{len(changed):,} texts look like others and are"
        )
        notes[name] = f"column {name!r}: {which} read as that, such as {shown} in {rows[first]:,} rows as {other!r}"
    return table, notes


def decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array, with its dictionary decoded."""
    array = one_chunk(column)
    return array.dictionary.take(array.indices) if pa.types.is_dictionary(array.type) else array


def cell_ranks(table: pa.Table, columns: Sequence[Column]) -> tuple[Codes, list[bool]]:
    """Cells of some columns by their places among the different ones, shape (n, M), and which columns have levels.

    Numbers, truth values and dates are in rising order, those that differ in their last digits alone in one place, and
    missing ones last. Levels are in the order of their names, behind missing ones.
    """
    places = np.empty((table.num_rows, len(columns)), dtype=np.intp)
    for block, values in value_blocks(table, columns):
        places[:, block] = ranks(with_equal_cells(values))
    is_level = [column.kind == "category" for column in columns]
    for place in np.flatnonzero(is_level).tolist():
        encoded = texts(without_missing_values(table.column(columns[place].name), columns[place])).dictionary_encode()
        names = np.array(encoded.dictionary.to_pylist(), dtype=object)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        found = np.append(np.argsort(np.argsort(names)), -1)[codes]
        places[:, place] = found - found.min(initial=0)
    return places, is_level


def value_blocks(table: pa.Table, columns: Sequence[Column]) -> Iterator[tuple[Codes, Array]]:
    """Numbers, truth values and dates of columns that are no categories: some of their places, and cells (n, k).

    Missing cells are NaN, and so are infinite ones, and those beyond all that is measured; those that hold one of the
    `missing_values` of their column are null already.
    """
    left = {place for place, column in enumerate(columns) if column.kind != "category"}
    numbers = np.array([place for place, column in enumerate(columns) if column.kind == "number"], dtype=np.intp)
    for block, values in number_blocks(table, [columns[place].name for place in numbers.tolist()]):
        left -= {*numbers[block].tolist()}
        yield numbers[block], _without_huge(values)
    for place in sorted(left):
        values = floats(read(table.column(columns[place].name), columns[place]).values)[:, None]
        yield np.array([place]), _without_huge(values)


def _without_huge(values: Array) -> Array:
    huge = np.abs(values) > LARGEST
    return np.where(huge, np.nan, values) if huge.any() else values


def level_codes(
    given: pa.Array | pa.ChunkedArray, levels: tuple[str, ...], column: Column | None = None
) -> tuple[Codes, pa.Array]:
    """The place of each cell among the levels: L where it is missing or empty, L + 1 where it is none of them.

    Blanks around a text are no part of it, and a number is the same however it is written: 1.0 is the level ``"1"``.
    Leading zeros are part of a text: ``"007"`` is not 7. The cells that are none of the levels come as texts. A column
    says what stands for missing cells.
    """
    array = one_chunk(given if column is None else without_missing_values(given, column))
    if pa.types.is_dictionary(array.type):
        # Each level is looked up once, however many rows hold it.
        of_level = np.append(_places(as_text(one_chunk(array.dictionary)), levels), len(levels))
        places = array.indices.fill_null(len(of_level) - 1) if array.null_count else array.indices
        codes: Codes = of_level[places.to_numpy(zero_copy_only=False)]
    else:
        codes = _places(as_text(array), levels)
    unseen = codes == len(levels) + 1
    return codes, texts(array.filter(pa.array(unseen))) if unseen.any() else _NOTHING


def _places(text: pa.Array, levels: tuple[str, ...]) -> Codes:
    import pyarrow.compute as pc

    place = pc.index_in(text, value_set=_level_sets(levels, text.type)[0])
    codes: Codes = place.fill_null(len(levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)
    if place.null_count:
        # An empty text that is a level stays one. What is written otherwise than its level is rare.
        others = np.flatnonzero(codes > len(levels))
        codes[others] = _places_of_spellings(text.take(pa.array(others)), levels)
    return codes


def _places_of_spellings(text: pa.Array, levels: tuple[str, ...]) -> Codes:
    """The places of texts that are written as no level is: blanks, zeros at the end and how letters look aside."""
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    _, spellings, places = _level_sets(levels, text.type)
    spelt = _in_one_spelling(trimmed)
    place = _as_floats(pc.index_in(spelt, value_set=spellings))
    unseen = np.isnan(place)
    codes: Codes = np.where(unseen, len(levels) + 1, places[np.where(unseen, 0, place).astype(np.intp)])
    missing = pc.fill_null(pc.equal(spelt, ""), True).to_numpy(zero_copy_only=False)
    codes[missing & unseen] = len(levels)
    return codes


@lru_cache(maxsize=256)
def _level_sets(levels: tuple[str, ...], kind: pa.DataType) -> tuple[pa.Array, pa.Array, Codes]:
    """The levels; their common spellings, without those that two share, and the index of each."""
    import pyarrow.compute as pc

    given = pa.array(levels, kind)
    spelt = _in_one_spelling(pc.utf8_trim_whitespace(given))
    counts = spelt.value_counts()
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    own = np.flatnonzero(~pc.is_in(spelt, value_set=shared).to_numpy(zero_copy_only=False))
    # One place more, for texts that are none of these where there are no levels at all.
    return given, spelt.take(pa.array(own)), np.append(own, 0).astype(np.intp)


def _in_one_spelling(text: pa.Array) -> pa.Array:
    """Texts as they look, with numbers such as 1.0 and 2.50 as they are written where a column holds numbers."""
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(text, ODD_LETTERS)).as_py():
        encoded = text.dictionary_encode()
        looks = pa.array([look(one) for one in encoded.dictionary.to_pylist()], text.type)
        text = looks.take(encoded.indices)
    fits = pc.fill_null(pc.match_substring_regex(text, _FRACTION), False)
    if not pc.any(fits).as_py():
        return text
    parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
    return pc.if_else(fits, as_text(parsed).cast(text.type), text)
