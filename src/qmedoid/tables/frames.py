"""Data in memory as Arrow tables: data frames of any library, dictionaries of columns, arrays, lists of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._dialect import check_unique
from qmedoid.tables._types import DECIMAL, GROUPED, as_category, in_plain_type, is_declared_category, plain_type

_ALLOWED = (
    "a data frame (pandas, polars or another with the Arrow interface), an Arrow table, a dictionary of columns, a "
    "2-D array or a list of rows"
)


def as_table(data: Any, names: Sequence[str] | None = None) -> pa.Table:
    """The data as an Arrow table with plain types.

    Parameters
    ----------
    data : data frame, pyarrow.Table, pyarrow.RecordBatch, mapping, 2-D array or list of rows
        Indexes of data frames are dropped. Categories of texts or numbers stay categories, with texts as levels. A
        column that holds things of several types becomes text, but for its missing cells.
    names : sequence of str or None
        Of the columns of arrays and lists; None calls them ``x0``, ``x1``, and so on. Of other data, the columns to
        keep.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    DataError
        If the data are none of these, or column names repeat.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    if isinstance(data, pa.Table):
        return _plain(_selected(data, names))
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        raise DataError("A lazy frame has no rows yet. Call collect() first.")
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _plain(_selected(_from_pandas(data), names))
    if hasattr(data, "__arrow_c_stream__"):
        return _plain(_selected(_from_stream(data), names))
    if isinstance(data, Mapping):
        return _plain(_selected(_from_columns(list(data), list(data.values())), names))
    return _from_array(data, names)


def _from_pandas(frame: Any) -> pa.Table:
    """By column, as a column that Arrow refuses is then told from the others."""
    names = [str(name) for name in frame.columns]
    return _from_columns(names, [frame.iloc[:, place] for place in range(len(names))])


def _from_stream(data: Any) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()  # pa.table would import pandas to look for it
    except (pa.ArrowInvalid, TypeError) as error:  # one column has the interface as well
        raise DataError(f"The data must be {_ALLOWED}. Got {type(data).__name__} instead.") from error


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
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError):
        pass
    try:
        cells = list(values)
    except TypeError:
        raise DataError(f"Column {name!r} must hold one cell per row. Got {type(values).__name__} instead.") from None
    return pa.array([None if _is_missing(cell) else str(cell) for cell in cells], pa.string())


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
    return _plain(_from_columns(names, [np.ascontiguousarray(column) for column in array.T]))


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


def _selected(table: pa.Table, names: Sequence[str] | None) -> pa.Table:
    check_unique(table.column_names, "The table")
    if names is None:
        return table
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"The table has no column {missing[0]!r}. It has {', '.join(map(repr, table.column_names))}.")
    return table.select(list(names))


def _plain(table: pa.Table) -> pa.Table:
    columns = [_plain_column(column) for column in table.columns]
    # What a file showed of its decimal sign, or left open, goes with the table.
    kept = {name: value for name, value in (table.schema.metadata or {}).items() if name in (DECIMAL, GROUPED)}
    return pa.Table.from_arrays(columns, names=table.column_names, metadata=kept or None)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if is_declared_category(column.type):
        return as_category(column)
    kind = plain_type(column.type)
    return column if column.type == kind else pa.chunked_array([in_plain_type(chunk) for chunk in column.chunks], kind)
