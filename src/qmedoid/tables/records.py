"""Rows of a table as plain records: what people are shown, and what is kept as JSON."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain_records(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dictionaries of numbers, texts, truth values and None; dates as ISO text."""
    columns = [_plain_cells(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_cells(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if getattr(kind, "unit", None) == "ns":
        # Python knows microseconds.
        own = {pa.timestamp: pa.types.is_timestamp, pa.time64: pa.types.is_time, pa.duration: pa.types.is_duration}
        make = next(make for make, holds in own.items() if holds(kind))
        column = column.cast(make("us", tz=kind.tz) if make is pa.timestamp else make("us"), safe=False)
    return [_plain_cell(cell) for cell in column]


def _plain_cell(cell: pa.Scalar) -> Any:
    try:
        value = cell.as_py()
    except (OverflowError, ValueError):  # a moment beyond the calendar, which counts as missing
        return None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
