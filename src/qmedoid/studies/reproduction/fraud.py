"""The frauds: every method fitted on training rows, cut on validation rows, judged on all rows and on test rows alone.

The paper scores all rows, those that the models were fitted on among them. Here the same figures stand beside those
of the test rows, which nothing has seen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError
from qmedoid.metrics.operating_points import (
    OperatingPoint,
    at_alert_rate,
    at_cost,
    at_f_beta,
    at_precision,
    at_recall,
    at_threshold,
)
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.rare_baselines import RARE_BASELINES
from qmedoid.studies.reproduction.cells import Cell, Result, SplitKind
from qmedoid.studies.reproduction.fraud_printed import READINGS, Reading, run_reading
from qmedoid.studies.reproduction.judging import areas, curves
from qmedoid.studies.reproduction.own import front_fraud
from qmedoid.studies.splits import Split, apart_split, paper_split, time_split

FittedOn = Literal["train", "fit"]

PAPER_ALERT_RATE = 0.0131
"""Share of the rows that the paper's own model calls frauds; the baselines are cut to match it."""

CHOICES: dict[str, Callable[[Flags, Array], OperatingPoint]] = {
    "alert rate 1.31 %": lambda positive, scores: at_alert_rate(positive, scores, PAPER_ALERT_RATE),
    "precision at least 0.5": lambda positive, scores: at_precision(positive, scores, 0.5),
    "recall at least 0.8": lambda positive, scores: at_recall(positive, scores, 0.8),
    "a missed fraud costs 100 false alerts": lambda positive, scores: at_cost(positive, scores, 100.0),
    "best F1": lambda positive, scores: at_f_beta(positive, scores, 1.0),
    "best F2": lambda positive, scores: at_f_beta(positive, scores, 2.0),
}
"""How thresholds are chosen on validation rows."""
MATCHED, FIXED = "alert rate 1.31 %", "fixed"


class Scored(NamedTuple):
    """Scores of all rows, larger where a fraud is likelier, their usual threshold, and what is kept of the model.

    Scores are log-odds or margins where a method has them: probabilities near 1 are equal to the last digit.
    """

    scores: Array
    fixed: float
    chosen: Result


@dataclass(frozen=True)
class FraudMethod:
    """How a method is fitted and scores rows.

    Attributes
    ----------
    run : callable (Dataset, Split, seed) -> Scored
    is_ours : bool
    on_honest_splits : bool
        Whether it is run on the splits in the order of time and with equal rows on one side, too.
    seconds : float
        What one cell takes on the whole table, roughly.
    fitted_on : {"train", "fit"}
        The training rows, or the validation rows with them.
    """

    run: Callable[[Dataset, Split, int], Scored]
    is_ours: bool
    on_honest_splits: bool
    seconds: float
    fitted_on: FittedOn = "train"


def _printed(reading: Reading) -> Callable[[Dataset, Split, int], Scored]:
    """The paper's method, read in one way."""
    return lambda data, split, seed: Scored(*run_reading(reading, data, split, seed))


def _front(**changes: Any) -> Callable[[Dataset, Split, int], Scored]:
    """The front door, perhaps with changes."""
    return lambda data, split, seed: Scored(*front_fraud(data, split, seed, **changes))


def _baseline(make: Callable[[int], Any], fitted_on: FittedOn = "train") -> Callable[[Dataset, Split, int], Scored]:
    """A plain classifier."""

    def run(data: Dataset, split: Split, seed: int) -> Scored:
        rows = split.fit if fitted_on == "fit" else split.train
        model = make(seed).fit(data.X[rows], data.y[rows])
        if hasattr(model, "decision_function"):
            return Scored(np.asarray(model.decision_function(data.X), dtype=np.float64), 0.0, {})
        return Scored(np.asarray(model.predict_proba(data.X)[:, 1], dtype=np.float64), 0.5, {})

    return run


VARIANTS: dict[str, FraudMethod] = {
    **{name: FraudMethod(_printed(one), True, False, 25.0) for name, one in READINGS.items() if name != "printed"},
    "RandomForest, fitted on 75 %": FraudMethod(
        _baseline(RARE_BASELINES["RandomForest"].make, "fit"), False, False, 110.0, "fit"
    ),
}
"""Open points of the paper read otherwise."""

METHODS: dict[str, FraudMethod] = {
    "printed": FraudMethod(_printed(READINGS["printed"]), True, True, 25.0),
    "convex": FraudMethod(_front(method="convex"), True, True, 40.0),
    "default": FraudMethod(_front(), True, True, 120.0),
    **{
        name: FraudMethod(_baseline(one.make), False, not one.smote, one.seconds)
        for name, one in RARE_BASELINES.items()
    },
    **VARIANTS,
}


def run_fraud(cell: Cell, data: Dataset) -> Result:
    """The result of a cell: counts at every operating point, areas and curves, on each part of the rows."""
    method, split = METHODS[cell.method], split_of(data, cell.split, cell.seed)
    scores, fixed, chosen = method.run(data, split, cell.seed)
    positive = data.y == 1
    points = _thresholds(positive[split.val], scores[split.val], fixed)
    everything = np.arange(len(data.y))
    fitted_on = split.fit if method.fitted_on == "fit" else split.train
    parts = {"all": everything, "train": fitted_on, "val": split.val, "test": split.test}
    judged = {name: _judged(positive[rows], scores[rows], points) for name, rows in parts.items()}
    for name in ("all", "test"):
        judged[name]["curves"] = curves(positive[parts[name]], scores[parts[name]])
    return chosen | {"thresholds": points, **judged}


def split_of(data: Dataset, kind: SplitKind, seed: int) -> Split:
    """A split of a kind."""
    if kind == "time":
        if data.times is None:
            raise DataError(f"The data set {data.name!r} has no times to split it by.")
        return time_split(data.times)
    return apart_split(data.X, data.y, seed) if kind == "apart" else paper_split(data.y, seed)


def _thresholds(positive: Flags, scores: Array, fixed: float) -> dict[str, float]:
    """The threshold of every operating point that the validation rows can reach."""
    found = {FIXED: fixed}
    for name, choose in CHOICES.items():
        try:
            found[name] = choose(positive, scores).threshold
        except DataError:  # a floor that no threshold reaches
            continue
    return found


def _judged(positive: Flags, scores: Array, thresholds: dict[str, float]) -> dict[str, Any]:
    counts = {}
    for name, threshold in thresholds.items():
        point = at_threshold(positive, scores, threshold)
        counts[name] = [point.tp, point.fp, point.fn, point.tn]
    return areas(positive, scores) | {"rows": len(scores), "counts": counts}
