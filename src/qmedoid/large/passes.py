"""The passes over a table: counts of its classes, a sample of its rows, and scores of rows that are new to the fit."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, some_of
from qmedoid.geometry.row_groups import numbered
from qmedoid.large.base import ROW, RawReading, Summary, chances, kept_rows, key_of, label_texts, merge
from qmedoid.large.runner import Runner
from qmedoid.large.split import TEST, TRAIN, RowSplit, moments, read_cells
from qmedoid.methods.calibration import CalibrationKind, fit_calibration
from qmedoid.model.contract import Column, Encoding, Levels
from qmedoid.model.decision import Decision
from qmedoid.model.model import Decisions, Model
from qmedoid.model.training_summary import KEY_BYTES, TrainingSummary
from qmedoid.tables import cells
from qmedoid.tables.arrow import WORDS
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import keyed_hashes
from qmedoid.tables.evaluating import labeled_report
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import MISSING, UNKNOWN, class_words, label_codes, label_spelling, sum_labels

MOST_LABELS = 10_000
"""Different cells of a target from which on it is a quantity, or a name for every row."""


def count_labels(source: TableSource, first_row: int, *, reading: RawReading, target: str) -> Summary:
    """Rows (``"rows"``), rows without a class (``"unlabeled"``), and rows of every label (``"labels"``).

    What was adjusted while a file was read is in ``"notes"``.
    """
    labels = Counter[str]()
    n_rows = n_unlabeled = 0
    for batch, _ in reading.batches(source, first_row, [target]):
        codes, texts = label_texts(batch.column(0))
        n_rows += len(codes)
        n_unlabeled += int((codes < 0).sum())
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        labels.update({texts[place]: int(counts[place]) for place in np.flatnonzero(counts).tolist()})
        if len(labels) > MOST_LABELS:
            raise DataError(
                f"The target {target!r} holds more than {MOST_LABELS:,} different cells: a quantity or a name, not "
                "classes. Give a column of classes."
            )
    notes = dict.fromkeys(source.notes, 1)
    return Summary({"rows": {"": n_rows}, "unlabeled": {"": n_unlabeled}, "labels": labels, "notes": notes})


class Counted(NamedTuple):
    """What the first pass shows."""

    lengths: list[int]  # rows of every partition
    counts: Mapping[str, int]  # rows of every label by its text
    unlabeled: int
    classes: Mapping[str, str]  # what the texts mean
    notes: list[str]  # on how files were read

    @property
    def n_rows(self) -> int:
        """Rows with a label."""
        return sum(self.counts.values())

    def side_of(self, positive: Any) -> dict[str, str]:
        """The side of every text: its class; of more than two, where one is positive, that one, or ``""``."""
        if positive is None or len(set(self.classes.values())) <= 2:
            return dict(self.classes)
        wanted = label_spelling(positive)
        return {text: wanted if meant == wanted else "" for text, meant in self.classes.items()}

    def sides(self, positive: Any) -> dict[str, int]:
        """Rows of every side; of more than two classes those of the positive one come first, if there is one."""
        side_of = self.side_of(positive)
        first = [label_spelling(positive)] if "" in side_of.values() else []
        found = dict.fromkeys([*first, *side_of.values()], 0)
        for text, count in self.counts.items():
            found[side_of[text]] += count
        return found


def count_rows(runner: Runner, target: str, missing: Collection[Any] = ()) -> Counted:
    """Count rows and labels, without values of the target that are `missing`; one that holds no classes is refused."""
    found = runner.each("count", partial(count_labels, reading=runner.facts.reading, target=target))
    together = merge(found)
    counts = {text: n for text, n in together.counts.get("labels", {}).items() if n}
    kept = class_words(counts, missing)
    is_said = label_codes(pa.array(list(counts)), tuple(str(value) for value in missing if value != "")) >= 0
    others = [
        text for text, said in zip(counts, is_said, strict=True) if said or (text.strip() in WORDS and text not in kept)
    ]
    left_out = {text: counts.pop(text) for text in others}
    left_out |= {text: counts.pop(text) for text in sum_labels(counts)}
    classes = {text: label_spelling(text) for text in counts}
    if not counts:
        raise DataError(f"No row of {runner.facts.description} has a class in {target!r}: there is nothing to fit.")
    if len(set(classes.values())) == 1:
        raise DataError(
            f"The target {target!r} holds one class only, {next(iter(counts))!r}: a fit needs at least 2. Give another "
            "column as target, or a table with other rows as well."
        )
    lengths, notes = [one.total("rows") for one in found], [*together.counts.get("notes", {})]
    if left_out:
        held = some_of([f"{n:,} hold {text!r}" for text, n in left_out.items()], 5)
        notes.append(f"Rows are left out without a class in {target!r}: {held} (--missing decides which are).")
    return Counted(lengths, counts, together.total("unlabeled") + sum(left_out.values()), classes, notes)


SAMPLE = "sample"


def sample_rows(
    source: TableSource, first_row: int, *, reading: RawReading, target: str, rates: Mapping[str, float], seed: int
) -> Summary:
    """Rows with a class, each kept if its chance is below the rate of its label.

    The chance is a hash of the seed and of the place of the row: a row is kept or not, whatever else is.
    """
    key, found, places = key_of(SAMPLE, seed), list[pa.RecordBatch](), []
    for batch, row in reading.batches(source, first_row):
        codes, texts = label_texts(batch.column(target))
        # Rows without a label have the last rate.
        kept = np.array([*(rates.get(text, 0.0) for text in texts), 0.0])
        taken = np.flatnonzero(chances(key, row, batch.num_rows) < kept[codes])
        if len(taken):
            found.append(batch.take(pa.array(taken)))
            places.append(taken + row)
    return Summary({}, {SAMPLE: kept_rows(found, reading.schema(source), places)})


HARD = "hard"
# Odds beyond which a row is as hard as can be.
_MOST_LOG_ODDS = 30.0


def likeness(pilot: Model, rows: pa.RecordBatch | pa.Table) -> Array:
    """Odds of the second class, by the pilot."""
    scores = decide_batch(pilot, rows, Issues(trusts_points=True))[0].scores
    odds: Array = np.exp(np.clip(scores[:, 1] - scores[:, 0], -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    return odds


def hard_rows(
    source: TableSource,
    first_row: int,
    *,
    reading: RawReading,
    target: str,
    common: tuple[str, ...],
    pilot: Model,
    split: RowSplit,
    scale: float,
    seed: int,
) -> Summary:
    """Training rows of the common class, each kept if its chance is below min(1, odds · τ)."""
    key, found, places = key_of(HARD, seed), list[pa.RecordBatch](), []
    for batch, row in reading.batches(source, first_row):
        codes, texts = label_texts(batch.column(target))
        is_common = np.array([*(text in common for text in texts), False])[codes]
        drawn = chances(key, row, batch.num_rows)
        odds = likeness(pilot, reading.in_kinds(batch, split.columns))
        taken = np.flatnonzero(is_common & (drawn < np.minimum(1.0, odds * scale)))
        if not len(taken):
            continue
        kept = batch.take(pa.array(taken))
        some = reading.in_kinds(kept, split.columns)
        is_train = split.parts(read_cells(some, split.columns), kept, taken + row)[0] == TRAIN
        found.append(kept.filter(pa.array(is_train)))
        places.append(taken[is_train] + row)
    return Summary({}, {HARD: kept_rows(found, reading.schema(source), places)})


def scale_for(odds: Array, each: float, count: float) -> float:
    """τ so that about `count` rows are kept, where every row with these odds counts `each`."""
    low, high = 1e-30, 1e30
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        if each * np.minimum(1.0, odds * middle).sum() < count:
            low = middle
        else:
            high = middle
    return low


JUDGED, HELD_OUT = "judged", "held out"
MOST_NAMES = 1000
"""New levels of a column that are remembered by name: the first in alphabetical order."""
MOST_EXAMPLES = 5
_DAY = 86_400_000_000.0


def judge_rows(
    source: TableSource,
    first_row: int,
    *,
    reading: RawReading,
    target: str,
    model: Model,
    split: RowSplit,
    held_rate: float,
    seed: int,
) -> Summary:
    """Scores of rows that calibrate or judge a model, and what training rows hold.

    Of the rows that are held out, raw ones are kept if their chance is below `held_rate`.
    """
    plain, classes, time = model.before_calibration(), model.decision.classes, split.time
    hash_key = bytes(KEY_BYTES) if model.seen is None else model.seen.key
    key, tally = key_of(HELD_OUT, seed), _Tally(model, split.columns)
    # Of judged rows: place, part, class, hash of the cells, of what belongs together, and scores.
    named = [(ROW, pa.int64()), ("part", pa.int8()), ("code", pa.int16()), ("hash", pa.int64()), ("draw", pa.int64())]
    scores = [(f"score {place}", pa.float64()) for place in range(len(classes))]
    schema = pa.schema([*named, ("by circuit", pa.bool_()), *scores])
    judged, held, places = list[pa.RecordBatch](), list[pa.RecordBatch](), []
    for batch, row in reading.batches(source, first_row):
        codes = label_codes(batch.column(target), classes)
        read = reading.in_kinds(batch, split.columns)
        columns = tally.read(read)
        numbers = np.arange(row, row + batch.num_rows)
        part, draws = split.parts(columns, batch, numbers)
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
            pairs = zip([*whose, *decided.scores.T], schema, strict=True)
            judged.append(pa.record_batch([pa.array(one).cast(field.type) for one, field in pairs], schema))
        shown = np.flatnonzero((part == TEST) & (chances(key, row, batch.num_rows) < held_rate))
        if len(shown):
            held.append(batch.take(pa.array(shown)))
            places.append(shown + row)
    kept = kept_rows(held, reading.schema(source), places)
    return Summary(tally.counts, {JUDGED: pa.Table.from_batches(judged, schema), HELD_OUT: kept})


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
        self.counts: dict[str, Counter[str]] = {}

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
                self._add(f"wrong:{column.name}", {"": len(wrong)})
                self._first(f"examples:{column.name}", wrong.unique().to_pylist(), MOST_EXAMPLES)
            found.append(values)
        return found

    def add(self, columns: list[Any], rows: Flags, codes: Codes) -> None:
        """Count some rows of a batch."""
        self._add("left out", {"unknown": int((codes == UNKNOWN).sum()), "missing": int((codes == MISSING).sum())})
        self._add("training", {"": int(rows.sum())})
        absent: Counter[str] = Counter()
        for column, encoding, values in zip(self._columns, self._encodings, columns, strict=True):
            if column.kind == "category":
                some = values.filter(pa.array(rows))
                absent[column.name] += some.null_count
                if isinstance(encoding, Levels):
                    _, unseen = cells.level_codes(some.drop_null(), encoding.levels)
                    self._add(f"new:{column.name}", {"": len(unseen)})
                    self._first(f"names:{column.name}", unseen.unique().to_pylist(), MOST_NAMES)
            else:
                some = values[rows]
                known = ~np.isnat(some) if column.kind == "date" else cells.is_usable(some)
                absent[column.name] += int(len(some) - known.sum())
        self._add("missing", absent)

    def add_days(self, moments: npt.NDArray[Any]) -> None:
        """Count rows by day."""
        days, counts = np.unique(np.floor(moments[~np.isnan(moments)] / _DAY).astype(np.int64), return_counts=True)
        self._add("days", dict(zip(map(str, days.tolist()), counts.tolist(), strict=True)))

    def _add(self, what: str, found: Mapping[str, int]) -> None:
        self.counts.setdefault(what, Counter()).update(found)

    def _first(self, what: str, names: list[str], most: int) -> None:
        """Remember names: the first in alphabetical order, so that they do not depend on the order of rows."""
        known = sorted({*self.counts.get(what, ()), *names})[:most]
        self.counts[what] = Counter(dict.fromkeys(known, 0))


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
    missing, days = (found.counts.get(name, {}) for name in ("missing", "days"))
    absent = np.array([missing.get(column.name, 0) for column in columns], dtype=np.intp)
    per_day = sum(days.values()) / len(days) if days else None
    contract = replace(model.contract, columns=columns)
    training = TrainingSummary(found.total("training"), absent, curve, per_day)
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
