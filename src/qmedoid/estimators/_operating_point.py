"""Operating points: where a score is cut into a decision."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ParameterError, warn
from qmedoid.fitting.variational_selection import OutOfFold, two_class_margin
from qmedoid.metrics.thresholds import THRESHOLD_METRICS, best_threshold

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class OperatingPoint:
    """None for the likeliest class, a metric to be made best, or a probability."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        if value is None or isinstance(value, str):
            return value is None or value in THRESHOLD_METRICS
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1

    def __str__(self) -> str:
        return "None, a number between 0 and 1, or one of " + ", ".join(map(repr, THRESHOLD_METRICS))


def check_two_classes(operating_point: str | float | None, classes: npt.NDArray[Any]) -> None:
    """Raise where an operating point is asked for and there are more than two classes."""
    if operating_point is not None and len(classes) > 2:
        raise ParameterError(
            f"An operating point cuts the probability of one of two classes, and there are {len(classes)}. "
            "Use operating_point=None."
        )


def cut_at(operating_point: str | float, codes: Codes, out_of_fold: OutOfFold | None) -> float:
    """The log-odds above which a record is called the second class.

    A metric is made best on rows that were held out; where there are none, the cut is at even odds.
    """
    if not isinstance(operating_point, str):
        return math.log(operating_point) - math.log1p(-operating_point)
    if out_of_fold is None or len(out_of_fold.judged) == 0:
        warn("No row was held out to choose the threshold by: it stays at even odds.")
        return 0.0
    rows = out_of_fold.judged
    return best_threshold(codes[rows], two_class_margin(out_of_fold.scores[rows]), operating_point)


def probability(log_odds: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1.0 + math.exp(log_odds))
