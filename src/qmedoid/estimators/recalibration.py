"""Recalibration: probabilities and operating point of a saved model from new labels, everything else as it was."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import RecalibrationDict, RecalibrationFiguresDict, RecalibrationLeftOutDict
from qmedoid.estimators.folds import stratified_splits
from qmedoid.estimators.parameters import OPERATING_POINT, Constraint, check_parameters
from qmedoid.exceptions import DataError, ParameterError, some_of, warn
from qmedoid.geometry.row_groups import draws_per_row, group_sums, part_of, row_groups
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import CalibrationKind, fit_calibration
from qmedoid.methods.part import Calibration
from qmedoid.metrics.intervals import Interval
from qmedoid.model.decision import Decision
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import asked_rule
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.saved import SavedModel, check_saved
from qmedoid.tables.arrow import as_table
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.evaluating import LabeledRows, LabeledTally, decision_report


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A recalibrated model, and what that does to rows that it was not fitted on.

    Attributes
    ----------
    model : SavedModel
        The new model; save it with ``model.save(path)``.
    rows : int
        Labeled rows that it was calibrated on.
    left_out : mapping of str to int
        Other rows of the table: ``"known"`` from the fit, without a class (``"missing"``), of a class that the model
        does not have (``"unknown"``), and beyond the largest sample (``"sampled"``).
    before, after : mapping
        Figures on these rows of the model as it was, and of models calibrated in folds without the row.
    gain : Interval
        By how much the mean log-loss falls, with its 95 % interval.
    notes : tuple of str
    """

    model: SavedModel
    rows: int
    left_out: RecalibrationLeftOutDict
    before: RecalibrationFiguresDict
    after: RecalibrationFiguresDict
    gain: Interval
    notes: tuple[str, ...]

    @property
    def helps(self) -> bool:
        """Whether the gain is beyond chance."""
        return self.gain.low > 0

    @property
    def verdict(self) -> str:
        """Whether it helps, in a sentence."""
        what = "makes the probabilities better" if self.helps else "does not help beyond chance"
        if self.gain.high < 0:
            what = "makes the probabilities worse"
        return (
            f"Recalibration {what}: the log-loss is {self.before['log_loss']:.4f} before and "
            f"{self.after['log_loss']:.4f} after, out of fold: a gain of {self.gain.value:.4f} (95 %: "
            f"{self.gain.low:.4f} to {self.gain.high:.4f})."
        )

    def as_dict(self) -> RecalibrationDict:
        """Everything but the model by name, fit for JSON."""
        operating = self.model.expected_
        priors = self.model.model.decision.priors
        return {
            "parent": self.model.model.parent,
            "rows": self.rows,
            "left_out": self.left_out,
            "priors": None if priors is None else priors.tolist(),
            "operating": None if operating is None else operating.as_dict(),
            "before": self.before,
            "after": self.after,
            "gain": self.gain.as_dict(),
            "helps": self.helps,
            "notes": list(self.notes),
        }


LEAST_ROWS = 10
"""Rows of every class without which nothing is calibrated; rows that are equal count once."""
SAME = "same"
"""The operating point that asks for the rule of the model as it is."""
N_FOLDS = 5
# Figures that are compared before and after; areas under curves are those of one ranking, which stays.
_COMPARED = ("log_loss", "calibration", "accuracy", "macro_f1", "alert_rate", "precision", "recall")
_TWO_ERRORS = 1.96
_POINTS = {
    "operating_point": Constraint(f"{SAME!r}, {OPERATING_POINT.text}", lambda value: value == SAME) | OPERATING_POINT
}


def recalibrate(
    model: SavedModel,
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    operating_point: Any = SAME,
    on_mismatch: OnMismatch = "error",
) -> Recalibration:
    """Fit probabilities and operating point of a saved model to new labels, and leave everything else as it was.

    The calibration is fitted anew to the scores of the labeled rows; their class frequencies become the priors, and
    the operating point and what is expected of it are those of these rows. Medoids, weights and encodings stay. A
    circuit keeps the scores that it was trained on: there the calibration is fitted to the scores after it.

    Parameters
    ----------
    model : SavedModel
    data : data frame, Arrow table, dict of columns or array
        Rows that the model was not fitted on. Those that it knows by their hashes are left out, with a warning.
    y : array-like of shape (n,) or None, default=None
        Their classes; None takes them from the column `target`.
    target : str or None, default=None
        Column of the classes; None is the one of the model.
    operating_point : as of `MedoidClassifier`, or "same", default="same"
        ``"same"`` applies the rule of the model to the labeled rows.
    on_mismatch : {"error", "warn"}, default="error"

    Returns
    -------
    Recalibration
        The new model, and figures before and after.

    Raises
    ------
    DataError
        Rows are too few, a class is missing, or most rows are those that the model was fitted on.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from qmedoid import EvidenceClassifier, recalibrate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = EvidenceClassifier(random_state=0).fit(X[::2], y[::2]).to_saved()
    >>> found = recalibrate(model, X[1::2], y[1::2])
    >>> found.rows, found.model.classes_.tolist()
    (284, [0, 1])

    See Also
    --------
    SavedModel.prior_shift : where only class frequencies have changed, and no labels are known.
    """
    check_saved(model=model)
    check_point(operating_point)
    tally = LabeledTally(model.model)
    name = target or model.contract.target
    if y is None and name is None:
        raise ParameterError("The model does not know the name of the target column: pass target= or y=.")
    labels = None if y is None else as_table({"y": y}).column("y")
    with model._read(data, on_mismatch) as (table, issues):
        if labels is None and name not in table.column_names:
            raise DataError(f"There is no column {name!r} with the classes: pass y= or target=.")
        found = table.column(name) if labels is None else labels
        if len(found) != len(table):
            raise DataError(f"The table has {len(table)} rows and y has {len(found)}: pass one class for every row.")
        tally.add(table, found, issues)
    return recalibrated(model, tally, operating_point)


def check_point(operating_point: Any) -> None:
    """Refuse an operating point that is none."""
    check_parameters("recalibrate", {"operating_point": operating_point}, _POINTS)


def recalibrated(saved: SavedModel, tally: LabeledTally, operating_point: Any) -> Recalibration:
    """Recalibrate a model on the rows that a tally has collected; notes are warnings, too."""
    model = saved.model
    labels = list(model.decision.classes)
    point = _same_point(model) if isinstance(operating_point, str) and operating_point == SAME else operating_point
    asked_rule(point, labels)
    rows, left_out, notes = _new_rows(model, tally)
    groups = row_groups(rows.cells, rows.codes)
    draws = rows.codes if groups is None else np.unique(groups * len(labels) + rows.codes) % len(labels)
    counts = np.bincount(draws, minlength=len(labels))
    if counts.min() < LEAST_ROWS:
        found = [f"{label!r} has {count:,}" for label, count in zip(labels, counts, strict=True)]
        raise DataError(
            f"Recalibration needs {LEAST_ROWS} different new rows of every class: {some_of(found, 10)}. Label more "
            "rows, or, if only class frequencies have changed, score with --prevalence (prior_shift)."
        )
    kind: CalibrationKind = "curve" if len(model.calibration.knots) else "logistic"
    calibration, chosen, curve = _fitted(rows, point, labels, kind, groups)
    figures, losses = list[RecalibrationFiguresDict](), list[Array]()
    for decided in (
        _decided(rows, model.last_calibration, model.decision),
        _cross_fitted(rows, point, labels, kind, groups),
    ):
        report: Mapping[str, Any] = decision_report(model, rows.codes, decided)
        kept = {name: report[name] for name in _COMPARED if name in report}
        figures.append(cast("RecalibrationFiguresDict", kept))
        losses.append(-log_softmax(decided.scores)[np.arange(len(rows.codes)), rows.codes])
    before, after = figures
    if model.decision.shift is not None:
        notes.append("the model was adjusted to other class frequencies: those of the labeled rows replace them")
    for note in notes:
        warn(note)
    priors = np.bincount(rows.codes, minlength=len(labels)) / len(rows.codes)
    new = model.recalibrated(calibration, replace(chosen, priors=priors), curve)
    shown = {"rows": len(rows.codes), "left_out": left_out, "before": before, "after": after}
    # What the fit showed is about other probabilities.
    metrics = {"recalibration": shown, "parent": model.metrics.get("parent", dict(model.metrics))}
    made = SavedModel(replace(new, metrics=metrics, parent=saved.sha256 or model.parent), versions=saved.versions)
    # Rows of one group are one draw.
    by_draw = draws_per_row(groups) * group_sums(losses[0] - losses[1], groups)
    mean, half = float(by_draw.mean()), _TWO_ERRORS * float(by_draw.std(ddof=1) / np.sqrt(len(by_draw)))
    gain = Interval(mean, mean - half, mean + half)
    return Recalibration(made, len(rows.codes), left_out, before, after, gain, tuple(notes))


def _new_rows(model: Model, tally: LabeledTally) -> tuple[LabeledRows, RecalibrationLeftOutDict, list[str]]:
    """The rows that the fit has not seen, how many others there are, and notes on them."""
    if not tally.labeled:
        classes = some_of([repr(label) for label in model.decision.classes], 10)
        raise DataError(
            f"No row has a class of the model ({classes}): {tally.missing:,} are missing, {tally.unknown:,} are others."
        )
    rows, notes = tally.rows(), []
    left_out: RecalibrationLeftOutDict = {
        "missing": tally.missing,
        "unknown": tally.unknown,
        "known": 0,
        "sampled": tally.labeled - len(rows.codes),
    }
    if left_out["sampled"]:
        notes.append(f"a random sample of {len(rows.codes):,} of {tally.labeled:,} labeled rows is used")
    if tally.missing or tally.unknown:
        notes.append(f"left out: {tally.missing:,} rows without a class, {tally.unknown:,} of other classes")
    if model.seen is None:
        notes.append("the model keeps no hashes of its training rows: that these are new rows was not checked")
        return rows, left_out, notes
    known, checked = np.isin(rows.hashes, model.seen.hashes), model.seen.among(rows.hashes)[1]
    left_out["known"] = count = int(known.sum())
    if 2 * count > max(checked, 1):
        raise DataError(
            f"{count:,} of {checked:,} labeled rows were in the fit. A model scores these better than new rows: give a "
            "table of rows that it has not seen."
        )
    if count:
        notes.append(f"{count:,} rows were in the fit, and are left out")
    return rows.take(~known), left_out, notes


def _same_point(model: Model) -> Any:
    """The operating point that the model was fitted with, as a parameter."""
    decision, stored = model.decision, model.parameters.get("operating_point")
    operating = decision.operating
    if operating is not None:
        if operating.rule in ("likeliest", "probability"):
            return operating.asked
        return operating.rule if operating.asked is None else {operating.rule: operating.asked}
    if decision.biases is None and decision.cut is None:
        return None
    try:
        asked_rule(stored, list(decision.classes))
    except ParameterError:
        stored = None
    if stored is None:
        raise ParameterError("The model does not hold the rule of its operating point: pass operating_point=.")
    return stored


def _fitted(
    rows: LabeledRows, point: Any, labels: list[Any], kind: CalibrationKind, groups: Codes | None
) -> tuple[Calibration, Decision, HeldOutCurve | None]:
    """Calibration, decision and curve of some rows."""
    calibration = fit_calibration(-rows.scores, rows.codes, kind, groups)
    return calibration, *Decision.chosen(point, labels, calibration.apply(-rows.scores), rows.codes, groups)


def _decided(rows: LabeledRows, calibration: Calibration, decision: Decision) -> Decisions:
    codes, scores, margins = decision.decide(calibration.apply(-rows.scores))
    return Decisions(codes, scores, margins, rows.by_circuit, None)


def _cross_fitted(
    rows: LabeledRows, point: Any, labels: list[Any], kind: CalibrationKind, groups: Codes | None
) -> Decisions:
    """Decisions about every row by calibration and operating point of the other folds."""
    found = Decisions(
        np.empty_like(rows.codes), np.empty_like(rows.scores), np.empty(len(rows.codes)), rows.by_circuit, None
    )
    rng = np.random.default_rng(0)
    for train, test in stratified_splits(N_FOLDS, rows.scores, rows.codes, np.array(labels), rng, groups):
        calibration, decision, _ = _fitted(rows.take(train), point, labels, kind, part_of(groups, train))
        for whole, part in zip(found[:3], _decided(rows.take(test), calibration, decision)[:3], strict=True):
            whole[test] = part
    return found
