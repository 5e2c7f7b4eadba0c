"""Metrics of a method's scores on some rows: counts, areas, curves on fixed grids and operating points."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.studies.splits import Split
from qmedoid.arrays import Array, Codes, Flags
from qmedoid.datasets import Dataset
from qmedoid.exceptions import DataError
from qmedoid.metrics.classification import confusion_matrix, pr_auc, roc_auc
from qmedoid.metrics.operating import at_alert_rate, at_cost, at_f_beta, at_precision, at_recall, at_threshold
from qmedoid.metrics.thresholds import OperatingPoint, all_cuts

RATES = tuple(i / 100 for i in range(101))
"""False positive rates of a ROC curve, and recalls of a PR curve."""
BUDGETS = tuple(float(f"{10 ** (-4 + i / 20):.6g}") for i in range(81))
"""Alert rates, 0.01 % to 100 %, at which recall is kept."""
PAPER_ALERT_RATE = 0.0131
"""Alert rate of the paper's model on the frauds; the baselines are cut to match it."""
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


def scores_of(model: Any, X: Array) -> Array:
    """Scores of a fitted classifier: of class 1 where there are two, else one per class."""
    scores = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    values = np.asarray(scores(X), dtype=np.float64)
    return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values


def classifier_metrics(model: Any, data: Dataset, rows: Codes) -> dict[str, Any]:
    """`class_metrics` of a fitted classifier on some rows."""
    classes, codes = np.unique(data.y, return_inverse=True)
    decisions = np.searchsorted(classes, model.predict(data.X[rows]))
    return class_metrics(codes[rows], decisions, scores_of(model, data.X[rows]))


def class_metrics(codes: Codes, decisions: Codes, scores: Array) -> dict[str, Any]:
    """Confusion matrix, areas and, for two classes, curves.

    Scores have shape (n,), larger where class 1 is likelier, or (n, C). Areas of more than two classes are means of one
    class against all others.
    """
    n_classes = 2 if scores.ndim == 1 else scores.shape[1]
    found: dict[str, Any] = {"confusion": confusion_matrix(codes, decisions, n_classes).astype(int).tolist()}
    if scores.ndim == 1:
        return found | areas(codes == 1, scores) | {"curves": curves(codes == 1, scores)}
    by_class = [areas(codes == code, scores[:, code]) for code in range(n_classes)]
    return found | {name: float(np.mean([one[name] for one in by_class])) for name in by_class[0]}


def areas(positive: Flags, scores: Array) -> dict[str, float]:
    """Areas under the ROC and the precision-recall curve."""
    return {"roc_auc": roc_auc(positive, scores), "pr_auc": pr_auc(positive, scores)}


def curves(positive: Flags, scores: Array) -> dict[str, list[float]]:
    """Recall by false positive rate, precision by recall, and recall by alert rate, on grids that all cells share.

    Between thresholds the first and the last are straight lines, as of a random choice among equal scores; precision
    is the best of all thresholds with at least this recall.
    """
    alerts, hits = _ranked(positive, scores)
    recall, false = hits / hits[-1], (alerts - hits) / (alerts[-1] - hits[-1])
    precision = hits[1:] / alerts[1:]
    best_from = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.minimum(np.searchsorted(recall[1:], np.array(RATES) - 1e-12), len(precision) - 1)
    found = {
        "roc": np.interp(RATES, false, recall),
        "pr": best_from[at],
        "recall_by_rate": np.interp(BUDGETS, alerts / alerts[-1], recall),
    }
    return {name: np.round(values, 6).tolist() for name, values in found.items()}


def recall_at(positive: Flags, scores: Array, alerts: int) -> float:
    """Recall where the rows with the highest scores are alerts; rows that tie at the cut count in proportion."""
    numbers, hits = _ranked(positive, scores)
    return float(np.interp(alerts, numbers, hits) / hits[-1])


def _ranked(positive: Flags, scores: Array) -> tuple[Array, Array]:
    """Numbers of alerts and of positives among them at every cut, the highest threshold first."""
    counts = all_cuts(positive, scores).counts
    return (counts["tp"] + counts["fp"])[::-1], counts["tp"][::-1]


def fraud_metrics(data: Dataset, split: Split, scores: Array, fixed: float, fitted_on: Codes) -> dict[str, Any]:
    """Counts at every operating point, areas and curves, on all rows, as in the paper, and on each part of them.

    `scores` are of all rows, larger where a fraud is likelier: log-odds or margins where a method has them, because
    probabilities near 1 are equal to the last digit. `fixed` is the usual threshold.
    """
    positive = data.y == 1
    thresholds = {FIXED: fixed}
    for name, choose in CHOICES.items():
        try:
            thresholds[name] = choose(positive[split.val], scores[split.val]).threshold
        except DataError:  # a floor that no threshold reaches
            continue
    parts = {"all": np.arange(len(data.y)), "train": fitted_on, "val": split.val, "test": split.test}
    found: dict[str, Any] = {"thresholds": thresholds}
    for part, rows in parts.items():
        points = {name: at_threshold(positive[rows], scores[rows], cut) for name, cut in thresholds.items()}
        counts = {name: [point.tp, point.fp, point.fn, point.tn] for name, point in points.items()}
        found[part] = areas(positive[rows], scores[rows]) | {"rows": len(rows), "counts": counts}
        if part in ("all", "test"):
            found[part]["curves"] = curves(positive[rows], scores[rows])
    return found
