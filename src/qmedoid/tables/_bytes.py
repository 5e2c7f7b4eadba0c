"""Which files a path stands for, what format each has, and its bytes without their compression."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

from qmedoid.exceptions import DataError

_T = TypeVar("_T")
Format = Literal["csv", "parquet", "arrow", "stream", "feather 1", "JSON lines", "xlsx"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".xlsx": "xlsx",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4")
STANDARD_INPUT = "-"
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
_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather 1",
    b"\xff\xff\xff\xff": "stream",
}
_OTHERS: dict[bytes, str] = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls) or another old Office file. Save its sheet as .xlsx or as CSV",
    b"%PDF": "a PDF document. Save its table as CSV",
    b"SQLite format 3": "a SQLite database. Export one of its tables as CSV",
    b"{\\rtf": "a text document (RTF). Save its table as CSV",
    b"<!DOCTYPE": "a web page or an XML document. Save its table as CSV",
    b"<!doctype": "a web page or an XML document. Save its table as CSV",
    b"<html": "a web page. Save its table as CSV",
    b"<HTML": "a web page. Save its table as CSV",
    b"<table": "a web page. Save its table as CSV",
    b"<?xml": "an XML document. Save its table as CSV",
}
"""What is sometimes given as a table, with what to do."""
_JSON_RECORD = re.compile(rb'\s*\{\s*("|\})')
_JSON_LIST = re.compile(rb"\s*\[\s*([\[{\]]|\Z)")
_HEAD = 64
"""Bytes that tell compressions and formats apart."""
_COPY = 1 << 20


def find_files(where: str | Path) -> list[Path]:
    """The data files that a file name, a folder or a pattern stands for, in the order of their names."""
    if not str(where):  # which Path would take for the folder one is in
        raise DataError("The name of the table is empty. Give a file, a folder, a pattern, or - for a pipe.")
    path = Path(where)
    try:
        is_folder, is_there = path.is_dir(), path.exists()
        if is_folder:
            next(path.iterdir(), None)  # a folder that may not be read would look like an empty one
    except OSError as error:
        raise DataError(f"{str(where)[:100]} cannot be opened: {error.strerror}.") from error
    if is_folder:
        inside = (file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
        found = sorted(file for file in inside if format_of_name(file) is not None)
        if not found:
            raise DataError(f"The folder {path} holds no table. Known file names end in {', '.join(SUFFIXES)}.")
        return found
    if is_there:
        return [path]
    if re.search(r"[*?\[]", str(where)):
        anchor = Path(path.anchor)
        pattern = str(path.relative_to(anchor))
        found = sorted(file for file in anchor.glob(pattern) if file.is_file() and not _is_hidden(Path(file.name)))
        if not found:
            raise DataError(f"No file matches {where}. In a shell, put quotes around a pattern.")
        return found
    raise DataError(f"There is no file {where}. Give a file, a folder, a pattern like 'part-*.csv', or - for a pipe.")


def format_of_name(file: Path) -> Format | None:
    """The format that a file name claims, None if it claims none."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _is_hidden(path: Path) -> bool:
    # An underscore marks what Spark and its like write beside the data.
    return any(part.startswith((".", "_")) for part in path.parts)


class Bytes(io.RawIOBase):
    """The bytes of a file or of standard input, without their compression.

    Attributes
    ----------
    name : str
        For messages.
    n_taken : int
        Bytes taken from the file so far, as they are stored.
    """

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self.name = "standard input" if file is None else str(file)
        self._raw = _Counted(sys.stdin.buffer if file is None else _open(file), owned=file is not None)
        self._inner: Any = self._raw
        compression = next((name for magic, name in _COMPRESSIONS.items() if self.peek().startswith(magic)), None)
        if compression is not None:
            self._inner = _Pushback(_decompressor(self._raw, compression))
        self.is_compressed = compression is not None

    @property
    def n_taken(self) -> int:
        """Bytes taken from the file so far, as they are stored."""
        return self._raw.n_taken

    def peek(self) -> bytes:
        """The first bytes, which stay to be read."""
        return bytes(self._checked(lambda: self._inner.peek_head()))

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes; fewer only at the end."""
        return bytes(self._checked(lambda: self._inner.read(size)))

    def readinto(self, buffer: Any) -> int:
        """Read into all of a buffer; into less of it only at the end."""
        view, filled = memoryview(buffer), 0
        if not self.is_compressed:
            while size := self._filled(view[filled:]):
                filled += size
            return filled
        while part := self.read(min(len(view) - filled, _COPY)):
            view[filled : filled + len(part)] = part
            filled += len(part)
        return filled

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def close(self) -> None:
        """Close the file (never standard input)."""
        if not self.closed:
            self._raw.close()
        super().close()

    def _filled(self, view: memoryview) -> int:
        return self._checked(lambda: self._raw.readinto(view))

    def _checked(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except (OSError, EOFError, ValueError, _lzma_error()) as error:
            raise DataError(f"{self.name} cannot be read: {first_line(error)}.") from error


class _Pushback(io.RawIOBase):
    """A stream whose first bytes can be looked at."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self._head = b""

    def peek_head(self) -> bytes:
        if len(self._head) < _HEAD:
            self._head += self._raw.read(_HEAD - len(self._head))
        return self._head

    def read(self, size: int = -1) -> bytes:
        head, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        if 0 <= size <= len(head):
            return head
        rest = bytes(self._raw.read(size if size < 0 else size - len(head)))
        return head + rest if head else rest

    def readable(self) -> bool:
        return True


class _Counted(_Pushback):
    """A stream that counts what was taken from it, and closes it only if it was opened here."""

    def __init__(self, raw: IO[bytes], owned: bool) -> None:
        super().__init__(raw)
        self._owned = owned
        self.n_taken = 0

    def read(self, size: int = -1) -> bytes:
        data = super().read(size)
        self.n_taken += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        size = min(len(self._head), len(buffer))
        if size:
            buffer[:size], self._head = self._head[:size], self._head[size:]
        else:
            # One read at a time, where there is a choice: a pipe that falls silent can then be interrupted.
            size = getattr(self._raw, "readinto1", self._raw.readinto)(buffer)
        self.n_taken += size
        return size

    def close(self) -> None:
        if self._owned:
            self._raw.close()
        super().close()


def _open(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise DataError(f"{file} cannot be opened: {error.strerror}.") from error


def _decompressor(raw: _Counted, compression: str) -> Any:
    if compression == "xz":  # the one that Arrow does not have
        import lzma

        return lzma.LZMAFile(cast(IO[bytes], raw))
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression)


def _lzma_error() -> type[Exception]:
    lzma = sys.modules.get("lzma")
    return EOFError if lzma is None else lzma.LZMAError


def detect_format(data: Bytes, file: Path | None) -> Format:
    """The format of a file by its first bytes; where they say nothing it is a text of cells."""
    head = data.peek()
    found = next((name for magic, name in _FORMATS.items() if head.startswith(magic)), None)
    if found is not None:
        return found
    if head.startswith(b"PK\x03\x04"):
        # What kind of a zip archive it is shows further inside.
        return "xlsx"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    other = next((what for magic, what in _OTHERS.items() if text.startswith(magic)), None)
    if other is not None:
        raise DataError(f"{data.name} is {other}.")
    if _JSON_LIST.match(text):
        raise DataError(f"{data.name} is a JSON document, not JSON lines: {JSON_ADVICE}")
    if _JSON_RECORD.match(text):
        return "JSON lines"
    claimed = None if file is None else format_of_name(file)
    if claimed not in (None, "csv"):
        raise DataError(f"{data.name} is not what its name says: it does not begin like a {claimed} file.")
    return "csv"


def spool(data: Bytes) -> IO[bytes]:
    """A copy in a nameless temporary file, for formats that are not read from front to back."""
    import tempfile  # not needed by most

    copy = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    while part := data.read(_COPY):
        copy.write(part)
    copy.seek(0)
    return copy


def first_line(error: BaseException) -> str:
    """The first line of the message of an error, without a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__
