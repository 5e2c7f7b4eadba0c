"""Columns of plain numbers, many at a time: in wide tables a look at each column by itself is most of the work."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, column_slices

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


def frame_columns(data: Any) -> list[Any]:
    """The columns of a data frame one by one, so that one that Arrow refuses is known; but many of floats together."""
    floats = [place for place, kind in enumerate(data.dtypes) if kind is np.dtype(np.float64)]
    if len(floats) < FEWEST_COLUMNS:
        return [data.iloc[:, place] for place in range(len(data.columns))]
    columns: dict[int, Any] = dict(zip(floats, array_columns(data.iloc[:, floats].to_numpy()), strict=True))
    return [columns[place] if place in columns else data.iloc[:, place] for place in range(len(data.columns))]


def block_lists(values: npt.NDArray[np.float64]) -> list[list[Any]]:
    """The columns of a block as lists, with None for cells that are no finite numbers."""
    finite = np.isfinite(values)
    cells = values if finite.all() else values.astype(object)
    if not finite.all():
        cells[~finite] = None
    columns: list[list[Any]] = cells.T.tolist()
    return columns
