"""Operating points of a score: by threshold, alert rate, precision, recall, cost or F-beta.

A rule chooses among all decisions that a threshold can make, in the time of one sort, and gives an `OperatingPoint`:
the threshold with its counts. ``at_threshold(positive, scores, point.threshold)`` says what it does to other rows.

Rules take ``positive``, an array of bool of shape (n,) with rows of both classes, and ``scores``, finite numbers of
shape (n,); larger means likelier positive. Records with a score above the threshold are alerts.
"""

import math

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.thresholds import (
    Cuts,
    OperatingPoint,
    all_cuts,
    check_positive,
    check_share,
    checked,
    counts_at,
    is_number,
    threshold_at_rate,
)


def at_threshold(positive: Flags, scores: Array, threshold: float) -> OperatingPoint:
    """What a given threshold does to these rows; an infinite one makes all or none of the records alerts."""
    positive, scores = checked(positive, scores)
    if not is_number(threshold) or math.isnan(threshold):
        raise ParameterError(f"The 'threshold' must be a number. Got {threshold!r} instead.")
    return OperatingPoint(float(threshold), **counts_at(positive, scores, float(threshold)))


def at_alert_rate(positive: Flags, scores: Array, rate: float) -> OperatingPoint:
    """The most alerts that are no more than a share `rate` of the rows, at the threshold of `threshold_at_rate`."""
    positive, scores = checked(positive, scores)
    check_share("rate", rate)
    return at_threshold(positive, scores, threshold_at_rate(scores, float(rate)))


def at_precision(positive: Flags, scores: Array, floor: float) -> OperatingPoint:
    """The highest recall with a precision of at least `floor`; of equal recalls that of the highest precision.

    A `DataError` says what can be reached where no threshold has this precision.
    """
    cuts = all_cuts(*checked(positive, scores))
    check_share("floor", floor)
    hits, precision = cuts.counts["tp"], _precisions(cuts)
    allowed = np.flatnonzero(precision >= floor)
    if len(allowed) == 0:
        best = cuts.point(int(np.argmax(precision)))
        # Rounded down, so that the figure can be asked for.
        reached, recall = (math.floor(value * 1e4) / 1e4 for value in (best.precision, best.recall))
        raise DataError(
            f"No threshold has a precision of {floor:g} or more on these {best.n:,} rows. The best is {reached:g} "
            f"({best.tp:,} of {best.tp + best.fp:,} alerts are positive), at recall {recall:g}. Ask for a floor of at "
            f"most {reached:g}, or choose by recall, alert rate or cost instead."
        )
    # Hits and alerts fall from cut to cut: the first has the best recall, the last as good has the fewest alerts.
    return cuts.point(int(allowed[hits[allowed] == hits[allowed[0]]][-1]))


def most_precise(positive: Flags, scores: Array) -> OperatingPoint:
    """The highest precision that a threshold has; of equal ones the most alerts."""
    cuts = all_cuts(*checked(positive, scores))
    return cuts.point(int(np.argmax(_precisions(cuts))))


def at_recall(positive: Flags, scores: Array, floor: float) -> OperatingPoint:
    """The fewest alerts with a recall of at least `floor`; every floor from 0 to 1 can be reached."""
    cuts = all_cuts(*checked(positive, scores))
    check_share("floor", floor)
    hits = cuts.counts["tp"]
    return cuts.point(int(np.flatnonzero(hits / hits[0] >= floor)[-1]))


def at_cost(positive: Flags, scores: Array, ratio: float) -> OperatingPoint:
    """The lowest total cost, where a missed positive costs `ratio` times a false alert; of equal ones the most alerts.

    With a ratio of 1 this is the best accuracy.
    """
    cuts = all_cuts(*checked(positive, scores))
    check_positive("ratio", ratio)
    return cuts.point(_cheapest(_costs(cuts, float(ratio))))


def at_f_beta(positive: Flags, scores: Array, beta: float = 1.0) -> OperatingPoint:
    """The best F-beta of the positive class; of equal ones the most alerts.

    F-beta is (1+β²) / (1+β² + c), where c is the cost per hit when a missed positive costs β² false alerts. The
    lowest c is looked for: it separates cuts whose F-beta is the same to the last digit because β is large.
    """
    cuts = all_cuts(*checked(positive, scores))
    check_positive("beta", beta)
    hits = cuts.counts["tp"]
    # From n² on, no number of false alerts is worse than a miss; the square of a huge β would overflow.
    ratio = min(float(beta), float(len(cuts.rising))) ** 2
    per_hit = np.divide(_costs(cuts, ratio), hits, out=np.full_like(hits, np.inf), where=hits > 0)
    return cuts.point(_cheapest(per_hit))


def _precisions(cuts: Cuts) -> Array:
    """Precision of every cut but the last, which has no alert."""
    hits, false = cuts.counts["tp"][:-1], cuts.counts["fp"][:-1]
    return np.asarray(hits / (hits + false))


def _costs(cuts: Cuts, ratio: float) -> Array:
    # A cost beyond all floats is never the lowest: an alert for every record costs less than n.
    with np.errstate(over="ignore"):
        return ratio * cuts.counts["fn"] + cuts.counts["fp"]


def _cheapest(costs: Array) -> int:
    # Equal costs may differ in their last digits: the first that is the lowest up to rounding.
    return int(np.argmax(costs <= costs.min() * (1.0 + 1e-14)))
