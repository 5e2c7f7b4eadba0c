"""The metrics of the study: those of the package, by the names of the columns of ``cells.csv``."""

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.metrics.classification import calibration_error, confidence_outcomes, evaluate
from qmedoid.metrics.thresholds import best_threshold, metric_at
from qmedoid.studies.metrics import PAPER_ALERT_RATE, areas, recall_at


def best_cut(y: Codes, scores: Array) -> tuple[float, float]:
    """The threshold of two-class scores with the best macro-F1, and that macro-F1."""
    threshold = best_threshold(y, scores, "macro_f1")
    return threshold, metric_at(y, scores, threshold, "macro_f1")


def macro_f1(y: Codes, called: Codes) -> float:
    """Plain mean of the F1 of the classes."""
    return evaluate(y, called, int(max(y.max(), called.max())) + 1).macro_f1


def decide(scores: Array, threshold: float | None) -> Codes:
    """Classes of two-class scores of shape (n,) above and below a threshold, or the best of scores of shape (n, C)."""
    return np.asarray(scores.argmax(axis=1) if scores.ndim == 2 else scores > threshold, dtype=np.intp)


def judge(y: Codes, called: Codes, scores: Array, probabilities: Array | None) -> dict[str, float]:
    """Metrics of one method on test rows.

    Parameters
    ----------
    y, called : ndarray of shape (n,)
        True and predicted classes.
    scores : ndarray of shape (n,) or (n, C)
        For two classes, larger means likelier class 1; for more, one per class.
    probabilities : ndarray of shape (n, C), optional
        Where the method has some.
    """
    found = {"macro_f1": macro_f1(y, called)}
    found |= areas(y == 1, scores) if scores.ndim == 1 else {}
    return found | ({} if probabilities is None else calibration(y, probabilities))


def calibration(y: Codes, probabilities: Array) -> dict[str, float]:
    """Expected calibration error, and its mean over labels drawn from the probabilities themselves."""
    found = calibration_error(*confidence_outcomes(y, probabilities), rng=np.random.default_rng(0))
    return {"ece": found.error, "chance_ece": found.by_chance}


def recall_at_alerts(y: Codes, scores: Array) -> float:
    """Recall at the paper's alert rate."""
    return recall_at(y == 1, scores, round(PAPER_ALERT_RATE * len(y)))
