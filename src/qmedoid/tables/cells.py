"""Cells of an Arrow column as numbers, dates or texts; what is not of the kind becomes missing and is handed back.

Arrow's functions on texts take longer to import than a small table of numbers takes to be scored: what needs them is
in `_text_cells`, which is imported where a text turns up.

Columns of plain numbers in which every point may part thousands (1.275 and 20.628, and no cell that shows otherwise)
are read with a decimal point, as data of three decimals are far more usual, and a note says so.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.tables.arrow import GROUPED

_LAST_SECOND = 2**63 // 10**6
"""Seconds from 1970 that microseconds can count to."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FEW = 256
"""Values that tell of most columns what they are not."""
LARGEST = 1e150
"""Numbers beyond this have squares that leave the range of double precision; models do not take them."""


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
        from qmedoid.tables._text_cells import dates_spelt

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
    Leading zeros are part of a text: ``"007"`` is not 7. The cells that are none of the levels come as texts.
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


def may_be_misread(column: pa.ChunkedArray, decimal: str) -> bool:
    """Whether floats of a text may be other numbers: points that part thousands, or more digits than floats have."""
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    if all(_are_beyond_floats(chunk) for chunk in chunks):
        return True
    return decimal == "." and all(maybe_thousands(chunk) for chunk in chunks)


def _are_beyond_floats(values: npt.NDArray[Any]) -> bool:
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


Floats = npt.NDArray[np.float64]
ENOUGH_CELLS = 5
"""Different cells from which on it says something that all have three digits after their point."""
_GROUPED = r"^\s*([+-]?[1-9]\d{0,2}\.\d{3}\s*)?$"


class Grouped(NamedTuple):
    """A cell of a column in which every point may part thousands, and the median size as it is read."""

    example: str
    size: float

    @classmethod
    def of(cls, example: str, values: Floats) -> "Grouped":
        """The same from the numbers as they are read; NaN is missing."""
        given = np.abs(values[~np.isnan(values)])
        return cls(example, float(np.median(given)) if len(given) else math.inf)


def grouped_example(column: pa.Array | pa.ChunkedArray) -> str | None:
    """A cell of texts that all have one to three digits before a point and three after it; None where they do not.

    Missing cells do not count, and fewer than `ENOUGH_CELLS` different ones are too few to tell.
    """
    # The first cells tell of most columns that they hold other numbers.
    if not (_are_grouped(column.slice(0, _FEW)) and _are_grouped(column)):
        return None
    for part in (column.slice(0, _FEW), column):
        different = texts(part).drop_null().unique()
        if len(different) >= ENOUGH_CELLS:
            return str(different[0].as_py())
    return None


def grouped_note(name: str, example: str) -> str:
    """What is said about a column that is read with a decimal point all the same."""
    return (
        f"column {name!r} is read as numbers with a decimal point: {example!r} is {float(example):g}, not "
        f"{example.replace('.', '')}; every cell has three digits after its point, which may part thousands: "
        "--decimal , reads it so, --decimal . says that it is a decimal point (decimal=',' or '.' in Python)"
    )


def with_grouped(table: pa.Table, examples: Mapping[str, str]) -> pa.Table:
    """The table with a mark that says which of its columns of floats were such texts, with a cell of each."""
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), GROUPED: json.dumps(dict(examples)).encode()}
    )


def grouped_columns(table: pa.Table) -> dict[str, str]:
    """The columns that `with_grouped` marked, with a cell of each."""
    mark = (table.schema.metadata or {}).get(GROUPED)
    found: dict[str, str] = {} if mark is None else json.loads(mark)
    return found


def _are_grouped(column: pa.Array | pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    # Of no cells at all nothing is said.
    return bool(pc.all(pc.match_substring_regex(column, _GROUPED), min_count=0).as_py())
