"""The pass that looks for hard rows of a common class: those most like the rare one, by a pilot model.

A row with odds a, by the pilot, is kept with the probability min(1, a·τ): nearly all rows that are easily taken for
rare ones, and few of the others. What a kept row stands for is the inverse of that probability, so that sums over
kept rows are those over all rows in the mean, with little variance where it matters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.large.base import Summary, kept_rows
from qmedoid.large.keys import chances, key_of
from qmedoid.large.reading import RawReading, label_texts
from qmedoid.large.split import TRAIN, RowSplit, read_cells
from qmedoid.model.table import TableModel
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource

HARD = "hard"
# Odds beyond which a row is as hard as can be.
_MOST_LOG_ODDS = 30.0


def likeness(pilot: TableModel, rows: pa.RecordBatch | pa.Table) -> Array:
    """Odds of the second class, by the pilot."""
    scores = decide_batch(pilot, rows, Issues(trusts_points=True))[0].scores
    odds: Array = np.exp(np.clip(scores[:, 1] - scores[:, 0], -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    return odds


@dataclass(frozen=True)
class LikenessPass:
    """Training rows of the common class, each kept if its chance is below min(1, odds · τ)."""

    reading: RawReading
    target: str
    common: frozenset[str]
    pilot: TableModel
    digest: str
    split: RowSplit
    scale: float
    seed: int
    name: str = "hard rows"

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a summary depends on."""
        return {
            "target": self.target, "reading": list(self.reading), "common": sorted(self.common), "seed": self.seed,
            "pilot": self.digest, "split": repr(self.split), "scale": self.scale.hex(),
        }  # fmt: skip

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """Draw hard rows of a partition."""
        key, found, places = key_of(HARD, self.seed), list[pa.RecordBatch](), []
        for batch, row in self.reading.batches(source, first_row):
            codes, texts = label_texts(batch.column(self.target))
            is_common = np.array([*(text in self.common for text in texts), False])[codes]
            drawn = chances(key, row, batch.num_rows)
            read = self.reading.in_kinds(batch, self.split.columns)
            odds = likeness(self.pilot, read)
            taken = np.flatnonzero(is_common & (drawn < np.minimum(1.0, odds * self.scale)))
            if not len(taken):
                continue
            kept = batch.take(pa.array(taken))
            some = self.reading.in_kinds(kept, self.split.columns)
            is_train = self.split.parts(read_cells(some, self.split.columns), kept, taken + row).part == TRAIN
            found.append(kept.filter(pa.array(is_train)))
            places.append(taken[is_train] + row)
        return Summary({}, {HARD: kept_rows(found, self.reading.schema(source), places)})


def scale_for(odds: Array, each: float, count: float) -> float:
    """τ so that about `count` rows are kept, where every one of some rows with these odds stands for `each`."""
    low, high = 1e-30, 1e30
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        if each * np.minimum(1.0, odds * middle).sum() < count:
            low = middle
        else:
            high = middle
    return low
