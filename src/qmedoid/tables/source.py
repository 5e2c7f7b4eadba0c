"""Tables in files of many formats, packed or not, one or many, read in batches of bounded memory."""

import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import DECIMAL, WORDS, as_category, common_type, first_line
from qmedoid.tables.binary_files import BinaryFile, MemoryFile
from qmedoid.tables.text_files import NOTHING, BlockRecords, TextFile

Format = Literal["csv", "parquet", "arrow"]
_NAMED: dict[Format, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
}
SUFFIXES = {suffix: form for form, suffixes in _NAMED.items() for suffix in suffixes}
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
}
_OTHERS = re.compile(
    rb"\xd0\xcf\x11\xe0|PK\x03\x04|\xfd7zXZ\0|\xff{4}|FEA1|%PDF|SQLite format 3|\{\\rtf"
    rb"|(?i:<!doctype|<html|<table|<\?xml)|\{\s*[\"}]|\[\s*([\[{\]]|\Z)"
)
"""How files begin that are sometimes given as a table: workbooks, archives, documents, pages, databases."""
_HEAD = 64
"""Bytes that identify compressions and formats."""
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
            unpacked = self._checked(
                partial(pa.CompressedInputStream, compression=packing), pa.PythonFile(self.stored, mode="r")
            )
            self._stream = self._checked(_Counted, unpacked)
        self.head = self._stream.head
        try:
            self.form = self._detect_format(self.head, file)
        except DataError:
            self.close()
            raise

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
        if _OTHERS.match(text):
            raise DataError(
                f"{self.name} is of a format that is not read, such as a workbook, an archive, a "
                "stream of Arrow, a JSON or PDF document, a web page or a database. Save its table as CSV or Parquet."
            )
        claimed = None if file is None else format_of_name(file)
        if claimed not in (None, "csv"):
            raise DataError(f"{self.name} is not what its name says: it does not begin like a {claimed} file.")
        return "csv"

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def again(self) -> "Bytes":
        """The same file from its beginning; what can be read once is refused."""
        if self.path is None:
            raise DataError(f"{self.name} can be read once. Save it to a file to go through it again.")
        self.close()
        return Bytes(self.path)

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


def format_of_name(file: Path) -> Format | None:
    """The format that a file name claims, None if it claims none."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


TableFile: TypeAlias = TextFile | BinaryFile | MemoryFile


def open_table(
    where: str | Path, *, delimiter: str | None = None, decimal: str | None = None, tolerant: bool = False
) -> "TableSource":
    """Open a table: a file, a folder, a pattern such as ``part-*.csv``, or ``"-"`` for standard input.

    Formats and compressions are detected from content. Several files are one table, in the order of their names. Field
    separator (comma, semicolon, tab or bar) and decimal sign of a text are detected where not given. In a tolerant
    source, lines of a text with too few or too many cells are rows without values, and `malformed` says which.
    """
    if str(where) == "-":
        return TableSource([_open_file(None, delimiter, decimal, tolerant)], None, decimal)
    files: list[TableFile] = []
    try:
        for path in (paths := find_files(where)):
            files.append(_open_file(path, delimiter, decimal, tolerant))
            _check_names(files[0], files[-1])
    except BaseException:
        for file in files:
            file.close()
        raise
    n_bytes = sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    return TableSource(files, n_bytes, decimal)


def _open_file(path: Path | None, delimiter: str | None, decimal: str | None, tolerant: bool) -> TableFile:
    data = Bytes(path)
    try:
        if data.form == "csv":
            return TextFile(data, delimiter, decimal, tolerant=tolerant)
        data.close()
        if data.path is None or data.is_compressed:
            raise DataError(
                f"{data.name} is a file of the format {data.form} that comes through a pipe or is packed once more. "
                "Such files are read from several places: give the name of an unpacked file."
            )
        return BinaryFile(data.path)
    except BaseException:
        data.close()
        raise


def _check_names(first: TableFile, other: TableFile) -> None:
    if set(first.names) == set(other.names):
        return
    differences = [
        f"{', '.join(map(repr, sorted(set(one.names) - set(two.names))))} only in {one.name}"
        for one, two in ((first, other), (other, first))
        if set(one.names) - set(two.names)
    ]
    raise DataError(f"{first.name} and {other.name} do not have the same columns: {'; '.join(differences)}.")


class TableSource(AbstractContextManager["TableSource"]):
    """A table in one or more files, made by `open_table`; a context manager.

    Types of texts in its schema are inferred from the first part of each file; a column without any value there has the
    null type. Dictionaries are decoded. `n_bytes` is None for standard input, `n_rows` for texts. `is_text` says that
    at least one file is a text, `is_all_text` that all are, `decimal` is the decimal sign of texts. `origin` is the
    file of the batch that was read last, and the place of its first row there (from 0). `notes` say what was adjusted
    while reading, each once; `left_out` those of them that are about lines which are no records.
    """

    def __init__(self, files: Sequence[TableFile], n_bytes: int | None, decimal: str | None = None) -> None:
        self._files, self._given_decimal = tuple(files), decimal
        self.n_bytes = n_bytes
        self.origin = "", 0
        self._gather_notes()
        self._block: BlockRecords | None = None
        first = self._files[0]
        self.names = first.names
        self.is_text, self.is_all_text = (of(file.is_text for file in files) for of in (any, all))
        self.decimal = next((file.decimal for file in files if file.is_text), ".")
        self.description = first.name if len(files) == 1 else f"{first.name} and {len(files) - 1} more"
        counts = [file.n_rows for file in files if file.n_rows is not None]
        self.n_rows = sum(counts) if len(counts) == len(files) else None
        self.schema = first.schema
        if len(files) > 1:
            types = [common_type([file.schema.field(name).type for file in files]) for name in self.names]
            self.schema = pa.schema(list(zip(self.names, types, strict=True)))

    def _gather_notes(self) -> None:
        self.left_out = list(dict.fromkeys(note for file in self._files for note in file.left_out))
        self.notes = [*dict.fromkeys(note for file in self._files for note in file.notes), *self.left_out]

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that the last iteration has read so far."""
        return sum(file.n_taken for file in self._files)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        *,
        verbatim: bool = False,
        watched: Collection[str] = (),
        words: Mapping[str, Collection[str]] = NOTHING,
    ) -> Iterator[pa.RecordBatch]:
        """Go through some columns of the table, in batches of some ten thousand rows.

        Columns without a type have that of the schema, and texts instead of the null type. Texts of a text file that
        are read verbatim stay as they are, ``NA`` and empty ones among them; some `words` for missing cells are kept,
        by column. A cell that is not of the type of its column, or in `watched` columns of a text file may have points
        between thousands, raises a `CellTypeError`; a
        damaged file, or standard input that is read again, a `DataError`.
        """
        wanted = list(self.names) if columns is None else list(columns)
        known = set(self.names)
        unknown = [name for name in wanted if name not in known]
        if unknown:
            shown = some_of([repr(name) for name in self.names])
            hint = did_you_mean(unknown[0], self.names)
            raise DataError(f"{self.description} has no column {unknown[0]!r}.{hint} It has {shown}.")
        kinds = {name: self.schema.field(name).type for name in wanted} | dict(types or {})
        kinds = {name: pa.string() if pa.types.is_null(kinds[name]) else kinds[name] for name in wanted}
        for file in self._files:
            file.n_taken = 0
        for file in self._files:
            row = 0
            is_text = isinstance(file, TextFile)
            how: dict[str, Any] = {"verbatim": verbatim, "watched": watched, "words": words} if is_text else {}
            for batch in file.batches(wanted, kinds, **how):
                self.origin, self._block = (file.name, row), file.block if isinstance(file, TextFile) else None
                row += batch.num_rows
                self._gather_notes()
                yield batch
        self._gather_notes()

    def malformed(self, n_rows: int) -> dict[int, str]:
        """Which of the rows of the last batch are no rows, and why; in a tolerant source."""
        if self._block is None:
            return {}
        ahead = self.origin[1] - self._block.first_row
        return {place - ahead: why for place, why in self._block.malformed.items() if 0 <= place - ahead < n_rows}

    def written(self, places: Sequence[int]) -> list[tuple[int, str]] | None:
        """Rows of the last batch by their lines (from 1) and as they are written; None where they are not a text."""
        if self._block is None:
            return None
        ahead = self.origin[1] - self._block.first_row
        return self._block.written([place + ahead for place in places])

    def read(
        self,
        max_rows: int | None = None,
        rng: "np.random.Generator | None" = None,
        *,
        texts: Collection[str] = (),
        target: str | None = None,
        missing: Mapping[str, Collection[Any]] = NOTHING,
        words: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The table, or a random sample of at most `max_rows` rows in its order, and their places in it (from 0).

        Memory grows with the sample only, and which rows are drawn does not depend on the format. Types of texts are
        inferred from all rows that are kept; columns in `texts`, and whole numbers with leading zeros, stay as they are
        written. What a file says to be a category is a dictionary of texts. The `target` keeps its words for missing
        cells, and others those that are levels (`text_kinds.infer_types`): by what is `missing`, or as `words` say.
        """
        if max_rows is not None and max_rows < 1:
            raise ParameterError(f"The 'max_rows' parameter must be None or an int >= 1. Got {max_rows} instead.")
        kinds = dict.fromkeys(self.names, pa.string()) if self.is_text else {}
        read = self.batches(types=kinds, words=dict.fromkeys(kinds, WORDS) if words is None else words)
        table, rows = sample_rows(read, max_rows, rng or np.random.default_rng(0))
        if table is None:
            table = self.schema.empty_table()
        elif self.is_text:
            from qmedoid.tables.text_kinds import infer_types

            missing = missing if words is None else dict.fromkeys(self.names, ("",))
            table = infer_types(table, self.decimal, texts, target, missing)
        for name in self.declared_categories:
            table = table.set_column(table.column_names.index(name), name, as_category(table.column(name)))
        if self._given_decimal is not None:
            table = table.replace_schema_metadata({DECIMAL: self._given_decimal})
        return table, rows

    @property
    def declared_categories(self) -> frozenset[str]:
        """Columns that all files which carry types say to be categories."""
        declared = [file.categories for file in self._files if not isinstance(file, TextFile)]
        return frozenset(self.names).intersection(*declared) if declared else frozenset()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


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
            raise DataError(f"No file matches {str(where)!r}. In a shell, put quotes around a pattern.")
        return found
    if "://" in str(where):
        raise DataError(f"{str(where)!r} is a web address, and tables are read from files: download it first.")
    near = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
    raise DataError(
        f"There is no file {str(where)!r}.{did_you_mean(path.name, near)} Give a file, a folder, a pattern like "
        "'part-*.csv', or - for a pipe."
    )


def _is_hidden(path: Path) -> bool:
    # An underscore marks what Spark and its like write next to the data.
    return any(part.startswith((".", "_")) for part in path.parts)


def sample_rows(
    batches: Iterable[pa.RecordBatch], max_rows: int | None, rng: "np.random.Generator"
) -> tuple[pa.Table | None, npt.NDArray[np.int64]]:
    """Draw at most `max_rows` rows (None takes all), in their order, with their places; None if there are no batches.

    Every row draws a random number, and those with the smallest are kept. So which rows are drawn depends on the
    generator and on how many rows there are, not on how they come in batches. No more than twice the sample is held.
    """
    max_rows = sys.maxsize if max_rows is None else max_rows
    parts: list[pa.Table] = []
    keys, rows = np.empty(0), np.empty(0, dtype=np.int64)
    bound, seen = np.inf, 0
    for batch in batches:
        drawn = rng.random(batch.num_rows)
        kept = np.flatnonzero(drawn < bound)
        parts.append(pa.table(batch) if len(kept) == len(drawn) else pa.table(batch.take(pa.array(kept))))
        keys, rows = np.concatenate([keys, drawn[kept]]), np.concatenate([rows, kept + seen])
        seen += batch.num_rows
        if len(keys) > 2 * max_rows:
            parts, keys, rows = _smallest(parts, keys, rows, max_rows)
            bound = keys.max()
    if not parts:
        return None, rows
    parts, keys, rows = _smallest(parts, keys, rows, max_rows)
    return pa.concat_tables(parts), rows


def _smallest(
    parts: list[pa.Table], keys: Array, rows: npt.NDArray[np.int64], count: int
) -> tuple[list[pa.Table], Array, npt.NDArray[np.int64]]:
    if len(keys) <= count:
        return parts, keys, rows
    places = np.sort(np.argpartition(keys, count - 1)[:count])
    table = pa.concat_tables(parts).take(pa.array(places)).combine_chunks()
    return [table], keys[places], rows[places]
