"""Text files in blocks of whole records, which Arrow parses one by one.

Arrow has a reader of its own for streams (``open_csv``). Cutting blocks here and parsing each as a whole takes a
quarter less time, says on which row a cell is wrong, and lets encodings be decided where they show.
"""

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._bytes import Bytes, first_line
from qmedoid.tables._dialect import MISSING, mask_quoted
from qmedoid.tables._text import Block, Text
from qmedoid.tables._types import BATCH_ROWS, CellError, shortened
from qmedoid.tables.grouped_points import Grouped, grouped_example, with_grouped

_PARSED_AT_ONCE = 1 << 20
"""Arrow parses so many bytes, then converts them: more would not stay in the cache."""
_LONGEST = 1 << 27
_COMMA_OR_WHOLE = r"^\s*[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?\s*$"
_WITH_POINT = r"^\s*[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\s*$"
POINT_MARK = " (with a point)"
"""What is put behind numbers with a point in a file with decimal commas, so that they are no numbers."""
_PADDED = re.compile(r"\s*0\d+\s*")
# Not so in dates, times and fractions; the zero comes first, as it is searched for fast.
_MAYBE_PADDED = re.compile(rb"0\d(?<![\w.:/-]0\d)")
_WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_WRONG_CELL = re.compile(r"column #(\d+).*?Row #(\d+): CSV conversion error to ([^:]+): (.*)", re.DOTALL)


class TextFile:
    """A table in a text file.

    Attributes
    ----------
    n_taken : int
        Bytes of the file that were taken so far in the last iteration.
    """

    is_text = True
    n_rows = None

    def __init__(self, data: Bytes, file: Path | None, delimiter: str | None, decimal: str | None) -> None:
        self._file, self.name, self.n_taken = file, data.name, 0
        self._asked = delimiter, decimal
        self._text = Text(data, delimiter, decimal)
        # Where it ends is known only until more is read.
        self._first_block = self._text.first_records()
        self._is_used = False
        self._padded: set[str] = set()
        self.dialect = self._text.dialect
        self.names = self.dialect.names
        self.decimal = self.dialect.decimal

    @property
    def notes(self) -> list[str]:
        """What was adjusted."""
        return self._text.notes

    @cached_property
    def schema(self) -> pa.Schema:
        """Types as inferred from the first part; a column without any value there has the null type."""
        block, schema = self._first_block, self._first_rows.schema
        whole = [field.name for field in schema if field.type == pa.int64()]
        if whole and _MAYBE_PADDED.search(block.text):
            texts = self._parse(block, whole, dict.fromkeys(whole, pa.string()), 0, self.dialect.header_lines)
            # Without Arrow's functions on texts, which take longer to import than this takes.
            for name, column in zip(whole, texts.columns, strict=True):
                if any(_PADDED.fullmatch(text) for text in column.to_pylist() if text):
                    schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
                    self._padded.add(name)
        return schema

    @cached_property
    def _first_rows(self) -> pa.Table:
        """The first part in the types that Arrow infers from it."""
        block = self._first_block
        if not bytes(block.text).strip():
            return pa.schema([(name, pa.null()) for name in self.names]).empty_table()
        return self._parse(block, self.names, {}, 0, self.dialect.header_lines)

    def may_have_thousands(self, name: str) -> bool:
        """Whether the first part leaves it open if points in a column of plain numbers part thousands."""
        from qmedoid.tables.cells import maybe_thousands

        column = self._first_rows.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return True
        values = column.cast(pa.float64(), safe=False).to_numpy()
        if not maybe_thousands(values):
            return False
        if pa.types.is_integer(column.type) or not (values != values.round()).any():
            return True
        from qmedoid.tables._spelling import may_be_thousands

        texts = self._parse(self._first_block, [name], {name: pa.string()}, 0, self.dialect.header_lines)
        return may_be_thousands(texts.column(0).combine_chunks())

    def first_grouped(self, name: str) -> Grouped | None:
        """What the first part shows of a column of floats in which every point may part thousands; None of others."""
        from qmedoid.tables.cells import maybe_thousands

        column = self._first_rows.column(name)
        values = column.to_numpy() if pa.types.is_floating(column.type) else None
        if self.decimal != "." or values is None or not maybe_thousands(values):
            return None
        texts = self._parse(self._first_block, [name], {name: pa.string()}, 0, self.dialect.header_lines)
        example = grouped_example(texts.column(0))
        return None if example is None else Grouped.of(example, values)

    def first_shows_points(self, except_for: Collection[str]) -> bool:
        """Whether the first part of some other column shows that points are decimal points."""
        from qmedoid.tables.cells import floats_show_points

        return any(floats_show_points(self._first_rows.column(name)) for name in self.names if name not in except_for)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], *, verbatim: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        inferred = {name: self.schema.field(name).type for name in columns if name not in types}
        known = {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in inferred.items()}
        rows, lines = 0, self.dialect.header_lines
        for block in self._blocks():
            table = self._parse(block, columns, {**known, **types}, rows, lines, verbatim)
            rows += table.num_rows
            lines += bytes(block.text).count(self.dialect.newline) if block.has_quotes else table.num_rows
            yield from table.combine_chunks().to_batches(BATCH_ROWS)

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> pa.Table:
        """The whole table, with types (where not given) inferred from all of its rows."""
        table = None
        if self._file is not None:
            # Once the schema is known, columns with leading zeros are.
            padded = self._padded.intersection(columns, self.schema.names)
            table = self._read_at_once(columns, {**dict.fromkeys(padded, pa.string()), **types})
        if table is not None:
            doubtful = [name for name in table.column_names if name not in types and self._may_be_misread(table, name)]
            if not doubtful:
                return table
            texts = self.read(doubtful, dict.fromkeys(doubtful, pa.string()))
            return _with_doubtful(table, texts)
        # Slower, but errors say where they are, and the file is gone through once.
        texts = {name: types.get(name, pa.string()) for name in columns}
        batches = list(self.batches(columns, texts))
        if not batches:
            return pa.schema([(name, types.get(name, pa.null())) for name in columns]).empty_table()
        return infer_types(pa.Table.from_batches(batches), self.decimal, types)

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    def _may_be_misread(self, table: pa.Table, name: str) -> bool:
        # The first part spares most columns a second reading.
        is_open = self.decimal == "." and self.may_have_thousands(name)
        return may_be_misread(table.column(name), "." if is_open else ",")

    def _blocks(self) -> Iterator[Block]:
        """Blocks of whole records in UTF-8."""
        if self._is_used:
            if self._file is None:
                raise DataError(f"{self.name} can be read once. Save it to a file to go through it again.")
            self._text.close()
            notes = self._text.notes
            # What was found out may be what cannot be asked for: commas between cells and in quoted numbers.
            self._text = Text(Bytes(self._file), *self._asked)
            self._text.notes = notes
        self._is_used = True
        for block in self._text.blocks():
            self.n_taken = self._text.data.n_taken
            yield block

    def _read_at_once(self, columns: Sequence[str], types: Mapping[str, Any]) -> pa.Table | None:
        """The whole table, or None if something is wrong with it."""
        from pyarrow import csv

        try:
            return csv.read_csv(
                pa.PythonFile(_AsFile(self._blocks()), mode="r"),
                csv.ReadOptions(column_names=self.names, block_size=_PARSED_AT_ONCE),
                csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True),
                _conversion(self.decimal, columns, types),
            )
        except pa.ArrowInvalid:
            return None

    def _parse(
        self,
        block: Block,
        columns: Sequence[str],
        types: Mapping[str, Any],
        rows: int,
        lines: int,
        verbatim: bool = False,
    ) -> pa.Table:
        from pyarrow import csv

        parsing = csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=block.has_quotes)
        converting = _conversion(self.dialect.decimal, columns, types, verbatim)
        size = _PARSED_AT_ONCE
        while True:
            reading = csv.ReadOptions(column_names=self.names, use_threads=False, block_size=size)
            try:
                return csv.read_csv(pa.BufferReader(block.text), reading, parsing, converting)
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or size > len(block.text):
                    raise self._translated(error, bytes(block.text), rows, lines) from error
                size = len(block.text) + 1  # there is a record longer than what is parsed at once

    def _translated(self, error: Exception, block: bytes, rows: int, lines: int) -> DataError:
        """The error in words that help: the line of a record that is too short or long, the row and text of a cell."""
        message = str(error)
        if found := _WRONG_LENGTH.search(message):
            row, allowed, given = (int(number) for number in found.groups())
            line = lines + _line_of_record(block, row, self.dialect.delimiter)
            return DataError(
                f"{self.name}: line {line} has {_cells(given)}, the header has {allowed}. Correct the line, or put "
                f"cells that hold {self.dialect.delimiter!r} into quotes."
            )
        if found := _WRONG_CELL.search(message):
            place, record, kind, reason = found.groups()
            where = f"column {self.names[int(place)]!r}, row {rows + int(record)}"
            return CellError(f"{self.name}: {where}: {shortened(reason)} for {kind}.")
        return DataError(f"{self.name} cannot be read as a table: {first_line(error)}.")


class _AsFile(io.RawIOBase):
    """Blocks as a file that Arrow can read."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        super().__init__()
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            block = next(self._blocks, None)
            self._rest = memoryview(b"" if block is None else block.text)
        part, self._rest = self._rest[:size], self._rest[size:]
        return bytes(part)


def infer_types(texts: pa.Table, decimal: str, types: Mapping[str, Any] | None = None) -> pa.Table:
    """The table with the types that its texts have in common, or with those given."""
    from pyarrow import csv

    # Arrow infers types where it reads, so they are written first.
    written = pa.BufferOutputStream()
    csv.write_csv(texts, written, csv.WriteOptions(include_header=False))
    content = written.getvalue()
    table = csv.read_csv(
        pa.BufferReader(content),
        csv.ReadOptions(column_names=texts.column_names, block_size=min(max(content.size, 1), _LONGEST)),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        _conversion(decimal, texts.column_names, types or {}),
    )
    for place, (name, column) in enumerate(zip(table.column_names, texts.columns, strict=True)):
        if table.schema.field(name).type == pa.int64() and name not in (types or {}) and _is_padded(column):
            table = table.set_column(place, name, column)
    doubtful = [name for name in table.column_names if may_be_misread(table.column(name), decimal)]
    return _with_doubtful(table, texts.select([name for name in doubtful if name not in (types or {})]))


def may_be_misread(column: pa.ChunkedArray, decimal: str) -> bool:
    """Whether floats of a text may be other numbers: points that part thousands, or more digits than floats have."""
    if not pa.types.is_floating(column.type):
        return False
    from qmedoid.tables.cells import are_beyond_floats, maybe_thousands

    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    if all(are_beyond_floats(chunk) for chunk in chunks):
        return True
    return decimal == "." and all(maybe_thousands(chunk) for chunk in chunks)


def _with_doubtful(table: pa.Table, texts: pa.Table) -> pa.Table:
    """The table with those columns as texts whose cells can be read in more than one way.

    Those in which every point may part thousands stay floats, and are marked: see `qmedoid.tables.grouped_points`.
    """
    if not texts.num_columns:
        return table
    from qmedoid.tables._spelling import are_long_digits, may_be_thousands

    grouped = {}
    for name, column in zip(texts.column_names, texts.columns, strict=True):
        text = column.combine_chunks()
        if may_be_thousands(text) or are_long_digits(text):
            table = table.set_column(table.column_names.index(name), name, column)
        elif (example := grouped_example(text)) is not None:
            grouped[name] = example
    return with_grouped(table, grouped)


def _is_padded(texts: pa.ChunkedArray) -> bool:
    """Whether there are whole numbers with leading zeros: codes, such as those of places, and no quantities."""
    from pyarrow import compute

    begins = compute.or_(compute.starts_with(texts, "0"), compute.starts_with(texts, " "))
    maybe = texts.filter(compute.and_(begins, compute.greater(compute.binary_length(texts), 1)))
    return bool(compute.any(compute.match_substring_regex(maybe, f"^{_PADDED.pattern}$")).as_py())


def comma_numbers(texts: Any) -> Any:
    """Numbers with a decimal comma as texts with a point; what has a point already is marked to be no number."""
    from pyarrow import compute

    is_number = compute.fill_null(compute.match_substring_regex(texts, _COMMA_OR_WHOLE), False)
    has_point = compute.fill_null(_has_point(texts), False)
    if compute.any(has_point).as_py():
        # It is shown to people as an example of what is wrong.
        marked = compute.binary_join_element_wise(texts, POINT_MARK, "")
        texts = compute.if_else(has_point, marked, texts)
    return compute.if_else(is_number, compute.replace_substring(texts, ",", "."), texts)


def _has_point(texts: Any) -> Any:
    from pyarrow import compute

    return compute.match_substring_regex(texts, _WITH_POINT)


def _conversion(decimal: str, columns: Sequence[str], types: Mapping[str, Any], verbatim: bool = False) -> Any:
    from pyarrow import csv

    return csv.ConvertOptions(
        include_columns=list(columns),
        column_types={name: types[name] for name in columns if name in types},
        null_values=[before + cell + after for cell in MISSING for before in ("", " ") for after in ("", " ")],
        strings_can_be_null=not verbatim,
        decimal_point=decimal,
    )


def _line_of_record(block: bytes, number: int, delimiter: str) -> int:
    """The line of a block (from 1) where a record (from 1) begins; blank lines are no records."""
    place = 0
    for line in mask_quoted(block, delimiter).splitlines(keepends=True):
        number -= bool(line.strip(b"\r\n"))
        if number == 0:
            break
        place += len(line)
    return len(block[:place].splitlines()) + 1


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
