"""Cells of an Arrow column as numbers, dates or texts; what is not of the kind becomes missing and is handed back.

Arrow's functions on texts take longer to import than a small table of numbers takes to be scored: what needs them is
in a module of its own, which is imported where a text turns up.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes

_LAST_SECOND = 2**63 // 10**6
"""Seconds from 1970 that microseconds can count to."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_FEW = 256
"""Values that tell of most columns what they are not."""
LARGEST = 1e150
"""Numbers beyond this have squares that leave the range of double precision; models do not take them."""


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
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    # Few of Arrow's functions take views of texts.
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def numbers(column: pa.Array | pa.ChunkedArray, spelling: str = "") -> Cells:
    """Cells as numbers, texts by a spelling, truth values as 0 and 1. Floats without missing cells are not copied."""
    array = _decoded(column)
    kind = array.type
    if is_text(kind) and spelling:
        from qmedoid.tables._spelling import numbers_spelt

        return numbers_spelt(array, spelling)
    if is_text(kind):
        from qmedoid.tables._text_cells import numbers_of_text

        return numbers_of_text(array)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        array = array.cast(pa.float64(), safe=False)
    elif pa.types.is_duration(kind):
        seconds = as_floats(array.cast(pa.int64())) / _PER_SECOND[kind.unit]
        return Cells(seconds, pa.array([], pa.string()))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return Cells(np.full(len(array), np.nan), as_text(array.drop_null()))
    return Cells(as_floats(array), pa.array([], pa.string()))


def truths(column: pa.Array | pa.ChunkedArray) -> Cells:
    """Cells as truth values, 0 or 1: booleans, these numbers, or words such as true and no."""
    array = _decoded(column)
    if is_text(array.type):
        from qmedoid.tables._text_cells import truths_of_text

        return truths_of_text(array)
    values, wrong = numbers(array)
    other = ~np.isnan(values) & (values != 0) & (values != 1)
    if not other.any():
        return Cells(values, wrong)
    return Cells(np.where(other, np.nan, values), as_text(array.filter(pa.array(other))))


def dates(column: pa.Array | pa.ChunkedArray, spelling: str = "") -> Cells:
    """Cells in microseconds since 1970, texts by a spelling.

    Those with a zone are in universal time; times of day are on the first day.
    """
    array = _decoded(column)
    kind = array.type
    if is_text(kind) or (spelling == "yyyymmdd" and (pa.types.is_integer(kind) or pa.types.is_floating(kind))):
        from qmedoid.tables._date_spelling import dates_spelt

        return dates_spelt(array, spelling)
    if pa.types.is_time(kind):
        array = array.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moments(array)
    else:
        return Cells(np.full(len(array), np.datetime64("NaT", "us")), as_text(array.drop_null()))
    return Cells(array.to_numpy(zero_copy_only=False), pa.array([], pa.string()))


def _moments(array: pa.Array) -> Cells:
    """Days and times in microseconds; those that are too far away to be written so are not of the kind."""
    kind = array.type
    if getattr(kind, "unit", None) == "ns":
        array = array.cast(pa.timestamp("us"), safe=False)
        return Cells(array.to_numpy(zero_copy_only=False), pa.array([], pa.string()))
    try:
        array = array.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        is_day = pa.types.is_date32(kind)
        counts = array.cast(pa.int32() if is_day else pa.int64()).cast(pa.int64())
        unit = "days" if is_day else getattr(kind, "unit", "ms")
        per_second = _PER_SECOND.get(unit, 1 / 86_400)
        values = counts.fill_null(0).to_numpy()
        far = np.abs(values.astype(np.float64)) >= _LAST_SECOND * per_second
        near = pa.array(np.where(far, 0, values), mask=far | array.is_null().to_numpy(zero_copy_only=False))
        wrong = pa.array([f"{value} {unit} since 1970" for value in values[far].tolist()], pa.string())
        array = near.cast(pa.int32() if is_day else pa.int64()).cast(kind).cast(pa.timestamp("us"))
        return Cells(array.to_numpy(zero_copy_only=False), wrong)
    return Cells(array.to_numpy(zero_copy_only=False), pa.array([], pa.string()))


def texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Cells as texts without blanks around them, null where they are missing or empty."""
    from qmedoid.tables._text_cells import without_empty

    return without_empty(as_text(_decoded(column)))


def level_codes(column: pa.Array | pa.ChunkedArray, levels: tuple[str, ...]) -> tuple[Codes, pa.Array]:
    """The place of each cell among the levels: L where it is missing or empty, L + 1 where it is none of them.

    Blanks around a text are no part of it, and a number is the same however it is written: 1.0 is the level ``"1"``.
    Leading zeros are part of a text: ``"007"`` is not 7.

    Returns
    -------
    codes : ndarray of shape (n,)
    unseen : pyarrow.Array of str
        The cells that are none of the levels.
    """
    from qmedoid.tables._text_cells import places_of_text

    array = one_chunk(column)
    if pa.types.is_dictionary(array.type):
        # Each level is looked up once, however many rows hold it.
        of_level, _ = level_codes(array.dictionary, levels)
        table = np.append(of_level, len(levels))
        places = array.indices.fill_null(len(of_level)) if array.null_count else array.indices
        codes: Codes = table[places.to_numpy(zero_copy_only=False)]
    else:
        codes = places_of_text(as_text(array), levels)
    unseen = codes == len(levels) + 1
    return codes, texts(array.filter(pa.array(unseen))) if unseen.any() else pa.array([], pa.string())


def as_floats(array: pa.Array) -> npt.NDArray[Any]:
    """An array of numbers as floats, missing ones as NaN; floats that have none are not copied."""
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    # The scoring kernel reads both of these in place.
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def maybe_thousands(values: npt.NDArray[Any]) -> bool:
    """Whether floats may be whole numbers whose thousands were parted by points: 1.275 beside 935; NaN is missing.

    The first values tell of most columns that they are none. The texts say more: see `_spelling.may_be_thousands`.
    """
    return len(values) > 0 and _in_thousands(values[:_FEW]) and _in_thousands(values)


def _in_thousands(values: npt.NDArray[Any]) -> bool:
    sizes = np.abs(values[~np.isnan(values)].astype(np.float64))
    fractions = sizes[sizes != np.trunc(sizes)]
    with np.errstate(over="ignore", invalid="ignore"):
        is_odd = np.abs(1000 * fractions - np.rint(1000 * fractions)) > 1e-6
    return not (is_odd.any() or (sizes >= 1000).any() or (fractions < 1).any())


def floats_show_points(column: pa.ChunkedArray) -> bool:
    """Whether floats that were read with a decimal point cannot be whole numbers with points between thousands."""
    if not pa.types.is_floating(column.type):
        return False
    values = column.to_numpy()
    values = values[np.isfinite(values)]
    fractions = np.abs(values[values != np.trunc(values)])
    short = np.abs(100 * fractions - np.rint(100 * fractions)) < 1e-6
    return bool(len(fractions)) and (not maybe_thousands(fractions) or 2 * int(short.sum()) > len(fractions))


def are_beyond_floats(values: npt.NDArray[Any]) -> bool:
    """Whether floats are whole numbers that are too large for all their digits; NaN is missing."""
    given = values[~np.isnan(values)]
    return len(given) > 0 and bool((np.abs(given[:_FEW]) >= 2**53).any()) and bool((given == np.trunc(given)).all())


def as_text(array: pa.Array) -> pa.Array:
    """Cells as texts of a type that all of Arrow's functions take."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array
    if pa.types.is_floating(array.type):
        from qmedoid.tables._text_cells import text_of_floats

        return text_of_floats(array)
    try:
        return array.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = one_chunk(column)
    return array.dictionary.take(array.indices) if pa.types.is_dictionary(array.type) else array
