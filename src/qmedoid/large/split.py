"""Which rows train, which calibrate, and which are held out: by chance, from the content of each row.

Rows that are equal in all columns that are learnt from, or rows of one group, have one chance and go to one part: none
is judged by a model that has seen its twin. In a coarse table, such as one of three columns of two values each, equal
rows are no twins, and each has a chance of its own (see `qmedoid.geometry.row_groups`). In an order of time the latest
rows are held out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.large.keys import content_hashes, key_of, place_hashes, uniform
from qmedoid.model.contract import Column
from qmedoid.tables import cells

Cells: TypeAlias = npt.NDArray[Any] | pa.Array | pa.ChunkedArray

TRAIN, CALIBRATE, TEST = 0, 1, 2
"""Parts of a table: rows that may be drawn for the fit, rows that calibrate it, rows that judge it."""


class Split(NamedTuple):
    """The part of every row, and a hash that rows which belong together share, each of shape (n,)."""

    part: Codes
    draws: npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowSplit:
    """How a table is split.

    Attributes
    ----------
    columns : tuple of Column
        Drafts of the columns that are learnt from.
    test, calibrate : float
        Shares of the rows.
    seed : int
    group : str or None
        Column whose equal cells keep rows together.
    time : Column or None
        Column that orders the rows; rows beyond `last` are held out then.
    last : float
        In the unit of `moments`.
    by_place : bool
        Whether the chance of a row depends on its place in the table, not on its cells.
    """

    columns: tuple[Column, ...]
    test: float
    calibrate: float
    seed: int
    group: str | None = None
    time: Column | None = None
    last: float = np.inf
    by_place: bool = False

    def parts(self, read: Sequence[Cells], more: pa.RecordBatch | pa.Table, places: npt.NDArray[np.int64]) -> Split:
        """The part of every row, from its cells (see `read_cells`), its place, and its group and time in `more`."""
        shared = list(read)
        if self.group is not None:
            names = cells.texts(more.column(self.group))
            if names.null_count:
                raise DataError(
                    f"The group column {self.group!r} is missing in {names.null_count:,} rows of one batch: fill in or "
                    "drop them."
                )
            shared = [names]
        key = key_of("split", self.seed)
        draws = place_hashes(key, places) if self.by_place else content_hashes(key, shared)
        shares = uniform(draws)
        if self.time is None:
            part = np.where(shares < self.test, TEST, np.where(shares < self.test + self.calibrate, CALIBRATE, TRAIN))
        else:
            times = moments(more.column(self.time.name), self.time)
            if np.isnan(times).any():
                raise DataError(
                    f"The time column {self.time.name!r} is missing, or no {self.time.kind}, in "
                    f"{np.isnan(times).sum():,} rows of one batch: fill in or drop them."
                )
            part = np.where(shares < self.calibrate, CALIBRATE, TRAIN)
            part = np.where(times > self.last, TEST, part)
        return Split(part.astype(np.intp), draws.view(np.int64))


def read_cells(batch: pa.RecordBatch | pa.Table, columns: Sequence[Column]) -> list[Cells]:
    """Cells of the columns as they count: numbers and dates by their values, categories as texts."""
    found: list[Cells] = []
    for column in columns:
        given = cells.without_missing_values(batch.column(column.name), column)
        is_category = column.kind == "category"
        found.append(cells.texts(given) if is_category else cells.read(given, column.kind, column.spelling).values)
    return found


def moments(column: pa.Array | pa.ChunkedArray, of: Column) -> Array:
    """Cells of a time column as numbers; NaN where one is missing."""
    values = cells.read(column, of.kind, of.spelling).values
    if of.kind != "date":
        return values.astype(np.float64)
    return np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64).astype(np.float64))
