"""Rows of a partition: as they stand in its file, and as the kinds of their columns say."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables._numbers import comma_numbers
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import MISSING, label_codes


class RowBatch(NamedTuple):
    """Rows as they stand in the file, and the place of the first of them in the table."""

    batch: pa.RecordBatch
    first_row: int


class RawReading(NamedTuple):
    """How raw cells are read: all as text where a file of the table is one, and with which decimal sign."""

    as_text: bool
    decimal: str = "."

    def batches(self, source: TableSource, first_row: int, columns: Sequence[str] | None = None) -> Iterator[RowBatch]:
        """Batches of some columns of a partition, or of all."""
        names = source.names if columns is None else columns
        types = dict.fromkeys(names, pa.string()) if self.as_text else None
        for batch in source.batches(columns, types):
            yield RowBatch(batch, first_row)
            first_row += batch.num_rows

    def schema(self, source: TableSource, columns: Sequence[str] | None = None) -> pa.Schema:
        """The schema of the batches."""
        fields = [(name, source.schema.field(name).type) for name in columns or source.names]
        return pa.schema(
            [(name, pa.string() if self.as_text or pa.types.is_null(kind) else kind) for name, kind in fields]
        )

    def in_kinds(self, batch: pa.RecordBatch | pa.Table, columns: Sequence[Column]) -> pa.RecordBatch:
        """Some columns, with decimal points in plain numbers that were read as text."""
        found = []
        for column in columns:
            given = cells.one_chunk(batch.column(column.name))
            if self.decimal == "," and column.kind == "number" and not column.spelling and cells.is_text(given.type):
                given = comma_numbers(given)
            found.append(given)
        return pa.record_batch(found, names=[column.name for column in columns])


def label_texts(column: pa.Array | pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """The number of the label of every cell, and the labels as texts; −1 where a cell holds none."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = found.dictionary_encode()
    is_label = label_codes(encoded.dictionary, ()) != MISSING
    texts = [str(value) for value in encoded.dictionary.to_pylist()]
    places = np.append(np.where(is_label, np.arange(len(texts)), -1), -1)
    return places[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)], texts
