"""Texts of figures: the command line and reports write them by the same functions, so that they are equal."""

import math
from typing import TYPE_CHECKING

from qmedoid.spelling import printable

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
LONGEST = 40
"""Signs of a cell or name within a sentence, at most."""
_END = 12
_MIDNIGHT = "T00:00:00"
CALIBRATION_NAMES = {
    "error": "calibration error",
    "by_chance": "mean by chance alone",
    "by_chance_high": "95 % by chance alone",
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


def interval_text(figure: "Interval | None") -> str:
    """A figure with its interval, or a dash where it is not defined."""
    return UNDEFINED if figure is None else f"{figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g})"


SMALLEST_FACTOR = 1.0005
"""Factors of the odds below this would be printed as 1.000."""


def odds_text(log_odds: float) -> str:
    """The factor by which log-odds change the odds: ``×2.1`` raises them, ``÷1.2`` lowers them.

    Two digits, more where a factor near 1 would read as 1, and no power of ten: ``×1.04``, ``×12``, ``×3,600``.
    """
    sign, size = ("×" if log_odds >= 0 else "÷"), abs(log_odds)
    if size > math.log(1e6):
        return f"{sign}1,000,000 or more"
    factor = math.exp(size)
    if factor < 9.95:
        return sign + next(text for n in (1, 2, 3) if float(text := f"{factor:.{n}f}") > 1 or n == 3)
    return f"{sign}{int(float(f'{factor:.2g}')):,}"


def effect_text(value: float, *, odds: bool) -> str:
    """What a contribution does: a factor of the odds, or where there are no probabilities a signed part of a score."""
    if odds:
        return odds_text(value)
    # What two decimals would round to nothing still has a digit.
    return (f"{value:+.2f}" if abs(value) >= 0.005 else f"{value:+.1g}").replace("-", "−")


def column_text(name: str, cell: str) -> str:
    """A column with its cell within a sentence: ``Age 61``, ``V14 = -3.2``."""
    return f"{name}{column_sign(name)}{cell}"


def column_sign(name: str) -> str:
    """What stands between a column and its cell: a blank, which after a digit would make one number of two."""
    return " " if name[-1:].isalpha() else " = "


def class_name(label: object, target: str | None) -> str:
    """A class within a sentence: its name, or if that alone says nothing, the target column with it.

    It is safe in a terminal, and cut where it is long.

    >>> class_name("malignant", "diagnosis"), class_name(1, "HeartDisease"), class_name("1", None)
    ('malignant', 'HeartDisease = 1', 'class 1')
    """
    text = str(label)
    if sum(sign.isalpha() for sign in text) <= 2 or text.casefold() in ("yes", "true", "false", "none"):
        text = f"class {text}" if target is None else f"{target} = {text}"
    return shortened(printable(text))


def cell_text(value: object) -> str:
    """A cell within a sentence: numbers with six digits, days without a time, long texts cut.

    >>> cell_text(3.14159265), cell_text(None), cell_text("2024-02-29T00:00:00")
    ('3.14159', 'missing', '2024-02-29')
    """
    if value is None:
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float) else printable(value)
    if text.endswith(_MIDNIGHT) and len(text) == len(_MIDNIGHT) + 10:
        text = text.removesuffix(_MIDNIGHT)
    return shortened(text)


def shortened(text: str) -> str:
    """A text cut within to 40 signs, for many differ at their ends only."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - _END - 1]}…{text[-_END:]}"


def chance_texts(*chances: float) -> list[str]:
    """Probabilities in percent, with as many digits as make different ones look different, and none certain."""
    held = [min(max(chance, 1e-9), 1.0 - 1e-9) for chance in chances]
    texts = [[percent_text(chance, digits) for chance in held] for digits in (2, 3, 4, 6)]
    return next((found for found in texts if len(set(found)) == len(set(held))), texts[0])
