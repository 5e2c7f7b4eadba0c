"""Which rows train, which calibrate, and which are held out: by chance, from the content of each row.

Rows that are equal in all columns that are learned from, or rows of one group, have one chance and go to one part: none
is judged by a model that has seen its twin. In a coarse table, such as one of three columns of two values each, equal
rows are no twins, and each has a separate chance (see `qmedoid.geometry.row_groups`). In an order of time the latest
rows are held out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.large.base import content_hashes, key_of, place_hashes, uniform
from qmedoid.model.contract import Column
from qmedoid.tables import cells

Cells: TypeAlias = npt.NDArray[Any] | pa.Array | pa.ChunkedArray

TRAIN, CALIBRATE, TEST = 0, 1, 2
"""Parts of a table: rows that may be drawn for the fit, rows that calibrate it, rows that judge it."""


@dataclass(frozen=True)
class RowSplit:
    """How a table is split."""

    columns: tuple[Column, ...]  # drafts of those that are learned from
    test: float  # share of the rows
    calibrate: float
    seed: int
    group: str | None = None  # column whose equal cells keep rows together
    time: Column | None = None  # column that orders the rows: those beyond `last` are held out
    last: float = np.inf  # in the unit of `moments`
    by_place: bool = False  # whether the chance of a row depends on its position in the table, not on its cells

    def parts(
        self, read: Sequence[Cells], more: pa.RecordBatch | pa.Table, places: npt.NDArray[np.int64]
    ) -> tuple[Codes, npt.NDArray[np.int64]]:
        """The part of every row, from its cells (see `read_cells`), its place, and its group and time in `more`.

        With a hash that rows which belong together share.
        """
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
        return part.astype(np.intp), draws.view(np.int64)


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
    return cells.floats(cells.read(column, of.kind, of.spelling).values)


DEFAULT_MEMORY = 4 * 2**30
"""Memory of a fit, in bytes, where none is given: a table that needs more is fitted in passes."""
MOST_ROWS = 1_000_000
"""Rows of a fit at most: beyond, it takes hours and learns little."""
LEAST_MEMORY = 5 * 2**27
# The interpreter with its libraries, and what passes hold while they read.
_BASE = 461 * 2**20
ROW_BYTES, CELL_BYTES = 0, 220
"""Bytes of a fit for every row, and for every number of it: no fit of benchmarks/fit_memory.py takes more."""
# Columns that models look at closely, and bytes of a number of any other one.
_CLOSELY, _WIDE_BYTES = 500, 60
# Numbers that a column becomes, about: of a category one for each level, up to some, and of a date its parts.
_NUMBERS, _OTHERS = 1, 4
# Bytes of a judged row, at the peak of sorting and calibrating.
_JUDGED_BYTES = 400
# Shares of the sample: rows of a rare class at most, and hard rows of the common one.
RARE_SHARE, HARD_SHARE = 0.2, 0.2
# Rows of every class that a sample has at least, if the table has them.
SMALL_CLASS = 50
# Rows that calibrate, as a share of the table at most, and of those that are not held out.
_CALIBRATING, _OF_TRAINING = 0.1, 0.25
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def memory_bytes(memory: int | str) -> int:
    """Bytes: a number of them, or a text such as ``"2GB"`` or ``"512 MB"``, with units that are powers of 1024."""
    found = _SIZE.fullmatch(str(memory))
    if found is None or isinstance(memory, bool):
        raise ParameterError(f"The memory of a fit is a size such as 2GB or 512MB. Got {memory!r} instead.")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def width_of(schema: pa.Schema) -> int:
    """Numbers that a row of a table becomes, about."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return sum(_NUMBERS if any(holds(one.type) for holds in plain) else _OTHERS for one in schema)


def sizes_for(memory: int, width: int) -> tuple[int, int]:
    """Rows that can be fitted and rows that can be judged in these bytes; `width` is that of `width_of`."""
    if memory < LEAST_MEMORY:
        raise ParameterError(
            f"A fit needs at least {LEAST_MEMORY / 2**20:.0f} MB of memory. Got {memory / 2**20:.0f} MB."
        )
    free = memory - _BASE
    return min(int(free / _row_bytes(width)), MOST_ROWS), int(free / _JUDGED_BYTES / 2)


def needed_bytes(n_rows: int, width: int) -> int:
    """Memory that a fit of all rows takes, about; `width` is that of `width_of`."""
    return _BASE + n_rows * _row_bytes(width)


def _row_bytes(width: int) -> int:
    return ROW_BYTES + CELL_BYTES * min(width, _CLOSELY) + _WIDE_BYTES * max(width - _CLOSELY, 0)


def shares_for(n_rows: int, most: int, requested: float, *, is_requested: bool) -> tuple[float, float]:
    """Shares of a table that are held out and that calibrate; by default, at most what can be judged."""
    test = requested if is_requested else min(requested, most / n_rows)
    if test * n_rows > 1.01 * most:
        raise ParameterError(
            f"--test {requested:g} holds out {test * n_rows:,.0f} rows, and {most:,} can be judged in the memory "
            f"of this fit: give a share of at most {most / n_rows:.3g}, or more --memory."
        )
    return test, min(_CALIBRATING, _OF_TRAINING * (1.0 - test), most / n_rows)


def class_rates(counts: Mapping[str, int], share: float, most: int, rare: frozenset[str]) -> dict[str, float]:
    """The rate at which rows of every label are drawn, where a `share` of the rows trains, `most` of which are fitted.

    Rows of `rare` labels, if there are any, have their own part of the sample.
    """
    total = sum(counts.values())
    n_rare = sum(counts[label] for label in rare)
    if n_rare:
        of_rare = min(1.0, RARE_SHARE * most / (share * n_rare))
        left = most * (1.0 - HARD_SHARE) - of_rare * share * n_rare
        of_common = min(1.0, left / (share * (total - n_rare)))
        return {label: of_rare if label in rare else of_common for label in counts}
    rate = min(1.0, most / (share * total))
    return {label: max(rate, min(1.0, SMALL_CLASS / (share * max(n, 1)))) for label, n in counts.items()}
