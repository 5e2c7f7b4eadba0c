"""What a file is, from its first bytes: compression and format, and its bytes without the compression."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

from qmedoid.exceptions import DataError

Format = Literal["csv", "parquet", "arrow", "stream", "feather 1", "JSON lines", "xlsx"]
_NAMED: dict[Format, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
    "stream": (".arrows",),
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
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4")
_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather 1",
    b"\xff\xff\xff\xff": "stream",
    b"PK\x03\x04": "xlsx",  # what kind of a zip archive it is shows further inside
}
_MARKUP = (b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML", b"<table", b"<?xml")
_OTHERS: dict[bytes, str] = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls) or another old Office file. Save its sheet as .xlsx or as CSV",
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
    bytes come only once: from standard input or a named pipe. `stored` counts what was taken.
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
        compression = next((name for magic, name in _COMPRESSIONS.items() if self.stored.head.startswith(magic)), None)
        self.is_compressed = compression is not None
        if compression is not None:
            self._stream = self._checked(self._decompressed, compression)
        try:
            self.form = self._detect_format(self._stream.head, file)
        except DataError:
            self.close()
            raise

    def _decompressed(self, compression: str) -> "_Counted":
        if compression == "xz":  # the one that Arrow does not have
            import lzma

            return _Counted(lzma.LZMAFile(cast(IO[bytes], self.stored)))
        import pyarrow as pa

        return _Counted(pa.CompressedInputStream(pa.PythonFile(self.stored, mode="r"), compression))

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
        except (OSError, EOFError, ValueError, getattr(sys.modules.get("lzma"), "LZMAError", EOFError)) as error:
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
