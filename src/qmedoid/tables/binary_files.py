"""Tables that carry their types: Parquet, Arrow and Excel files, and tables in memory."""

import base64
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables.arrow import (
    BATCH_ROWS,
    MISSING,
    check_unique,
    first_line,
    in_types,
    is_declared_category,
    plain_type,
)
from qmedoid.tables.text_files import clean_names

if TYPE_CHECKING:
    from qmedoid.tables.source import Bytes

_PARQUET_ROWS = 1 << 15
_PARQUET_BUFFER = 1 << 18
"""Columns are read in pieces of this many bytes, not whole row groups at once: a third of the memory, no slower."""


class BinaryFile:
    """A table in a file that carries its types; `n_taken` is about how many bytes were read last.

    Workbooks are held in memory, all others read in batches. Of a Parquet file
    some row groups can be read alone.
    """

    is_text = False
    decimal = "."

    def __init__(self, data: "Bytes", row_groups: range | None = None) -> None:
        self.name, self._form, self.notes, self.n_taken = data.name, data.form, list[str](), 0
        self._row_groups = row_groups
        self._n_bytes = 0 if data.path is None else data.path.stat().st_size
        self._file = str(data.path)
        self._copy: IO[bytes] | None = None
        if data.path is None or data.is_compressed or data.form == "xlsx":
            import tempfile  # not needed by most

            # These formats are read from several places: what comes through a pipe or packed is copied first.
            copy = self._copy = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the table)
            shutil.copyfileobj(data, copy, 1 << 20)
        data.close()
        self.close: Callable[[], object] = data.close if self._copy is None else self._copy.close
        with self._translated():
            self._stored, self.n_rows = self._head()
        check_unique(self._stored.names, self.name)
        self.names = tuple(self._stored.names)
        self.schema = pa.schema([(field.name, plain_type(field.type)) for field in self._stored])

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

    def _head(self) -> tuple[pa.Schema, int | None]:
        """The schema, and the number of rows where the file says it."""
        if self._form == "parquet":
            file = self._parquet()
            if self._row_groups is None:
                return file.schema_arrow, file.metadata.num_rows
            return file.schema_arrow, sum(file.metadata.row_group(place).num_rows for place in self._row_groups)
        if self._form == "arrow":
            reader = self._arrow([])
            # Of the first column alone, as batches are unpacked to be counted.
            counted = self._arrow([0]) if reader.schema.names else reader
            return reader.schema, sum(counted.get_batch(i).num_rows for i in range(counted.num_record_batches))
        self._table = self._sheet()
        return self._table.schema, self._table.num_rows

    def _stored_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if self._form == "parquet":
            some = None if self._row_groups is None else list(self._row_groups)
            yield from self._parquet().iter_batches(_PARQUET_ROWS, row_groups=some, columns=columns, use_threads=False)
        elif self._form == "arrow":
            reader = self._arrow(sorted(self.names.index(name) for name in columns))
            yield from (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            yield from self._table.select(columns).to_batches()

    def _parquet(self) -> Any:
        from pyarrow import parquet

        source = self._file if self._copy is None else self._opened()
        return parquet.ParquetFile(source, buffer_size=_PARQUET_BUFFER, pre_buffer=False)

    def _arrow(self, places: list[int]) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        source = pa.memory_map(self._file) if self._copy is None else self._opened()
        return pa.ipc.open_file(source, options=options)

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

    def _sheet(self) -> pa.Table:
        """The first sheet of a workbook: its header is the first row that is not empty.

        Cells have the values that the workbook holds. Percentages stay texts with their sign, as they are shown, so
        that a column is the same from a workbook and from the CSV file it is saved as.
        """
        assert self._copy is not None, "workbooks are copied"
        _check_workbook(self._copy, self.name)
        try:
            import openpyxl
        except ImportError:
            raise DataError(
                f"{self.name} is an Excel workbook, which needs the extra 'excel': pip install qmedoid[excel], or save "
                "the sheet as CSV."
            ) from None
        try:
            book = openpyxl.load_workbook(self._copy, read_only=True, data_only=True)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
            sheets[0].reset_dimensions()
            rows = [[_value(cell) for cell in row] for row in sheets[0].iter_rows()]
        except Exception as error:  # whatever a damaged workbook does to its parser
            raise DataError(f"{self.name} cannot be read as a workbook: {first_line(error)}.") from error
        if len(sheets) > 1:
            self.notes.append(f"{self.name} has {len(sheets)} sheets; the first, {sheets[0].title!r}, is read.")
        rows = [row for row in rows if any(cell is not None for cell in row)]
        if not rows:
            raise DataError(f"{self.name} is empty: a table has a header line and rows.")
        width = max(map(len, rows))
        columns = zip(*(row + [None] * (width - len(row)) for row in rows), strict=True)
        used = [column for column in columns if any(cell is not None for cell in column)]
        names, notes = clean_names(["" if head is None else str(head) for head, *_ in used], self.name)
        self.notes += notes
        return pa.Table.from_arrays([_sheet_column(cells) for _, *cells in used], names=list(names))


def _check_workbook(copy: IO[bytes], name: str) -> None:
    """Refuse other archives, and workbooks of other kinds, by what they hold."""
    import zipfile

    try:
        inside = set(zipfile.ZipFile(copy).namelist())
    except zipfile.BadZipFile:
        raise DataError(f"{name} is a damaged zip archive or workbook.") from None
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


def _sheet_column(values: list[Any]) -> pa.Array:
    """Cells in the type that they have in common, or as texts."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        moments = [value.isoformat(sep=" ") if isinstance(value, datetime) else value for value in values]
        return pa.array([None if value is None else str(value) for value in moments], pa.string())


class MemoryFile:
    """Rows in memory, such as a partition of a data frame; a name stands for that of a file."""

    is_text = False
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
