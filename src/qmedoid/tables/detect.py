"""What a file is, from its first bytes: compression, format and, of a text, how it writes its table."""

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from qmedoid.exceptions import DataError, ParameterError

Format = Literal["csv", "parquet", "arrow", "JSON lines", "xlsx"]
_NAMED: dict[Format, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
    "JSON lines": (".jsonl", ".ndjson"),
    "xlsx": (".xlsx",),
}
SUFFIXES = {suffix: form for form, suffixes in _NAMED.items() for suffix in suffixes}
JSON_ADVICE = (
    "write one record per line, {\"name\": value, ...}, as pandas does with to_json(orient='records', lines=True)."
)
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "xlsx",  # what kind of a zip archive it is shows further inside
}
_MARKUP = (b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML", b"<table", b"<?xml")
_OTHERS: dict[bytes, str] = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls) or another old Office file. Save its sheet as .xlsx or as CSV",
    b"\xfd7zXZ\x00": "packed by xz. Unpack it, or pack it by gzip or Zstandard",
    b"\xff\xff\xff\xff": "a stream of Arrow. Write it as an Arrow file or as Parquet",
    b"FEA1": "a Feather file of the first version. Write it again as Parquet, by pandas or PyArrow",
    b"%PDF": "a PDF document. Save its table as CSV",
    b"SQLite format 3": "a SQLite database. Export one of its tables as CSV",
    b"{\\rtf": "a text document (RTF). Save its table as CSV",
    **dict.fromkeys(_MARKUP, "a web page or an XML document. Save its table as CSV"),
}
"""What is sometimes given as a table, with what to do."""
_HEAD = 64
"""Bytes that identify compressions and formats."""
_JSON_RECORD = re.compile(rb'\{\s*("|\})')
_JSON_LIST = re.compile(rb"\[\s*([\[{\]]|\Z)")
_T = TypeVar("_T")


class Bytes(io.RawIOBase):
    """The bytes of a file or of standard input (None), without their compression.

    Their format, `form`, shows in the first of them; where it does not it is a text of cells. `path` is None where the
    bytes come only once: from standard input or a named pipe. `stored` counts what was taken, `head` is how it begins.
    """

    _is_owned = False

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self.name = "standard input" if file is None else str(file)
        self.path = file if file is not None and file.is_file() else None
        try:
            self._opened = sys.stdin.buffer if file is None else file.open("rb")
        except OSError as error:
            raise DataError(f"{file} cannot be opened: {error.strerror}.") from error
        self._is_owned = file is not None
        self.stored = self._stream = self._checked(_Counted, self._opened)
        packing = next((name for magic, name in _COMPRESSIONS.items() if self.stored.head.startswith(magic)), None)
        self.is_compressed = packing is not None
        if packing is not None:
            self._stream = self._checked(self._unpacked, packing)
        self.head = self._stream.head
        try:
            self.form = self._detect_format(self.head, file)
        except DataError:
            self.close()
            raise

    def _unpacked(self, packing: str) -> "_Counted":
        import pyarrow as pa

        return _Counted(pa.CompressedInputStream(pa.PythonFile(self.stored, mode="r"), packing))

    def readinto(self, buffer: Any) -> int:
        """Read into all of a buffer; into less of it only at the end."""
        view, filled = memoryview(buffer), 0
        while size := self._checked(self._stream.readinto, view[filled:]):
            filled += size
        return filled

    def _detect_format(self, head: bytes, file: Path | None) -> Format:
        found = next((name for magic, name in _FORMATS.items() if head.startswith(magic)), None)
        if found is not None:
            return found
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        other = next((what for magic, what in _OTHERS.items() if text.startswith(magic)), None)
        if other is not None:
            raise DataError(f"{self.name} is {other}.")
        if _JSON_LIST.match(text):
            raise DataError(f"{self.name} is a JSON document, not JSON lines: {JSON_ADVICE}")
        if _JSON_RECORD.match(text):
            return "JSON lines"
        claimed = None if file is None else format_of_name(file)
        if claimed not in (None, "csv"):
            raise DataError(f"{self.name} is not what its name says: it does not begin like a {claimed} file.")
        return "csv"

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def close(self) -> None:
        """Close the file (never standard input)."""
        if self._is_owned and not self.closed:
            self._opened.close()
        super().close()

    def _checked(self, read: Callable[[Any], _T], given: Any) -> _T:
        try:
            return read(given)
        except (OSError, EOFError, ValueError) as error:
            raise DataError(f"{self.name} cannot be read: {first_line(error)}.") from error


class _Counted(io.RawIOBase):
    """A stream that counts what is taken from it, and whose first bytes can be looked at until then."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw, self.n_taken, self.head = raw, 0, bytes(raw.read(_HEAD))

    def readinto(self, buffer: Any) -> int:
        size = min(len(self.head), len(buffer))
        if size:
            buffer[:size], self.head = self.head[:size], self.head[size:]
        else:
            # One read at a time, where there is a choice: a pipe that falls silent can then be interrupted.
            size = getattr(self._raw, "readinto1", self._raw.readinto)(buffer)
        self.n_taken += size
        return size

    def readable(self) -> bool:
        return True


def first_line(error: BaseException) -> str:
    """The first line of the message of an error, without a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__


def format_of_name(file: Path) -> Format | None:
    """The format that a file name claims, None if it claims none."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


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
        raise DataError(f"{name} is not a text: it has zero bytes. Known formats are CSV, Parquet and Arrow/Feather.")
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
    check_unique(names, name)
    if all(re.fullmatch(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", found) for found in names):
        notes.append(
            f"The first line of {name} is taken as the header, but holds numbers only ({', '.join(names[:3])}, ...): "
            "if the file has no header, add one."
        )
    return tuple(names), notes


def check_unique(names: Sequence[str], source: str) -> None:
    """Refuse column names that occur more than once, or hold a zero byte, which Arrow looks up in vain."""
    for name in names:
        if "\0" in name:
            raise DataError(f"{source} has a column whose name holds a zero byte, {name!r}. Rename it.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        places = [
            f"{name!r} (columns {', '.join(str(place + 1) for place, other in enumerate(names) if other == name)})"
            for name in twice[:5]
        ]
        raise DataError(f"{source} has column names more than once: {'; '.join(places)}. Rename all but one of each.")
