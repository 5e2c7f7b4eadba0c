"""Arrow types as tables use them, and cells turned from one into another."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._dialect import MISSING

BATCH_ROWS = 1 << 16
DECIMAL = b"qmedoid.decimal"
GROUPED = b"qmedoid.grouped"
"""Where a table that was read from texts says which decimal sign they have."""


class CellError(DataError):
    """A cell is not of the type that its column is read as; the message says which and where."""


def shortened(text: str) -> str:
    """The text in one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def plain_type(kind: Any) -> Any:
    """The type with dictionaries decoded and texts in their common form."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    is_view = getattr(types, "is_string_view", None)
    if types.is_large_string(kind) or (is_view is not None and is_view(kind)):
        return pa.string()
    return kind


def in_plain_type(column: pa.Array) -> pa.Array:
    """The column with its dictionary decoded and its texts in their common form."""
    kind = plain_type(column.type)
    if pa.types.is_dictionary(column.type):
        # Arrow decodes only dictionaries of common texts.
        values = column.dictionary if column.dictionary.type == kind else column.dictionary.cast(kind)
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def is_declared_category(kind: Any) -> bool:
    """Whether a column was said to be a category: a dictionary of texts or numbers."""
    types = pa.types
    if not types.is_dictionary(kind):
        return False
    value = plain_type(kind)
    return any(holds(value) for holds in (types.is_string, types.is_integer, types.is_floating, types.is_decimal))


def as_category(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as a dictionary of texts; numbers are written as the levels of categories are."""
    from qmedoid.tables.cells import as_text

    kind = pa.dictionary(pa.int32(), pa.string())
    chunks = [as_text(in_plain_type(chunk)).dictionary_encode() for chunk in column.chunks]
    return pa.chunked_array(chunks, kind).unify_dictionaries()


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Names and plain types."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def common_type(kinds: Sequence[Any]) -> Any:
    """The type that columns of all these types can be read as: text, if they have nothing else in common."""
    try:
        schemas = [pa.schema([("", kind)]) for kind in kinds]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()


def in_types(batch: pa.RecordBatch, types: Mapping[str, Any], source: str, first_row: int) -> pa.RecordBatch:
    """The batch in plain types, or in those asked for.

    Raises
    ------
    CellError
        For the first cell that is not of the type asked for.
    """
    wanted = [types.get(field.name, plain_type(field.type)) for field in batch.schema]
    if wanted == batch.schema.types:
        return batch
    columns = [
        column if column.type == kind else _converted(column, kind, name, source, first_row)
        for name, column, kind in zip(batch.schema.names, batch.columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _converted(column: pa.Array, kind: Any, name: str, source: str, first_row: int) -> pa.Array:
    column = in_plain_type(column)
    if column.type == pa.string() and kind != pa.string():
        column = without_missing(column)
    # Whole numbers beyond 2^53 become the nearest number; all else must be exact.
    safe = not (pa.types.is_integer(column.type) and pa.types.is_floating(kind))
    try:
        return column.cast(kind, safe=safe)
    except pa.ArrowNotImplementedError as error:
        raise CellError(f"{source}: column {name!r} is {column.type} and cannot be read as {kind}.") from error
    except pa.ArrowInvalid as error:
        row = _first_that_fails(column, kind)
        cell = shortened(repr(column[row].as_py()))
        message = f"{source}: column {name!r}, row {first_row + row + 1}: {cell} cannot be read as {kind}."
        raise CellError(message) from error


def without_missing(column: pa.Array) -> pa.Array:
    """Texts without blanks around them, and null where they stand for a missing value."""
    from pyarrow import compute

    column = compute.utf8_trim_whitespace(column)
    missing = compute.is_in(column, value_set=pa.array(MISSING))
    return compute.if_else(missing, pa.scalar(None, pa.string()), column)


def _first_that_fails(column: pa.Array, kind: Any) -> int:
    """The place of the first cell that cannot be cast, by halving: everything before `low` can be."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column[low:middle].cast(kind)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
