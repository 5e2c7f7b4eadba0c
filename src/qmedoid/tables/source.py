"""Tables in files of many formats, packed or not, one or many, read in batches of bounded memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.tables._binary import BinaryFile
from qmedoid.tables._bytes import STANDARD_INPUT, Bytes, detect_format, find_files
from qmedoid.tables._csv import TextFile, infer_types
from qmedoid.tables._sampling import sample_rows
from qmedoid.tables._types import DECIMAL, CellError, as_category, common_type
from qmedoid.tables.cells import floats_show_points
from qmedoid.tables.grouped_points import Grouped, grouped_columns

if TYPE_CHECKING:
    from qmedoid.tables._sheets import SheetFile

__all__ = ["CellError", "Rows", "TableSource", "open_table"]


TableFile: TypeAlias = "TextFile | BinaryFile | SheetFile"


class Rows(NamedTuple):
    """Rows of a table, and their places in it (from 0)."""

    table: pa.Table
    rows: npt.NDArray[np.int64]


def open_table(where: str | Path, *, delimiter: str | None = None, decimal: str | None = None) -> "TableSource":
    """Open a table.

    Parameters
    ----------
    where : str or Path
        A file; a folder, for all data files in it; a pattern such as ``part-*.csv``; or ``"-"`` for standard input.
        Formats and compressions are told by content. Several files are one table, in the order of their names.
    delimiter : str or None
        What parts the cells of a text; None finds out among comma, semicolon, tab and bar.
    decimal : {".", ","} or None
        The decimal sign of a text; None finds out.

    Returns
    -------
    TableSource

    Raises
    ------
    DataError
        If there is no such table, or it cannot be read.
    """
    if str(where) == STANDARD_INPUT:
        return TableSource([_open_file(None, delimiter, decimal)], None, decimal)
    files: list[TableFile] = []
    try:
        for path in (paths := find_files(where)):
            files.append(_open_file(path, delimiter, decimal))
            _check_names(files[0], files[-1])
    except BaseException:
        for file in files:
            file.close()
        raise
    n_bytes = sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    return TableSource(files, n_bytes, decimal)


def _open_file(path: Path | None, delimiter: str | None, decimal: str | None) -> TableFile:
    data = Bytes(path)
    try:
        form = detect_format(data, path)
        again = path if path is not None and path.is_file() else None  # a named pipe gives its bytes once
        if form == "csv":
            return TextFile(data, again, delimiter, decimal)
        if form == "xlsx":
            from qmedoid.tables._sheets import SheetFile

            return SheetFile(data)
        return BinaryFile(data, again, form)
    except BaseException:
        data.close()
        raise


def _check_names(first: TableFile, other: TableFile) -> None:
    if set(first.names) == set(other.names):
        return
    differences = [
        f"{', '.join(map(repr, sorted(set(one.names) - set(two.names))))} only in {one.name}"
        for one, two in ((first, other), (other, first))
        if set(one.names) - set(two.names)
    ]
    raise DataError(f"{first.name} and {other.name} do not have the same columns: {'; '.join(differences)}.")


class TableSource:
    """A table in one or more files, made by `open_table`; a context manager.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    schema : pyarrow.Schema
        Names and types. Of texts the types are inferred from the first part of each file; a column without any value
        there has the null type. Dictionaries are decoded.
    n_bytes : int or None
        Size of the files; None for standard input.
    n_rows : int or None
        Where files say it; None for texts.
    description : str
        Of the source, for messages.
    is_text : bool
        Whether types had to be inferred, as at least one file is a text.
    decimal : str
        The decimal sign of texts.
    """

    def __init__(self, files: Sequence[TableFile], n_bytes: int | None, decimal: str | None = None) -> None:
        self._files, self._given_decimal = tuple(files), decimal
        self.n_bytes = n_bytes
        first = self._files[0]
        self.names = first.names
        self.is_text = any(file.is_text for file in files)
        self.decimal = next((file.decimal for file in files if file.is_text), ".")
        self.description = first.name if len(files) == 1 else f"{first.name} and {len(files) - 1} more"
        counts = [file.n_rows for file in files if file.n_rows is not None]
        self.n_rows = sum(counts) if len(counts) == len(files) else None
        types = [common_type([file.schema.field(name).type for file in files]) for name in self.names]
        self.schema = pa.schema(list(zip(self.names, types, strict=True)))

    @property
    def notes(self) -> list[str]:
        """What was adjusted while reading, each said once."""
        return list(dict.fromkeys(note for file in self._files for note in file.notes))

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that the last iteration has read so far."""
        return sum(file.n_taken for file in self._files)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        *,
        verbatim: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Go through the table in batches of some ten thousand rows.

        Parameters
        ----------
        columns : sequence of str or None
            Which columns, in this order; None for all.
        types : mapping of str to pyarrow.DataType or None
            The types to read columns as. Others have that of the schema, and texts instead of the null type.
        verbatim : bool
            Whether texts of a text file stay as they are, ``NA`` and empty ones among them, instead of being missing.

        Yields
        ------
        pyarrow.RecordBatch

        Raises
        ------
        CellError
            For a cell that is not of the type of its column.
        DataError
            If a file is damaged, or standard input is gone through again.
        """
        wanted = self._check_columns(columns)
        kinds = {name: self.schema.field(name).type for name in wanted} | dict(types or {})
        kinds = {name: pa.string() if pa.types.is_null(kinds[name]) else kinds[name] for name in wanted}
        for file in self._files:
            file.n_taken = 0
        for file in self._files:
            yield from file.batches(wanted, kinds, verbatim=verbatim)

    def read(
        self,
        columns: Sequence[str] | None = None,
        max_rows: int | None = None,
        rng: "np.random.Generator | None" = None,
        *,
        texts: Collection[str] = (),
    ) -> Rows:
        """Read the table, or a random sample of its rows.

        Parameters
        ----------
        columns : sequence of str or None
            Which columns, in this order; None for all.
        max_rows : int or None
            The most rows to keep. Of more, a uniform sample is drawn in one pass: memory grows with the sample only.
        rng : numpy.random.Generator or None
            Draws the sample; None always draws the same. Which rows are drawn does not depend on the format.
        texts : collection of str
            Columns whose cells stay texts, as they are written, where a file is a text.

        Returns
        -------
        Rows
            In the order of the table. Types are inferred from all rows that are kept. What a file says to be a
            category is a dictionary of texts, and whole numbers with leading zeros stay texts.
        """
        wanted = self._check_columns(columns)
        if max_rows is None:
            table = self._finished(self._read_whole(wanted, texts))
            return Rows(table, np.arange(table.num_rows, dtype=np.int64))
        if max_rows < 1:
            raise ParameterError(f"The 'max_rows' parameter must be None or an int >= 1. Got {max_rows} instead.")
        kinds = {name: pa.string() for name in wanted} if self.is_text else {}
        sample, rows = sample_rows(self.batches(wanted, kinds), max_rows, rng or np.random.default_rng(0))
        if sample is None:
            empty = pa.schema([self.schema.field(name) for name in wanted]).empty_table()
            return Rows(self._finished(empty), rows)
        as_they_are = {name: pa.string() for name in wanted if name in texts}
        table = infer_types(sample, self.decimal, as_they_are) if self.is_text else sample
        return Rows(self._finished(table), rows)

    def may_have_thousands(self, name: str) -> bool:
        """Whether the first rows of a column of plain numbers leave it open if its points part thousands."""
        return any(file.may_have_thousands(name) for file in self._files if isinstance(file, TextFile))

    def first_grouped(self, names: Sequence[str]) -> dict[str, Grouped]:
        """Columns in which every point of the first rows may part thousands, where no other column shows points."""
        files = [file for file in self._files if isinstance(file, TextFile)]
        if self._given_decimal is not None or len(files) < len(self._files):
            return {}
        by_name = {name: [file.first_grouped(name) for file in files] for name in names}
        found = {name: parts[0] for name, parts in by_name.items() if parts[0] is not None and None not in parts}
        if not found or any(file.first_shows_points(except_for=found) for file in files):
            return {}
        return found

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> "TableSource":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_columns(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return list(self.names)
        unknown = [name for name in columns if name not in self.names]
        if unknown:
            shown = some_of([repr(name) for name in self.names])
            raise DataError(f"{self.description} has no column {unknown[0]!r}. It has {shown}.")
        return list(columns)

    def _finished(self, table: pa.Table) -> pa.Table:
        """The table with categories as such, and with the decimal sign that was given or that its numbers show."""
        table = self._with_categories(table)
        shown = self._given_decimal
        if shown is None and self.is_text:
            grouped = grouped_columns(table)
            others = table.select([name for name in table.column_names if name not in grouped]).columns
            shown = "," if self.decimal == "," else "." if any(map(floats_show_points, others)) else None
        return table if shown is None else table.replace_schema_metadata({DECIMAL: shown.encode()})

    def _with_categories(self, table: pa.Table) -> pa.Table:
        """The table with the columns that files say to be categories as such."""
        declared = [file.categories for file in self._files if isinstance(file, BinaryFile)]
        for name in set(table.column_names).intersection(*declared) if declared else ():
            column = as_category(table.column(name))
            table = table.set_column(table.column_names.index(name), name, column)
        return table

    def _read_whole(self, columns: list[str], texts: Collection[str]) -> pa.Table:
        as_they_are = {name: pa.string() for name in columns if name in texts}
        tables = [file.read(columns, as_they_are if file.is_text else {}) for file in self._files]
        kinds = {name: common_type([table.schema.field(name).type for table in tables]) for name in columns}
        for place, file in enumerate(self._files):
            # What is a number in one file and a text in another is read again as text, as it stands in the file.
            again = {name: kind for name, kind in kinds.items() if tables[place].schema.field(name).type != kind}
            for name, column in zip(again, file.read(list(again), again).columns if again else (), strict=True):
                tables[place] = tables[place].set_column(columns.index(name), name, column)
        return pa.concat_tables(tables)
