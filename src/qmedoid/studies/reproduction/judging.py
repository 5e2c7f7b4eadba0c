"""What is kept of a method's scores on some rows: counts, areas and curves on fixed grids."""

from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import confusion_matrix
from qmedoid.metrics.ranking import pr_auc, roc_auc
from qmedoid.studies.datasets import Dataset

RATES = tuple(i / 100 for i in range(101))
"""False positive rates of a ROC curve, and recalls of a PR curve."""
BUDGETS = tuple(float(f"{10 ** (-4 + i / 20):.6g}") for i in range(81))
"""Alert rates, 0.01 % to 100 %, at which recall is kept."""


def judged_on(model: Any, data: Dataset, rows: Codes) -> dict[str, Any]:
    """What a fitted classifier does with some rows; see `judged`."""
    classes, codes = np.unique(data.y, return_inverse=True)
    decisions = np.searchsorted(classes, model.predict(data.X[rows]))
    scores = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    values = np.asarray(scores(data.X[rows]), dtype=np.float64)
    if len(classes) == 2 and values.ndim == 2:
        values = values[:, 1]
    return judged(codes[rows], decisions, values)


def judged(codes: Codes, decisions: Codes, scores: Array) -> dict[str, Any]:
    """Confusion matrix, areas and, for two classes, curves.

    Parameters
    ----------
    codes, decisions : ndarray of shape (n,)
        Class codes: the truth, and what was decided.
    scores : ndarray of shape (n,) or (n, C)
        Larger means likelier class 1, or likelier each class. Areas of more than two classes are means of one class
        against all others.
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
    is the best that any threshold with at least this recall has.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = np.concatenate([[0.0], np.cumsum(positive[order])[ends]])
    alerts = np.concatenate([[0.0], ends + 1.0])
    recall, false = hits / hits[-1], (alerts - hits) / (alerts[-1] - hits[-1])
    precision = hits[1:] / alerts[1:]
    best_from = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.minimum(np.searchsorted(recall[1:], np.array(RATES) - 1e-12), len(precision) - 1)
    return {
        "roc": _rounded(np.interp(RATES, false, recall)),
        "pr": _rounded(best_from[at]),
        "recall_by_rate": _rounded(np.interp(BUDGETS, alerts / alerts[-1], recall)),
    }


def _rounded(values: Array) -> list[float]:
    """Six digits are more than a plot shows."""
    rounded: list[float] = np.round(values, 6).tolist()
    return rounded
