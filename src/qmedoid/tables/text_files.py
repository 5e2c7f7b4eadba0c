"""A table in a text file: blocks of complete records, which Arrow parses one by one.

Arrow has a reader for streams (``open_csv``). Cutting blocks here and parsing each at once takes a quarter less time,
says on which row a cell is wrong, and lets encodings be decided where they show.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError
from qmedoid.tables.arrow import BATCH_ROWS, SPELT_WORDS, WORDS, CellTypeError, first_line, shortened, without_missing
from qmedoid.tables.dialect import Dialect, decoded, detect_dialect, no_record

if TYPE_CHECKING:
    from qmedoid.tables.source import Bytes

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
_SEEN, _MOST_HITS = 1 << 15, 1000
"""Bytes that show which letter of the header is rarest, and how often it is looked at where it occurs."""
_FEW = 256
"""Cells that show of most columns what they are not."""
_MOST_LAST = 100
"""Lines at the end of a text that are looked at for the foot of a report."""
NOTHING: Mapping[str, Collection[str]] = {}
_BLANKS = ["", " ", "  "]
_NULLS = [*_BLANKS, *SPELT_WORDS]
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

    def spans(self, places: Collection[int]) -> list[tuple[int, int]]:
        """Where records at some places of the block begin and end in its text."""
        return [(int(self._starts[place]), int(self._starts[place + 1])) for place in sorted(places)]

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
        self._no_records = dict[int, str]()  # of the block that was parsed last, by place
        self._left_out, self._first_left_out = Counter[str](), (0, "")
        self._open(data)
        self.decimal = self._dialect.decimal
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
        self.names: tuple[str, ...] = self._dialect.names
        header, seen = self._dialect.header, self._sample[self._dialect.header_end :][:_SEEN]
        self._rarest = bytes([min(sorted({*header}), key=seen.count)]) if header else b""
        self.notes += self._dialect.notes
        self.left_out = self._dialect.left_out
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
        block = self._records_of((self._in_utf8(whole), b'"' in whole), 0)[0]
        self._left_out.clear()  # they come again with the first block
        return block

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
        self,
        columns: Sequence[str],
        types: Mapping[str, Any],
        *,
        verbatim: bool = False,
        watched: Collection[str] = (),
        words: Mapping[str, Collection[str]] = NOTHING,
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; see `TableSource.batches`."""
        doubtful = {name for name in watched if self._may_have_thousands(name)} if self.decimal == "." else set()
        rows, lines = 0, self._dialect.header_lines
        self._left_out.clear()
        for block in self._blocks():
            block, has_odd = self._records_of(block, lines)
            table = self._parse(block, columns, types, rows, lines, verbatim, words)
            if self._no_records:
                records = BlockRecords(block[0], self._dialect, rows, lines, {})
                odd = zip(records.spans(self._no_records), self._no_records.values(), strict=True)
                block = self._without(block, [(*span, what) for span, what in odd], lines), block[1]
                table, has_odd = self._parse(block, columns, types, rows, lines, verbatim, words), True
            if self._tolerant:
                table = _with_empty_rows(table, sorted(self._malformed)) if self._malformed else table
                self.block = BlockRecords(block[0], self._dialect, rows, lines, self._malformed)
            rows += table.num_rows
            is_plain = not (block[1] or has_odd or self._tolerant)
            lines += table.num_rows if is_plain else bytes(block[0]).count(self._dialect.newline)
            for batch in table.combine_chunks().to_batches(BATCH_ROWS):
                for name in sorted(doubtful):
                    _check_points(name, batch.column(name), doubtful)
                yield batch
        if self._left_out:
            kinds, (number, shown) = " and ".join(self._left_out), self._first_left_out
            which = f"{self._left_out.total():,} lines are no records and are left out ({kinds}): the first is line"
            which = f"one line is no record and is left out ({kinds}): line" if self._left_out.total() == 1 else which
            self.left_out = [*self._dialect.left_out, f"{self.name}: {which} {number:,}, {shown!r}."]

    def _records_of(self, block: _Block, lines: int) -> tuple[_Block, bool]:
        """A block without lines that repeat the header and, at the end of the text, without what is no record.

        With whether there was any.
        """
        text, has_quotes = block
        whole = text if isinstance(text, bytes) else text.obj
        assert isinstance(whole, bytes | bytearray), "a block is the beginning of a piece of memory"
        newline, end, found = self._dialect.newline, len(text), self._repeated_headers(whole, len(text))
        for _ in range(_MOST_LAST if self._is_whole else 0):
            begin = whole.rfind(newline, 0, max(end - 1, 0)) + 1
            line = whole[begin:end].decode(errors="replace").strip()
            what = no_record(line, self._dialect.delimiter, len(self.names), is_last=True)
            if what == "a line of totals":  # where other records begin like that it may be one as well
                first = re.escape(line.strip(f" {self._dialect.delimiter}").partition(self._dialect.delimiter)[0])
                what = None if len(re.findall(rf"(?m)(?:^|\W){first}(?=\W)".encode(), whole[:end])) > 1 else what
            if begin == end or line.count('"') % 2 or (line and what is None):
                break
            found, end = [*found, (begin, end, str(what))] if line else found, begin
        if found and has_quotes:
            masked = self._dialect.mask_quoted(bytes(text))
            found = [one for one in found if one[0] == 0 or masked[one[0] - 1 : one[0]] == newline]
        return ((self._without(block, found, lines), has_quotes), True) if found else (block, False)

    def _repeated_headers(self, text: bytes | bytearray, size: int) -> list[tuple[int, int, str]]:
        """Where lines of a block are the header once more, as of files that were put together."""
        header, newline, found = self._dialect.header, self._dialect.newline, list[tuple[int, int, str]]()
        # One letter is searched for much faster than a line, unless it is frequent.
        sought, hits = self._rarest, 0
        place = text.find(sought, 0, size) if header else -1
        while place >= 0:
            begin, hits = place - header.index(sought), hits + 1
            end = max(begin, 0) + len(header)
            if begin >= 0 and text.startswith(header, begin, size) and text[end : end + 1] in (b"", b"\r", b"\n"):
                first = begin - len(_MARK) * text.endswith(_MARK, 0, begin)
                end = text.find(newline, end, size) + 1 or size
                found += [(first, end, "the header again")] if first == 0 or text[first - 1 : first] == newline else []
            sought = header if hits == _MOST_HITS else sought
            place = text.find(sought, begin + 1 + header.index(sought), size)
        return found

    def _without(self, block: _Block, spans: Sequence[tuple[int, int, str]], lines: int) -> bytes:
        """A block in which lines that are no records are empty, so that lines count as they did; they are noted."""
        content, newline, parts, at = bytes(block[0]), self._dialect.newline, list[bytes](), 0
        for begin, end, what in sorted(spans):
            number = lines + content.count(newline, 0, begin) + 1
            if not self._left_out or number < self._first_left_out[0]:
                self._first_left_out = number, shortened(content[begin:end].decode(errors="replace").strip())
            self._left_out[what] += 1
            parts += [content[at:begin], newline * max(content.count(newline, begin, end), 1)]
            at = end
        return b"".join([*parts, content[at:]])

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
        words: Mapping[str, Collection[str]] = NOTHING,
    ) -> pa.Table:
        """The rows of a block; in a tolerant file without those that are malformed, by place in the block.

        Some `words` for a missing value are kept, by column.
        """
        from pyarrow import csv as arrow_csv

        text, has_quotes = block
        bad = self._malformed = dict[int, str]()
        odd = self._no_records = dict[int, str]()
        sign = self._dialect.delimiter

        def pass_over(row: Any) -> str:
            if (what := no_record(row.text, sign, row.expected_columns)) is not None:
                odd[row.number - 1] = what
            else:
                cells, expected = _cells(row.actual_columns), row.expected_columns
                bad[row.number - 1] = f"the line has {cells}, the header has {expected}"
            return "skip" if self._tolerant or what is not None else "error"

        parsing = arrow_csv.ParseOptions(delimiter=sign, newlines_in_values=has_quotes, invalid_row_handler=pass_over)
        converted = {
            "column_types": {name: types[name] for name in columns if name in types},
            "strings_can_be_null": not verbatim,
            "decimal_point": self._dialect.decimal,
        }

        kept = [] if verbatim else [name for name in columns if words.get(name)]
        plain = [name for name in columns if name not in kept]
        groups = [(plain, _NULLS)] * bool(plain or not kept) + [(kept, _BLANKS)] * bool(kept)

        def parsed(size: int, n_columns: int) -> pa.Table:
            reading = arrow_csv.ReadOptions(column_names=self.names, use_threads=False, block_size=size)
            bad.clear()
            odd.clear()
            found = dict[str, pa.ChunkedArray]()
            for names, nulls in groups:
                for start in range(0, max(len(names), 1), n_columns):
                    some = list(names[start : start + n_columns])
                    wanted = arrow_csv.ConvertOptions(include_columns=some, null_values=nulls, **converted)
                    table = arrow_csv.read_csv(pa.BufferReader(text), reading, parsing, wanted)
                    found.update(zip(table.column_names, table.columns, strict=True))
            for name in kept:
                if len(words[name]) < len(WORDS):
                    found[name] = pa.chunked_array([without_missing(one, words[name]) for one in found[name].chunks])
            return pa.table(found).select(columns) if kept or len(columns) > n_columns else table

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
