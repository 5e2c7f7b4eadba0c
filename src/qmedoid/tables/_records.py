"""Records of a block of text: where each stands and how it is written, and rows for those of another length."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qmedoid.arrays import Codes
from qmedoid.tables._dialect import Dialect

WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
"""What Arrow says of a record with too few or too many cells."""


class Written(NamedTuple):
    """A record as it is written, and the line (from 1) where it begins."""

    line: int
    text: str


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

    def written(self, places: Sequence[int]) -> list[Written]:
        """The records at some places of the block."""
        ends = _line_ends(np.frombuffer(self._bytes, dtype=np.uint8), self._dialect)
        starts, stops = self._starts[:-1][list(places)], self._starts[1:][list(places)]
        lines = self._lines + np.searchsorted(ends, starts, side="right") + 1
        texts = [
            self._bytes[start:stop].decode(errors="replace").rstrip("\r\n")
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        return [Written(line, text) for line, text in zip(lines.tolist(), texts, strict=True)]


def _line_ends(text: NDArray[np.uint8], dialect: Dialect) -> Codes:
    return np.flatnonzero(text == dialect.newline[0]) + 1


def length_reason(given: int, allowed: int) -> str:
    """That a record has another number of cells than the header."""
    return f"the line has {given} {'cell' if given == 1 else 'cells'}, the header has {allowed}"


def with_empty_rows(table: pa.Table, places: Sequence[int]) -> pa.Table:
    """The table with rows of missing cells put in, so that they stand at these places (ascending)."""
    n_rows = table.num_rows + len(places)
    is_row = np.ones(n_rows, dtype=bool)
    is_row[list(places)] = False
    source = np.where(is_row, np.cumsum(is_row) - 1, 0)
    return table.take(pa.array(source, mask=~is_row))


def line_of_record(block: bytes, masked: bytes, number: int) -> int:
    """The line of a block (from 1) where a record (from 1) begins; blank lines are no records."""
    place = 0
    for line in masked.splitlines(keepends=True):
        number -= bool(line.strip(b"\r\n"))
        if number == 0:
            break
        place += len(line)
    return len(block[:place].splitlines()) + 1
