"""The last pass: scores of rows that the fit has not seen, and counts of all training rows, column by column."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes, Flags
from qmedoid.model.contract import Column, Encoding, Levels
from qmedoid.model.seen_rows import KEY_BYTES
from qmedoid.model.table import TableModel
from qmedoid.passes.base import ROW, Summary, kept_rows
from qmedoid.passes.keys import chances, key_of
from qmedoid.passes.reading import RawReading
from qmedoid.passes.split import TEST, TRAIN, RowSplit, moments
from qmedoid.tables import cells
from qmedoid.tables.issues import Issues
from qmedoid.tables.row_hashes import keyed_hashes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import MISSING, UNKNOWN, label_codes

JUDGED, HELD_OUT = "judged", "held out"
MOST_NAMES = 1000
"""New levels of a column that are remembered by name: the first in alphabetical order."""
MOST_EXAMPLES = 5
_DAY = 86_400_000_000.0


@dataclass(frozen=True)
class JudgePass:
    """Scores of rows that calibrate or judge a model, and what training rows hold.

    Rows of the fit's sample are not judged, whatever part they are in. Raw rows that are held out are kept if their
    chance is below `held_rate`.
    """

    reading: RawReading
    target: str
    model: TableModel
    digest: str
    split: RowSplit
    sampled: npt.NDArray[np.int64]
    held_rate: float
    seed: int
    name: str = "judge"

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a summary depends on."""
        return {
            "target": self.target, "reading": list(self.reading), "model": self.digest, "split": repr(self.split),
            "sampled": str(key_of(self.sampled.tobytes())), "held_rate": self.held_rate.hex(), "seed": self.seed,
        }  # fmt: skip

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """Judge the rows of a partition."""
        plain, classes = self.model.before_calibration(), self.model.decision.classes
        key, hash_key = key_of(HELD_OUT, self.seed), bytes(KEY_BYTES) if self.model.seen is None else self.model.seen.key
        tally = _Tally(self.model, self.split.columns)
        judged, held, places = list[pa.RecordBatch](), list[pa.RecordBatch](), []
        for batch, row in self.reading.batches(source, first_row):
            codes = label_codes(batch.column(self.target), classes)
            read = self.reading.in_kinds(batch, self.split.columns)
            columns = tally.read(read)
            part = self.split.parts(columns, batch)
            tally.add(columns, (part != TEST) & (codes >= 0), codes)
            if self.split.time is not None and self.split.time.kind == "date":
                tally.add_days(moments(batch.column(self.split.time.name), self.split.time)[(part != TEST) & (codes >= 0)])
            numbers = np.arange(row, row + batch.num_rows)
            chosen = np.flatnonzero((part != TRAIN) & (codes >= 0) & ~np.isin(numbers, self.sampled))
            if len(chosen):
                some = read.take(pa.array(chosen))
                scores = decide_batch(plain, some, Issues(trusts_points=True))[0].scores
                judged.append(
                    judged_batch(numbers[chosen], part[chosen], codes[chosen], scores, keyed_hashes(plain, some, hash_key))
                )
            shown = np.flatnonzero((part == TEST) & (chances(key, row, batch.num_rows) < self.held_rate))
            if len(shown):
                held.append(batch.take(pa.array(shown)))
                places.append(shown + row)
        rows = {
            JUDGED: pa.Table.from_batches(judged, judged_schema(len(classes))),
            HELD_OUT: kept_rows(held, self.reading.schema(source), places),
        }
        return Summary(tally.counts(), rows)


def judged_schema(n_classes: int) -> pa.Schema:
    """Columns of judged rows."""
    scores = [(f"score {place}", pa.float64()) for place in range(n_classes)]
    return pa.schema([(ROW, pa.int64()), ("part", pa.int8()), ("code", pa.int16()), ("hash", pa.int64()), *scores])


def judged_batch(numbers: Codes, part: Codes, codes: Codes, scores: Any, hashes: Any) -> pa.RecordBatch:
    """Judged rows: place, part, class, hash of the cells, and scores before calibration."""
    arrays = [numbers.astype(np.int64), part.astype(np.int8), codes.astype(np.int16), hashes, *scores.T]
    return pa.record_batch([pa.array(one) for one in arrays], judged_schema(scores.shape[1]))


class _Tally:
    """Counts of training rows, column by column."""

    def __init__(self, model: TableModel, columns: tuple[Column, ...]) -> None:
        encodings = {one.name: encoding for one, encoding in zip(model.contract.columns, model.encodings, strict=True)}
        self._columns = columns
        self._encodings: list[Encoding | None] = [encodings.get(column.name) for column in columns]
        self._counts: dict[str, Counter[str]] = {}

    def read(self, batch: pa.RecordBatch) -> list[Any]:
        """Cells of the columns, as `read_cells` has them; those that are not of their kind are counted."""
        found: list[Any] = []
        for column in self._columns:
            given = batch.column(column.name)
            if column.kind == "category":
                found.append(cells.texts(given))
                continue
            values, wrong = cells.read(given, column.kind, column.spelling)
            if len(wrong):
                self._add(f"wrong:{column.name}", Counter({"": len(wrong)}))
                self._first(f"examples:{column.name}", wrong.unique().to_pylist(), MOST_EXAMPLES)
            found.append(values)
        return found

    def add(self, columns: list[Any], rows: Flags, codes: Codes) -> None:
        """Count some rows of a batch."""
        labels, counts = np.unique(codes, return_counts=True)
        names = {UNKNOWN: "unknown", MISSING: "missing"}
        self._add("labels", Counter({names.get(code, str(code)): n for code, n in zip(labels.tolist(), counts.tolist(), strict=True)}))
        own = np.bincount(codes[rows], minlength=1)
        self._add("training", Counter({str(code): int(n) for code, n in enumerate(own.tolist()) if n}))
        absent: Counter[str] = Counter()
        for column, encoding, values in zip(self._columns, self._encodings, columns, strict=True):
            if column.kind == "category":
                some = values.filter(pa.array(rows))
                absent[column.name] += some.null_count
                self._add_levels(column, encoding, some.drop_null())
            else:
                some = values[rows]
                known = ~np.isnat(some) if column.kind == "date" else cells.is_usable(some)
                absent[column.name] += int(len(some) - known.sum())
                if column.kind == "boolean":
                    self._add(f"levels:{column.name}", Counter({"0": int((some == 0).sum()), "1": int((some == 1).sum())}))
        self._add("missing", absent)

    def add_days(self, moments: npt.NDArray[Any]) -> None:
        """Count rows by day."""
        days, counts = np.unique(np.floor(moments[~np.isnan(moments)] / _DAY).astype(np.int64), return_counts=True)
        self._add("days", Counter(dict(zip(map(str, days.tolist()), counts.tolist(), strict=True))))

    def _add_levels(self, column: Column, encoding: Encoding | None, texts: pa.Array) -> None:
        if not isinstance(encoding, Levels):
            return
        codes, unseen = cells.level_codes(texts, encoding.levels)
        counts = np.bincount(codes, minlength=len(encoding.levels))[: len(encoding.levels)]
        filled = np.flatnonzero(counts)
        self._add(f"levels:{column.name}", Counter({encoding.levels[place]: int(counts[place]) for place in filled}))
        if len(unseen):
            self._add(f"new:{column.name}", Counter({"": len(unseen)}))
            self._first(f"names:{column.name}", unseen.unique().to_pylist(), MOST_NAMES)

    def counts(self) -> dict[str, dict[str, int]]:
        """All counts."""
        return {what: dict(found) for what, found in self._counts.items()}

    def _add(self, what: str, found: "Counter[str]") -> None:
        self._counts.setdefault(what, Counter()).update(found)

    def _first(self, what: str, names: list[str], most: int) -> None:
        """Remember names: the first in alphabetical order, so that they do not depend on the order of rows."""
        known = sorted({*self._counts.get(what, ()), *names})[:most]
        self._counts[what] = Counter(dict.fromkeys(known, 0))
