"""Tables in Parquet and Arrow files, which carry their types and are read by columns."""

import base64
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._bytes import Bytes, Format, first_line, spool
from qmedoid.tables._dialect import check_unique
from qmedoid.tables._types import BATCH_ROWS, in_types, is_declared_category, plain_schema

_PARQUET_ROWS = 1 << 15
_PARQUET_BUFFER = 1 << 18
"""Columns are read in pieces of so many bytes, not whole row groups at once: a third of the memory, no slower."""


class BinaryFile:
    """A table in a Parquet or Arrow file.

    Attributes
    ----------
    n_taken : int
        About how many bytes of the file were read in the last iteration.
    """

    is_text = False
    decimal = "."

    def __init__(self, data: Bytes, file: Path | None, form: Format) -> None:
        self.name, self._form, self.notes, self.n_taken = data.name, form, list[str](), 0
        self._n_bytes = 0 if file is None else file.stat().st_size
        # These formats are read from several places: what comes through a pipe or packed is copied first.
        self._copy: IO[bytes] | None = spool(data) if file is None or data.is_compressed else None
        self._file = str(file)
        data.close()
        with self._translated():
            schema, self.n_rows = self._head()
        check_unique(schema.names, self.name)
        self.schema, self._stored = plain_schema(schema), schema
        self.names = tuple(schema.names)

    @cached_property
    def categories(self) -> frozenset[str]:
        """Columns that the file says to be categories."""
        schema = self._stored
        if self._form == "parquet":
            # None of Parquet's own types is a category of numbers, but Arrow keeps the schema as it was.
            kept = (self._parquet().metadata.metadata or {}).get(b"ARROW:schema", b"")
            with suppress(ValueError, pa.ArrowException):  # it is a hint, and the cells can be read without it
                schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
        return frozenset(field.name for field in schema if is_declared_category(field.type))

    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, Any],
        *,
        verbatim: bool = False,  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        with self._translated():
            for batch in self._stored_batches(list(columns)):
                yield in_types(batch.select(list(columns)), types, self.name, row)
                row += batch.num_rows
                self.n_taken = self._n_bytes * row // self.n_rows if self.n_rows else 0
        self.n_taken = self._n_bytes

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> pa.Table:
        """The whole table."""
        fields = [(name, types.get(name, self.schema.field(name).type)) for name in columns]
        return pa.Table.from_batches(self.batches(columns, types), schema=pa.schema(fields))

    def close(self) -> None:
        """Drop the copy, if there is one."""
        if self._copy is not None:
            self._copy.close()

    def _head(self) -> tuple[pa.Schema, int | None]:
        """The schema, and the number of rows where the file says it."""
        if self._form == "parquet":
            file = self._parquet()
            return file.schema_arrow, file.metadata.num_rows
        if self._form == "arrow":
            reader = self._arrow(None)
            # Of the first column alone, as batches are unpacked to be counted.
            counted = self._arrow([0]) if reader.schema.names else reader
            return reader.schema, sum(counted.get_batch(i).num_rows for i in range(counted.num_record_batches))
        if self._form == "stream":
            return pa.ipc.open_stream(self._opened()).schema, None
        if self._form == "JSON lines":
            return self._json_lines().schema, None
        table = self._feather_1(None)
        return table.schema, table.num_rows

    def _stored_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if self._form == "parquet":
            yield from self._parquet().iter_batches(_PARQUET_ROWS, columns=columns, use_threads=False)
        elif self._form == "arrow":
            reader = self._arrow(sorted(self.names.index(name) for name in columns))
            for place in range(reader.num_record_batches):
                yield from _in_pieces(reader.get_batch(place))
        elif self._form == "stream":
            for batch in pa.ipc.open_stream(self._opened()):
                yield from _in_pieces(batch)
        elif self._form == "JSON lines":
            for batch in self._json_lines(self._stored).batches():
                yield from _in_pieces(batch)
        else:
            yield from self._feather_1(columns).to_batches(BATCH_ROWS)

    def _parquet(self) -> Any:
        from pyarrow import parquet

        source = self._file if self._copy is None else self._opened()
        return parquet.ParquetFile(source, buffer_size=_PARQUET_BUFFER, pre_buffer=False)

    def _arrow(self, places: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=places or [], use_threads=False)
        source = pa.memory_map(self._file) if self._copy is None else self._opened()
        return pa.ipc.open_file(source, options=options)

    def _json_lines(self, schema: pa.Schema | None = None) -> Any:
        from qmedoid.tables._json_lines import JsonLines

        return JsonLines(self._opened(), self.name, schema)

    def _feather_1(self, columns: list[str] | None) -> Any:
        from pyarrow import feather

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the format is old; the file is there all the same
            return feather.read_table(self._file if self._copy is None else self._opened(), columns=columns)

    def _opened(self) -> Any:
        if self._copy is None:
            return pa.OSFile(self._file)
        self._copy.seek(0)
        return pa.PythonFile(self._copy, mode="r")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name} cannot be read as {self._form}: {first_line(error)}.") from error


def _in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)
