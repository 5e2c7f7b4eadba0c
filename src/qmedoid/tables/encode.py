"""Columns of a table as the numbers that models read, by the encodings of a fit; rows as hashes, and their summary."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels, Numbers
from qmedoid.model.novelty import KEY_BYTES, MOST_KEPT, Hashes, SeenRows
from qmedoid.model.table import TableModel
from qmedoid.model.training_summary import HeldOutCurve, TrainingSummary
from qmedoid.tables import cells

_HALFWAY = 1000.0**0.5
"""Between a number and a thousand times as much, in ratios."""
EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered, at the least; of more it is not known how many there are."""
_HOUR, _DAY = 3_600_000_000, 86_400_000_000
"""In microseconds."""
# Rows whose cells lie side by side in memory at once.
_AT_ONCE = 2**16
# What stands for a missing number; a NaN has many patterns of bits.
_MISSING = np.iinfo(np.int64).min
# Shifts and factors of SplitMix64's finalizer: every bit of a cell moves half of the bits of the hash.
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


@dataclass
class ColumnIssues:
    """Counts of cells of one column that the training rows did not have.

    Missing cells of a column that had none, of which `refused` cannot be filled in; cells with a level that neither
    encoding nor contract know (unseen, up to a bound), or that the contract knows and the encoding does not
    (untrained); cells that are not of the kind (wrong), infinite or too large (huge), or wrong as they are numbers or
    dates in another spelling (respelt), so that it is not known what the others mean. `grouped` is a cell, where every
    point may part thousands and the training numbers are nearer to what that would mean.
    """

    missing: int = 0
    refused: int = 0
    unseen: int = 0
    unseen_levels: dict[str, None] = field(default_factory=dict)
    untrained: int = 0
    untrained_levels: dict[str, None] = field(default_factory=dict)
    wrong: int = 0
    wrong_examples: list[str] = field(default_factory=list)
    huge: int = 0
    respelt: int = 0
    respelt_examples: list[str] = field(default_factory=list)
    grouped: str = ""

    def add_wrong(self, found: pa.Array, respelt: pa.Array | None) -> None:
        """Count cells that are not of the kind, and those of them that are in another spelling."""
        self.wrong += len(found)
        if len(self.wrong_examples) < EXAMPLES:
            _add_examples(self.wrong_examples, found.unique())
        if respelt is not None:
            self.respelt += len(respelt)
            _add_examples(self.respelt_examples, respelt)


def _add_examples(examples: list[str], found: pa.Array) -> None:
    new = [text for text in found.slice(0, EXAMPLES).to_pylist() if text not in examples]
    examples.extend(new[: EXAMPLES - len(examples)])


@dataclass
class Issues:
    """What cells held that the training rows did not, by column; it grows from batch to batch.

    With `trusts_points` the decimal sign was given, so that a point in a plain number is no doubtful one; in columns of
    `shows_points` points were seen to be decimal points.
    """

    rows: int = 0
    columns: dict[str, ColumnIssues] = field(default_factory=dict)
    trusts_points: bool = False
    shows_points: set[str] = field(default_factory=set)

    def column(self, name: str) -> ColumnIssues:
        """The counts of a column."""
        return self.columns.setdefault(name, ColumnIssues())


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
    for place, (column, encoding) in enumerate(zip(contract.columns, encodings, strict=True)):
        if only is not None and place not in only:
            outputs.extend([nothing] * len(encoding.outputs))
            continue
        given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
        if place in unchecked and len(encoding.outputs) == 1 and given.type == pa.float64() and not given.null_count:
            outputs.append(given.to_numpy())
            continue
        outputs.extend(encode_column(given, column, encoding, issues))
    return outputs


def encode_column(
    given: pa.Array | pa.ChunkedArray, column: Column, encoding: Encoding, issues: Issues | None = None
) -> list[Array]:
    """Encode one column."""
    issues = Issues() if issues is None else issues
    if isinstance(encoding, Levels):
        return _levels(given, column, encoding, issues)
    values, wrong = cells.read(given, column.kind, column.spelling)
    if isinstance(encoding, Dates):
        return _dates(cells.Cells(values, wrong), column, encoding, issues)
    if column.kind == "number" and cells.is_text(given.type) and not issues.trusts_points:
        values, wrong = _without_doubtful(given, cells.Cells(values, wrong), column, issues)
    # Most columns are in order, and the sum of their squares says so at the speed of memory: a NaN would make it NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.einsum("i,i->", values, values))  # a BLAS would wake threads for it
    if squares <= cells.LARGEST:
        return [values, np.zeros(len(values))] if encoding.indicator else [values]
    absent = np.isnan(values)
    n_missing = int(absent.sum()) - len(wrong)
    with np.errstate(invalid="ignore"):
        absent |= np.abs(values) > cells.LARGEST
    n_absent = int(absent.sum())
    _count(column, wrong, n_missing, issues)
    if n_absent > n_missing + len(wrong):
        issues.column(column.name).huge += n_absent - n_missing - len(wrong)
    if np.isnan(encoding.fill):
        issues.column(column.name).refused += n_absent
    filled = np.where(absent, encoding.fill, values)
    return [filled, absent.astype(np.float64)] if encoding.indicator else [filled]


def _without_doubtful(given: pa.Array, read: cells.Cells, column: Column, issues: Issues) -> cells.Cells:
    """Numbers without those whose decimals may be thousands, as in a column of plain numbers 1.275 and 935."""
    from qmedoid.tables._numbers import doubtful_points

    doubtful = None
    if column.name not in issues.shows_points and cells.maybe_thousands(read.values):
        doubtful = doubtful_points(cells.one_chunk(given), column.spelling)
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
    codes, unseen = cells.level_codes(given, encoding.levels)
    if len(unseen) and len(column.levels) > len(encoding.levels):
        places, _ = cells.level_codes(unseen, column.levels)
        is_known = places < len(column.levels)
        if is_known.any():
            untrained, counts = unseen.filter(pa.array(is_known)), issues.column(column.name)
            counts.untrained += len(untrained)
            counts.untrained_levels.update(dict.fromkeys(untrained.unique().to_pylist()))
            unseen = unseen.filter(pa.array(~is_known))
    if len(unseen):
        counts = issues.column(column.name)
        counts.unseen += len(unseen)
        if len(counts.unseen_levels) < NAMED_LEVELS:
            counts.unseen_levels.update(dict.fromkeys(unseen.unique().to_pylist()[:NAMED_LEVELS]))
    n_missing = 0 if column.missing else int((codes == len(encoding.levels)).sum())
    if n_missing:
        issues.column(column.name).missing += n_missing
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
        respelt = None
        if column.kind in ("number", "date"):
            from qmedoid.tables._numbers import in_other_spelling

            respelt = in_other_spelling(wrong, column)
        issues.column(column.name).add_wrong(wrong, respelt)
    if n_missing and not column.missing:
        issues.column(column.name).missing += n_missing


def training_sizes(model: TableModel, places: Iterable[int]) -> dict[str, float]:
    """The median size of the training numbers, by column; of those that may have been parted, and plain ones only."""
    sizes = {}
    for place in places:
        column, encoding = model.contract.columns[place], model.encodings[place]
        # What may be parted is read as 1.000 at the least: columns of smaller numbers are spared a look at their texts.
        is_plain = column.kind == "number" and not column.spelling
        if is_plain and isinstance(encoding, Numbers) and abs(encoding.fill) > _HALFWAY:
            sizes[column.name] = abs(encoding.fill)
    return sizes


def note_grouped(issues: Issues, model: TableModel, grouped: Mapping[str, cells.Grouped]) -> None:
    """Note those columns of a table that would be more like the training rows if their points parted thousands."""
    sizes = training_sizes(model, range(len(model.contract.columns))) if grouped else {}
    for name, one in grouped.items():
        if sizes.get(name, 0.0) > one.size * _HALFWAY:
            issues.column(name).grouped = one.example


def remember_rows(model: TableModel, tables: Sequence[pa.Table], *, most: int = MOST_KEPT) -> SeenRows:
    """Hashes of the rows that the fit of a model has seen, under the names of the contract; at most `most`."""
    places = list(model.layout.used)
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
    found = np.empty((batch.num_rows, len(model.layout.used)), dtype="<i8")
    for number, place in enumerate(model.layout.used):
        column, encoding = model.contract.columns[place], model.encodings[place]
        given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
        if isinstance(encoding, Levels):
            found[:, number] = cells.level_codes(given, encoding.levels)[0]
            continue
        values = cells.read(given, column.kind, column.spelling).values
        if isinstance(encoding, Dates):
            found[:, number] = values.astype("M8[us]").astype(np.int64)
        else:
            # −0.0 is 0, and all that is no number is missing.
            bits = (values.astype(np.float64) + 0.0).view(np.int64)
            found[:, number] = np.where(np.isnan(values), _MISSING, bits)
    return found


def training_summary(
    table: pa.Table, contract: Contract, encodings: tuple[Encoding, ...], curve: HeldOutCurve | None = None
) -> TrainingSummary:
    """Levels and missing cells of every column of a training table, with the curve of its held-out rows."""
    pairs = zip(contract.columns, encodings, strict=True)
    counted = [_counted(table.column(column.name), column, encoding) for column, encoding in pairs]
    missing = np.array([absent for absent, _ in counted], dtype=np.intp)
    return TrainingSummary(table.num_rows, missing, tuple(levels for _, levels in counted), curve)


def _counted(given: pa.ChunkedArray, column: Column, encoding: Encoding) -> tuple[int, Codes]:
    """Rows in which a column is missing, and rows of each of its levels."""
    if isinstance(encoding, Levels):
        codes, _ = cells.level_codes(given, encoding.levels)
        counts = np.bincount(codes, minlength=len(encoding.levels) + 2)
        return int(counts[len(encoding.levels)]), counts[: len(encoding.levels)]
    values = cells.read(given, column.kind, column.spelling).values
    if isinstance(encoding, Dates):
        return int(np.isnat(values).sum()), np.zeros(0, dtype=np.intp)
    with np.errstate(invalid="ignore"):
        is_number = np.abs(values) <= cells.LARGEST
    levels = [(values == 0).sum(), (values == 1).sum()] if column.kind == "boolean" else []
    return int(len(values) - is_number.sum()), np.array(levels, dtype=np.intp)
