"""How a text writes its table: delimiter, decimal sign, header, and lines that are no records."""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.spelling import HIDDEN
from qmedoid.tables.arrow import MISSING, check_unique, shortened

DELIMITERS = (",", ";", "\t", "|")
_ODD_BLANK = re.compile(r"[^\S\x00-\x7f]")
_RECORDS = 200
"""Records that delimiters are judged by."""
_FIRST = 1 << 14
"""Bytes in which the first records of a text lie."""
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
_POINT_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?\s*")
# What lines hold that are no records: a rule under a header, the foot of a report, a sum, units, what types are.
_RULE = re.compile(r"[|+]?[-=_*~+]{2,}[-=_*~+|: ]*")
_FOOT = re.compile(
    r"(source|quelle|fuente|notes?|remarks?|generated|exported|created|downloaded|printed|retrieved|(last )?updated?|"
    r"data as of|copyright|©|end of|page|sum|count|(grand |sub)?totals?|summe|gesamt)\b.*"
    r"|\(?\d[\d,.]* (rows?|records?|lines?|entries|observations|cases|zeilen|datens(ä|ae)tze)\b.*",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"((grand |sub|sub-|sub )?totals?|sums?|sum total|summe|gesamt|insgesamt|suma|somme|totaal|totale|итого|всего|"
    r"averages?|mean|avg\.?|durchschnitt|mittelwert)\b ?:?",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[\[(].*[\])]|%|°?[CFK]|[kmµμnd]?g|lbs?|[ckmµμn]?m[²³23]?|in(ch(es)?)?|f(ee)?t|y(ea)?rs?|y|months?|d(ays?)?|"
    r"h(ou)?rs?|h|min(utes?)?|s(ec(onds?)?)?|ms|mm ?Hg|[kM]?Hz|[kM]?W|V|A|bpm|m/s|km/h|[mµμ]?mol(/l)?|[mµμ]?g/(d|m)?l|"
    r"USD|EUR|GBP|[$€£]|units?|count|years old|int(eger|\d+)?|float\d*|double|str(ing)?|text|bool(ean)?|date(time)?|"
    r"numeric|number|categor(y|ical)|object|(var)?char(\(\d+\))?",
    re.IGNORECASE,
)
_NUMERIC = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")
_UNITS_BY = 5
"""Records behind a row of units, at least, and those that show which columns are numbers."""
# The line that says to a spreadsheet how cells are separated.
_SEPARATOR_LINE = re.compile(rb'"?sep=([^"\r\n])"?(\r\n|\n|\r)', re.IGNORECASE)


class Dialect(NamedTuple):
    """How a text writes its table; `header_end` and `header_lines` are bytes and lines up to the first record.

    `header` is its line in UTF-8, by which it is known where it comes again; empty where it may be a record as well.
    `quoted` matches cells in quotes; its group is empty where one is not closed. With stray quotes (inside cells that
    are not quoted), counting quotes does not show where cells end. Notes say what was adjusted, and which lines before
    the first record are left out.
    """

    names: tuple[str, ...]
    header: bytes
    delimiter: str
    decimal: str
    newline: bytes
    header_end: int
    header_lines: int
    quoted: re.Pattern[bytes]
    stray_quotes: bool
    notes: list[str]
    left_out: list[str]

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
    begun, start = start, _behind_comments(sample, start, newline)
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
    line = decoded(sample[start:end])[0].strip("\r\n").encode()
    line = b"" if len(names) < 2 or any(map(_NUMERIC.fullmatch, header)) else line
    left_out = list[str]()
    if start > begun:
        left_out.append(
            f"{name}: {sample.count(newline, begun, start):,} lines of comments before the header are left out."
        )
    # The lines under the header, up to the first record.
    while after := sample.find(newline, end) + 1:
        under = decoded(sample[end:after])[0].strip()
        what = no_record(under, delimiter, len(names))
        what = what or units_among(decoded(sample[end : end + _FIRST])[0], delimiter, len(names))
        if what is None or under.count('"') % 2:
            break
        if under:
            where = f"line {sample.count(newline, 0, end) + 1}, under the header"
            left_out.append(f"{name}: {where}, is no record and is left out ({what}): {shortened(under)!r}.")
        end = after
    stray = re.search(rb'"(?<=[^%b\r\n"]")"*[^%b\r\n"]' % (mark, mark), sample) is not None
    return Dialect(
        names, line, delimiter, decimal, newline, end, sample[:end].count(newline), quoted, stray, notes, left_out
    )


def _behind_comments(sample: bytes, start: int, newline: bytes) -> int:
    """Where the header begins behind comments; a line with as many cells as the record behind it is the header."""
    found = re.compile(rb"(?:#[^\r\n]*(?:\r\n|\r|\n)+)+").match(sample, start)
    if found is None:
        return start
    # The last of them, unless all lines of the table begin so.
    last = max(sample.rfind(newline + b"#", start, found.end()) + 1, start)
    for line in (start, last) if found.end() == len(sample) else (last,):
        text = decoded(sample[line : line + _FIRST])[0]
        header, record = [*_records(text, _find_delimiter(text), 2), [], []][:2]
        if len(header) == len(record) > 1 and any(re.search(r"\d", cell) for cell in record):
            return line
    return found.end()


def no_record(line: str, delimiter: str, width: int, *, is_last: bool = False) -> str | None:
    """What a line is that is surely no record of a table with so many columns; None where it may be one.

    Of lines with a cell for each column only the last ones of a text may be the foot of a report, a sum or empty.
    """
    records = [*_records(line, delimiter, 1)]
    if not records and line.strip():  # a cell longer than the reader of a line takes
        return None
    cells = [cell.strip() for record in records for cell in record]
    given, is_full = [cell for cell in cells if cell], len(cells) == width
    if given and all(_RULE.fullmatch(cell) for cell in given):
        return "a rule"
    if is_full and not is_last:
        return None
    if not given:
        return "a line without cells"
    if not is_full and line.lstrip().startswith("#"):
        return "a comment"
    is_foot = (len(given) == 1 and (not is_full or width > 2)) or (not is_full and ":" in given[0])
    if is_foot and _FOOT.fullmatch(given[0]):
        return "a footer"
    is_sum = _TOTAL.fullmatch(given[0]) is not None and all(_NUMERIC.fullmatch(cell) for cell in given[1:])
    return "a line of totals" if is_sum and len(given) > 1 else None


def units_among(text: str, delimiter: str, width: int) -> str | None:
    """Whether the first record says in which units, or of which types, the columns of numbers are."""
    first, *others = _records(text, delimiter, _UNITS_BY + 1) or [[]]
    if len(others) < _UNITS_BY or any(len(record) != width for record in (first, *others)):
        return None
    units, numeric = 0, 0
    for top, *column in ([cell.strip() for cell in column] for column in zip(first, *others, strict=True)):
        is_number = [_NUMERIC.fullmatch(cell) is not None for cell in column if cell not in MISSING]
        if _NUMERIC.fullmatch(top) or (top and top in column):
            return None
        if len(is_number) > 2 and all(is_number):
            units, numeric = units + (_UNIT.fullmatch(top) is not None), numeric + 1
    return "a line of units" if units and 2 * units >= numeric else None


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
    # Without letters that do not show, with plain blanks, and composed.
    names = [unicodedata.normalize("NFC", _ODD_BLANK.sub(" ", HIDDEN.sub("", cell))).strip() for cell in header]
    notes = []
    odd = [new for new, old in zip(names, header, strict=True) if new and new != old.strip()]
    if odd:
        notes.append(f"Letters that do not show were dropped from the names of {len(odd)} columns, as in {odd[0]!r}.")
    padded = [new for new, old in zip(names, header, strict=True) if new and new == old.strip() != old]
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
