"""Operating points: a threshold chosen on validation rows by a stated rule, with the counts it had there.

The five rules are an alert rate, a precision floor, a recall floor, a cost ratio and F-beta. Each chooses among all
decisions that a threshold can make, in the time of one sort. The threshold then goes to other rows, and
``at_threshold(positive, scores, point.threshold)`` says what it does there.
"""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.thresholds import Cuts, all_cuts, counts_at, threshold_at_rate


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it did to the rows it was judged on; a 0/0 counts as 0.

    Attributes
    ----------
    threshold : float
        Records with a score above it are alerts.
    tp, fp, fn, tn : int
        Positive records among the alerts, the other alerts, positive records without an alert, and the rest.
    """

    threshold: float
    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def prevalence(self) -> float:
        """Share of the rows that are positive."""
        return _share(self.tp + self.fn, self.n)

    @property
    def alert_rate(self) -> float:
        """Share of the rows that are alerts."""
        return _share(self.tp + self.fp, self.n)

    @property
    def precision(self) -> float:
        """TP / (TP + FP): share of the alerts that are positive."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """TP / (TP + FN): share of the positive records that are alerts."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def accuracy(self) -> float:
        """Share of the rows that are decided rightly."""
        return _share(self.tp + self.tn, self.n)

    @property
    def f1(self) -> float:
        """2·TP / (2·TP + FP + FN), the harmonic mean of precision and recall."""
        return self.f_beta(1.0)

    @property
    def macro_f1(self) -> float:
        """Mean of the F1 of both classes."""
        return (self.f1 + _share(2 * self.tn, 2 * self.tn + self.fn + self.fp)) / 2

    def f_beta(self, beta: float) -> float:
        """(1+β²)·TP / ((1+β²)·TP + β²·FN + FP): recall counts β times as much as precision."""
        _check_positive("beta", beta)
        # Divided by 1+β², so that a huge β gives the recall and not an overflow.
        of_false = 1.0 / (1.0 + float(beta) * float(beta))
        return _share(self.tp, self.tp + (1.0 - of_false) * self.fn + of_false * self.fp)

    def cost(self, ratio: float) -> float:
        """ratio·FN + FP: what the mistakes cost, in false alerts."""
        _check_positive("ratio", ratio)
        return float(ratio) * self.fn + self.fp


def at_threshold(positive: Flags, scores: Array, threshold: float) -> OperatingPoint:
    """What a given threshold does to these rows.

    Parameters
    ----------
    positive : ndarray of bool of shape (n,)
        Which records are positive; there must be some of both kinds.
    scores : ndarray of shape (n,)
        Finite; larger means likelier positive.
    threshold : float
        Any number; an infinite one makes all or none of the records alerts.
    """
    positive, scores = _checked(positive, scores)
    if not _is_number(threshold) or math.isnan(threshold):
        raise ParameterError(f"The 'threshold' must be a number. Got {threshold!r} instead.")
    return OperatingPoint(float(threshold), **counts_at(positive, scores, float(threshold)))


def at_alert_rate(positive: Flags, scores: Array, rate: float) -> OperatingPoint:
    """The most alerts that are no more than a share `rate` of the rows; equal scores stay together, below if need be.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    rate : float
        From 0 to 1. The threshold is that of `threshold_at_rate`.
    """
    positive, scores = _checked(positive, scores)
    _check_share("rate", rate)
    threshold = threshold_at_rate(scores, float(rate))
    return OperatingPoint(threshold, **counts_at(positive, scores, threshold))


def at_precision(positive: Flags, scores: Array, floor: float) -> OperatingPoint:
    """The highest recall with a precision of at least `floor`; of equal recalls that of the highest precision.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    floor : float
        From 0 to 1. A `DataError` says what can be reached where no threshold has this precision.
    """
    cuts = all_cuts(*_checked(positive, scores))
    _check_share("floor", floor)
    hits = cuts.counts["tp"]
    alerts = hits + cuts.counts["fp"]
    # The last cut has no alert, and so no precision.
    precision = hits[:-1] / alerts[:-1]
    allowed = np.flatnonzero(precision >= floor)
    if len(allowed) == 0:
        raise DataError(_out_of_reach(floor, most_precise(positive, scores)))
    # Hits and alerts fall from cut to cut: the first has the best recall, the last as good has the fewest alerts.
    return _point(cuts, int(allowed[hits[allowed] == hits[allowed[0]]][-1]))


def most_precise(positive: Flags, scores: Array) -> OperatingPoint:
    """The highest precision that a threshold has; of equal ones the most alerts.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    """
    cuts = all_cuts(*_checked(positive, scores))
    alerts = cuts.counts["tp"] + cuts.counts["fp"]
    return _point(cuts, int(np.argmax(cuts.counts["tp"][:-1] / alerts[:-1])))


def at_recall(positive: Flags, scores: Array, floor: float) -> OperatingPoint:
    """The fewest alerts with a recall of at least `floor`.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    floor : float
        From 0 to 1; every one can be reached.
    """
    cuts = all_cuts(*_checked(positive, scores))
    _check_share("floor", floor)
    hits = cuts.counts["tp"]
    return _point(cuts, int(np.flatnonzero(hits / hits[0] >= floor)[-1]))


def at_cost(positive: Flags, scores: Array, ratio: float) -> OperatingPoint:
    """The lowest total cost, where a missed positive costs `ratio` times a false alert; of equal ones the most alerts.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    ratio : float
        Above 0. With 1 this is the best accuracy.
    """
    cuts = all_cuts(*_checked(positive, scores))
    _check_positive("ratio", ratio)
    return _point(cuts, _cheapest(_costs(cuts, float(ratio))))


def at_f_beta(positive: Flags, scores: Array, beta: float = 1.0) -> OperatingPoint:
    """The best F-beta of the positive class; of equal ones the most alerts.

    Parameters
    ----------
    positive, scores : ndarray of shape (n,)
        As for `at_threshold`.
    beta : float
        Above 0. A small one leans to precision, a large one to recall.

    Notes
    -----
    F-beta is (1+β²) / (1+β² + c), where c is the cost per hit when a missed positive costs β² false alerts. The
    lowest c is looked for: it separates cuts whose F-beta is the same to the last digit because β is large.
    """
    cuts = all_cuts(*_checked(positive, scores))
    _check_positive("beta", beta)
    hits = cuts.counts["tp"]
    # From n² on, no number of false alerts is worse than a miss; the square of a huge β would overflow.
    ratio = min(float(beta), float(len(cuts.rising))) ** 2
    per_hit = np.divide(_costs(cuts, ratio), hits, out=np.full_like(hits, np.inf), where=hits > 0)
    return _point(cuts, _cheapest(per_hit))


def _costs(cuts: Cuts, ratio: float) -> Array:
    # A cost beyond all floats is never the lowest: an alert for every record costs less than n.
    with np.errstate(over="ignore"):
        return ratio * cuts.counts["fn"] + cuts.counts["fp"]


def _cheapest(costs: Array) -> int:
    # Equal costs may differ in their last digits: the first that is the lowest up to rounding.
    return int(np.argmax(costs <= costs.min() * (1.0 + 1e-14)))


def _point(cuts: Cuts, index: int) -> OperatingPoint:
    return OperatingPoint(cuts.threshold(index), **{name: int(count[index]) for name, count in cuts.counts.items()})


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _out_of_reach(floor: float, best: OperatingPoint) -> str:
    # Rounded down, so that the figure can be asked for.
    reached, recall = (math.floor(value * 1e4) / 1e4 for value in (best.precision, best.recall))
    return (
        f"No threshold has a precision of {floor:g} or more on these {best.n:,} rows. The best is {reached:g} "
        f"({best.tp:,} of {best.tp + best.fp:,} alerts are positive), at recall {recall:g}. Ask for a floor of at most "
        f"{reached:g}, or choose by recall, alert rate or cost instead."
    )


def _checked(positive: Flags, scores: Array) -> tuple[Flags, Array]:
    """The labels and the scores as float64; raise unless they can be cut."""
    positive, scores = np.asarray(positive), np.asarray(scores)
    if positive.ndim != 1 or positive.shape != scores.shape:
        raise DataError(
            f"'positive' and 'scores' must be two arrays of one dimension and of the same length. Got the shapes "
            f"{positive.shape} and {scores.shape}: pass one label and one score of each record."
        )
    if len(positive) == 0:
        raise DataError("There are no rows to choose or judge a threshold on: pass at least one row of each class.")
    if positive.dtype != np.bool_:
        raise DataError(f"'positive' must be an array of bool. Got {positive.dtype}: pass labels == positive_label.")
    if scores.dtype.kind not in "fiu":
        raise DataError(f"'scores' must be an array of numbers. Got {scores.dtype}: pass one number of each record.")
    n_positive = int(np.count_nonzero(positive))
    if n_positive in (0, len(positive)):
        raise DataError(
            f"A threshold needs rows of both classes. Got {n_positive:,} positive of {len(positive):,} rows: "
            "use rows that hold both, or check which label is the positive one."
        )
    n_bad = len(scores) - int(np.count_nonzero(np.isfinite(scores)))
    if n_bad:
        raise DataError(
            f"The scores must be finite. Got {n_bad:,} of {len(scores):,} that are NaN or infinite: leave these rows "
            "out, or give them a finite score beyond all the others."
        )
    return positive, scores.astype(np.float64, copy=False)


def _check_share(name: str, value: float) -> None:
    if not _is_number(value) or not 0 <= value <= 1:
        raise ParameterError(f"The '{name}' must be a number from 0 to 1. Got {value!r} instead.")


def _check_positive(name: str, value: float) -> None:
    if not _is_number(value) or not 0 < value < math.inf:
        raise ParameterError(f"The '{name}' must be a finite number above 0. Got {value!r} instead.")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
