"""Text files in blocks of complete records, which Arrow parses one by one, and the types of their columns.

Arrow has a reader for streams (``open_csv``). Cutting blocks here and parsing each at once takes a quarter less time,
says on which row a cell is wrong, and lets encodings be decided where they show.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.tables._dialect import MISSING, mask_quoted
from qmedoid.tables._text import Block, Bytes, Text, first_line
from qmedoid.tables.arrow import BATCH_ROWS, CellTypeError, shortened
from qmedoid.tables.cells import (
    Grouped,
    floats_show_points,
    grouped_example,
    may_be_misread,
    maybe_thousands,
    with_grouped,
)

_PARSED_AT_ONCE = 1 << 20
"""Bytes that Arrow parses before it converts them: more would not stay in the cache."""
_PADDED = re.compile(r"\s*0\d+\s*")
# Not so in dates, times and fractions; the zero comes first, as it is searched for fast.
_MAYBE_PADDED = re.compile(rb"0\d(?<![\w.:/-]0\d)")
_WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_WRONG_CELL = re.compile(r"column #(\d+).*?Row #(\d+): CSV conversion error to ([^:]+): (.*)", re.DOTALL)
_KINDS = (
    pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(),
)  # fmt: skip
"""Types that texts are read as, the narrowest first: those that Arrow's reader infers."""
_TRUTHS = ("1", "True", "TRUE", "true", "0", "False", "FALSE", "false")
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"
_FEW = 256
"""Cells that show of most columns which types they do not have."""


class TextFile:
    """A table in a text file; `n_taken` are the bytes that the last iteration has taken so far."""

    is_text = True
    n_rows = None

    def __init__(self, data: Bytes, file: Path | None, delimiter: str | None, decimal: str | None) -> None:
        self._file, self.name, self.n_taken = file, data.name, 0
        self._asked = delimiter, decimal
        self._text = Text(data, delimiter, decimal)
        # Where it ends is known only until more is read.
        self._first_block = self._text.first
        self._is_used = False
        self.dialect = self._text.dialect
        self.names = self.dialect.names
        self.decimal, self.notes = self.dialect.decimal, self._text.notes
        self.schema = self._first_schema()

    def _first_schema(self) -> pa.Schema:
        """Types as inferred from the first part; a column without any value there has the null type."""
        block, schema = self._first_block, self._first_rows.schema
        whole = [field.name for field in schema if field.type == pa.int64()]
        if whole and _MAYBE_PADDED.search(block.text):
            # Without Arrow's functions on texts, which take longer to import than this takes.
            for name, column in zip(whole, self._first_texts(whole).columns, strict=True):
                if any(_PADDED.fullmatch(text) for text in column.to_pylist() if text):
                    schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        return schema

    @cached_property
    def _first_rows(self) -> pa.Table:
        """The first part in the types that Arrow infers from it."""
        block = self._first_block
        if not bytes(block.text).strip():
            return pa.schema([(name, pa.null()) for name in self.names]).empty_table()
        return self._parse(block, self.names, {}, 0, self.dialect.header_lines)

    def _first_texts(self, names: Sequence[str]) -> pa.Table:
        types = dict.fromkeys(names, pa.string())
        return self._parse(self._first_block, names, types, 0, self.dialect.header_lines)

    def _may_have_thousands(self, name: str) -> bool:
        """Whether the first part leaves it open if points in a column of plain numbers part thousands."""
        column = self._first_rows.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return True
        values = column.cast(pa.float64(), safe=False).to_numpy()
        if not maybe_thousands(values):
            return False
        if pa.types.is_integer(column.type) or not (values != values.round()).any():
            return True
        from qmedoid.tables._spelling import may_be_thousands

        return may_be_thousands(self._first_texts([name]).column(0).combine_chunks())

    def first_grouped(self, name: str) -> Grouped | None:
        """What the first part shows of a column of floats in which every point may part thousands; None of others."""
        column = self._first_rows.column(name)
        values = column.to_numpy() if pa.types.is_floating(column.type) else None
        if self.decimal != "." or values is None or not maybe_thousands(values):
            return None
        example = grouped_example(self._first_texts([name]).column(0))
        return None if example is None else Grouped.of(example, values)

    def first_shows_points(self, except_for: Collection[str]) -> bool:
        """Whether the first part of some other column shows that points are decimal points."""
        return any(floats_show_points(self._first_rows.column(name)) for name in self.names if name not in except_for)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], *, verbatim: bool = False, watched: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        doubtful = {name for name in watched if self._may_have_thousands(name)} if self.decimal == "." else set()
        rows, lines = 0, self.dialect.header_lines
        for block in self._blocks():
            table = self._parse(block, columns, types, rows, lines, verbatim)
            rows += table.num_rows
            lines += bytes(block.text).count(self.dialect.newline) if block.has_quotes else table.num_rows
            for batch in table.combine_chunks().to_batches(BATCH_ROWS):
                for name in sorted(doubtful):
                    _check_points(name, batch.column(name), doubtful)
                yield batch

    def close(self) -> None:
        """Close the file."""
        self._text.data.close()

    def _blocks(self) -> Iterator[Block]:
        """Blocks of complete records in UTF-8."""
        if self._is_used:
            if self._file is None:
                raise DataError(f"{self.name} can be read once. Save it to a file to go through it again.")
            self.close()
            # What was detected may be what cannot be asked for: commas between cells and in quoted numbers.
            self._text = Text(Bytes(self._file), *self._asked)
            self._text.notes = self.notes
        self._is_used = True
        for block in self._text.blocks():
            self.n_taken = self._text.n_taken
            yield block

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
        converting = csv.ConvertOptions(
            include_columns=list(columns),
            column_types={name: types[name] for name in columns if name in types},
            null_values=[before + cell + after for cell in MISSING for before in ("", " ") for after in ("", " ")],
            strings_can_be_null=not verbatim,
            decimal_point=self.decimal,
        )
        # A record may be longer than what is parsed at once.
        for size in (_PARSED_AT_ONCE, len(block.text) + 1):
            reading = csv.ReadOptions(column_names=self.names, use_threads=False, block_size=size)
            try:
                return csv.read_csv(pa.BufferReader(block.text), reading, parsing, converting)
            except pa.ArrowInvalid as error:
                if size > len(block.text):
                    raise self._translated(error, bytes(block.text), rows, lines) from error
        raise AssertionError("the last size is larger than the block")

    def _translated(self, error: Exception, block: bytes, rows: int, lines: int) -> DataError:
        """The error in words that help: the line of a record that is too short or long, the row and text of a cell."""
        message = str(error)
        if found := _WRONG_LENGTH.search(message):
            row, allowed, given = (int(number) for number in found.groups())
            line = lines + _line_of_record(block, row, self.dialect.delimiter)
            return DataError(
                f"{self.name}: line {line} has {given} {'cell' if given == 1 else 'cells'}, the header has {allowed}. "
                f"Correct the line, or put cells that hold {self.dialect.delimiter!r} into quotes."
            )
        if found := _WRONG_CELL.search(message):
            place, record, kind, reason = found.groups()
            where = f"column {self.names[int(place)]!r}, row {rows + int(record)}"
            return CellTypeError(f"{self.name}: {where}: {shortened(reason)} for {kind}.")
        return DataError(f"{self.name} cannot be read as a table: {first_line(error)}.")


def _check_points(name: str, column: pa.Array, doubtful: set[str]) -> None:
    """Raise `CellTypeError` where texts must show what the points of a column mean, as in one of 1.275 and 935."""
    if not pa.types.is_floating(column.type):
        return
    values = column.to_numpy(zero_copy_only=False)
    if (np.trunc(values) == values).all():  # most are whole numbers throughout
        return
    if not maybe_thousands(values):
        doubtful.discard(name)
    elif (values != np.trunc(values))[~np.isnan(values)].any():
        raise CellTypeError(f"Column {name!r} may have points between thousands.")


def infer_types(texts: pa.Table, decimal: str, kept: Collection[str] = ()) -> pa.Table:
    """The table with the types that the texts of each column have in common; columns in `kept` stay texts.

    So do whole numbers with leading zeros, and numbers that can be read in more than one way. Columns in which every
    point may part thousands are floats, and marked: see `qmedoid.tables.cells.with_grouped`.
    """
    from qmedoid.tables._spelling import are_long_digits, may_be_thousands

    columns, grouped = [], {}
    for name, text in zip(texts.column_names, texts.columns, strict=True):
        column = text if name in kept else _typed(text, decimal)
        if column.type == pa.int64() and _is_padded(text):
            column = text
        elif pa.types.is_floating(column.type) and may_be_misread(column, decimal):
            cells = text.combine_chunks()
            if may_be_thousands(cells) or are_long_digits(cells):
                column = text
            elif (example := grouped_example(cells)) is not None:
                grouped[name] = example
        columns.append(column)
    table = pa.Table.from_arrays(columns, names=texts.column_names)
    return with_grouped(table, grouped) if grouped else table


def _typed(text: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Texts in the first type of `_KINDS` that all of them can be read as, numbers and days with blanks around them."""
    from pyarrow import compute

    if text.null_count == len(text):
        return pa.chunked_array([pa.nulls(len(text))])
    first = compute.ascii_trim(text.slice(0, _FEW), " \t")
    for kind in _KINDS:
        if _read_as(first, kind, decimal) is None:
            continue
        column = _read_as(text, kind, decimal)
        if column is None and not (pa.types.is_timestamp(kind) or pa.types.is_boolean(kind)):
            column = _read_as(compute.ascii_trim(text, " \t"), kind, decimal)
        if column is not None:
            return column
    return text


def _read_as(text: pa.ChunkedArray, kind: pa.DataType, decimal: str) -> pa.ChunkedArray | None:
    """Texts as cells of a type, as Arrow's reader of CSV takes them; None where one of them cannot be."""
    from pyarrow import compute

    if pa.types.is_boolean(kind):
        if not compute.all(compute.is_in(text.drop_null(), value_set=pa.array(_TRUTHS))).as_py():
            return None
    elif pa.types.is_time(kind):
        if not compute.all(compute.match_substring_regex(text, _TIME)).as_py():
            return None
        moments = compute.binary_join_element_wise("1970-01-01", text, " ").cast(pa.timestamp("s"))
        return moments.cast(kind)
    elif pa.types.is_floating(kind) and decimal == ",":
        if compute.any(compute.match_substring(text, ".")).as_py():
            return None
        text = compute.replace_substring(text, ",", ".")
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return None


def _is_padded(texts: pa.ChunkedArray) -> bool:
    """Whether there are whole numbers with leading zeros: codes, such as those of places, and no quantities."""
    from pyarrow import compute

    begins = compute.or_(compute.starts_with(texts, "0"), compute.starts_with(texts, " "))
    maybe = texts.filter(compute.and_(begins, compute.greater(compute.binary_length(texts), 1)))
    return bool(compute.any(compute.match_substring_regex(maybe, f"^{_PADDED.pattern}$")).as_py())


def _line_of_record(block: bytes, number: int, delimiter: str) -> int:
    """The line of a block (from 1) where a record (from 1) begins; blank lines are no records."""
    place = 0
    for line in mask_quoted(block, delimiter).splitlines(keepends=True):
        number -= bool(line.strip(b"\r\n"))
        if number == 0:
            break
        place += len(line)
    return len(block[:place].splitlines()) + 1
