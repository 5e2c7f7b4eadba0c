"""Columns of a table as the numbers that models read, by the encodings of a fit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels, Numbers
from qmedoid.model.table import TableModel
from qmedoid.tables import cells

_HALFWAY = 1000.0**0.5
"""Between a number and a thousand times as much, in ratios."""

EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered, at the least; of more it is not known how many there are."""
_HOUR, _DAY = 3_600_000_000, 86_400_000_000
"""In microseconds."""


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

    def add_unseen(self, found: pa.Array) -> None:
        """Count cells with new levels."""
        self.unseen += len(found)
        if len(self.unseen_levels) < NAMED_LEVELS:
            self.unseen_levels.update(dict.fromkeys(found.unique().to_pylist()[:NAMED_LEVELS]))

    def add_wrong(self, found: pa.Array) -> None:
        """Count cells that are not of the kind."""
        self.wrong += len(found)
        if len(self.wrong_examples) < EXAMPLES:
            new = [text for text in found.unique().to_pylist()[:EXAMPLES] if text not in self.wrong_examples]
            self.wrong_examples.extend(new[: EXAMPLES - len(self.wrong_examples)])

    def add_respelt(self, found: pa.Array) -> None:
        """Count cells, of those that are not of the kind, that are numbers or dates in another spelling."""
        self.respelt += len(found)
        new = [text for text in found.slice(0, EXAMPLES).to_pylist() if text not in self.respelt_examples]
        self.respelt_examples.extend(new[: EXAMPLES - len(self.respelt_examples)])


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
            outputs.extend([nothing] * encoding.width)
            continue
        given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
        if place in unchecked and encoding.width == 1 and given.type == pa.float64() and not given.null_count:
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
    if isinstance(encoding, Dates):
        return _dates(given, column, encoding, issues)
    return _numbers(given, column, encoding, issues)


def _numbers(given: pa.Array, column: Column, encoding: Numbers, issues: Issues) -> list[Array]:
    values, wrong = cells.truths(given) if column.kind == "boolean" else cells.numbers(given, column.spelling)
    if column.kind == "number" and cells.is_text(given.type) and not issues.trusts_points:
        values, wrong = _without_doubtful(given, cells.Cells(values, wrong), column, issues)
    # Most columns are in order, and the sum of their squares says so at the speed of memory: a NaN would make it NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.einsum("i,i->", values, values))  # a BLAS would wake threads for it
    if squares <= cells.LARGEST:
        return [values, np.zeros(len(values))] if encoding.indicator else [values]
    absent = np.isnan(values)
    with np.errstate(invalid="ignore"):
        huge = np.abs(values) > cells.LARGEST
    n_missing = int(absent.sum()) - len(wrong)
    _count_wrong(column, wrong, int(huge.sum()), issues)
    _count_missing(column, n_missing, issues)
    if np.isnan(encoding.fill):
        issues.column(column.name).refused += n_missing + int(huge.sum()) + len(wrong)
    absent |= huge
    filled = np.where(absent, encoding.fill, values)
    return [filled, absent.astype(np.float64)] if encoding.indicator else [filled]


def _without_doubtful(given: pa.Array, read: cells.Cells, column: Column, issues: Issues) -> cells.Cells:
    """Numbers without those whose decimals may be thousands, as in a column of plain numbers 1.275 and 935."""
    from qmedoid.tables._spelling import doubtful_points

    doubtful = None
    if column.name not in issues.shows_points and cells.maybe_thousands(read.values):
        doubtful = doubtful_points(cells.one_chunk(given), column.spelling)
    if doubtful is None:
        issues.shows_points.add(column.name)
        return read
    is_doubtful, text = doubtful
    return cells.Cells(np.where(is_doubtful, np.nan, read.values), pa.concat_arrays([read.wrong, text]))


def _dates(given: pa.Array, column: Column, encoding: Dates, issues: Issues) -> list[Array]:
    values, wrong = cells.dates(given, column.spelling)
    absent = np.isnat(values)
    if absent.any():
        _count_wrong(column, wrong, 0, issues)
        _count_missing(column, int(absent.sum()) - len(wrong), issues)
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
        issues.column(column.name).add_unseen(unseen)
    if not column.missing:
        _count_missing(column, int((codes == len(encoding.levels)).sum()), issues)
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


def _count_wrong(column: Column, wrong: pa.Array, huge: int, issues: Issues) -> None:
    if len(wrong):
        issues.column(column.name).add_wrong(wrong)
        if column.kind in ("number", "date"):
            from qmedoid.tables._spelling import in_other_spelling

            issues.column(column.name).add_respelt(in_other_spelling(wrong, column))
    if huge:
        issues.column(column.name).huge += huge


def _count_missing(column: Column, missing: int, issues: Issues) -> None:
    if missing and not column.missing:
        issues.column(column.name).missing += missing


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
