"""What a pass is: a summary of every partition of a table, and the merge of all of them.

A summary holds counts, which add up, and rows, which are put together in the order of the table. Counts are whole
numbers, and whether a row is kept depends on the row and its place in the table alone. So a merged summary is the same
to the last bit, however many partitions there are, whatever their order, and wherever they were read.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import Bits, mixed
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables.arrow import WORDS
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import MISSING, label_codes
from qmedoid.tables.text_files import NOTHING
from qmedoid.tables.text_kinds import comma_numbers

ROW = "\x00row"
"""Name of the column of kept rows that has their places in the table; no column of a file is called so."""
_HASHED_ROWS = 2**16
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(0x7FF8_0000_0000_0001)


@dataclass(frozen=True)
class Summary:
    """What a pass has found in some rows: counts by what is counted and what for, and rows with the column `ROW`."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: Mapping[str, pa.Table] = field(default_factory=dict)

    def total(self, what: str) -> int:
        """The sum of the counts of one kind."""
        return sum(self.counts.get(what, {}).values())


Pass = partial[Summary]
"""What is done with every partition: a function of its source and of the place of its first row in the table.

Its other arguments, by name, are plain values and models that can be sent to another process."""


def file_digest(path: Path) -> str:
    """Hash of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def table_digest(table: pa.Table) -> str:
    """Hash of all cells in the order of the rows."""
    hashed = blake2b(repr(table.schema).encode(), digest_size=16)
    for batch in table.combine_chunks().to_batches(_HASHED_ROWS):
        hashed.update(batch.serialize())
    return hashed.hexdigest()


def merge(summaries: Iterable[Summary]) -> Summary:
    """One summary of all."""
    counts: dict[str, Counter[str]] = {}
    rows: dict[str, list[pa.Table]] = {}
    for summary in summaries:
        for what, count in summary.counts.items():
            counts.setdefault(what, Counter()).update(count)
        for what, table in summary.rows.items():
            rows.setdefault(what, []).append(table)
    # Names are sorted: a summary does not show which partition came first.
    return Summary(
        {what: dict(sorted(counts[what].items())) for what in sorted(counts)},
        {what: in_order(rows[what]) for what in sorted(rows)},
    )


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Kept rows of several partitions in the order of the table."""
    return pa.concat_tables(tables).sort_by(ROW)


def kept_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema, places: Sequence[Codes]) -> pa.Table:
    """Rows of several batches as one table, with their places."""
    table = pa.Table.from_batches(batches, schema)
    numbers = np.concatenate([np.zeros(0, dtype=np.int64), *places]).astype(np.int64)
    return table.append_column(ROW, pa.array(numbers))


def key_of(*parts: Any) -> np.uint64:
    """A key from plain values."""
    return np.uint64(int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little"))


def uniform(bits: Bits) -> Array:
    """Hashes as numbers from 0 up to, and without, 1."""
    shares: Array = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return shares


def chances(key: np.uint64, first_row: int, n_rows: int) -> Array:
    """The chance of every row by its place in the table, shape (n,)."""
    return uniform(place_hashes(key, np.arange(first_row, first_row + n_rows)))


def place_hashes(key: np.uint64, places: npt.NDArray[np.int64]) -> Bits:
    """The hash of every row by its place in the table, shape (n,)."""
    with np.errstate(over="ignore"):
        return mixed(mixed(places.astype(np.uint64) * _STEP + key) + key)


def content_hashes(key: np.uint64, columns: Sequence[pa.Array | pa.ChunkedArray | npt.NDArray[Any]]) -> Bits:
    """The hash of every row by its cells, shape (n,): rows with equal cells have the same.

    Numbers are compared as numbers, dates as moments, and all else as texts.
    """
    with np.errstate(over="ignore"):
        hashes = np.full(len(columns[0]), key)
        for column in columns:
            hashes = mixed((hashes + _STEP) ^ cell_bits(column))
        return mixed(hashes + key)


def cell_bits(column: pa.Array | pa.ChunkedArray | npt.NDArray[Any]) -> Bits:
    """Every cell as 64 bits, equal for equal cells: of a number its own, of a text those of a hash."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return column.astype("M8[us]").astype(np.int64).view(np.uint64)
        values = column.astype(np.float64) + 0.0  # -0.0 is 0
        return np.where(np.isnan(values), _MISSING, values.view(np.uint64))
    encoded = column.dictionary_encode()
    bits = [np.zeros(0, dtype=np.uint64)]
    for chunk in encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]:
        texts = [str(value).encode("utf-8", "surrogatepass") for value in chunk.dictionary.to_pylist()]
        known = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
        table = np.array([*known, int(_MISSING)], dtype=np.uint64)
        bits.append(table[chunk.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)])
    return np.concatenate(bits)


class RawReading(NamedTuple):
    """How raw cells are read: all as text where a file of the table is one, and with which decimal sign.

    Words for missing cells are kept in all columns, or those that are levels or classes (`words`, by column).
    """

    as_text: bool
    decimal: str = "."
    words: Mapping[str, Sequence[str]] | None = None

    def batches(
        self, source: TableSource, first_row: int, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches of some columns of a partition, or of all, with the place of the first row of each in the table."""
        names = source.names if columns is None else columns
        types = dict.fromkeys(names, pa.string()) if self.as_text else None
        words = dict.fromkeys(names, WORDS) if self.words is None else self.words
        for batch in source.batches(columns, types, words=words if self.as_text else NOTHING):
            yield batch, first_row
            first_row += batch.num_rows

    def schema(self, source: TableSource) -> pa.Schema:
        """The schema of the batches of all columns."""
        fields = [(name, source.schema.field(name).type) for name in source.names]
        return pa.schema(
            [(name, pa.string() if self.as_text or pa.types.is_null(kind) else kind) for name, kind in fields]
        )

    def in_kinds(self, batch: pa.RecordBatch | pa.Table, columns: Sequence[Column]) -> pa.RecordBatch:
        """Some columns, with decimal points in plain numbers that were read as text."""
        found = []
        for column in columns:
            given = cells.one_chunk(batch.column(column.name))
            if (
                self.decimal == ","
                and column.kind == "number"
                and not column.spelling
                and given.type in cells.TEXT_TYPES
            ):
                given = comma_numbers(given)
            found.append(given)
        return pa.record_batch(found, names=[column.name for column in columns])


def label_texts(column: pa.Array | pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """The number of the label of every cell, and the labels as texts; −1 where a cell holds none.

    Words for missing cells are labels: `qmedoid.tables.targets.class_words` says which of them are classes.
    """
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = found.dictionary_encode()
    is_label = label_codes(encoded.dictionary, WORDS) != MISSING
    texts = [str(value) for value in encoded.dictionary.to_pylist()]
    places = np.append(np.where(is_label, np.arange(len(texts)), -1), -1)
    return places[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)], texts
