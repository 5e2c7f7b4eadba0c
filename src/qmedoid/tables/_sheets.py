"""The first sheet of an Excel workbook (.xlsx) as a table; needs the extra ``excel``."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._bytes import Bytes, first_line, spool
from qmedoid.tables._dialect import MISSING, clean_names
from qmedoid.tables._types import BATCH_ROWS, in_types, plain_schema


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
        *,
        verbatim: bool = False,  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        row = 0
        for batch in self._table.select(list(columns)).to_batches(BATCH_ROWS):
            yield in_types(batch, types, self.name, row)
            row += batch.num_rows

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> pa.Table:
        """The whole table."""
        fields = [(name, types.get(name, self.schema.field(name).type)) for name in columns]
        return pa.Table.from_batches(self.batches(columns, types), schema=pa.schema(fields))

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
