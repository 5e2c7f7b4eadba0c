"""The bytes of a file without their compression, and the text of a table as UTF-8 in blocks of complete records."""

import codecs
import io
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

from qmedoid.exceptions import DataError
from qmedoid.tables._dialect import mask_quoted, open_quote, sniff, western

_T = TypeVar("_T")
_BOMS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}
_HEAD = 64
"""Bytes that identify compressions and formats."""
_COPY = 1 << 20
_SAMPLE = 1 << 18
_LONGEST_HEADER = 1 << 24
_BLOCK = 1 << 23
_LONGEST_RECORD = 1 << 26


class Bytes(io.RawIOBase):
    """The bytes of a file or of standard input, without their compression; the first of them are its `head`."""

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self.name = "standard input" if file is None else str(file)
        try:
            opened = sys.stdin.buffer if file is None else file.open("rb")
        except OSError as error:
            raise DataError(f"{file} cannot be opened: {error.strerror}.") from error
        self._raw = _Counted(opened, owned=file is not None)
        self._inner: Any = self._raw
        compression = next((name for magic, name in _COMPRESSIONS.items() if self._peek().startswith(magic)), None)
        if compression is not None:
            self._inner = _Pushback(_decompressor(self._raw, compression))
        self.is_compressed = compression is not None
        self.head = self._peek()

    @property
    def n_taken(self) -> int:
        """Bytes taken from the file so far, as they are stored."""
        return self._raw.n_taken

    def _peek(self) -> bytes:
        return bytes(self._checked(lambda: self._inner.peek_head()))

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        return bytes(self._checked(lambda: self._inner.read(size)))

    def readinto(self, buffer: Any) -> int:
        """Read into all of a buffer; into less of it only at the end."""
        view, filled = memoryview(buffer), 0
        if not self.is_compressed:
            while size := self._checked(partial(self._raw.readinto, view[filled:])):
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

    def _checked(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except (OSError, EOFError, ValueError, getattr(sys.modules.get("lzma"), "LZMAError", EOFError)) as error:
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


def _decompressor(raw: _Counted, compression: str) -> Any:
    if compression == "xz":  # the one that Arrow does not have
        import lzma

        return lzma.LZMAFile(cast(IO[bytes], raw))
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression)


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


class Block(NamedTuple):
    """Whole records in UTF-8, there until the next block is asked for, and whether they hold quotes."""

    text: bytes | memoryview
    has_quotes: bool


class Text:
    """A text file that is read once, from front to back.

    `first` are the records after the header that its sample holds complete, `notes` what was adjusted so far.
    """

    def __init__(self, data: Bytes, delimiter: str | None, decimal: str | None) -> None:
        self.data = data
        self._sample = data.read(_SAMPLE)
        self._is_whole = len(self._sample) < _SAMPLE
        wide, skipped = byte_order_mark(self._sample)
        self._encoding = wide if skipped else None
        self._decoder = None if wide in (None, "utf-8") else codecs.getincrementaldecoder(wide or "")("replace")
        self._sample = self._widened(self._sample[skipped:], self._is_whole)
        while not self._is_whole and not self._has_line() and len(self._sample) < _LONGEST_HEADER:
            self._sample += self._more(len(self._sample))
        self.dialect = sniff(self._sample, self._is_whole, data.name, delimiter, decimal)
        self._has_stray_quotes, self.notes = self.dialect.stray_quotes, list(self.dialect.notes)
        self.first, self.n_taken = self._first_records(), 0
        while not self._is_whole and not self.first.text and len(self._sample) < _LONGEST_HEADER:
            self._sample += self._more(len(self._sample))
            self.first = self._first_records()
        if self._decoder is not None:
            self.notes.append(f"{data.name} is written in {wide}.")

    def _first_records(self) -> Block:
        rest = self._sample[self.dialect.header_end :]
        whole = rest if self._is_whole else rest[: self._last_end(rest, len(rest))]
        return Block(self._in_utf8(whole), b'"' in whole)

    def blocks(self) -> Iterator[Block]:
        """Blocks of whole records, without the header; blank ones are left out."""
        rest = self._sample[self.dialect.header_end :]
        # One piece of memory takes all blocks in turn: new memory for each would cost a fifth of the time of parsing.
        buffer, filled = _enlarged(rest, max(_BLOCK, len(rest) + 1)), len(rest)
        while True:
            buffer, filled = self._fill(buffer, filled)
            end = filled if self._is_whole else self._last_end(buffer, filled)
            if self._is_whole:
                self._check_closed(buffer, end)
            self.n_taken = self.data.n_taken
            if end > 0 and not (buffer[: min(end, 64)].isspace() and buffer[:end].isspace()):
                yield self._block(buffer, end)
            if self._is_whole:
                return
            if end == 0 and filled > _LONGEST_RECORD:
                raise DataError(
                    f"{self.data.name} has a record of more than {_LONGEST_RECORD >> 20} MB: most likely a quote that "
                    f"is opened and never closed, near {bytes(buffer[:40])!r}."
                )
            buffer[: filled - end] = buffer[end:filled]
            filled -= end
            if 2 * filled > len(buffer):
                buffer = _enlarged(buffer, 2 * len(buffer))

    def _check_closed(self, buffer: bytearray, end: int) -> None:
        """Refuse a text that ends within a quoted cell: all lines from the quote on would be one cell."""
        place = open_quote(bytes(buffer[:end]), self.dialect.delimiter) if buffer.count(b'"', 0, end) % 2 else None
        if place is not None:
            lines = buffer.count(self.dialect.newline, place, end)
            raise DataError(
                f"{self.data.name}: a quote is opened and never closed, {lines:,} lines before the end, at "
                f"{bytes(buffer[place : place + 40])!r}. Close it, or drop the quote."
            )

    def _more(self, size: int) -> bytes:
        part = self.data.read(size)
        self._is_whole = len(part) < size
        return self._widened(part, self._is_whole)

    def _fill(self, buffer: bytearray, filled: int) -> tuple[bytearray, int]:
        """Read on into what is free of the buffer."""
        free = len(buffer) - filled
        if self._is_whole:
            return buffer, filled
        if self._decoder is None:
            size = self.data.readinto(memoryview(buffer)[filled:])
            self._is_whole = size < free
            return buffer, filled + size
        part = self._more(free // 2 + 1)
        if len(part) > free:
            buffer = _enlarged(buffer, filled + 2 * len(part))
        buffer[filled : filled + len(part)] = part
        return buffer, filled + len(part)

    def _block(self, buffer: bytearray, end: int) -> Block:
        has_quotes, text = buffer.find(b'"', 0, end) >= 0, memoryview(buffer)[:end]
        is_plain = buffer.isascii() and buffer.find(b"\0", 0, end) < 0
        return Block(text if is_plain else self._in_utf8(bytes(text)), has_quotes)

    def _widened(self, part: bytes, final: bool) -> bytes:
        return part if self._decoder is None else self._decoder.decode(part, final).encode()

    def _has_line(self) -> bool:
        return b"\n" in self._sample or b"\r" in self._sample

    def _last_end(self, text: bytes | bytearray, size: int) -> int:
        """The end of the last whole record among the first bytes of a text.

        An even number of quotes up to a line end means that it is not in a quoted cell, unless there are stray quotes.
        """
        newline = self.dialect.newline
        end = text.rfind(newline, 0, size) + 1
        if text.find(b'"', 0, size) < 0 or not (self._has_stray_quotes or text.count(b'"', 0, end) % 2):
            return end
        exact = mask_quoted(bytes(text[:size]), self.dialect.delimiter).rfind(newline) + 1
        self._has_stray_quotes |= exact == end
        return exact

    def _in_utf8(self, block: bytes) -> bytes:
        """The block in UTF-8. The first block that is not plain ASCII decides what the encoding is."""
        if b"\0" in block:
            raise DataError(f"{self.data.name} has zero bytes in its text: it is damaged, or not a table.")
        if block.isascii() or self._decoder is not None:
            return block
        if self._encoding in (None, "utf-8"):
            try:
                block.decode("utf-8")
            except UnicodeDecodeError as error:
                if self._encoding is not None:
                    near = block[max(error.start - 20, 0) : error.start + 20]
                    raise DataError(f"{self.data.name} is not in one encoding: UTF-8 first, then {near!r}.") from None
                self._encoding = western(block)
                self.notes.append(f"{self.data.name} is not in UTF-8; it is read as {self._encoding}.")
            else:
                self._encoding = "utf-8"
                return block
        return block.decode(self._encoding, errors="replace").encode()


def _enlarged(content: bytes | bytearray, size: int) -> bytearray:
    """A copy with room for more. The old one stays as it is, as blocks may still be looked at."""
    buffer = bytearray(size)
    buffer[: len(content)] = content
    return buffer


def byte_order_mark(head: bytes) -> tuple[str | None, int]:
    """The encoding that the first bytes announce (None if they do not), and how many bytes do so."""
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding, len(mark)
    # Latin text in two bytes per letter has every other byte 0, with or without a mark.
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if len(head) >= 8 and zeros.count(0) > 0.8 * len(zeros) and head.count(0) <= len(head) // 2:
            return encoding, 0
    return None, 0
