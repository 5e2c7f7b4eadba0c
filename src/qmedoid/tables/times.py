"""A time column that holds texts, as moments that can be ordered."""

from typing import cast

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables import cells
from qmedoid.tables.kinds import DateOrder


def moments_of_text(column: pa.ChunkedArray, name: str, date_order: str | None) -> pa.ChunkedArray:
    """Texts of dates as timestamps.

    Raises
    ------
    DataError
        If a cell is no date, or it is open whether day or month comes first.
    """
    from qmedoid.tables._text_kinds import Hints, read_text

    text = cells.texts(column)
    hints = Hints(pa.table({name: text}), None, cast("DateOrder | None", date_order))
    found = read_text(name, text, hints) if text.null_count < len(text) else None
    if found is None or found.kind != "date" or found.read is None or text.null_count:
        why = f" ({found.note.rpartition(': ')[2]})" if found is not None and found.note else ""
        raise DataError(
            f"The time column {name!r} holds texts, such as {column[0].as_py()!r}{why}. Write times as ISO dates "
            "(2024-01-31, or 2024-01-31 12:00:00) or as numbers."
        )
    return pa.chunked_array([pa.array(found.read.values)])
