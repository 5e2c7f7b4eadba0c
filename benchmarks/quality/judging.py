"""The measures of the study: those of the package, by the names of the columns of ``cells.csv``."""

from collections.abc import Callable

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import calibration_error, confidence_outcomes, evaluate, log_loss, pr_auc, roc_auc
from qmedoid.metrics.thresholds import all_cuts, fit_class_biases

SMALLEST = 1e-15
"""Probabilities below this count as this, for all methods alike."""


def judge(y: Codes, probabilities: Array, tuned: Codes, fit: Codes) -> dict[str, float]:
    """Measures of one method on test rows.

    Parameters
    ----------
    y : ndarray of shape (n,)
        True classes.
    probabilities : ndarray of shape (n, C)
    tuned : ndarray of shape (n,)
        What is called with tuned thresholds.
    fit : ndarray of shape (n_fit,)
        Classes of the fit rows, by which the rarer of two is known.
    """
    shares = clipped(probabilities)
    return {
        "log_loss": log_loss(y, shares),
        "roc_auc": _by_class(roc_auc, y, probabilities, 1),
        "pr_auc": _by_class(pr_auc, y, probabilities, int(np.bincount(fit, minlength=2).argmin())),
        "brier": float(np.square(shares - np.eye(shares.shape[1])[y]).sum(axis=1).mean()),
        "macro_f1": macro_f1(y, probabilities.argmax(axis=1)),
        "macro_f1_tuned": macro_f1(y, tuned),
        **calibration(y, shares),
    }


def _by_class(area: Callable[[Flags, Array], float], y: Codes, probabilities: Array, of_two: int) -> float:
    """The area of one class of two, or the mean over one class against all others where there are more."""
    classes = [of_two] if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    return float(np.nanmean([area(y == code, probabilities[:, code]) for code in classes]))


def clipped(probabilities: Array) -> Array:
    """Probabilities of which none is nearer to 0 than `SMALLEST`, and that add up to 1."""
    shares = np.maximum(np.asarray(probabilities, dtype=np.float64), SMALLEST)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def macro_f1(y: Codes, called: Codes) -> float:
    """Plain mean of the F1 of the classes."""
    return evaluate(y, called, int(max(y.max(), called.max())) + 1).macro_f1


class Thresholds:
    """Where classes are separated for the best macro-F1, learnt from probabilities of rows that no fit has seen.

    Two classes have a threshold, more have biases as an operating point of ours has.
    """

    def __init__(self, y: Codes, probabilities: Array) -> None:
        self._is_two = probabilities.shape[1] == 2
        if self._is_two:
            self._cut = all_cuts(y == 1, probabilities[:, 1]).best("macro_f1")
        else:
            self._biases = fit_class_biases(np.log(clipped(probabilities)), y, "macro_f1")

    def call(self, probabilities: Array) -> Codes:
        """Classes of some rows."""
        if self._is_two:
            return np.asarray(probabilities[:, 1] > self._cut, dtype=np.intp)
        return np.asarray((np.log(clipped(probabilities)) + self._biases).argmax(axis=1), dtype=np.intp)


def calibration(y: Codes, probabilities: Array) -> dict[str, float]:
    """Expected calibration error, and its mean over labels drawn from the probabilities themselves."""
    found = calibration_error(*confidence_outcomes(y, probabilities), rng=np.random.default_rng(0))
    return {"ece": found["error"], "chance_ece": found["by_chance"]}
