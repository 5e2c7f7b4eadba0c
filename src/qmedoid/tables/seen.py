"""Hashes of the rows of a table: the cells of the columns that a model reads, under a key of the model."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.seen import KEY_BYTES, MOST_KEPT, Hashes, SeenRows
from qmedoid.model.table import TableModel
from qmedoid.tables import cells

# Rows whose cells lie side by side in memory at once.
_AT_ONCE = 2**16
# What stands for a missing number; a NaN has many patterns of bits.
_MISSING = np.iinfo(np.int64).min
# Shifts and factors of SplitMix64's finalizer: every bit of a cell moves half of the bits of the hash.
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def remember_rows(model: TableModel, tables: Sequence[pa.Table], *, most: int = MOST_KEPT) -> SeenRows:
    """What is kept of the rows that a model was fitted on.

    Parameters
    ----------
    model : TableModel
    tables : sequence of pyarrow.Table
        All rows that the fit has seen, under the names of the contract.
    most : int
        Hashes that are kept at most.
    """
    places = list(model.used_columns)
    # The same rows in any order have the same key, and other rows another one.
    total = np.zeros(len(places), dtype=np.uint64)
    for part in _parts(tables):
        total += _bits(model, part).view(np.uint64).sum(axis=0, dtype=np.uint64)
    key = blake2b(total.tobytes(), digest_size=KEY_BYTES).digest()
    return SeenRows.of(key, np.concatenate([_hashed(_bits(model, part), key) for part in _parts(tables)]), most=most)


def row_hashes(model: TableModel, batch: pa.RecordBatch | pa.Table) -> Hashes | None:
    """The hash of every row by the key of a model; None where the model keeps none to compare with."""
    if model.seen is None:
        return None
    key = model.seen.key
    hashes = [_hashed(_bits(model, part), key) for part in _parts([batch])]
    return np.concatenate([np.zeros(0, dtype=np.int64), *hashes])


def _parts(tables: Sequence[pa.Table | pa.RecordBatch]) -> list[pa.Table | pa.RecordBatch]:
    return [table.slice(start, _AT_ONCE) for table in tables for start in range(0, table.num_rows, _AT_ONCE)]


def _hashed(bits: npt.NDArray[np.int64], key: bytes) -> Hashes:
    """Hash of every row, from 63 bits: the cells are mixed into the key one by one (SplitMix64's finalizer)."""
    state, step = np.frombuffer(key, dtype="<u8")
    hashes = np.full(len(bits), state)
    for column in bits.view(np.uint64).T:
        hashes = (hashes + step) ^ column
        for shift, factor in _MIXING:
            hashes = (hashes ^ (hashes >> shift)) * factor
        hashes ^= hashes >> np.uint64(31)
    # 63 bits: the files of a model hold no whole numbers below 0.
    return (hashes >> np.uint64(1)).astype(np.int64)


def _bits(model: TableModel, batch: pa.Table | pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The cells that the best model reads as whole numbers, shape (n, columns)."""
    names = set(batch.schema.names)
    columns, encodings = model.contract.columns, model.encodings
    found = np.empty((batch.num_rows, len(model.used_columns)), dtype="<i8")
    for number, place in enumerate(model.used_columns):
        name = columns[place].name
        given = batch.column(name) if name in names else pa.nulls(batch.num_rows)
        found[:, number] = _column_bits(given, columns[place], encodings[place])
    return found


def _column_bits(given: pa.Array | pa.ChunkedArray, column: Column, encoding: Encoding) -> npt.NDArray[np.int64]:
    if isinstance(encoding, Levels):
        return cells.level_codes(given, encoding.levels)[0].astype(np.int64)
    if isinstance(encoding, Dates):
        return cells.dates(given, column.spelling).values.astype("M8[us]").astype(np.int64)
    values = (cells.truths(given) if column.kind == "boolean" else cells.numbers(given, column.spelling)).values
    # −0.0 is 0, and all that is no number is missing.
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return np.where(np.isnan(values), _MISSING, bits)
