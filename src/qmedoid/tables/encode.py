"""Columns of a table as the numbers that models read, by the encodings of a fit, and a summary of its columns."""

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import mixed
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels, Numbers
from qmedoid.model.model import Model
from qmedoid.model.training_summary import KEY_BYTES, MOST_KEPT, Hashes, HeldOutCurve, SeenRows, TrainingSummary
from qmedoid.tables import cells
from qmedoid.tables.arrow import FEWEST_COLUMNS, MOST_ROWS, number_blocks
from qmedoid.tables.difference import EXAMPLES, NAMED_LEVELS, Issues
from qmedoid.tables.text_files import maybe_thousands

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
"""In microseconds."""


def encode_batch(
    batch: pa.RecordBatch | pa.Table,
    contract: Contract,
    encodings: Sequence[Encoding],
    *,
    only: Collection[int] | None = None,
    unchecked: Collection[int] = (),
    issues: Issues | None = None,
) -> list[Array]:
    """Encode the columns of a contract, looked up by name: an array of shape (n,) for each number of the encodings.

    A column that the batch lacks is encoded as missing in every row: compare its columns with the contract first. Of
    columns that are not among `only` (if given) the outputs are zero. Cells of `unchecked` columns, where none is
    missing, are handed on as they are, NaN included. Columns of floats that need no filling are the memory of the batch
    itself, in its precision. Issues are counted where given.
    """
    issues = Issues() if issues is None else issues
    issues.rows += batch.num_rows
    nothing = np.zeros(batch.num_rows)
    names = set(batch.schema.names)
    outputs: list[Array] = []
    plain = _plain_outputs(batch, contract, encodings, only)
    for place, (column, encoding) in enumerate(zip(contract.columns, encodings, strict=True)):
        if place in plain:
            outputs.extend(plain[place])
            continue
        if only is not None and place not in only:
            outputs.extend([nothing] * len(encoding.outputs))
            continue
        given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
        is_whole = given.type == pa.float64() and not given.null_count and not column.missing_values
        if place in unchecked and len(encoding.outputs) == 1 and is_whole:
            outputs.append(given.to_numpy())
            continue
        outputs.extend(encode_column(given, column, encoding, issues))
    return outputs


def _plain_outputs(
    batch: pa.RecordBatch | pa.Table, contract: Contract, encodings: Sequence[Encoding], only: Collection[int] | None
) -> dict[int, list[Array]]:
    """Outputs of columns in which all cells are numbers that models take, by the places of the columns."""
    outputs = dict[int, list[Array]]()
    if len(encodings) < FEWEST_COLUMNS or batch.num_rows > MOST_ROWS:
        return outputs
    numbers = plain_numbers(contract, encodings)
    numbers = numbers if only is None else numbers[np.isin(numbers, list(only))]
    nothing = np.zeros(batch.num_rows)
    for block, values in number_blocks(batch, [contract.columns[place].name for place in numbers]):
        for number in np.flatnonzero(cells.is_usable(values).all(axis=0)).tolist():
            place = int(numbers[block[number]])
            outputs[place] = [values[:, number], *[nothing] * (len(encodings[place].outputs) - 1)]
    return outputs


def encode_column(
    given: pa.Array | pa.ChunkedArray, column: Column, encoding: Encoding, issues: Issues | None = None
) -> list[Array]:
    """Encode one column."""
    issues = Issues() if issues is None else issues
    if isinstance(encoding, Levels):
        return _levels(given, column, encoding, issues)
    values, wrong = read_column(given, column, issues)
    if isinstance(encoding, Dates):
        return _dates(cells.Cells(values, wrong), column, encoding, issues)
    # Most columns are in order, and the sum of their squares says so at the speed of memory: a NaN would make it NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.einsum("i,i->", values, values))  # a BLAS would wake threads for it
    if squares <= cells.LARGEST:
        return [values, np.zeros(len(values))] if encoding.indicator else [values]
    n_missing, absent = int(np.isnan(values).sum()) - len(wrong), ~cells.is_usable(values)
    n_absent = int(absent.sum())
    _count(column, wrong, n_missing, issues)
    if n_absent > n_missing + len(wrong):
        issues.count(column.name, huge=n_absent - n_missing - len(wrong))
    if np.isnan(encoding.fill):
        issues.count(column.name, refused=n_absent)
    filled = np.where(absent, encoding.fill, values)
    return [filled, absent.astype(np.float64)] if encoding.indicator else [filled]


def read_column(given: pa.Array | pa.ChunkedArray, column: Column, issues: Issues) -> cells.Cells:
    """Cells of a column that is no category; those with maybe thousands for decimals, 1.275 beside 935, are wrong."""
    read = cells.read(given, column)
    if column.kind != "number" or given.type not in cells.TEXT_TYPES or issues.trusts_points:
        return read
    from qmedoid.tables.numbers import doubtful_points

    doubtful = None
    if column.name not in issues.shows_points and maybe_thousands(read.values):
        doubtful = doubtful_points(cells.one_chunk(cells.without_missing_values(given, column)), column.spelling)
    if doubtful is None:
        issues.shows_points.add(column.name)
        return read
    is_doubtful, text = doubtful
    return cells.Cells(np.where(is_doubtful, np.nan, read.values), pa.concat_arrays([read.wrong, text]))


def _dates(read: cells.Cells, column: Column, encoding: Dates, issues: Issues) -> list[Array]:
    values, absent = read.values, np.isnat(read.values)
    if absent.any():
        _count(column, read.wrong, int(absent.sum()) - len(read.wrong), issues)
        values = np.where(absent, np.datetime64(0, "us"), values)
    parts = [date_part(values, part) for part in encoding.parts]
    if absent.any():
        parts = [np.where(absent, fill, part) for part, fill in zip(parts, encoding.fills, strict=True)]
    return [*parts, absent.astype(np.float64)] if encoding.indicator else parts


def _levels(given: pa.Array, column: Column, encoding: Levels, issues: Issues) -> list[Array]:
    codes, unseen = cells.level_codes(given, encoding.levels, column)
    if len(unseen) and len(column.levels) > len(encoding.levels):
        places, _ = cells.level_codes(unseen, column.levels)
        is_known = places < len(column.levels)
        if is_known.any():
            untrained = unseen.filter(pa.array(is_known))
            levels = untrained.unique().to_pylist()
            issues.count(column.name, untrained=len(untrained), untrained_levels=levels)
            unseen = unseen.filter(pa.array(~is_known))
    if len(unseen):
        levels = unseen.unique().slice(0, NAMED_LEVELS).to_pylist()
        issues.count(column.name, unseen=len(unseen), unseen_levels=levels)
    n_missing = 0 if column.missing else int((codes == len(encoding.levels)).sum())
    if n_missing:
        issues.count(column.name, missing=n_missing)
    return [numbers[codes] for numbers in encoding.values.T]


def date_part(values: npt.NDArray[np.datetime64], part: str) -> Array:
    """A part of dates in microseconds: see `qmedoid.model.contract.DATE_PARTS`."""
    if part == "month":
        return (values.astype("M8[M]").astype(np.int64) % 12 + 1).astype(np.float64)
    if part == "weekday":  # the first day of 1970 was a Thursday
        return ((values.astype("M8[D]").astype(np.int64) + 3) % 7).astype(np.float64)
    if part == "hour":
        return np.asarray(values.astype(np.int64) % _DAY / _HOUR)
    return np.asarray(values.astype(np.int64) / _DAY)


def _count(column: Column, wrong: pa.Array, n_missing: int, issues: Issues) -> None:
    """Count cells of a number or a date that are not of the kind, and missing ones that training rows did not have."""
    if len(wrong):
        respelt = wrong.slice(0, 0)
        if column.kind in ("number", "date"):
            from qmedoid.tables.text_kinds import in_other_spelling

            respelt = in_other_spelling(wrong, column)
        count_wrong(column, wrong, respelt, issues)
    if n_missing and not column.missing:
        issues.count(column.name, missing=n_missing)


def count_wrong(column: Column, wrong: pa.Array, respelt: pa.Array, issues: Issues) -> None:
    """Count cells that are not of the kind, and those of them that are in another spelling."""
    shown, others = (found.unique().slice(0, EXAMPLES).to_pylist() for found in (wrong, respelt))
    issues.count(column.name, wrong=len(wrong), wrong_examples=shown, respelt=len(respelt), respelt_examples=others)


def training_summary(
    table: pa.Table, contract: Contract, encodings: tuple[Encoding, ...], curve: HeldOutCurve | None = None
) -> TrainingSummary:
    """Missing cells of every column of a training table, with the curve of its held-out rows."""
    missing = np.zeros(len(encodings), dtype=np.intp)
    for block, values in cells.value_blocks(table, contract.columns):
        missing[block] = np.isnan(values).sum(axis=0)
    for place, (column, encoding) in enumerate(zip(contract.columns, encodings, strict=True)):
        if isinstance(encoding, Levels):
            codes, _ = cells.level_codes(table.column(column.name), encoding.levels, column)
            missing[place] = (codes == len(encoding.levels)).sum()
    return TrainingSummary(table.num_rows, missing, curve)


def plain_numbers(contract: Contract, encodings: Sequence[Encoding]) -> Codes:
    """Places of the columns of numbers in a contract, those aside that read some of them as missing."""
    pairs = enumerate(zip(contract.columns, encodings, strict=True))
    plain = ((place, encoding) for place, (one, encoding) in pairs if one.kind == "number" and not one.missing_values)
    numbers = [place for place, encoding in plain if isinstance(encoding, Numbers)]
    return np.array(numbers, dtype=np.intp)


# Rows whose cells lie side by side in memory at once.
_AT_ONCE = 2**16
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
    hashes = np.unique(np.concatenate([_hashed(bits, key) for bits in kept or (_bits(model, part) for part in parts)]))
    return SeenRows(key, hashes[:most].copy(), len(hashes) > most)


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
            found[:, number] = cells.level_codes(given, encoding.levels, column)[0]
            continue
        values = cells.read(given, column).values
        if isinstance(encoding, Dates):
            found[:, number] = values.astype("M8[us]").astype(np.int64)
        else:
            found[:, number] = _of_numbers(values)
    return found


def _of_numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Numbers as their bits: −0.0 is 0, and all that is no number is missing."""
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return np.where(np.isnan(values), _MISSING, bits)
