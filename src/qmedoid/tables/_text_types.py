"""Types that the texts of a file have in common."""

import json
import re
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.tables._numbers import (
    are_long_digits,
    may_be_thousands,
    zero_padded,
)
from qmedoid.tables._thousands import floats_show_points, grouped_example, maybe_thousands
from qmedoid.tables.arrow import DECIMAL, GROUPED

_FEW = 256
"""Cells that show of most columns which types they do not have."""
_TYPES = (
    pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(),
)  # fmt: skip
"""Types that texts are read as, the narrowest first: those that Arrow's reader infers."""
_TRUTHS = ("1", "True", "TRUE", "true", "0", "False", "FALSE", "false")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+")
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


def infer_types(texts: pa.Table, decimal: str, kept: Collection[str] = ()) -> pa.Table:
    """The table with the types that the texts of each column have in common; columns in `kept` stay texts.

    So do whole numbers with leading zeros, and numbers that can be read in more than one way. Columns in which every
    point may part thousands are floats; metadata name them, or the decimal sign that other columns show.
    """
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
