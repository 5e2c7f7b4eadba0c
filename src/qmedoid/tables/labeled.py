"""Labeled rows as a new calibration needs them: scores before it, classes, hashes, collected batch by batch."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.model.seen_rows import KEY_BYTES, Hashes
from qmedoid.model.table import TableModel
from qmedoid.tables.issues import Issues
from qmedoid.tables.novelty import NoveltyTally
from qmedoid.tables.row_hashes import keyed_hashes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import MISSING, UNKNOWN, label_codes

MOST_ROWS = 250_000
"""Labeled rows that are kept at most: those with the smallest hashes, which are a random sample.

A calibration has a dozen numbers; more rows would take minutes and change none of them."""


class LabeledRows(NamedTuple):
    """What is known of n labeled rows that may calibrate a model of C classes.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        Class scores before the last calibration.
    by_circuit : ndarray of shape (n,)
        Whether the circuit decides.
    codes : ndarray of shape (n,)
        Classes.
    hashes : ndarray of shape (n,)
        Of the cells that the model reads, by its key if it has one.
    cells : ndarray of shape (n, columns)
        Encoded columns that the model reads.
    """

    scores: Array
    by_circuit: Flags
    codes: Codes
    hashes: Hashes
    cells: Array

    def take(self, rows: Codes | Flags) -> "LabeledRows":
        """Some of the rows."""
        return LabeledRows._make(part[rows] for part in self)


@dataclass
class LabeledTally:
    """Labeled rows of a table, batch by batch, in memory that is bounded by `most` rows."""

    model: TableModel
    most: int = MOST_ROWS
    missing: int = 0
    unknown: int = 0
    labeled: int = 0
    _parts: list[LabeledRows] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plain = self.model.before_calibration()
        # Models without row hashes have no key.
        self._key = bytes(KEY_BYTES) if self.model.seen is None else self.model.seen.key

    def add(self, batch: pa.RecordBatch | pa.Table, labels: pa.Array | pa.ChunkedArray, issues: Issues,
            novelty: NoveltyTally | None = None) -> None:  # fmt: skip
        """Count a batch in, with the cells of its target column."""
        codes = label_codes(labels, self.model.decision.classes)
        decided, columns = decide_batch(self._plain, batch, issues, novelty)
        cells = np.column_stack(
            [column for column, read in zip(columns, self.model.layout.is_read, strict=True) if read]
        )
        known = codes >= 0
        self.missing += int((codes == MISSING).sum())
        self.unknown += int((codes == UNKNOWN).sum())
        self.labeled += int(known.sum())
        found = LabeledRows(
            decided.scores, decided.by_circuit, codes, keyed_hashes(self.model, batch, self._key), cells
        )
        self._parts.append(found.take(known))
        if sum(len(part.codes) for part in self._parts) > 2 * self.most:
            self._parts = [self._kept()]

    def rows(self) -> LabeledRows:
        """All labeled rows, or the sample of them."""
        return self._kept()

    def _kept(self) -> LabeledRows:
        rows = LabeledRows._make(map(np.concatenate, zip(*self._parts, strict=True)))
        if len(rows.codes) <= self.most:
            return rows
        # Equal rows have one hash, and stay together.
        return rows.take(rows.hashes <= np.partition(rows.hashes, self.most - 1)[self.most - 1])
