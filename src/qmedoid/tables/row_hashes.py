"""Hashes of rows, by which a model knows the rows of its fit again; and columns whose cells are all equal."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.geometry.row_groups import mixed
from qmedoid.model.contract import Dates, Levels
from qmedoid.model.model import Model
from qmedoid.model.training_summary import KEY_BYTES, MOST_KEPT, Hashes, SeenRows
from qmedoid.tables import cells
from qmedoid.tables.encode import plain_numbers
from qmedoid.tables.number_blocks import number_blocks

# Rows whose cells lie side by side in memory at once.
_AT_ONCE = 2**16
# Cells by which columns are compared before all of them are.
_COMPARED = 50
# Numbers of a table that are read once.
_KEPT_NUMBERS = 2**23
# What stands for a missing number; a NaN has many patterns of bits.
_MISSING = np.iinfo(np.int64).min


def remember_rows(model: Model, tables: Sequence[pa.Table], *, most: int = MOST_KEPT) -> SeenRows:
    """Hashes of the rows that the fit of a model has seen, under the names of the contract; at most `most`."""
    places = list(model.layout.used)
    parts = _parts(tables)
    # Of many columns reading the cells is most of the work: what is not much is kept for the second pass.
    is_little = sum(part.num_rows for part in parts) * len(places) <= _KEPT_NUMBERS
    kept = [_bits(model, part) for part in parts] if is_little else None
    # The same rows in any order have the same key, and other rows another one.
    total = np.zeros(len(places), dtype=np.uint64)
    for bits in kept or (_bits(model, part) for part in parts):
        total += bits.view(np.uint64).sum(axis=0, dtype=np.uint64)
    key = blake2b(total.tobytes(), digest_size=KEY_BYTES).digest()
    hashes = [_hashed(bits, key) for bits in kept or (_bits(model, part) for part in parts)]
    return SeenRows.of(key, np.concatenate(hashes), most=most)


def row_hashes(model: Model, batch: pa.RecordBatch | pa.Table) -> Hashes | None:
    """The hash of every row by the key of a model; None where the model keeps none to compare with."""
    return None if model.seen is None else keyed_hashes(model, batch, model.seen.key)


def keyed_hashes(model: Model, batch: pa.RecordBatch | pa.Table, key: bytes) -> Hashes:
    """The hash of every row by a key: equal for rows that are equal in all columns that the best model reads."""
    hashes = [_hashed(_bits(model, part), key) for part in _parts([batch])]
    return np.concatenate([np.zeros(0, dtype=np.int64), *hashes])


def _parts(tables: Sequence[pa.Table | pa.RecordBatch]) -> list[pa.Table | pa.RecordBatch]:
    return [table.slice(start, _AT_ONCE) for table in tables for start in range(0, table.num_rows, _AT_ONCE)]


def _hashed(bits: npt.NDArray[np.int64], key: bytes) -> Hashes:
    """Hash of every row, from 63 bits: the cells are mixed into the key one by one (SplitMix64's finalizer)."""
    state, step = np.frombuffer(key, dtype="<u8")
    hashes, shifted = np.full((2, len(bits)), state)
    for column in np.ascontiguousarray(bits.view(np.uint64).T):
        # In place: of wide tables these calls are most of the work.
        hashes += step
        hashes ^= column
        mixed(hashes, shifted)
    # 63 bits: the files of a model hold no whole numbers below 0.
    return (hashes >> np.uint64(1)).astype(np.int64)


def _bits(model: Model, batch: pa.Table | pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The cells that the best model reads as whole numbers, shape (n, columns)."""
    names = set(batch.schema.names)
    found = np.empty((batch.num_rows, len(model.layout.used)), dtype="<i8")
    used = np.array(model.layout.used, dtype=np.intp)
    numbers = np.flatnonzero(np.isin(used, plain_numbers(model.contract, model.encodings)))
    others = np.ones(len(used), dtype=np.bool_)
    for block, values in number_blocks(batch, [model.contract.columns[place].name for place in used[numbers]]):
        found[:, numbers[block]], others[numbers[block]] = _of_numbers(values), False
    for number in np.flatnonzero(others).tolist():
        place = used[number]
        column, encoding = model.contract.columns[place], model.encodings[place]
        given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
        if isinstance(encoding, Levels):
            found[:, number] = cells.codes_as(given, column, encoding.levels)[0]
            continue
        values = cells.read_as(given, column).values
        if isinstance(encoding, Dates):
            found[:, number] = values.astype("M8[us]").astype(np.int64)
        else:
            found[:, number] = _of_numbers(values)
    return found


def _of_numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Numbers as their bits: −0.0 is 0, and all that is no number is missing."""
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return np.where(np.isnan(values), _MISSING, bits)


def equal_columns(table: pa.Table, digests: Mapping[str, bytes]) -> list[list[str]]:
    """Groups of columns whose cells are equal in every row."""
    alike: dict[Any, list[list[str]]] = {}
    for name, digest in digests.items():
        # Columns without a repeated cell have one partition; their first cells distinguish nearly all of them.
        first = tuple(cells.texts(table[name].slice(0, _COMPARED)).to_pylist())
        groups = alike.setdefault((digest, first), [])
        equal = next((group for group in groups if _same_cells(table[group[0]], table[name])), None)
        if equal is None:
            groups.append([name])
        else:
            equal.append(name)
    return [group for groups in alike.values() for group in groups if len(group) > 1]


def _same_cells(one: pa.ChunkedArray, two: pa.ChunkedArray) -> bool:
    if one.type == two.type and not pa.types.is_floating(one.type):
        return bool(one.equals(two))
    return bool(cells.texts(one).equals(cells.texts(two)))


Codes = npt.NDArray[np.int32]
