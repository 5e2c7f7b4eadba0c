"""The text of a table as UTF-8, in blocks that end where records end."""

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from qmedoid.exceptions import DataError
from qmedoid.tables._bytes import Bytes
from qmedoid.tables._dialect import byte_order_mark, mask_quoted, open_quote, sniff, western

_SAMPLE = 1 << 18
_LONGEST_HEADER = 1 << 24
_BLOCK = 1 << 23
_LONGEST_RECORD = 1 << 26


class Block(NamedTuple):
    """Whole records in UTF-8, there until the next block is asked for, and whether they hold quotes."""

    text: bytes | memoryview
    has_quotes: bool


class Text:
    """A text file that is read once, from front to back.

    Parameters
    ----------
    data : Bytes
    delimiter, decimal : str or None
        None finds out.

    Attributes
    ----------
    dialect : Dialect
    notes : list of str
        What was adjusted so far.
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
        while not self._is_whole and not self.first_records().text and len(self._sample) < _LONGEST_HEADER:
            self._sample += self._more(len(self._sample))
        if self._decoder is not None:
            self.notes.append(f"{data.name} is written in {wide}.")

    def first_records(self) -> Block:
        """The records after the header that the sample holds whole."""
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
            if end > 0 and not _is_blank(buffer, end):
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

    def close(self) -> None:
        """Close the file."""
        self.data.close()

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


def _is_blank(buffer: bytearray, end: int) -> bool:
    return buffer[: min(end, 64)].isspace() and buffer[:end].isspace()
