"""Cells of raw tables as codes, to find rows that are equal."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def cell_codes(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Columns of a table as codes, shape (n, M): cells have the same code where they are equal, or both missing."""
    columns = []
    for name in names:
        column = table.column(name).combine_chunks()
        codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        columns.append(codes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
    return np.column_stack(columns)
