"""A table in files as partitions that are read one by one: row groups of Parquet files, and other files as a whole."""

import hashlib
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables._binary import BinaryFile
from qmedoid.tables._detect import Bytes
from qmedoid.tables.source import TableSource, find_files, open_table

PARTITION_ROWS = 2**20
"""Rows of a Parquet file that are one partition, about: whole row groups until there are so many."""
# Bytes of a file that are hashed at once.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class FilePartition:
    """Rows of a file.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
        Types that all partitions of the table have in common.
    row_groups : range or None
        Row groups of a Parquet file; None for all rows.
    n_rows : int or None
        None where the file does not say it.
    delimiter, decimal : str or None
        Of a text; detected where None.
    """

    path: Path
    schema: pa.Schema
    row_groups: range | None = None
    n_rows: int | None = None
    delimiter: str | None = None
    decimal: str | None = None

    def open(self) -> TableSource:
        """The rows as a table of their own, in the types of the whole table."""
        if self.row_groups is None:
            source = open_table(self.path, delimiter=self.delimiter, decimal=self.decimal)
        else:
            source = TableSource([BinaryFile(Bytes(self.path), self.row_groups)], self.path.stat().st_size)
        # Columns of another file may stand in another order.
        source.schema, source.names = self.schema, tuple(self.schema.names)
        return source

    def digest(self) -> str:
        """Hash of the content: the bytes of the file, which of its rows these are, and the types they are read in."""
        how = self.row_groups, self.delimiter, self.decimal, [(one.name, str(one.type)) for one in self.schema]
        hashed = hashlib.blake2b(repr(how).encode(), digest_size=16)
        hashed.update(file_digest(self.path))
        return hashed.hexdigest()


_DIGESTS: dict[tuple[str, int, int], bytes] = {}


def file_digest(path: Path) -> bytes:
    """Hash of the bytes of a file; read once in a process as long as its size and its time stay the same."""
    facts = path.stat()
    key = str(path.absolute()), facts.st_size, facts.st_mtime_ns
    if key not in _DIGESTS:
        hashed = hashlib.blake2b(digest_size=16)
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
        _DIGESTS[key] = hashed.digest()
    return _DIGESTS[key]


@dataclass(frozen=True)
class FileTable:
    """A table in one or more files: its partitions in order, and what they have in common."""

    description: str
    names: tuple[str, ...]
    schema: pa.Schema
    is_text: bool
    decimal: str
    given_decimal: str | None
    first_row: str
    categories: frozenset[str]
    partitions: tuple[FilePartition, ...]
    n_bytes: int

    @property
    def n_rows(self) -> int | None:
        """Rows of all partitions; None where a file does not say it."""
        counts = [one.n_rows for one in self.partitions if one.n_rows is not None]
        return sum(counts) if len(counts) == len(self.partitions) else None


def file_table(where: str | Path, *, delimiter: str | None = None, decimal: str | None = None) -> FileTable:
    """The partitions of a file, a folder or a pattern; a pipe has none, as it is read once."""
    if str(where) == "-":
        raise ParameterError("A pipe can be read once, and a fit in passes reads its table several times: give files.")
    with open_table(where, delimiter=delimiter, decimal=decimal) as source:
        parts = list[FilePartition]()
        for path in find_files(where):
            whole = FilePartition(path, source.schema, delimiter=delimiter, decimal=decimal)
            with closing(Bytes(path)) as data:
                is_parquet = data.form == "parquet" and not data.is_compressed
            parts += _of_parquet(whole) if is_parquet else [replace(whole, n_rows=_known(whole))]
        return FileTable(
            source.description, source.names, source.schema, source.is_text, source.decimal, decimal, source.first_row,
            source.declared_categories, tuple(parts), source.n_bytes or 0,
        )  # fmt: skip


def _known(whole: FilePartition) -> int | None:
    with whole.open() as source:
        return source.n_rows


def _of_parquet(whole: FilePartition) -> list[FilePartition]:
    """Runs of row groups of about `PARTITION_ROWS` rows."""
    from pyarrow import parquet

    try:
        facts = parquet.ParquetFile(whole.path).metadata
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{whole.path.name} cannot be read as parquet: {error}.") from error
    parts, first, rows = list[FilePartition](), 0, 0
    for place in range(facts.num_row_groups):
        rows += facts.row_group(place).num_rows
        if rows >= PARTITION_ROWS or place == facts.num_row_groups - 1:
            parts.append(replace(whole, row_groups=range(first, place + 1), n_rows=rows))
            first, rows = place + 1, 0
    return parts or [replace(whole, n_rows=0)]
