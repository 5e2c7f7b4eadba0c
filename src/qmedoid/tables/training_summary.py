"""The summary of a training table: levels, missing cells and rows per day, counted by the encodings of its columns."""

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.model.contract import Column, Contract, Dates, Encoding, Levels
from qmedoid.model.training_summary import DayCounts, HeldOutCurve, TrainingSummary
from qmedoid.tables import cells
from qmedoid.tables.kinds import kind_of_type
from qmedoid.tables.times import moments_of_text


def training_summary(
    table: pa.Table, contract: Contract, encodings: tuple[Encoding, ...], curve: HeldOutCurve | None = None
) -> TrainingSummary:
    """Count the levels and the missing cells of every column of a training table.

    Parameters
    ----------
    table : pyarrow.Table
        With the columns of the contract.
    contract : Contract
    encodings : tuple of Encoding
        One for each column of the contract.
    curve : HeldOutCurve, optional
        Of its held-out rows.
    """
    pairs = zip(contract.columns, encodings, strict=True)
    counted = [_counted(table.column(column.name), column, encoding) for column, encoding in pairs]
    missing = np.array([absent for absent, _ in counted], dtype=np.intp)
    return TrainingSummary(table.num_rows, missing, tuple(levels for _, levels in counted), curve)


def rows_per_day(column: pa.ChunkedArray, name: str, date_order: str | None = None) -> DayCounts | None:
    """Rows per day of a time column; None where it holds numbers, which name no day."""
    kind = kind_of_type(column.type)
    if kind == "category":
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
