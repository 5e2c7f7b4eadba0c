"""Operating points: where a score is cut into a decision."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ParameterError, warn
from qmedoid.fitting.variational_selection import OutOfFold, two_class_margin
from qmedoid.metrics.thresholds import THRESHOLD_METRICS, best_threshold, threshold_at_rate

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


@dataclass(frozen=True)
class AlertRate:
    """None, or the share of the records that may be called positive."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        return value is None or (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1)

    def __str__(self) -> str:
        return "None or a number above 0 and below 1"


def check_two_classes(
    operating_point: str | float | None, classes: npt.NDArray[Any], alert_rate: float | None = None
) -> None:
    """Raise where a cut is asked for in two ways, or where there are more than two classes."""
    if operating_point is not None and alert_rate is not None:
        raise ParameterError(
            f"'operating_point' and 'alert_rate' both say where to cut. Got {operating_point!r} and {alert_rate!r}: "
            "pass one of them."
        )
    if alert_rate is not None and len(classes) > 2:
        raise ParameterError(
            f"An alert rate is the share of one of two classes, and there are {len(classes)}. Use alert_rate=None."
        )
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


def cut_at_rate(alert_rate: float, out_of_fold: OutOfFold | None) -> float:
    """The log-odds above which this share of the rows that were held out lies; even odds where there are none."""
    if out_of_fold is None or len(out_of_fold.judged) == 0:
        warn("No row was held out to choose the threshold by: it stays at even odds.")
        return 0.0
    return threshold_at_rate(two_class_margin(out_of_fold.scores[out_of_fold.judged]), float(alert_rate))


def probability(log_odds: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1.0 + math.exp(log_odds))
