"""What a pass is: a summary of every partition of a table, and the merge of all of them.

A summary holds counts, which add up, and rows, which are put together in the order of the table. Counts are whole
numbers, and whether a row is kept depends on the row and its place in the table alone. So a merged summary is the same
to the last bit, however many partitions there are, whatever their order, and wherever they were read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.tables.source import TableSource

ROW = "\x00row"
"""Name of the column of kept rows that has their places in the table; no column of a file is called so."""


@dataclass(frozen=True)
class Summary:
    """What a pass has found in some rows.

    Attributes
    ----------
    counts : mapping of str to mapping of str to int
        Counts by what is counted, and by what it is counted for.
    rows : mapping of str to pyarrow.Table
        Rows that were kept, by what for, each with its place in the table in the column `ROW`.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: Mapping[str, pa.Table] = field(default_factory=dict)

    def total(self, what: str) -> int:
        """The sum of the counts of one kind."""
        return sum(self.counts.get(what, {}).values())


class Pass(Protocol):
    """What is done with every partition; an object that can be sent to another process."""

    @property
    def name(self) -> str:
        """Short, for progress bars."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that a summary depends on besides the rows: plain values, which name the files of finished partitions."""

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """The summary of a partition, whose first row has this place in the table."""


def merge(summaries: Iterable[Summary]) -> Summary:
    """One summary of all."""
    counts: dict[str, Counter[str]] = {}
    rows: dict[str, list[pa.Table]] = {}
    for one in summaries:
        for what, found in one.counts.items():
            counts.setdefault(what, Counter()).update(found)
        for what, table in one.rows.items():
            rows.setdefault(what, []).append(table)
    together = {what: in_order(tables) for what, tables in rows.items()}
    # Names in an order of their own: a summary does not show which partition came first.
    return Summary(
        {what: dict(sorted(counts[what].items())) for what in sorted(counts)},
        {what: together[what] for what in sorted(together)},
    )


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Kept rows of several partitions in the order of the table."""
    parts = [table for table in tables if table.num_rows] or list(tables[:1])
    if parts and parts[0].num_rows:
        parts.sort(key=lambda table: int(table.column(ROW)[0].as_py()))
    together = pa.concat_tables(parts)
    places = together.column(ROW).to_numpy()
    return together if (np.diff(places) > 0).all() else together.take(pa.array(np.argsort(places, kind="stable")))


def kept_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema, places: Sequence[Codes]) -> pa.Table:
    """Rows of several batches as one table, with their places."""
    table = pa.Table.from_batches(batches, schema)
    numbers = np.concatenate([np.zeros(0, dtype=np.int64), *places]).astype(np.int64)
    return table.append_column(ROW, pa.array(numbers))
