"""What a model shows on records whose class is known, and what the decisions about a whole table show of it.

Labeled rows for a new calibration are collected here as well.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.metrics.classification import (
    calibration_error,
    confidence_outcomes,
    confusion_matrix,
    log_loss,
    pr_auc,
    roc_auc,
)
from qmedoid.metrics.prevalence import NO_LOG_ODDS, PrevalenceEstimate, log_odds_histogram, prevalence_of
from qmedoid.metrics.thresholds import threshold_at_count
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import Counts
from qmedoid.model.training_summary import KEY_BYTES, Hashes, seen_in_words
from qmedoid.spelling import did_you_mean
from qmedoid.tables.difference import Issues
from qmedoid.tables.documents import ClassFiguresDict, EvaluationDict, FiguresDict, LeftOutDict, SeenDict
from qmedoid.tables.encode import keyed_hashes, row_hashes
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch
from qmedoid.tables.targets import MISSING, UNKNOWN, label_codes, seldom_note

SEEN = -3
"""Code of a row that has a class of the model, and is left out because the fit has seen it."""
# Classes that a note names.
_NAMED = 5
T = TypeVar("T")


def without_seen(model: Model, codes: Codes, hashes: Hashes | None) -> Codes:
    """Class codes in which rows that the fit has seen are `SEEN`; all as they were if the model keeps no hashes."""
    if model.seen is None or hashes is None:
        return codes
    return np.where((codes >= 0) & model.seen.has(hashes), SEEN, codes)


def joined(parts: Iterable[Decisions]) -> Decisions:
    """Decisions about one part of a table after the other as one; nearest medoids are left out."""
    *arrays, _ = zip(*parts, strict=True)
    return Decisions._make([*map(np.concatenate, arrays), None])


def labeled_report(model: Model, codes: Codes, decided: Decisions, hashes: Hashes | None = None) -> EvaluationDict:
    """The report over rows that have a class of the model; codes are those of `qmedoid.tables.targets`, and `SEEN`.

    With the `qmedoid.tables.encode.row_hashes` of the rows it says how many were seen in fitting.
    """
    known = codes >= 0
    missing, unknown, passed_over = (int((codes == code).sum()) for code in (MISSING, UNKNOWN, SEEN))
    left_out: LeftOutDict = {"missing": missing, "unknown": unknown, "seen": passed_over}
    if not known.any() and left_out["seen"]:
        raise DataError(
            f"All {left_out['seen']:,} rows with a class were seen in fitting: they do not show how good the model is "
            "on new rows. Give rows that are new, or count them all with --all-rows (all_rows=True in Python)."
        )
    if not known.any():
        classes = some_of([repr(label) for label in model.decision.classes])
        raise ContractError(
            f"None of the {len(codes):,} rows has a class of the model ({classes}) in its "
            f"target column: {left_out['missing']:,} are missing, {left_out['unknown']:,} are other labels."
        )
    part = Decisions._make([*(array[known] for array in decided[:4]), None])
    seen: SeenDict | None = None
    if model.seen is not None and hashes is not None:
        found = model.seen.among(hashes[known | (codes == SEEN)])
        seen = {"rows": found[0], "checked": found[1]}
    return {**decision_report(model, codes[known], part), "left_out": left_out, "seen": seen}


def decision_report(model: Model, codes: Codes, decided: Decisions) -> FiguresDict:
    """Counts and metrics of decisions against the true class codes, by name and fit for JSON.

    For two classes the second is the positive one: precision, recall and the areas are of it. What is not defined, such
    as the precision of a class that was never predicted, is None. Macro-F1 is the mean over the classes that occur;
    ``"absent"`` are those that do not.
    """
    labels = [str(label) for label in model.decision.classes]
    confusion = confusion_matrix(codes, decided.codes, len(labels))
    by_class = [_class_figures(confusion, code) for code in range(len(labels))]
    f1, rows = np.array([one["f1"] or 0.0 for one in by_class]), confusion.sum(axis=1)
    report: FiguresDict = {
        "rows": len(codes),
        "accuracy": float(np.trace(confusion) / confusion.sum()),
        "macro_f1": float(f1[rows > 0].mean()),
        "weighted_f1": float(rows @ f1 / rows.sum()),
        "by_circuit": float(decided.by_circuit.mean()),
        "classes": dict(zip(labels, by_class, strict=True)),
        "absent": [label for label, own in zip(labels, by_class, strict=True) if own["rows"] == 0],
        "confusion": confusion.astype(int).tolist(),
    }
    if model.decision.probabilistic:
        probabilities = model.decision.probabilities(decided.scores)
        report["log_loss"] = log_loss(codes, probabilities)
        # How far probabilities are off, and by chance alone: of the second of two classes, else of the likeliest. The
        # same seed for every report: the same decisions give the same figures.
        outcomes = confidence_outcomes(codes, probabilities)
        report["calibration"] = calibration_error(*outcomes, rng=np.random.default_rng(0))
    if len(labels) == 2:
        positive, own = codes == 1, by_class[1]
        report |= {
            "positive": model.decision.classes[1],
            "prevalence": float(positive.mean()),
            "alert_rate": float((decided.codes == 1).mean()),
            "precision": own["precision"],
            "recall": own["recall"],
            "f1": own["f1"],
            "roc_auc": _defined(roc_auc(positive, decided.margins)),
            "pr_auc": _defined(pr_auc(positive, decided.margins)),
        }
    return report


def report_notes(model: Model, report: Mapping[str, Any], *, seldom: bool = True) -> list[str]:
    """Notes on a report: rows that are not new, classes that are absent or, with `seldom`, hardly ever called."""
    left_out, seen = report.get("left_out", {}).get("seen"), seen_in_words(report.get("seen"), report["rows"])
    notes = [] if seen is None else [seen]
    if left_out:
        rows = report["rows"]
        notes = [
            f"left out: {left_out:,} of {left_out + rows:,} rows, which were seen in fitting; these figures are of the "
            f"other {rows:,} (--all-rows counts all)"
        ]
    if report["absent"]:
        absent = some_of([repr(label) for label in report["absent"]], _NAMED)
        one = len(report["absent"]) == 1
        notes.append(
            f"the class{'' if one else 'es'} {absent} {'does' if one else 'do'} not occur in these rows: macro-F1 is "
            "the mean over the others."
        )
    elif seldom and len(model.decision.classes) == 2 and model.decision.cut is None:
        (tn, fp), (fn, tp) = report["confusion"]
        note = seldom_note(model.decision.classes, Counts(tp, fp, fn, tn))
        notes += [] if note is None else [note]
    return notes


def _class_figures(confusion: Array, code: int) -> ClassFiguresDict:
    """Rows, precision, recall and F1 of one class; None where there is no row, or no prediction, to divide by."""
    hits, rows, called = confusion[code, code], confusion[code].sum(), confusion[:, code].sum()
    return {
        "rows": int(rows),
        "precision": float(hits / called) if called else None,
        "recall": float(hits / rows) if rows else None,
        "f1": float(2.0 * hits / (rows + called)) if rows or called else None,
    }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def class_column(model: Model, target: str | None, names: Sequence[str]) -> str:
    """The column of a table that holds the classes: as asked for, or that of the fit."""
    name = target or model.contract.target
    if name is None:
        raise ParameterError("The model does not know the name of the target column: pass --target.")
    if name not in names:
        raise ContractError(
            f"There is no column {name!r} with the classes.{did_you_mean(name, names)} The table "
            f"has: {some_of([*map(repr, names)])}. Pass --target."
        )
    return name


def evaluate_file(
    model: Model,
    where: str,
    target: str | None,
    settings: ScoreSettings,
    *,
    on_progress: OnProgress | None = None,
) -> tuple[Codes, Decisions, Hashes | None, NoveltyReport, tuple[int, str]]:
    """Decide about every record of a table, and read its classes from the column `target`, by default that of the fit.

    Rows that cannot be decided about (`qmedoid.tables.writing`) refuse the table, or are left out and, if the settings
    name a file for them, written there as they were.
    Returns class codes, decisions, their hashes, if kept, the novelty of the rows, and how many could not be decided
    about, with where the first of them is and why.
    """
    with TableReading(model, where, settings) as reading:
        target = class_column(model, target, reading.source.names)

        def decide() -> list[tuple[Codes, Decisions, Hashes | None]]:
            parts = []
            for part, more in reading.decided([target], for_what="evaluate", as_text=True, on_progress=on_progress):
                labels = more.column(target) if part.bad is None else more.column(target).filter(part.bad.is_null())
                if len(labels):
                    codes = label_codes(labels, model.decision.classes)
                    parts.append((codes, part.decided._replace(nearest=None), row_hashes(model, part.records)))
            return parts

        of_rows, decisions, hashes = zip(*reading.in_kind(decide, [settings.bad_rows]), strict=True)
        kept = None if model.seen is None else np.concatenate(hashes)
        bad = reading.bad_rows, reading.first_bad
        return np.concatenate(of_rows), joined(decisions), kept, reading.novelty.report(model), bad


def estimate_in_file(
    model: Model, where: str, settings: ScoreSettings, *, on_progress: OnProgress | None = None
) -> PrevalenceEstimate:
    """How frequent the second class is in a table that can be read once more afterwards, so not in a pipe."""
    # Another prevalence is refused where it has no meaning, before anything is read.
    model.decision.at_priors(0.5)
    priors = model.decision.expected_priors
    assert priors is not None, "a model without priors cannot be shifted"

    def count(parts: Iterator[Array]) -> Array:
        return reduce(lambda before, log_odds: log_odds_histogram(log_odds, before), parts, NO_LOG_ODDS)

    how = "to estimate the prevalence", "or give the prevalence as a number"
    histogram = _first_pass(model, where, settings, on_progress, count, *how)
    if not histogram.size:
        raise DataError(f"{where} has no rows: there is no prevalence to estimate.")
    return prevalence_of(histogram, float(priors[1]))


def top_in_file(
    model: Model,
    where: str,
    count: int,
    settings: ScoreSettings,
    *,
    on_progress: OnProgress | None = None,
) -> tuple[float, int, int, int]:
    """The log-odds above which the highest scores of a table lie, and its rows; it is read once more afterwards.

    Of records with equal scores all or none are above: those that would exceed the count are not. Returned are also how
    many are above, and how many tie for the places that are left. No more scores are held than twice the count and a
    batch.
    """
    model.decision.check_cuttable()

    def find(parts: Iterator[Array]) -> tuple[float, int, int, int]:
        highest, rows, least, dropped = np.zeros(0), 0, -np.inf, 0
        for log_odds in parts:
            rows += len(log_odds)
            highest = np.concatenate([highest, log_odds])
            # One more than the count, as the cut lies between two scores.
            if len(highest) > 2 * count + 1:
                rest, highest = np.split(np.partition(highest, -count - 1), [-count - 1])
                before, least = least, float(highest[0])
                # Of scores that are let go, those that equal the lowest one kept may tie for the last places.
                dropped = int((rest == least).sum()) + (dropped if least == before else 0)
        if not rows:
            return 0.0, 0, 0, 0
        cut = threshold_at_count(highest, count)
        others = highest[highest <= cut]
        above, tied = len(highest) - len(others), 0
        if above < min(count, rows):
            tied = int((others == others.max()).sum()) + (dropped if others.max() == least else 0)
        return cut, rows, above, tied

    how = "to find its highest scores", "or cut by --threshold or --alert-rate"
    return _first_pass(model, where, settings, on_progress, find, *how)


def _first_pass(
    model: Model,
    where: str,
    settings: ScoreSettings,
    on_progress: OnProgress | None,
    gather: Callable[[Iterator[Array]], T],
    why: str,
    instead: str,
) -> T:
    """What is gathered from the log-odds of all rows of a table, which is read once more afterwards."""
    with TableReading(model, where, replace(settings, bad_rows=None)) as table:
        if not table.can_repeat:
            raise ParameterError(
                f"The table is read twice {why}, and a pipe can be read once: write it to a file, {instead}."
            )

        def run() -> T:
            scores = (part.decided.scores for part, _ in table.decided(on_progress=on_progress))
            return gather(each[:, 1] - each[:, 0] for each in scores)

        return table.in_kind(run)


MOST_ROWS = 250_000
"""Labeled rows that are kept at most: those with the smallest hashes, which are a random sample.

A calibration has a dozen numbers; more rows would take minutes and change none of them."""


class LabeledRows(NamedTuple):
    """What is known of n labeled rows that may calibrate a model of C classes."""

    scores: Array  # (n, C), before the last calibration
    by_circuit: Flags
    codes: Codes
    hashes: Hashes  # of the cells that the model reads, by its key if it has one
    cells: Array  # encoded columns that the model reads

    def take(self, rows: Codes | Flags) -> "LabeledRows":
        """Some of the rows."""
        return LabeledRows._make(part[rows] for part in self)


class LabeledTally:
    """Labeled rows of a table, batch by batch, in memory that is bounded by `most` rows."""

    def __init__(self, model: Model, most: int = MOST_ROWS) -> None:
        self.model, self.most = model, most
        self.missing = self.unknown = self.labeled = 0
        self._parts, self._plain = list[LabeledRows](), model.before_calibration()
        # Models without row hashes have no key.
        self._key = bytes(KEY_BYTES) if model.seen is None else model.seen.key

    def add(
        self, batch: pa.RecordBatch | pa.Table, labels: Any, issues: Issues, novelty: NoveltyTally | None = None
    ) -> None:
        """Count a batch in, with the cells of its target column."""
        codes = label_codes(labels, self.model.decision.classes)
        decided, columns = decide_batch(self._plain, batch, issues, novelty)
        cells = np.column_stack(
            [column for column, read in zip(columns, self.model.layout.is_read, strict=True) if read]
        )
        is_labeled = codes >= 0
        self.missing += int((codes == MISSING).sum())
        self.unknown += int((codes == UNKNOWN).sum())
        self.labeled += int(is_labeled.sum())
        found = LabeledRows(
            decided.scores, decided.by_circuit, codes, keyed_hashes(self.model, batch, self._key), cells
        )
        self._parts.append(found.take(is_labeled))
        if sum(len(part.codes) for part in self._parts) > 2 * self.most:
            self._parts = [self.rows()]

    def rows(self) -> LabeledRows:
        """All labeled rows, or the sample of them."""
        rows = LabeledRows._make(map(np.concatenate, zip(*self._parts, strict=True)))
        if len(rows.codes) <= self.most:
            return rows
        # Equal rows have one hash, and stay together.
        return rows.take(rows.hashes <= np.partition(rows.hashes, self.most - 1)[self.most - 1])
