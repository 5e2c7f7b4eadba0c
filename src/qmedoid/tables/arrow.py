"""Arrow tables: their types as we use them, data in memory as such tables, and their rows as plain records."""

import datetime
import math
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, column_slices, is_collection
from qmedoid.exceptions import DataError, some_of
from qmedoid.spelling import did_you_mean

_MISSING_TEXTS = (
    "NA N/A n/a #N/A NaN nan null NULL None ? - <NA> NaT #NA n.a. N.A. #DIV/0! #VALUE! #REF! #NAME? #NUM! #NULL!"
)
MISSING = ("", *_MISSING_TEXTS.split())
"""Cells that stand for a missing value."""
WORDS = MISSING[1:]
"""Those of them that may be names all the same: of a class, or of a level."""
SPELT_WORDS = [before + word + after for word in WORDS for before in ("", " ") for after in ("", " ")]
BATCH_ROWS = 1 << 16
DECIMAL = b"qmedoid.decimal"
"""Where a table that was read from texts says which decimal sign they have."""


class CellTypeError(DataError):
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


def common_type(kinds: Sequence[Any]) -> Any:
    """The type that columns of all these types can be read as: text, if they have nothing else in common."""
    try:
        schemas = [pa.schema([("", kind)]) for kind in kinds]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()


def in_types(batch: pa.RecordBatch, types: Mapping[str, Any], source: str, first_row: int) -> pa.RecordBatch:
    """The batch in plain types, or in those asked for; `CellTypeError` names the first cell that is not of its type."""
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
        raise CellTypeError(f"{source}: column {name!r} is {column.type} and cannot be read as {kind}.") from error
    except pa.ArrowInvalid as error:
        low, row = 0, len(column) - 1
        while low < row:  # all cells before `low` can be cast
            middle = (low + row) // 2
            try:
                column[low : middle + 1].cast(kind)
                low = middle + 1
            except pa.ArrowInvalid:
                row = middle
        cell = shortened(repr(column[row].as_py()))
        message = f"{source}: column {name!r}, row {first_row + row + 1}: {cell} cannot be read as {kind}."
        raise CellTypeError(message) from error


def without_missing(column: pa.Array, kept: Collection[str] = ()) -> pa.Array:
    """Texts without blanks around them, and null where they stand for a missing value; some words may be kept."""
    from pyarrow import compute

    column = compute.utf8_trim_whitespace(column)
    missing = compute.is_in(column, value_set=pa.array([one for one in MISSING if one not in kept], column.type))
    return compute.if_else(missing, pa.scalar(None, column.type), column)


def words_among(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    """Rows of a column of texts that hold a word for a missing value, by the word."""
    from pyarrow import compute

    found = column.filter(compute.is_in(column, value_set=pa.array(SPELT_WORDS, column.type)))
    counts = compute.utf8_trim_whitespace(found).value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def kept_words(table: pa.Table) -> dict[str, tuple[str, ...]]:
    """The words for a missing value that the columns of texts hold all the same, by column, if they hold any."""
    texts = [field.name for field in table.schema if field.type == pa.string()]
    return {name: tuple(found) for name in texts if (found := words_among(table.column(name)))}


_ALLOWED = (
    "a data frame (pandas, polars or another with the Arrow interface), an Arrow table, a dictionary of columns, a "
    "2-D array or a list of rows"
)


def as_table(data: Any, names: Sequence[str] | None = None) -> pa.Table:
    """Data frames, Arrow tables, mappings, 2-D arrays and lists of rows as an Arrow table with plain types.

    Indexes of data frames are dropped. Categories of texts or numbers stay categories, with texts as levels. A column
    that holds things of several types becomes text, but for its missing cells. `names` are those of the columns of
    arrays and lists (else ``x0``, ``x1``, and so on); of other data, the columns to keep.
    """
    if hasattr(data, "collect"):
        raise DataError(f"The rows of a {type(data).__name__} are not there yet: collect() it first.")
    if is_collection(data):
        raise DataError(
            f"The rows of a Dask {type(data).__name__} are not there yet, and are needed: compute() it first."
        )
    if isinstance(data, pa.RecordBatch | pa.Table):
        table = pa.table(data) if isinstance(data, pa.RecordBatch) else data
    elif hasattr(data, "iloc") and hasattr(data, "columns"):
        # One by one, so that a column that Arrow refuses is known; but many of floats together.
        floats = [number for number, kind in enumerate(data.dtypes) if kind is np.dtype(np.float64)]
        block = array_columns(data.iloc[:, floats].to_numpy()) if len(floats) >= FEWEST_COLUMNS else []
        made = dict(zip(floats, block, strict=False))
        columns = [made[number] if number in made else data.iloc[:, number] for number in range(len(data.columns))]
        table = _from_columns(list(data.columns), columns)
    elif hasattr(data, "__arrow_c_stream__"):
        try:
            table = pa.RecordBatchReader.from_stream(data).read_all()  # pa.table would import pandas to look for it
        except (pa.ArrowInvalid, TypeError) as error:  # one column has the interface as well
            raise DataError(f"The data must be {_ALLOWED}. Got {type(data).__name__} instead.") from error
    elif isinstance(data, Mapping):
        table = _from_columns(list(data), list(data.values()))
    else:
        return _plain(_from_array(data, names), is_new=True)
    check_unique(table.column_names, "The table")
    known = set(table.column_names)
    missing = [name for name in names or () if name not in known]
    if missing:
        has, hint = some_of([*map(repr, table.column_names)]), did_you_mean(missing[0], table.column_names)
        raise DataError(f"The table has no column {missing[0]!r}.{hint} It has {has}.")
    return _plain(table if names is None else table.select(list(names)))


def _from_columns(names: Sequence[Any], columns: Sequence[Any]) -> pa.Table:
    texts = [str(name) for name in names]
    check_unique(texts, "The table")
    arrays = [_column(values, name) for name, values in zip(texts, columns, strict=True)]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name!r} {len(array)}" for name, array in list(zip(texts, arrays, strict=True))[:5])
        raise DataError(f"Columns must have the same number of rows. Got {sizes}.")
    return pa.Table.from_arrays(arrays, names=texts)


def _column(values: Any, name: str) -> Any:
    """A column as Arrow takes it, or else as text; pandas says missing by NaN."""
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError):
        pass
    try:
        cells = [None if _is_missing(cell) else cell for cell in values]
    except TypeError:
        raise DataError(f"Column {name!r} must hold one cell per row. Got {type(values).__name__} instead.") from None
    if any(isinstance(cell, complex | np.complexfloating) for cell in cells):
        raise DataError(
            f"Column {name!r} holds complex numbers. Give two columns of numbers: real and imaginary parts."
        )
    try:
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    except UnicodeEncodeError as error:
        raise DataError(
            f"Column {name!r} holds {shortened(ascii(error.object))}, half a letter of UTF-16. Replace it."
        ) from None


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    equal = cell == cell
    return type(cell).__name__ == "NAType" or (isinstance(equal, bool | np.bool_) and not equal)


def _from_array(data: Any, names: Sequence[str] | None) -> pa.Table:
    array = data if isinstance(data, np.ndarray) else _cells(data)
    if array.ndim != 2:
        raise DataError(f"The data must have rows and columns. Got an array of shape {array.shape}.")
    if names is None:
        names = [f"x{place}" for place in range(array.shape[1])]
    if len(names) != array.shape[1]:
        raise DataError(f"There are {len(names)} names for {array.shape[1]} columns.")
    return _from_columns(names, array_columns(array))


def _cells(data: Any) -> npt.NDArray[Any]:
    """An array of what has rows; the cells of lists keep their types."""
    if isinstance(data, Sequence) and data and all(isinstance(row, list | tuple | np.ndarray) for row in data):
        widths = {len(row) for row in data}
        if len(widths) > 1:
            raise DataError(f"Rows must have the same number of cells. Got {min(widths)} and {max(widths)}.")
        array = np.empty((len(data), widths.pop()), dtype=object)
        for place, row in enumerate(data):
            array[place] = list(row)
        return array
    if hasattr(data, "__array__"):
        return np.asarray(data)
    raise DataError(f"The data must be {_ALLOWED}. Got {type(data).__name__} instead.")


def _plain(table: pa.Table, *, is_new: bool = False) -> pa.Table:
    """The table in plain types; what fields say besides is dropped, which those of a new table do not."""
    is_plain = {kind: kind == plain_type(kind) for kind in {*table.schema.types}}
    if all(is_plain.values()) and is_new:
        return table
    columns = table.columns
    for place in [place for place, kind in enumerate(table.schema.types) if not is_plain[kind]]:
        column, kind = columns[place], plain_type(columns[place].type)
        if is_declared_category(column.type):
            column = as_category(column)
        else:
            column = pa.chunked_array([in_plain_type(chunk) for chunk in column.chunks], kind)
        columns[place] = column
    # What a file showed of its decimal sign, or left open, goes with the table.
    kept = {name: value for name, value in (table.schema.metadata or {}).items() if name == DECIMAL}
    return pa.Table.from_arrays(columns, names=table.column_names, metadata=kept or None)


def plain_records(table: pa.Table, rows: npt.NDArray[np.intp] | None = None) -> list[dict[str, Any]]:
    """The rows, or some of them, as dictionaries of numbers, texts, truth values and None; dates as ISO text."""
    names, some = table.column_names, None if rows is None else pa.array(rows)
    columns: list[list[Any]] = [[] for _ in names]
    # Floats are most columns of wide tables; whole numbers stay whole.
    double = pa.float64()
    floats = np.flatnonzero([kind == double for kind in table.schema.types])
    others = np.ones(len(names), dtype=np.bool_)
    for block, values in number_blocks(table, [names[place] for place in floats]):
        others[floats[block]] = False
        values = values if rows is None else values[rows]
        finite = np.isfinite(values)
        lists = (
            values.T.tolist() if finite.all() else np.where(finite, values.astype(object), np.array(None)).T.tolist()
        )
        for place, cells in zip(floats[block].tolist(), lists, strict=True):
            columns[place] = cells
    for place in np.flatnonzero(others).tolist():
        column = table.column(place)
        column = column if some is None else column.take(some)
        if pa.types.is_float64(column.type):  # most columns of wide tables
            columns[place] = [cell if cell is not None and math.isfinite(cell) else None for cell in column.to_pylist()]
        else:
            if getattr(kind := column.type, "unit", None) == "ns":  # Python knows microseconds
                near = pa.timestamp("us", tz=kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
                column = column.cast(pa.time64("us") if pa.types.is_time(kind) else near, safe=False)
            columns[place] = [_plain_cell(cell) for cell in column]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


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


class _Refuse:
    """Says that pandas is not installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept away from Arrow", name=name)


def keep_pandas_away() -> None:
    """Have Arrow settle now that there is no pandas, for the life of this process.

    Arrow imports pandas, where installed, at the first array that it makes from Python or hands to NumPy: to ask
    whether it is a series. That takes longer than scoring a thousand rows. It asks once, so it is made to ask while
    pandas cannot be imported. Afterwards others can import it, but Arrow does not know it: for a command line, not for
    a library. Nothing is done where pandas is there already.
    """
    if "pandas" in sys.modules:
        return
    refuse = _Refuse()
    sys.meta_path.insert(0, refuse)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(refuse)


ENOUGH_ROWS = 20
"""Rows from which on it says something that all cells of a column are different."""
# Of longer tables, and of tables with few columns, a column is read by itself, without a copy.
MOST_ROWS, FEWEST_COLUMNS = 4096, 32
_PLAIN = {pa.float64(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()}


def number_blocks(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[Codes, Array]]:
    """Of the columns with these names those of floats and of whole numbers: their places there, and cells (n, k).

    Cells are as `cells.read` reads them, NaN where they are missing. A column is contiguous in memory. There are no
    blocks of long tables, and none where columns are few.
    """
    if len(names) < FEWEST_COLUMNS or not 0 < table.num_rows <= MOST_ROWS:
        return
    place_of = {name: place for place, name in enumerate(table.schema.names)}
    own = np.array([place_of.get(name, -1) for name in names], dtype=np.intp)
    types = table.schema.types
    for kind in {*types} & _PLAIN:
        places = np.flatnonzero((own >= 0) & np.array([one == kind for one in types])[own])
        for block in column_slices(table.num_rows, len(places)):
            given = table.select(own[places[block]].tolist())
            parts = [given] if isinstance(given, pa.RecordBatch) else given.to_batches()
            values = [part.to_tensor(null_to_nan=True, row_major=False).to_numpy() for part in parts]
            cells = values[0] if len(values) == 1 else np.concatenate(values)
            yield places[block], np.asfortranarray(cells, dtype=np.float64)


def array_columns(array: npt.NDArray[Any]) -> list[Any]:
    """The columns of an array; those of a wide array of numbers are slices of one Arrow array."""
    n_rows, n_columns = array.shape
    columns = np.ascontiguousarray(array.T)
    if array.dtype.kind not in "fiu" or n_columns < FEWEST_COLUMNS or n_rows > MOST_ROWS:
        return list(columns)
    cells = pa.array(columns.ravel(), from_pandas=True)
    return [cells.slice(place * n_rows, n_rows) for place in range(n_columns)]


def first_line(error: BaseException) -> str:
    """The first line of the message of an error, without a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__


def check_unique(names: Sequence[str], source: str) -> None:
    """Refuse column names that occur more than once, or hold a zero byte, which Arrow looks up in vain."""
    for name in names:
        if "\0" in name:
            raise DataError(f"{source} has a column whose name holds a zero byte, {name!r}. Rename it.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        places = [
            f"{name!r} (columns {', '.join(str(place + 1) for place, other in enumerate(names) if other == name)})"
            for name in twice[:5]
        ]
        raise DataError(f"{source} has column names more than once: {'; '.join(places)}. Rename all but one of each.")
