"""Types that the texts of a file have in common, and points that may part thousands: 1.275 may be 1275.

Columns of plain numbers in which every point may part thousands (1.275 and 20.628, and no cell that shows otherwise)
are read with a decimal point, as data of three decimals are far more usual, and a note says so.
"""

import json
import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.tables.arrow import DECIMAL, GROUPED
from qmedoid.tables.cells import Floats, texts

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

    So do whole numbers with leading zeros, and numbers that can be read in more than one way. Columns in which every
    point may part thousands are floats; metadata name them, or the decimal sign that other columns show.
    """
    import pyarrow.compute as pc  # slow to import

    from qmedoid.tables.numbers import are_long_digits, may_be_thousands, zero_padded

    columns, grouped = [], {}
    for name, text in zip(texts.column_names, texts.columns, strict=True):
        column = text if name in kept else _typed(text, decimal)
        if column.type == pa.int64():
            # Leading zeros are those of codes, such as those of places, not of quantities.
            begins = pc.or_(pc.starts_with(text, "0"), pc.starts_with(text, " "))
            maybe = text.filter(pc.and_(begins, pc.greater(pc.binary_length(text), 1)))
            column = text if len(zero_padded(maybe)) else column
        elif pa.types.is_floating(column.type) and _may_be_misread(column, decimal):
            whole = text.combine_chunks()
            if may_be_thousands(whole) or are_long_digits(whole):
                column = text
            elif (example := grouped_example(whole)) is not None:
                grouped[name] = example
        columns.append(column)
    others = [column for name, column in zip(texts.column_names, columns, strict=True) if name not in grouped]
    shown = "," if decimal == "," else "." if any(map(floats_show_points, others)) else None
    marks = {DECIMAL: shown} if shown else {GROUPED: json.dumps(grouped)} if grouped else None
    return pa.Table.from_arrays(columns, names=texts.column_names, metadata=marks)


def _may_be_misread(column: pa.ChunkedArray, decimal: str) -> bool:
    """Whether floats may be other numbers: points that part thousands, or more digits than floats have."""
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    given = [chunk[~np.isnan(chunk)] for chunk in chunks]
    if all((np.abs(one[:_FEW]) >= 2**53).any() and (one == np.trunc(one)).all() for one in given):
        return True
    return decimal == "." and all(maybe_thousands(chunk) for chunk in chunks)


def _typed(text: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Texts in the first type of `_TYPES` that all of them can be read as, numbers and days with blanks around them."""
    import pyarrow.compute as pc  # slow to import

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
    import pyarrow.compute as pc  # slow to import

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


_GROUPED = r"^\s*([+-]?[1-9]\d{0,2}\.\d{3}\s*)?$"
ENOUGH_CELLS = 5
"""Different cells from which on it says something that all have three digits after their point."""


def maybe_thousands(values: npt.NDArray[Any]) -> bool:
    """Whether floats may be whole numbers whose thousands were parted by points, as 1.275 and 935; NaN is missing.

    The first values tell of most columns that they are none. The texts say more: see `numbers.may_be_thousands`.
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


def median_size(values: Floats) -> float:
    """The median size of numbers; NaN is missing."""
    given = np.abs(values[~np.isnan(values)])
    return float(np.median(given)) if len(given) else math.inf


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


def grouped_columns(table: pa.Table) -> dict[str, str]:
    """The columns of floats that the table marks as such, with a cell of each."""
    mark = (table.schema.metadata or {}).get(GROUPED)
    found: dict[str, str] = {} if mark is None else json.loads(mark)
    return found


def _are_grouped(column: pa.Array | pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    # Of no cells at all nothing is said.
    return bool(pc.all(pc.match_substring_regex(column, _GROUPED), min_count=0).as_py())
