"""A table in a text file: blocks of complete records, which Arrow parses one by one.

Arrow has a reader for streams (``open_csv``). Cutting blocks here and parsing each at once takes a quarter less time,
says on which row a cell is wrong, and lets encodings be decided where they show.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables.arrow import BATCH_ROWS, MISSING, CellTypeError, check_unique, first_line, shortened

if TYPE_CHECKING:
    from qmedoid.tables.source import Bytes

DELIMITERS = (",", ";", "\t", "|")
_RECORDS = 200
"""Records that delimiters are judged by."""
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
_POINT_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?\s*")
# The line that says to a spreadsheet how cells are separated.
_SEPARATOR_LINE = re.compile(rb'"?sep=([^"\r\n])"?(\r\n|\n|\r)', re.IGNORECASE)


class Dialect(NamedTuple):
    """How a text writes its table; `header_end` and `header_lines` are bytes and lines up to the first record.

    `quoted` matches cells in quotes; its group is empty where one is not closed. With stray quotes (inside cells that
    are not quoted), counting quotes does not show where cells end. Notes say what was adjusted.
    """

    names: tuple[str, ...]
    delimiter: str
    decimal: str
    newline: bytes
    header_end: int
    header_lines: int
    quoted: re.Pattern[bytes]
    stray_quotes: bool
    notes: list[str]

    def mask_quoted(self, block: bytes) -> bytes:
        """The block with all quoted cells overwritten, so that what is left of line ends ends a record."""
        return self.quoted.sub(lambda cell: b"x" * len(cell[0]), block)


def detect_dialect(sample: bytes, is_whole: bool, name: str, delimiter: str | None, decimal: str | None) -> Dialect:
    """Detect how a table is written, from the beginning of its file (all of it, if `is_whole`).

    The sample is in an encoding that contains ASCII, without a byte order mark. A delimiter or decimal sign that is
    given is taken.
    """
    if not sample.strip():
        raise DataError(f"{name} is empty: a table has a header line and rows.")
    if b"\0" in sample:
        raise DataError(f"{name} is not a text of one byte per letter: it has zero bytes. Save it as CSV in UTF-8.")
    newline = b"\n" if b"\n" in sample else b"\r"
    start = len(sample) - len(sample.lstrip(b"\r\n"))
    if given := _SEPARATOR_LINE.match(sample, start):
        start, delimiter = given.end(), delimiter or given[1].decode("latin-1")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise ParameterError(f"The delimiter must be one ASCII character, not a quote or line end. Got {delimiter!r}.")
    if decimal not in (None, ".", ","):
        raise ParameterError(f"The decimal sign must be '.' or ','. Got {decimal!r} instead.")
    if decimal is not None and decimal == delimiter:
        raise ParameterError(f"The delimiter and the decimal sign cannot both be {decimal!r}.")
    complete = sample[start:] if is_whole else sample[start : sample.rfind(newline) + 1]
    text, _ = decoded(complete)
    if delimiter is None:
        delimiter = _find_delimiter(text)
    header = next(_records(text, delimiter, 1), None)
    if header is None:
        raise DataError(
            f"{name} does not look like a table: in its first {len(sample):,} bytes there is no line end, or a name of "
            f"more than {csv.field_size_limit():,} characters."
        )
    names, notes = clean_names(header, name)
    if decimal is None:
        decimal, more = _find_decimal(text, delimiter)
        notes += more
    mark = re.escape(delimiter.encode())
    # The quote comes first: it is searched for fast.
    quoted = re.compile(rb'"(?<![^%b\r\n]")[^"]*(?:""[^"]*)*("|\Z)' % mark)
    end = quoted.sub(lambda cell: b"x" * len(cell[0]), sample[start:]).find(newline)
    end = len(sample) if end < 0 else start + end + 1
    stray = re.search(rb'"(?<=[^%b\r\n"]")"*[^%b\r\n"]' % (mark, mark), sample) is not None
    return Dialect(names, delimiter, decimal, newline, end, sample[:end].count(newline), quoted, stray, notes)


def decoded(text: bytes) -> tuple[str, str]:
    """A text and its encoding: UTF-8, that of Windows, or Latin 1, in which all bytes are letters."""
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return text.decode(encoding), encoding
    return text.decode("latin-1"), "latin-1"


def _records(text: str, delimiter: str, count: int) -> Iterator[list[str]]:
    """The first records that are not blank, as lists of cells."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for record in reader:
            if record:
                yield record
                count -= 1
            if count == 0:
                return
    except csv.Error:  # a cell longer than the module allows
        return


def _find_delimiter(text: str) -> str:
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        widths = [len(record) for record in _records(text, delimiter, _RECORDS)]
        if widths and widths[0] > 1:
            score = (Counter(widths)[widths[0]] / len(widths), widths[0])
            best, best_score = (delimiter, score) if score > best_score else (best, best_score)
    return best


def _find_decimal(text: str, delimiter: str) -> tuple[str, list[str]]:
    """A decimal comma where there are numbers with a comma, none with a decimal point, and it does not part cells."""
    if delimiter == ",":
        return ".", []
    cells = [cell for record in list(_records(text, delimiter, _RECORDS))[1:] for cell in record]
    grouped = [cell for cell in cells if _POINT_THOUSANDS.fullmatch(cell)]
    with_comma = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)] + [cell for cell in grouped if "," in cell]
    pointed = any(_POINT_NUMBER.fullmatch(cell) and not _POINT_THOUSANDS.fullmatch(cell) for cell in cells)
    if not with_comma or pointed or all(_THOUSANDS.fullmatch(cell) for cell in with_comma):
        return ".", []
    return ",", [f"Numbers are read with a decimal comma, as in {with_comma[0].strip()}."]


def clean_names(header: Sequence[str], name: str) -> tuple[tuple[str, ...], list[str]]:
    """Names of columns without blanks around them, made up where there are none, and what was adjusted."""
    notes, names = [], [cell.strip() for cell in header]
    padded = [new for new, old in zip(names, header, strict=True) if new and new != old]
    if padded:
        notes.append(f"Blanks around the names of {len(padded)} columns were dropped, as in {padded[0]!r}.")
    unnamed = [place for place, found in enumerate(names) if not found]
    for place in unnamed:
        names[place] = f"column {place + 1}"
    if len(unnamed) == 1:
        notes.append(f"Column {unnamed[0] + 1} has no name; it is called {names[unnamed[0]]!r}.")
    elif unnamed:
        notes.append(f"{len(unnamed):,} columns have no name; they are called {names[unnamed[0]]!r} and so on.")
    if len(set(names)) < len(names):
        check_unique(names, name)
    if all(re.fullmatch(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", found) for found in names):
        notes.append(
            f"The first line of {name} is taken as the header, but holds numbers only ({', '.join(names[:3])}, ...): "
            "if the file has no header, add one."
        )
    return tuple(names), notes


_SAMPLE = 1 << 18
_LONGEST_HEADER = 1 << 24
_BLOCK = 1 << 23
_LONGEST_RECORD = 1 << 26
_PARSED_AT_ONCE = 1 << 20
"""Bytes that Arrow parses before it converts them: more would not stay in the cache."""
_BYTES_OF_COLUMN, _COLUMNS_AT_ONCE = 2048, 1024
"""Columns that Arrow converts in one pass over the text: for each it holds all words that stand for a missing cell."""
_PADDED = re.compile(r"\s*0\d+\s*")
# Not so in dates, times and fractions; the zero comes first, as it is searched for fast.
_MAYBE_PADDED = re.compile(rb"0\d(?<![\w.:/-]0\d)")
_WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_WRONG_CELL = re.compile(r"column #(\d+).*?Row #(\d+): CSV conversion error to ([^:]+): (.*)", re.DOTALL)
_MARK = b"\xef\xbb\xbf"
"""What a text in UTF-8 may begin with."""
_NULLS = [before + cell + after for cell in MISSING for before in ("", " ") for after in ("", " ")]
_Block: TypeAlias = tuple[bytes | memoryview, bool]
"""Whole records in UTF-8, there until the next block is asked for, and whether they hold quotes."""


class BlockRecords:
    """The records of one block of a text.

    Attributes
    ----------
    first_row : int
        Place of the first record in the file (from 0).
    malformed : mapping of int to str
        Reasons why records, by their places in the block, are no rows.
    """

    def __init__(
        self, text: bytes | memoryview, dialect: Dialect, first_row: int, lines: int, malformed: Mapping[int, str]
    ) -> None:
        self._text, self._dialect, self._lines = text, dialect, lines
        self.first_row, self.malformed = first_row, malformed

    @cached_property
    def _bytes(self) -> bytes:
        return bytes(self._text)

    @cached_property
    def _starts(self) -> Codes:
        """Where records begin and the last one ends; blank lines are no records."""
        masked = np.frombuffer(self._dialect.mask_quoted(self._bytes), dtype=np.uint8)
        edges = np.unique(np.concatenate([[0], _line_ends(masked, self._dialect), [len(masked)]]))
        starts, lengths = edges[:-1], np.diff(edges)
        first = masked[starts]
        blank = np.isin(first, (10, 13)) & ((lengths == 1) | ((lengths == 2) & (first == 13)))
        return np.append(starts[~blank], len(masked))

    def written(self, places: Sequence[int]) -> list[tuple[int, str]]:
        """The lines (from 1) where records at some places of the block begin, and how they are written."""
        ends = _line_ends(np.frombuffer(self._bytes, dtype=np.uint8), self._dialect)
        starts, stops = self._starts[:-1][list(places)], self._starts[1:][list(places)]
        lines = self._lines + np.searchsorted(ends, starts, side="right") + 1
        texts = [
            self._bytes[start:stop].decode(errors="replace").rstrip("\r\n")
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        return list(zip(lines.tolist(), texts, strict=True))


def _line_ends(text: npt.NDArray[np.uint8], dialect: Dialect) -> Codes:
    return np.flatnonzero(text == dialect.newline[0]) + 1


class TextFile:
    """A table in a text file; `n_taken` are the bytes that the last iteration has taken so far.

    Its schema is inferred from the first part; a column without any value there has the null type. If it is tolerant,
    records with too few or too many cells are rows without values, and `block` says which; else they are refused.
    """

    is_text = True
    n_rows = None
    block: BlockRecords | None = None
    """The records that the last batch is of, until the next batch is asked for; of tolerant files."""

    def __init__(self, data: "Bytes", delimiter: str | None, decimal: str | None, *, tolerant: bool = False) -> None:
        self.name, self.notes, self.n_taken, self._tolerant = data.name, list[str](), 0, tolerant
        self._asked, self._is_used = (delimiter, decimal), False
        self._open(data)
        self.names, self.decimal = self._dialect.names, self._dialect.decimal
        if bytes(self._first[0]).strip():
            self._first_rows = self._parse(self._first, self.names, {}, 0, self._dialect.header_lines)
        else:
            self._first_rows = pa.schema([(name, pa.null()) for name in self.names]).empty_table()
        self.schema = self._first_rows.schema
        whole = [field.name for field in self.schema if field.type == pa.int64()]
        if whole and _MAYBE_PADDED.search(self._first[0]):
            # Without Arrow's functions on texts, which take longer to import than this takes.
            for name, column in zip(whole, self._first_texts(whole).columns, strict=True):
                if any(_PADDED.fullmatch(text) for text in column.to_pylist() if text):
                    self.schema = self.schema.set(self.names.index(name), pa.field(name, pa.string()))

    def _open(self, data: "Bytes") -> None:
        """Read the first part of the file, and detect how the table is written."""
        self._data, self.close, self._is_whole = data, data.close, False
        has_mark = data.head.startswith(_MARK)
        self._encoding = "utf-8" if has_mark else ""
        data.read(len(_MARK) if has_mark else 0)
        self._sample = self._more(_SAMPLE)
        while not (self._is_whole or b"\n" in self._sample or b"\r" in self._sample) and self._has_room():
            self._sample += self._more(len(self._sample))
        self._dialect: Dialect = detect_dialect(self._sample, self._is_whole, self.name, *self._asked)
        self._has_stray_quotes = self._dialect.stray_quotes
        self.notes += self._dialect.notes
        self._first: _Block = self._first_records()
        while not (self._is_whole or self._first[0]) and self._has_room():
            self._sample += self._more(len(self._sample))
            self._first = self._first_records()

    def _has_room(self) -> bool:
        return len(self._sample) < _LONGEST_HEADER

    def _first_records(self) -> _Block:
        """The records after the header that the sample holds complete."""
        rest = self._sample[self._dialect.header_end :]
        whole = rest if self._is_whole else rest[: self._last_end(rest, len(rest))]
        return self._in_utf8(whole), b'"' in whole

    def _first_texts(self, names: Sequence[str]) -> pa.Table:
        types = dict.fromkeys(names, pa.string())
        return self._parse(self._first, names, types, 0, self._dialect.header_lines)

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
        from qmedoid.tables.numbers import may_be_thousands

        return may_be_thousands(self._first_texts([name]).column(0).combine_chunks())

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], *, verbatim: bool = False, watched: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        doubtful = {name for name in watched if self._may_have_thousands(name)} if self.decimal == "." else set()
        rows, lines = 0, self._dialect.header_lines
        for text, has_quotes in self._blocks():
            table = self._parse((text, has_quotes), columns, types, rows, lines, verbatim)
            if self._tolerant:
                table = _with_empty_rows(table, sorted(self._malformed)) if self._malformed else table
                self.block = BlockRecords(text, self._dialect, rows, lines, self._malformed)
            rows += table.num_rows
            lines += bytes(text).count(self._dialect.newline) if has_quotes or self._tolerant else table.num_rows
            for batch in table.combine_chunks().to_batches(BATCH_ROWS):
                for name in sorted(doubtful):
                    _check_points(name, batch.column(name), doubtful)
                yield batch

    def _blocks(self) -> Iterator[_Block]:
        """Blocks of whole records, without the header; blank ones are left out."""
        if self._is_used:
            self._open(self._data.again())
        self._is_used = True
        rest = self._sample[self._dialect.header_end :]
        # One piece of memory takes all blocks in turn: new memory for each would cost a fifth of the time of parsing.
        # A part of a column costs some memory however short it is: of wide tables blocks are longer.
        size = min(max(_BLOCK, _BYTES_OF_COLUMN * len(self.names)), _LONGEST_RECORD)
        buffer, filled = _enlarged(rest, max(size, len(rest) + 1)), len(rest)
        while True:
            if not self._is_whole:
                size = self._data.readinto(memoryview(buffer)[filled:])
                self._is_whole, filled = size < len(buffer) - filled, filled + size
            end = filled if self._is_whole else self._last_end(buffer, filled)
            if self._is_whole:
                self._check_closed(buffer, end)
            self.n_taken = self._data.stored.n_taken
            if end > 0 and not (buffer[: min(end, 64)].isspace() and buffer[:end].isspace()):
                text = memoryview(buffer)[:end]
                is_plain = buffer.isascii() and buffer.find(b"\0", 0, end) < 0
                yield text if is_plain else self._in_utf8(bytes(text)), buffer.find(b'"', 0, end) >= 0
            if self._is_whole:
                return
            if end == 0 and filled > _LONGEST_RECORD:
                raise DataError(
                    f"{self.name} has a record of more than {_LONGEST_RECORD >> 20} MB: most likely a quote that "
                    f"is opened and never closed, near {bytes(buffer[:40])!r}."
                )
            buffer[: filled - end] = buffer[end:filled]
            filled -= end
            if 2 * filled > len(buffer):
                buffer = _enlarged(buffer, 2 * len(buffer))

    def _check_closed(self, buffer: bytearray, end: int) -> None:
        """Refuse a text that ends within a quoted cell: all lines from the quote on would be one cell."""
        if buffer.count(b'"', 0, end) % 2 == 0:
            return
        cells = self._dialect.quoted.finditer(bytes(buffer[:end]))
        place = next((cell.start() for cell in cells if not cell[1]), None)
        if place is not None:
            lines = buffer.count(self._dialect.newline, place, end)
            raise DataError(
                f"{self.name}: a quote is opened and never closed, {lines:,} lines before the end, at "
                f"{bytes(buffer[place : place + 40])!r}. Close it, or drop the quote."
            )

    def _more(self, size: int) -> bytes:
        """The next bytes; fewer only at the end."""
        part: bytes = self._data.read(size)
        self._is_whole = len(part) < size
        return part

    def _last_end(self, text: bytes | bytearray, size: int) -> int:
        """The end of the last whole record among the first bytes of a text.

        An even number of quotes up to a line end means that it is not in a quoted cell, unless there are stray quotes.
        """
        newline = self._dialect.newline
        end = text.rfind(newline, 0, size) + 1
        if text.find(b'"', 0, size) < 0 or not (self._has_stray_quotes or text.count(b'"', 0, end) % 2):
            return end
        exact = self._dialect.mask_quoted(bytes(text[:size])).rfind(newline) + 1
        self._has_stray_quotes |= exact == end
        return exact

    def _in_utf8(self, block: bytes) -> bytes:
        """The block in UTF-8. The first block that is not plain ASCII decides what the encoding is."""
        if b"\0" in block:
            raise DataError(f"{self.name} has zero bytes in its text: it is damaged, or not a table.")
        if block.isascii():
            return block
        if not self._encoding:
            text, self._encoding = decoded(block)
            if self._encoding != "utf-8":
                self.notes.append(f"{self.name} is not in UTF-8; it is read as {self._encoding}.")
            return text.encode()
        try:
            return block.decode(self._encoding, errors="strict" if self._encoding == "utf-8" else "replace").encode()
        except UnicodeDecodeError as error:
            near = block[max(error.start - 20, 0) : error.start + 20]
            raise DataError(f"{self.name} is not in one encoding: UTF-8 first, then {near!r}.") from None

    def _parse(
        self,
        block: _Block,
        columns: Sequence[str],
        types: Mapping[str, Any],
        rows: int,
        lines: int,
        verbatim: bool = False,
    ) -> pa.Table:
        """The rows of a block; in a tolerant file without those that are malformed, by place in the block."""
        from pyarrow import csv as arrow_csv

        text, has_quotes = block
        bad = self._malformed = dict[int, str]()

        def pass_over(row: Any) -> str:
            bad[row.number - 1] = f"the line has {_cells(row.actual_columns)}, the header has {row.expected_columns}"
            return "skip"

        handler = pass_over if self._tolerant else None
        sign = self._dialect.delimiter
        parsing = arrow_csv.ParseOptions(delimiter=sign, newlines_in_values=has_quotes, invalid_row_handler=handler)
        converted = {
            "column_types": {name: types[name] for name in columns if name in types},
            "null_values": _NULLS,
            "strings_can_be_null": not verbatim,
            "decimal_point": self._dialect.decimal,
        }

        def parsed(size: int, n_columns: int) -> pa.Table:
            reading = arrow_csv.ReadOptions(column_names=self.names, use_threads=False, block_size=size)
            bad.clear()
            found = dict[str, pa.ChunkedArray]()
            for start in range(0, max(len(columns), 1), n_columns):
                wanted = arrow_csv.ConvertOptions(include_columns=list(columns[start : start + n_columns]), **converted)
                table = arrow_csv.read_csv(pa.BufferReader(text), reading, parsing, wanted)
                found.update(zip(table.column_names, table.columns, strict=True))
            return table if len(columns) <= n_columns else pa.table(found)

        with suppress(pa.ArrowInvalid):  # a cell is wrong, or a record longer than what is parsed at once
            return parsed(max(_PARSED_AT_ONCE, _BYTES_OF_COLUMN * len(columns) // 8), _COLUMNS_AT_ONCE)
        try:  # of all columns together the first cell that is wrong is the first of the rows
            return parsed(len(text) + 1, max(len(columns), 1))
        except pa.ArrowInvalid as error:
            raise self._translated(error, bytes(text), rows, lines) from error

    def _translated(self, error: Exception, block: bytes, rows: int, lines: int) -> DataError:
        """The error in words that help: the line of a record that is too short or long, the row and text of a cell."""
        message = str(error)
        if found := _WRONG_LENGTH.search(message):
            row, allowed, given = (int(number) for number in found.groups())
            ((line, _),) = BlockRecords(block, self._dialect, rows, lines, {}).written([row - 1])
            return DataError(
                f"{self.name}: line {line} has {_cells(given)}, the header has {allowed}. "
                f"Correct the line, or put cells that hold {self._dialect.delimiter!r} into quotes."
            )
        if found := _WRONG_CELL.search(message):
            place, record, kind, reason = found.groups()
            where = f"column {self.names[int(place)]!r}, row {rows + int(record)}"
            return CellTypeError(f"{self.name}: {where}: {shortened(reason)} for {kind}.")
        return DataError(f"{self.name} cannot be read as a table: {first_line(error)}.")


def _cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"


def _with_empty_rows(table: pa.Table, places: Sequence[int]) -> pa.Table:
    """The table with rows of missing cells put in, so that they stand at these places (ascending)."""
    n_rows = table.num_rows + len(places)
    is_row = np.ones(n_rows, dtype=bool)
    is_row[list(places)] = False
    source = np.where(is_row, np.cumsum(is_row) - 1, 0)
    return table.take(pa.array(source, mask=~is_row))


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


def _enlarged(content: bytes | bytearray, size: int) -> bytearray:
    """A copy with room for more. The old one stays as it is, as blocks may still be looked at."""
    buffer = bytearray(size)
    buffer[: len(content)] = content
    return buffer


_FEW = 256
"""Cells that show of most columns what they are not."""


def maybe_thousands(values: npt.NDArray[Any]) -> bool:
    """Whether floats may be whole numbers whose thousands were parted by points, as 1.275 and 935; NaN is missing.

    The first values tell of most columns that they are none. The texts say more: see `text_kinds.may_be_thousands`.
    """
    return len(values) > 0 and _in_thousands(values[:_FEW]) and _in_thousands(values)


def _in_thousands(values: npt.NDArray[Any]) -> bool:
    sizes = np.abs(values[~np.isnan(values)].astype(np.float64))
    fractions = sizes[sizes != np.trunc(sizes)]
    with np.errstate(over="ignore", invalid="ignore"):
        is_odd = np.abs(1000 * fractions - np.rint(1000 * fractions)) > 1e-6
    return not (is_odd.any() or (sizes >= 1000).any() or (fractions < 1).any())
