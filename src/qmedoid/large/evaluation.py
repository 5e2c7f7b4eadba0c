"""The last pass: scores of rows that the fit has not seen, and counts of all training rows, column by column."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, some_of
from qmedoid.geometry.row_groups import numbered
from qmedoid.large.base import ROW, RawReading, Summary, chances, kept_rows, key_of
from qmedoid.large.split import TEST, TRAIN, RowSplit, moments
from qmedoid.methods.calibration import CalibrationKind, fit_calibration
from qmedoid.model.contract import Column, Encoding, Levels
from qmedoid.model.decision import Decision
from qmedoid.model.model import Decisions, Model
from qmedoid.model.training_summary import KEY_BYTES, MOST_DAYS, DayCounts, TrainingSummary
from qmedoid.tables import cells
from qmedoid.tables.evaluating import labeled_report
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

    Of the rows that are held out, raw ones are kept if their chance is below `held_rate`.
    """

    reading: RawReading
    target: str
    model: Model
    split: RowSplit
    held_rate: float
    seed: int
    name: str = "judge"

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """Judge the rows of a partition."""
        plain, classes, time = self.model.before_calibration(), self.model.decision.classes, self.split.time
        hash_key = bytes(KEY_BYTES) if self.model.seen is None else self.model.seen.key
        key, tally = key_of(HELD_OUT, self.seed), _Tally(self.model, self.split.columns)
        judged, held, places = list[pa.RecordBatch](), list[pa.RecordBatch](), []
        for batch, row in self.reading.batches(source, first_row):
            codes = label_codes(batch.column(self.target), classes)
            read = self.reading.in_kinds(batch, self.split.columns)
            columns = tally.read(read)
            numbers = np.arange(row, row + batch.num_rows)
            part, draws = self.split.parts(columns, batch, numbers)
            is_training = (part != TEST) & (codes >= 0)
            tally.add(columns, is_training, codes)
            if time is not None and time.kind == "date":
                tally.add_days(moments(batch.column(time.name), time)[is_training])
            chosen = np.flatnonzero((part != TRAIN) & (codes >= 0))
            if len(chosen):
                some = read.take(pa.array(chosen))
                decided = decide_batch(plain, some, Issues(trusts_points=True))[0]
                hashes = keyed_hashes(plain, some, hash_key)
                whose = numbers[chosen], part[chosen], codes[chosen], hashes, draws[chosen], decided.by_circuit
                pairs = zip([*whose, *decided.scores.T], _judged_schema(len(classes)), strict=True)
                arrays = [pa.array(one).cast(field.type) for one, field in pairs]
                judged.append(pa.record_batch(arrays, _judged_schema(len(classes))))
            shown = np.flatnonzero((part == TEST) & (chances(key, row, batch.num_rows) < self.held_rate))
            if len(shown):
                held.append(batch.take(pa.array(shown)))
                places.append(shown + row)
        rows = {
            JUDGED: pa.Table.from_batches(judged, _judged_schema(len(classes))),
            HELD_OUT: kept_rows(held, self.reading.schema(source), places),
        }
        return Summary(tally.counts(), rows)


def _judged_schema(n_classes: int) -> pa.Schema:
    """Columns of judged rows: place, part, class, hash of the cells, of what belongs together, and scores."""
    named = [(ROW, pa.int64()), ("part", pa.int8()), ("code", pa.int16()), ("hash", pa.int64()), ("draw", pa.int64())]
    scores = [(f"score {place}", pa.float64()) for place in range(n_classes)]
    return pa.schema([*named, ("by circuit", pa.bool_()), *scores])


class JudgedRows(NamedTuple):
    """Rows that no fit has seen: classes (n,), scores before calibration (n, C), hashes, and who decided."""

    codes: Codes
    scores: Array
    hashes: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]
    by_circuit: Flags

    @classmethod
    def of(cls, judged: pa.Table, part: int) -> "JudgedRows":
        """The rows of one part."""
        rows = judged.filter(pa.array(judged.column("part").to_numpy() == part))
        named = [rows.column(name).to_numpy() for name in ("code", "hash", "draw", "by circuit")]
        scores = [rows.column(name).to_numpy() for name in rows.column_names if name.startswith("score ")]
        return cls(named[0].astype(np.intp), np.column_stack(scores), *named[1:])


class _Tally:
    """Counts of training rows, column by column."""

    def __init__(self, model: Model, columns: tuple[Column, ...]) -> None:
        encodings = {one.name: encoding for one, encoding in zip(model.contract.columns, model.encodings, strict=True)}
        self._columns = columns
        self._encodings: list[Encoding | None] = [encodings.get(column.name) for column in columns]
        self._counts: dict[str, Counter[str]] = {}

    def read(self, batch: pa.RecordBatch) -> list[Any]:
        """Cells of the columns, as `read_cells` has them; those that are not of their kind are counted."""
        found: list[Any] = []
        for column in self._columns:
            given = cells.without_missing_values(batch.column(column.name), column)
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
        self._add(
            "left out", Counter({"unknown": int((codes == UNKNOWN).sum()), "missing": int((codes == MISSING).sum())})
        )
        self._add("training", Counter({"": int(rows.sum())}))
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
                    self._add(
                        f"levels:{column.name}", Counter({"0": int((some == 0).sum()), "1": int((some == 1).sum())})
                    )
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


LEAST_ROWS = 10
"""Rows of every class without which nothing is calibrated."""


def calibrate_judged(
    model: Model, rows: JudgedRows, found: Summary, operating_point: Any, kind: CalibrationKind
) -> tuple[Model, list[str]]:
    """Fit the calibration and the operating point to rows that the model has not seen; count the training rows.

    Returns the model with notes on what all rows of the table hold.
    """
    labels = list(model.decision.classes)
    counts = np.bincount(rows.codes, minlength=len(labels))
    check_calibrating(dict(zip(labels, counts.tolist(), strict=True)))
    draws = numbered(rows.draws)
    groups = None if draws.max() + 1 == len(draws) else draws
    calibration = fit_calibration(-rows.scores, rows.codes, kind, groups)
    chosen, curve = Decision.chosen(operating_point, labels, calibration.apply(-rows.scores), rows.codes, groups)
    decision = replace(chosen, priors=counts / counts.sum())
    columns, notes = _counted_columns(model, found)
    contract, training = replace(model.contract, columns=columns), _training(model, found, curve)
    made = model.recalibrated(calibration, decision, curve)
    return replace(made, contract=contract, training=training), notes


def check_calibrating(counts: Mapping[Any, int]) -> None:
    """Refuse to calibrate on too few rows of a class."""
    few = [f"{label!r} has {count:,}" for label, count in counts.items() if count < LEAST_ROWS]
    if few:
        raise DataError(
            f"A fit in passes calibrates on {LEAST_ROWS} rows of every class that it has not seen: {some_of(few, 10)}. "
            "Give more rows of the rarest class, or more --memory, so that the table is fitted as a whole."
        )


def judged_report(model: Model, rows: JudgedRows, found: Summary) -> dict[str, Any]:
    """Figures of all rows that were held out, as of `qmedoid.tables.evaluating.labeled_report`."""
    codes, scores, margins = model.decision.decide(model.last_calibration.apply(-rows.scores))
    decided = Decisions(codes, scores, margins, rows.by_circuit, None)
    report = labeled_report(model, rows.codes, decided, rows.hashes)
    left_out = found.counts.get("left out", {})
    return report | {"left_out": {name: left_out.get(name, 0) for name in ("missing", "unknown", "seen")}}


def _training(model: Model, found: Summary, curve: Any) -> TrainingSummary:
    """Counts of all training rows."""
    missing = found.counts.get("missing", {})
    levels = []
    for column, encoding in zip(model.contract.columns, model.encodings, strict=True):
        own = found.counts.get(f"levels:{column.name}", {})
        names = encoding.levels if isinstance(encoding, Levels) else ("0", "1") if column.kind == "boolean" else ()
        levels.append(np.array([own.get(name, 0) for name in names], dtype=np.intp))
    absent = np.array([missing.get(column.name, 0) for column in model.contract.columns], dtype=np.intp)
    return TrainingSummary(found.total("training"), absent, tuple(levels), curve, _days(found.counts.get("days", {})))


def _days(counts: Mapping[str, int]) -> DayCounts | None:
    if not counts:
        return None
    days = np.array(sorted(map(int, counts)), dtype=np.intp)[-MOST_DAYS:]
    rows: Codes = np.array([counts[str(day)] for day in days], dtype=np.intp)
    return DayCounts(days, rows)


def _counted_columns(model: Model, found: Summary) -> tuple[tuple[Column, ...], list[str]]:
    """Columns of the contract by what all rows of the table hold, with notes on what the sample had not shown."""
    columns, notes, missing = list[Column](), list[str](), found.counts.get("missing", {})
    for column in model.contract.columns:
        absent = missing.get(column.name, 0)
        if absent and not column.missing:
            column = replace(column, missing=True)
            notes.append(
                f"column {column.name!r}: {absent:,} cells are missing, none of them in the sample that was fitted: "
                "they are filled in, and that they are missing says nothing"
            )
        wrong = found.total(f"wrong:{column.name}")
        if wrong:
            shown = some_of([repr(one) for one in sorted(found.counts[f"examples:{column.name}"])[:MOST_EXAMPLES]])
            notes.append(f"column {column.name!r}: {wrong:,} cells are no {column.kind}s ({shown}): taken as missing")
            column = replace(column, is_open=column.is_open or column.kind != "boolean")
        new = found.total(f"new:{column.name}")
        if new:
            names = sorted(found.counts[f"names:{column.name}"])[:MOST_NAMES]
            if column.levels:
                column = replace(column, levels=tuple(sorted({*column.levels, *names})))
            notes.append(
                f"column {column.name!r}: {new:,} cells have a level that the sample does not have "
                f"({some_of([*map(repr, names)])}): they count as new ones"
            )
        columns.append(column)
    return tuple(columns), notes
