"""Columns of a table as the numbers that models read, by the encodings of a fit."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels, Numbers
from qmedoid.tables import cells

EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered, at the least; of more it is not known how many there are."""
_MICROSECONDS = {"hour": 3_600_000_000, "day": 86_400_000_000}


@dataclass
class ColumnFound:
    """Counts of cells of one column that the training rows did not have.

    Attributes
    ----------
    missing : int
        Missing cells of a column that had none; `refused` of them have nothing to stand in for them.
    unseen : int
        Cells with a level that neither encoding nor contract know; `unseen_levels` holds these levels, up to a bound.
    untrained : int
        Cells with a level that the contract knows and the encoding does not; `untrained_levels` holds these levels.
    wrong : int
        Cells that are not of the kind; `wrong_examples` shows some.
    huge : int
        Numbers that are infinite or too large.
    respelt : int
        Those of the wrong cells that are numbers or dates in another spelling than the contract has, so that it is
        not known what the others mean; `respelt_examples` shows some.
    grouped : str
        A cell, where every point may part thousands and the training numbers are nearer to what that would mean.
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

    def add_untrained(self, found: pa.Array) -> None:
        """Count cells with levels that no training row had, though the contract knows them."""
        self.untrained += len(found)
        self.untrained_levels.update(dict.fromkeys(found.unique().to_pylist()))

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
class Found:
    """What cells held that the training rows did not, by column; it grows from batch to batch.

    Attributes
    ----------
    rows : int
    columns : dict of str to ColumnFound
    trusts_points : bool
        Whether the decimal sign was given, so that a point in a plain number is no doubtful one.
    shows_points : set of str
        Columns of plain numbers whose points were seen to be decimal points.
    """

    rows: int = 0
    columns: dict[str, ColumnFound] = field(default_factory=dict)
    trusts_points: bool = False
    shows_points: set[str] = field(default_factory=set)

    def column(self, name: str) -> ColumnFound:
        """The counts of a column."""
        return self.columns.setdefault(name, ColumnFound())


def encode_batch(
    batch: pa.RecordBatch | pa.Table,
    contract: Contract,
    encodings: Sequence[Encoding],
    *,
    only: Collection[int] | None = None,
    unchecked: Collection[int] = (),
    found: Found | None = None,
) -> list[Array]:
    """Encode the columns of a contract, looked up by name.

    Parameters
    ----------
    batch : pyarrow.RecordBatch or pyarrow.Table
        A column that it lacks is encoded as missing in every row: compare its columns with the contract first.
    only : collection of int, optional
        Columns of the contract that are wanted; the outputs of others are zero.
    unchecked : collection of int
        Columns of the contract whose cells, where none is missing, may be handed on as they are, NaN included.
    found : Found, optional
        Where surprises are counted.

    Returns
    -------
    list of ndarray of shape (n,)
        One for each number that the encodings give, in their order. Columns of floats that need no filling are the
        memory of the batch itself, in its precision.
    """
    found = Found() if found is None else found
    found.rows += batch.num_rows
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
        outputs.extend(encode_column(given, column, encoding, found))
    return outputs


def encode_column(
    given: pa.Array | pa.ChunkedArray, column: Column, encoding: Encoding, found: Found | None = None
) -> list[Array]:
    """Encode one column."""
    found = Found() if found is None else found
    if isinstance(encoding, Levels):
        return _levels(given, column, encoding, found)
    if isinstance(encoding, Dates):
        return _dates(given, column, encoding, found)
    return _numbers(given, column, encoding, found)


def _numbers(given: pa.Array, column: Column, encoding: Numbers, found: Found) -> list[Array]:
    values, wrong = cells.truths(given) if column.kind == "boolean" else cells.numbers(given, column.spelling)
    if column.kind == "number" and cells.is_text(given.type) and not found.trusts_points:
        values, wrong = _without_doubtful(given, cells.Cells(values, wrong), column, found)
    # Most columns are in order, and the sum of their squares says so at the speed of memory: a NaN would make it NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.einsum("i,i->", values, values))  # a BLAS would wake threads for it
    if squares <= cells.LARGEST:
        return [values, np.zeros(len(values))] if encoding.indicator else [values]
    absent = np.isnan(values)
    with np.errstate(invalid="ignore"):
        huge = np.abs(values) > cells.LARGEST
    n_missing = int(absent.sum()) - len(wrong)
    _count_wrong(column, wrong, int(huge.sum()), found)
    _count_missing(column, n_missing, found)
    if np.isnan(encoding.fill):
        found.column(column.name).refused += n_missing + int(huge.sum()) + len(wrong)
    absent |= huge
    filled = np.where(absent, encoding.fill, values)
    return [filled, absent.astype(np.float64)] if encoding.indicator else [filled]


def _without_doubtful(given: pa.Array, read: cells.Cells, column: Column, found: Found) -> cells.Cells:
    """Numbers without those whose decimals may be thousands, as in a column of plain numbers 1.275 and 935."""
    from qmedoid.tables._respelt import doubtful_points

    doubtful = None
    if column.name not in found.shows_points and cells.maybe_thousands(read.values):
        doubtful = doubtful_points(cells.one_chunk(given), column.spelling)
    if doubtful is None:
        found.shows_points.add(column.name)
        return read
    is_doubtful, text = doubtful
    return cells.Cells(np.where(is_doubtful, np.nan, read.values), pa.concat_arrays([read.wrong, text]))


def _dates(given: pa.Array, column: Column, encoding: Dates, found: Found) -> list[Array]:
    values, wrong = cells.dates(given, column.spelling)
    absent = np.isnat(values)
    if absent.any():
        _count_wrong(column, wrong, 0, found)
        _count_missing(column, int(absent.sum()) - len(wrong), found)
        values = np.where(absent, np.datetime64(0, "us"), values)
    parts = [date_part(values, part) for part in encoding.parts]
    if absent.any():
        parts = [np.where(absent, fill, part) for part, fill in zip(parts, encoding.fills, strict=True)]
    return [*parts, absent.astype(np.float64)] if encoding.indicator else parts


def _levels(given: pa.Array, column: Column, encoding: Levels, found: Found) -> list[Array]:
    codes, unseen = cells.level_codes(given, encoding.levels)
    if len(unseen) and len(column.levels) > len(encoding.levels):
        places, _ = cells.level_codes(unseen, column.levels)
        is_known = places < len(column.levels)
        if is_known.any():
            found.column(column.name).add_untrained(unseen.filter(pa.array(is_known)))
            unseen = unseen.filter(pa.array(~is_known))
    if len(unseen):
        found.column(column.name).add_unseen(unseen)
    if not column.missing:
        _count_missing(column, int((codes == len(encoding.levels)).sum()), found)
    return [numbers[codes] for numbers in encoding.values.T]


def date_part(values: npt.NDArray[np.datetime64], part: str) -> Array:
    """A part of dates in microseconds: see `qmedoid.model.contract.DATE_PARTS`."""
    return _PARTS[part](values)


def _month(values: npt.NDArray[np.datetime64]) -> Array:
    return (values.astype("M8[M]").astype(np.int64) % 12 + 1).astype(np.float64)


def _weekday(values: npt.NDArray[np.datetime64]) -> Array:
    # The first day of 1970 was a Thursday.
    return ((values.astype("M8[D]").astype(np.int64) + 3) % 7).astype(np.float64)


def _hour(values: npt.NDArray[np.datetime64]) -> Array:
    return np.asarray(values.astype(np.int64) % _MICROSECONDS["day"] / _MICROSECONDS["hour"])


def _days(values: npt.NDArray[np.datetime64]) -> Array:
    return np.asarray(values.astype(np.int64) / _MICROSECONDS["day"])


_PARTS: dict[str, Callable[[npt.NDArray[np.datetime64]], Array]] = {
    "days": _days,
    "month": _month,
    "weekday": _weekday,
    "hour": _hour,
}


def _count_wrong(column: Column, wrong: pa.Array, huge: int, found: Found) -> None:
    if len(wrong):
        found.column(column.name).add_wrong(wrong)
        if column.kind in ("number", "date"):
            from qmedoid.tables._respelt import in_other_spelling

            found.column(column.name).add_respelt(in_other_spelling(wrong, column))
    if huge:
        found.column(column.name).huge += huge


def _count_missing(column: Column, missing: int, found: Found) -> None:
    if missing and not column.missing:
        found.column(column.name).missing += missing
