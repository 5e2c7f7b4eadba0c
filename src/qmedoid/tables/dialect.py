"""How a text writes its table: delimiter, decimal sign, header, and lines that are no records."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables.arrow import check_unique

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
