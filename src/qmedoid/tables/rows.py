"""Rows of a table: a uniform sample, codes of equal cells, hashes under a key of the model, and a summary."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels
from qmedoid.model.novelty import KEY_BYTES, MOST_KEPT, Hashes, SeenRows
from qmedoid.model.table import TableModel
from qmedoid.model.training_summary import DayCounts, HeldOutCurve, TrainingSummary
from qmedoid.tables import cells
from qmedoid.tables.kinds import kind_of_type


def cell_codes(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Columns of a table as codes, shape (n, M): cells have the same code where they are equal, or both missing."""
    columns = []
    for name in names:
        column = table.column(name).combine_chunks()
        codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        columns.append(codes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
    return np.column_stack(columns)


# Rows whose cells lie side by side in memory at once.
_AT_ONCE = 2**16
# What stands for a missing number; a NaN has many patterns of bits.
_MISSING = np.iinfo(np.int64).min
# Shifts and factors of SplitMix64's finalizer: every bit of a cell moves half of the bits of the hash.
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def remember_rows(model: TableModel, tables: Sequence[pa.Table], *, most: int = MOST_KEPT) -> SeenRows:
    """Hashes of all rows that the fit of a model has seen, under the names of the contract; at most so many."""
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


def training_summary(
    table: pa.Table, contract: Contract, encodings: tuple[Encoding, ...], curve: HeldOutCurve | None = None
) -> TrainingSummary:
    """Levels and missing cells of every column of a training table, with the curve of its held-out rows."""
    pairs = zip(contract.columns, encodings, strict=True)
    counted = [_counted(table.column(column.name), column, encoding) for column, encoding in pairs]
    missing = np.array([absent for absent, _ in counted], dtype=np.intp)
    return TrainingSummary(table.num_rows, missing, tuple(levels for _, levels in counted), curve)


def rows_per_day(column: pa.ChunkedArray, name: str, date_order: str | None = None) -> DayCounts | None:
    """Rows per day of a time column; None where it holds numbers, which name no day."""
    kind = kind_of_type(column.type)
    if kind == "category":
        from qmedoid.tables._text_kinds import moments_of_text

        column = moments_of_text(column, name, date_order)
    elif kind != "date" or pa.types.is_time(column.type):
        return None
    moments = cells.dates(column).values
    return DayCounts.of(moments[~np.isnat(moments)].astype("M8[D]").astype(np.int64))


def _counted(given: pa.ChunkedArray, column: Column, encoding: Encoding) -> tuple[int, Codes]:
    """Rows in which a column is missing, and rows of each of its levels."""
    if isinstance(encoding, Levels):
        codes, _ = cells.level_codes(given, encoding.levels)
        counts = np.bincount(codes, minlength=len(encoding.levels) + 2)
        return int(counts[len(encoding.levels)]), counts[: len(encoding.levels)]
    if isinstance(encoding, Dates):
        return int(np.isnat(cells.dates(given, column.spelling).values).sum()), np.zeros(0, dtype=np.intp)
    if column.kind == "boolean":
        values = cells.truths(given).values
        return int(np.isnan(values).sum()), np.array([(values == 0).sum(), (values == 1).sum()], dtype=np.intp)
    values = cells.numbers(given, column.spelling).values
    with np.errstate(invalid="ignore"):
        is_number = np.abs(values) <= cells.LARGEST
    return int(len(values) - is_number.sum()), np.zeros(0, dtype=np.intp)
