"""The records of a table that are measured."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError
from qmedoid.model.table import TableModel
from qmedoid.quantum.runs.manifest import records_digest
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch

MOST_RECORDS = 100_000
"""Records that are taken from a table without being asked for: more would take days of any device."""


class Records(NamedTuple):
    """Encoded columns of records, as `plan_measurement` takes them."""

    columns: Sequence[Array]
    n_rows: int

    @property
    def sha256(self) -> str:
        """Hash of what the model reads of the records."""
        return records_digest(self.columns)


def read_records(
    model: TableModel,
    table: str,
    *,
    limit: int | None = None,
    on_mismatch: OnMismatch = "error",
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> Records:
    """The first records of a table, or all.

    Raises
    ------
    DataError
        There are none, or too many to measure.
    """
    most = MOST_RECORDS + 1 if limit is None else limit
    with TableReading(model, table, on_mismatch, **dialect) as reading:

        def take(lenient: bool) -> list[list[Array]]:
            taken, rows = list[list[Array]](), 0
            for batch, _ in reading.batches(lenient, on_progress=on_progress):
                first = batch.slice(0, most - rows)
                taken.append(decide_batch(model, first, reading.issues)[1])
                rows += len(first)
                if rows >= most:
                    break
            return taken

        taken = reading.in_kind(take)
        reading.check()
    columns = [np.concatenate(parts) for parts in zip(*taken, strict=True)]
    n_rows = len(columns[0]) if columns else 0
    if not n_rows:
        raise DataError("The table has no rows, and there is nothing to measure.")
    if n_rows > MOST_RECORDS and limit is None:
        raise DataError(
            f"The table has more than {MOST_RECORDS:,} rows, too many to measure all: give --limit to take the first."
        )
    return Records(columns, n_rows)
