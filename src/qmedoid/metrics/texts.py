"""Texts of figures: the command line and reports write them by the same functions, so that they are equal."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line prints texts before it imports NumPy
    from qmedoid.metrics.intervals import Interval

UNDEFINED = "–"
"""What stands for a figure that is not defined, such as the precision without an alert."""
FIGURE_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "weighted_f1": "weighted F1",
    "log_loss": "log-loss",
    "prevalence": "prevalence",
    "alert_rate": "alert rate",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "by_circuit": "decided by the circuit",
}
"""Names of figures by their keys in a report."""
CALIBRATION_NAMES = {
    "error": "calibration error",
    "by_chance": "by chance, on average",
    "by_chance_high": "by chance, once in 20",
}


def figure_text(value: float | None) -> str:
    """Four digits, or a dash for what is not defined."""
    return UNDEFINED if value is None else f"{value:.4f}"


def percent_text(share: float, digits: int = 2) -> str:
    """A share in percent with two digits, or more near 100; one that is not 0 or 1 never reads as 0 or 100 %.

    >>> percent_text(0.869), percent_text(0.0335), percent_text(0.996), percent_text(0.9997)
    ('87 %', '3.4 %', '99.6 %', 'above 99.9 %')
    """
    percent = 100.0 * share
    if 0.0 < percent < 0.01:
        return "below 0.01 %"
    if 99.9 < percent < 100.0:
        return "above 99.9 %"
    size = 1 if percent < 10 else 2 if percent < 100 else 3
    text = f"{percent:.{max(digits - size, int(percent >= 99))}f}" if percent >= 1 else f"{percent:.{digits}g}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def count_text(count: int) -> str:
    """A whole number, with commas between its thousands."""
    return f"{count:,}"


def interval_text(figure: "Interval | None") -> str:
    """A figure with its interval, or a dash where it is not defined."""
    return UNDEFINED if figure is None else f"{figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g})"


def odds_text(log_odds: float) -> str:
    """The factor by which log-odds change the odds: ``×2.1`` raises them, ``÷1.2`` lowers them.

    Two digits, more where a factor near 1 would read as 1, and no power of ten: ``×1.04``, ``×12``, ``×3,600``.
    """
    sign, size = ("×" if log_odds >= 0 else "÷"), abs(log_odds)
    if size > math.log(1e6):
        return f"{sign}1,000,000 or more"
    factor = math.exp(size)
    if factor < 9.95:
        return sign + next(text for n in (1, 2, 3) if n == 3 or float(text := f"{factor:.{n}f}") > 1)
    return f"{sign}{int(float(f'{factor:.2g}')):,}"
