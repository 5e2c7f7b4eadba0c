"""Cells of our methods: as the paper prints them, and through the front door."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.studies.cells import Cell, Result, Split, classifier_metrics, fraud_metrics, split_of
from qmedoid.arrays import Array
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.metrics.thresholds import all_cuts, metric_at
from qmedoid.model.refinement import CircuitInputs

CODE = 1
"""Number of what our methods compute: a change of the package that changes figures takes the next one."""
TRACE_POINTS = 400
"""Maximum number of points that are kept of a search."""
PAPER_THRESHOLD = 0.3
"""Probability above which the paper's model calls a row a fraud."""


def run_printed(data: Dataset, cell: Cell, **changes: Any) -> Result:
    """The paper preset on a small data set: fitted on the training rows, chosen on the validation rows."""
    split = split_of(data, cell.split, cell.seed)
    model = _fit_printed(data, split, cell.seed, changes)
    parts = {"test": split.test, "val": split.val}
    return _searched(model) | {name: classifier_metrics(model, data, rows) for name, rows in parts.items()}


def run_front(data: Dataset, cell: Cell, **changes: Any) -> Result:
    """The front door on a small data set: fitted on training and validation rows, within which it chooses.

    For the metrics of the validation rows another model is fitted on the training rows alone.
    """
    split = split_of(data, cell.split, cell.seed)
    model, before = (
        MedoidClassifier(random_state=cell.seed, **changes).fit(data.X[rows], data.y[rows])
        for rows in (split.fit, split.train)
    )
    found = {"test": classifier_metrics(model, data, split.test), "val": classifier_metrics(before, data, split.val)}
    return found | (_searched(model.estimator_) if isinstance(model.estimator_, NearestMedoidClassifier) else {})


def run_front_fraud(data: Dataset, cell: Cell, **changes: Any) -> Result:
    """The front door on the frauds, fitted on the training rows, with its log-odds."""
    split = split_of(data, cell.split, cell.seed)
    model = MedoidClassifier(random_state=cell.seed, **changes).fit(data.X[split.train], data.y[split.train])
    found = fraud_metrics(data, split, model.decision_function(data.X), 0.0, split.train)
    return {"chosen_method": model.method_} | found


def run_printed_fraud(
    data: Dataset,
    cell: Cell,
    *,
    nearest: Mapping[str, Any] | None = None,
    circuit: Mapping[str, Any] | None = None,
    has_circuit: bool = True,
) -> Result:
    """The frauds as the paper prints them, step by step; its open points are read by the changes.

    Nearest-medoid models are fitted on the training rows, and the validation rows choose k and α. A circuit is trained
    on the deltas of the training rows for each of the two best models; the validation rows choose between them by
    macro-F1.

    `nearest` and `circuit` change `NearestMedoidClassifier.paper` and `VariationalClassifier.paper`; without a circuit
    the fusion score decides.
    """
    split = split_of(data, cell.split, cell.seed)
    fitted = _fit_printed(data, split, cell.seed, nearest or {})
    if has_circuit:
        tried = [_with_circuit(data, split, one, cell.seed, circuit or {}) for one, _ in fitted.candidates_]
        best = max(range(len(tried)), key=lambda place: tried[place][0])
        model, scores = fitted.candidates_[best][0], tried[best][1]
        fixed = math.log(PAPER_THRESHOLD) - math.log1p(-PAPER_THRESHOLD)
    else:
        model, scores, fixed = fitted.candidates_[0][0], fitted.decision_function(data.X), 0.0
    steps = [step.score for step in fitted.search_trace_]
    chosen = {
        "k": max(len(subset) for subset in model.configuration),
        "alpha": float(model.alpha),
        # Whether the search had anything to choose from.
        "search": {"evaluations": len(steps), "different": len(set(steps)), "best": max(steps)},
    }
    return chosen | fraud_metrics(data, split, scores, fixed, split.train)


def _fit_printed(data: Dataset, split: Split, seed: int, changes: Mapping[str, Any]) -> NearestMedoidClassifier:
    model = NearestMedoidClassifier.paper(random_state=seed, **changes)
    return model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])


def _with_circuit(
    data: Dataset, split: Split, model: NearestPart, seed: int, changes: Mapping[str, Any]
) -> tuple[float, Array]:
    """Macro-F1 on the validation rows and log-odds of all rows of a circuit on a model's deltas."""
    deltas = CircuitInputs(angular=model.use_angular).features(model.score(data.X, channels=True))
    circuit = VariationalClassifier.paper(operating_point=None, random_state=seed, **changes)
    log_odds = circuit.fit(deltas[split.train], data.y[split.train]).decision_function(deltas)
    codes, scores = data.y[split.val], log_odds[split.val]
    return metric_at(codes, scores, all_cuts(codes == 1, scores).best("macro_f1"), "macro_f1"), log_odds


def _searched(model: NearestMedoidClassifier) -> Result:
    """What the search and the α sweep chose, and their course."""
    sweep = model.alpha_sweep_
    best = np.maximum.accumulate([step.score for step in model.search_trace_])
    kept = np.unique(np.linspace(0, len(best) - 1, TRACE_POINTS).astype(int)) if len(best) else np.array([], dtype=int)
    return {
        "k": max(len(subset) for subset in model.configuration_),
        "alpha": float(model.alpha_),
        "sweep": {"alphas": sweep.grid.tolist(), "macro_f1": sweep.scores.tolist()},
        "trace": {"evaluation": (kept + 1).tolist(), "best": best[kept].tolist()},
        "evaluations": len(best),
    }
