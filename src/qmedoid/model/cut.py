"""The operating point that a user asks for, as a rule and as a cut on held-out rows or on their stored curve."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.metrics import thresholds
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve
from qmedoid.schema import shown

ABOVE_HIGHEST = 1e-3
"""How far above the highest score the cut lies that no row exceeds."""
# Rules that cut where labels of both classes say.
_NEED_BOTH = ("min_precision", "min_recall", "cost")
_LARGEST = {"probability": math.nextafter(1.0, 0.0), "alert_rate": math.nextafter(1.0, 0.0), "cost": math.inf}
"""The largest number that a rule asks for; of the others 1. All are above 0."""


def chosen_cut(rule: str, asked: float, positive: Flags, margins: Array) -> float:
    """The log-odds above which a record is called the second class, by held-out rows.

    Where they cannot say, the cut is at even odds; a floor that is out of reach is replaced by the nearest that is not.
    """
    if len(positive) == 0:
        warn("No row was held out to choose the threshold by: it stays at even odds.")
        return 0.0
    if rule in _NEED_BOTH and len(set(positive)) < 2:
        warn(f"All {len(positive):,} held-out rows are of one class: the threshold stays at even odds.")
        return 0.0
    match rule:
        case "alert_rate":
            cut = thresholds.threshold_at_rate(margins, asked)
            if not (margins > cut).any():
                warn(
                    f"An alert rate of {asked:g} is less than one of the {len(margins):,} held-out rows, or their "
                    "highest scores are equal: the threshold is just above their highest score, and alerts will be "
                    "rarer than that rate."
                )
                # Scores of the fitted model that are equal but for rounding would all lie above it.
                return cut + ABOVE_HIGHEST
            return cut
        case "min_recall":
            return thresholds.threshold_at_recall(positive, margins, asked)
        case "cost":
            return thresholds.threshold_at_cost(positive, margins, asked)
        case "min_precision":
            try:
                return thresholds.threshold_at_precision(positive, margins, asked)
            except DataError as error:
                warn(f"{error} The threshold of this best precision is used.")
                return thresholds.most_precise_threshold(positive, margins)
    return thresholds.steady_threshold(positive.astype(np.intp), margins, rule)


def checked_rule(operating_point: Any) -> tuple[str, float | None]:
    """The rule of two classes that is asked for, and its number; raise for what is none.

    Raises
    ------
    ParameterError
        It is not None, a probability, the name of a metric, or a dict of one rule and its number.
    """
    if operating_point is None:
        return "likeliest", None
    if isinstance(operating_point, str) and operating_point in thresholds.THRESHOLD_METRICS:
        return operating_point, None
    is_rule = isinstance(operating_point, Mapping) and len(operating_point) == 1
    name, asked = next(iter(operating_point.items())) if is_rule else ("probability", operating_point)
    known = ("alert_rate", "min_precision", "min_recall", "cost") if is_rule else ("probability",)
    limit = _LARGEST.get(name, 1.0) if isinstance(name, str) else 0.0
    if name not in known or not thresholds.is_number(asked) or not 0 < asked <= limit or math.isinf(asked):
        raise ParameterError(
            "The operating point must be None, a probability above 0 and below 1, one of "
            f"{', '.join(map(repr, thresholds.THRESHOLD_METRICS))}, or a dict with one of 'alert_rate' (above 0 and "
            "below 1), 'min_precision', 'min_recall' (above 0 and at most 1) and 'cost' (above 0). "
            f"Got {shown(operating_point)} instead."
        )
    return name, float(asked)


def curve_rows(curve: HeldOutCurve) -> tuple[Flags, Array]:
    """Classes and log-odds of the held-out rows that a curve counts, shape (n,).

    Rows between two thresholds that were kept have the lower one.
    """
    true, false = (np.diff(counts, prepend=0) for counts in (curve.true_positives, curve.false_positives))
    log_odds = np.concatenate([np.repeat(curve.thresholds, true), np.repeat(curve.thresholds, false)])
    return np.arange(len(log_odds)) < curve.n_positive, log_odds


def curve_counts(curve: HeldOutCurve, log_odds: float) -> Counts:
    """The held-out counts of the nearest threshold that was kept at or above a cut.

    Where all thresholds were kept they are those of the cut, else within 2 / (`MOST_CUTS` − 1) of each rate.
    """
    place = int((curve.thresholds > log_odds).sum()) - 1
    true, false = (0, 0) if place < 0 else (int(curve.true_positives[place]), int(curve.false_positives[place]))
    return Counts(true, false, curve.n_positive - true, curve.n_negative - false)


def cut_on_curve(rule: str, asked: float | None, curve: HeldOutCurve | None) -> OperatingSummary:
    """The operating point of a rule by a stored held-out curve, at the training priors.

    On a curve of at most `MOST_CUTS` rows it is the one that a fit chooses, to the last bit. Else the cut is just below
    a threshold that was kept, so that its counts are exact.

    Raises
    ------
    DataError
        There is no curve, and the rule needs one.
    """
    if rule == "probability" and asked is not None:
        cut = math.log(asked) - math.log1p(-asked)
    elif rule == "likeliest":
        cut = 0.0
    elif curve is None:
        raise DataError(
            "This model holds no curve of held-out rows, by which a cut could be chosen: give a probability to cut at, "
            "or fit it again with rows held out."
        )
    else:
        cut = exact_cut(chosen_cut(rule, asked or 0.0, *curve_rows(curve)), curve)
    return OperatingSummary(rule, asked, cut, None if curve is None else curve_counts(curve, cut))


def exact_cut(cut: float, curve: HeldOutCurve) -> float:
    """A cut with the counts of a threshold that was kept: itself, or just below the next one above it."""
    above = curve.thresholds[curve.thresholds > cut]
    if len(above) == 0 or curve.n_positive + curve.n_negative <= MOST_CUTS:
        return cut
    return math.nextafter(float(above[-1]), -math.inf)
