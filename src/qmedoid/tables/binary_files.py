"""Tables that carry their types: Parquet and Arrow files, and tables in memory."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables.arrow import BATCH_ROWS, check_unique, first_line, in_types, is_declared_category, plain_type

_PARQUET_ROWS = 1 << 15
_PARQUET_BUFFER = 1 << 18
"""Columns are read in pieces of this many bytes, not whole row groups at once: a third of the memory, no slower."""


class BinaryFile:
    """A Parquet or Arrow file, or some row groups of one; `n_taken` is about how many bytes were read last."""

    is_text = False
    decimal = "."
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __init__(self, path: Path, row_groups: range | None = None) -> None:
        self.name, self._file, self.n_taken, self._row_groups = str(path), str(path), 0, row_groups
        self._n_bytes = path.stat().st_size
        with path.open("rb") as file:
            self._is_parquet = file.read(4) == b"PAR1"
        with self._translated():
            self._stored, self.n_rows = self._head()
        check_unique(self._stored.names, self.name)
        self.names = tuple(self._stored.names)
        self.schema = pa.schema([(field.name, plain_type(field.type)) for field in self._stored])

    @cached_property
    def categories(self) -> frozenset[str]:
        """Columns that the file says to be categories."""
        schema = self._stored
        if self._is_parquet:
            # None of Parquet's own types is a category of numbers, but Arrow keeps the schema as it was.
            kept = (self._parquet().metadata.metadata or {}).get(b"ARROW:schema", b"")
            with suppress(ValueError, pa.ArrowException):  # it is a hint, and the cells can be read without it
                schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
        return frozenset(field.name for field in schema if is_declared_category(field.type))

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        with self._translated():
            for stored in self._stored_batches(list(columns)):
                for start in range(0, stored.num_rows, BATCH_ROWS):
                    batch = stored.slice(start, BATCH_ROWS).select(list(columns))
                    yield in_types(batch, types, self.name, row)
                    row += batch.num_rows
                    self.n_taken = self._n_bytes * row // self.n_rows if self.n_rows else 0
        self.n_taken = self._n_bytes

    def _head(self) -> tuple[pa.Schema, int]:
        """The schema and the number of rows."""
        if self._is_parquet:
            file = self._parquet()
            groups = range(file.metadata.num_row_groups) if self._row_groups is None else self._row_groups
            return file.schema_arrow, sum(file.metadata.row_group(number).num_rows for number in groups)
        reader = self._arrow([])
        # Of the first column alone, as batches are unpacked to be counted.
        counted = self._arrow([0]) if reader.schema.names else reader
        return reader.schema, sum(counted.get_batch(number).num_rows for number in range(counted.num_record_batches))

    def _stored_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if self._is_parquet:
            some = None if self._row_groups is None else list(self._row_groups)
            yield from self._parquet().iter_batches(_PARQUET_ROWS, row_groups=some, columns=columns, use_threads=False)
        else:
            reader = self._arrow(sorted(self.names.index(name) for name in columns))
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))

    def _parquet(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self._file, buffer_size=_PARQUET_BUFFER, pre_buffer=False)

    def _arrow(self, columns: list[int]) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        return pa.ipc.open_file(pa.memory_map(self._file), options=options)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            form = "Parquet" if self._is_parquet else "Arrow"
            raise DataError(f"{self.name} cannot be read as {form}: {first_line(error)}.") from error

    def close(self) -> None:
        """Nothing is open between two readings."""


class MemoryFile:
    """Rows in memory, such as a partition of a data frame; a name stands for that of a file."""

    is_text = False
    decimal = "."
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __init__(self, table: pa.Table, name: str) -> None:
        self.name, self.n_taken = name, 0
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
