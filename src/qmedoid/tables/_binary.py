"""Tables in Parquet, Arrow, JSON lines and Excel files, which carry their types."""

import base64
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._dialect import MISSING, check_unique, clean_names
from qmedoid.tables._text import Bytes, first_line, spool
from qmedoid.tables.arrow import BATCH_ROWS, common_type, in_types, is_declared_category, plain_schema

Format = Literal["csv", "parquet", "arrow", "stream", "feather 1", "JSON lines", "xlsx"]
JSON_ADVICE = (
    "write one record per line, {\"name\": value, ...}, as pandas does with to_json(orient='records', lines=True)."
)

_PARQUET_ROWS = 1 << 15
_PARQUET_BUFFER = 1 << 18
"""Columns are read in pieces of so many bytes, not whole row groups at once: a third of the memory, no slower."""


class BinaryFile:
    """A table in a Parquet or Arrow file or in JSON lines; `n_taken` is about how many bytes were read last."""

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
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        with self._translated():
            for batch in self._stored_batches(list(columns)):
                yield in_types(batch.select(list(columns)), types, self.name, row)
                row += batch.num_rows
                self.n_taken = self._n_bytes * row // self.n_rows if self.n_rows else 0
        self.n_taken = self._n_bytes

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
            return JsonLines(self._opened(), self.name).schema, None
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
            for batch in JsonLines(self._opened(), self.name, self._stored).batches():
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


_BLOCK = 1 << 23
_LONGEST = 1 << 26


class JsonLines:
    """Records of a file, one per line; without a schema one pass gives each column the type that its blocks share."""

    def __init__(self, file: Any, name: str, schema: pa.Schema | None = None) -> None:
        self._file, self._name, self._known = file, name, schema
        self.schema = self._common() if schema is None else schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of all records in the types of the schema; what a record does not have is missing."""
        for table in self._tables():
            columns = [
                self._cast(table.column(field.name), field) if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in self.schema
            ]  # fmt: skip
            yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()

    def _cast(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if column.type == field.type:
            return column
        from qmedoid.tables.cells import as_text

        if pa.types.is_string(field.type):
            return pa.chunked_array([as_text(chunk).cast(pa.string()) for chunk in column.chunks], pa.string())
        return column.cast(field.type)

    def _common(self) -> pa.Schema:
        kinds: dict[str, list[pa.DataType]] = {}
        rows = 0
        for table in self._tables():
            rows += table.num_rows
            for field in table.schema:
                kinds.setdefault(field.name, []).append(field.type)
        if not kinds:
            raise DataError(f"{self._name} has no records: {JSON_ADVICE}")
        if rows == 1 and any(pa.types.is_nested(kind) for found in kinds.values() for kind in found):
            # Columns of lists, or by row numbers, are one record in which all others are.
            raise DataError(f"{self._name} is a JSON document, not JSON lines: {JSON_ADVICE}")
        return pa.schema([(name, common_type(found)) for name, found in kinds.items()])

    def _tables(self) -> Iterator[pa.Table]:
        rest = b""
        while True:
            block = self._file.read(_BLOCK)
            text = rest + block
            end = len(text) if len(block) < _BLOCK else text.rfind(b"\n") + 1
            if end == 0 and len(text) > _LONGEST:
                raise DataError(f"{self._name} has a line of more than {_LONGEST >> 20} MB: {JSON_ADVICE}")
            if text[:end].strip():
                yield self._parsed(text[:end].removeprefix(b"\xef\xbb\xbf"))
            rest = text[end:]
            if len(block) < _BLOCK:
                return

    def _parsed(self, text: bytes) -> pa.Table:
        from pyarrow import json

        try:
            return json.read_json(
                pa.BufferReader(text), json.ReadOptions(use_threads=False, block_size=max(len(text), 1))
            )
        except pa.ArrowInvalid as error:
            reason = first_line(error).removeprefix("JSON parse error: ")
            raise DataError(f"{self._name} cannot be read as JSON lines ({reason}): {JSON_ADVICE}") from error


class SheetFile:
    """A table in the first sheet of a workbook, held in memory: its header is the first row that is not empty.

    Cells have the values that the workbook holds. Percentages stay texts with their sign, as they are shown, so that
    a column is the same from a workbook and from the CSV file it is saved as.
    """

    is_text = False
    decimal = "."

    def __init__(self, data: Bytes) -> None:
        self.name, self.notes, self.n_taken = data.name, list[str](), 0
        copy = spool(data)
        data.close()
        try:
            _check_workbook(copy, self.name)
            self._table = self._read(copy)
        finally:
            copy.close()
        self.n_rows, self.schema = self._table.num_rows, plain_schema(self._table.schema)
        self.names = tuple(self._table.column_names)

    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, Any],
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        for batch in self._table.select(list(columns)).to_batches(BATCH_ROWS):
            yield in_types(batch, types, self.name, row)
            row += batch.num_rows

    def close(self) -> None:
        """Do nothing: the workbook is closed once it is read."""

    def _read(self, copy: IO[bytes]) -> pa.Table:
        try:
            import openpyxl
        except ImportError:
            raise DataError(
                f"{self.name} is an Excel workbook, which needs the extra 'excel': pip install qmedoid[excel], or save "
                "the sheet as CSV."
            ) from None
        try:
            book = openpyxl.load_workbook(copy, read_only=True, data_only=True)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
            sheet = sheets[0]
            sheet.reset_dimensions()
            rows = [[_value(cell) for cell in row] for row in sheet.iter_rows()]
        except DataError:
            raise
        except Exception as error:  # whatever a damaged workbook does to its parser
            raise DataError(f"{self.name} cannot be read as a workbook: {first_line(error)}.") from error
        if len(sheets) > 1:
            self.notes.append(f"{self.name} has {len(sheets)} sheets; the first, {sheet.title!r}, is read.")
        return self._as_table([row for row in rows if any(cell is not None for cell in row)])

    def _as_table(self, rows: list[list[Any]]) -> pa.Table:
        if not rows:
            raise DataError(f"{self.name} is empty: a table has a header line and rows.")
        header = ["" if cell is None else str(cell) for cell in rows[0]]
        used = [
            place
            for place in range(max(map(len, rows)))
            if any(place < len(row) and row[place] is not None for row in rows)
        ]
        names, notes = clean_names([header[place] if place < len(header) else "" for place in used], self.name)
        self.notes += notes
        columns = [_column([row[place] if place < len(row) else None for row in rows[1:]]) for place in used]
        return pa.Table.from_arrays(columns, names=list(names))


def _check_workbook(copy: IO[bytes], name: str) -> None:
    """Refuse other archives, and workbooks of other kinds, by what they hold."""
    import zipfile

    try:
        inside = set(zipfile.ZipFile(copy).namelist())
    except zipfile.BadZipFile:
        raise DataError(f"{name} is a damaged zip archive or workbook.") from None
    copy.seek(0)
    if "xl/workbook.xml" in inside:
        return
    if "xl/workbook.bin" in inside or "content.xml" in inside:
        raise DataError(f"{name} is a workbook of a kind that is not read. Save its sheet as .xlsx or as CSV.")
    raise DataError(f"{name} is a zip archive. Unpack it, and give the table inside.")


def _value(cell: Any) -> Any:
    from decimal import Decimal

    value = cell.value
    if isinstance(value, str):
        value = value.strip()
        return None if value in MISSING else value
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in (cell.number_format or ""):
        return f"{(100 * Decimal(repr(value))).normalize():f}%"
    return value


def _column(values: list[Any]) -> pa.Array:
    """Cells in the type that they have in common, or as texts."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    return value.isoformat(sep=" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)
