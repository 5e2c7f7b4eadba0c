"""From judged rows to a calibrated model: probabilities, operating point, held-out curve and figures of all of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError, some_of
from qmedoid.geometry.row_groups import numbered
from qmedoid.large.base import Summary
from qmedoid.large.judge import MOST_EXAMPLES, MOST_NAMES, JudgedRows
from qmedoid.methods.calibration import CalibrationKind, fit_calibration
from qmedoid.model.choose_point import choose_point
from qmedoid.model.contract import Column, Levels
from qmedoid.model.decision import Decision
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import Decisions, TableModel
from qmedoid.model.training_summary import MOST_DAYS, DayCounts, TrainingSummary
from qmedoid.tables.evaluating import labeled_report

LEAST_ROWS = 10
"""Rows of every class without which nothing is calibrated."""


class Calibrated(NamedTuple):
    """A model with probabilities of judged rows, and notes on what all rows of the table hold."""

    model: TableModel
    notes: list[str]


def calibrate_judged(
    model: TableModel, rows: JudgedRows, found: Summary, operating_point: Any, kind: CalibrationKind
) -> Calibrated:
    """Fit the calibration and the operating point to rows that the model has not seen; count the training rows."""
    best, labels = model.best, list(model.decision.classes)
    assert isinstance(best, HybridModel), "a fit of a table is no circuit alone"
    counts = np.bincount(rows.codes, minlength=len(labels))
    check_calibrating(dict(zip(labels, counts.tolist(), strict=True)))
    draws = numbered(rows.draws)
    groups = None if draws.max() + 1 == len(draws) else draws
    calibration = fit_calibration(-rows.scores, rows.codes, kind, groups)
    chosen = choose_point(operating_point, labels, calibration.apply(-rows.scores), rows.codes, groups)
    decision = Decision(
        model.decision.classes, chosen.cut, priors=counts / counts.sum(), operating=chosen.expected,
        biases=chosen.biases,
    )  # fmt: skip
    again = best.with_last_calibration(calibration)
    importances = None if model.importances is None else model.importances * (again.slope / best.slope)
    columns, notes = _counted_columns(model, found)
    made = replace(
        model, models=(again, *model.models[1:]), decision=decision, importances=importances,
        contract=replace(model.contract, columns=columns), training=_training(model, found, chosen.curve),
    )  # fmt: skip
    return Calibrated(made, notes)


def check_calibrating(counts: Mapping[Any, int]) -> None:
    """Refuse to calibrate on too few rows of a class."""
    few = [f"{label!r} has {count:,}" for label, count in counts.items() if count < LEAST_ROWS]
    if few:
        raise DataError(
            f"A fit in passes calibrates on {LEAST_ROWS} rows of every class that it has not seen: {some_of(few, 10)}. "
            "Give more rows of the rarest class, or more --memory, so that the table is fitted as a whole."
        )


def judged_report(model: TableModel, rows: JudgedRows, found: Summary) -> dict[str, Any]:
    """Figures of all rows that were held out, as of `qmedoid.tables.evaluating.labeled_report`."""
    best = model.best
    assert isinstance(best, HybridModel), "a fit of a table is no circuit alone"
    codes, scores, margins = model.decision.decide(best.last_calibration.apply(-rows.scores))
    decided = Decisions(codes, scores, margins, rows.by_circuit, None)
    report = labeled_report(model, rows.codes, decided, rows.hashes)
    left_out = found.counts.get("left out", {})
    return report | {"left_out": {name: left_out.get(name, 0) for name in ("missing", "unknown", "seen")}}


def _training(model: TableModel, found: Summary, curve: Any) -> TrainingSummary:
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


def _counted_columns(model: TableModel, found: Summary) -> tuple[tuple[Column, ...], list[str]]:
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
