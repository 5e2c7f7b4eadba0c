"""A table in memory that is read as files are."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from qmedoid.tables.arrow import BATCH_ROWS, in_types


class MemoryFile:
    """Rows in memory, such as a partition of a data frame; a name stands for that of a file."""

    is_text = False
    first_line = None
    decimal = "."

    def __init__(self, table: pa.Table, name: str) -> None:
        self.name, self.notes, self.n_taken = name, list[str](), 0
        self._table, self.n_rows = table, table.num_rows
        self.names, self.schema = tuple(table.column_names), table.schema
        self.categories = frozenset[str]()

    def batches(self, columns: list[str], types: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        for batch in self._table.select(columns).to_batches(max_chunksize=BATCH_ROWS):
            yield in_types(batch, types, self.name, row)
            row += batch.num_rows

    def close(self) -> None:
        """Nothing is open."""
