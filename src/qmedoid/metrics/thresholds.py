"""Thresholds on a score: counts at every cut, and the best one by a metric, a budget or costs (algorithm 16).

A rule chooses among all decisions that a threshold can make, in the time of one sort, and gives
the threshold. Functions take ``positive``, an array of bool of shape (n,) with rows of both classes,
and ``scores``, finite numbers of shape (n,); larger means likelier positive. Records with a score above the threshold
are alerts.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.ties import first_largest

Counts = Mapping[str, Array]


def _f_beta(hits: Array, false: Array, missed: Array, beta: float = 1.0) -> Array:
    return _ratio((1 + beta**2) * hits, (1 + beta**2) * hits + beta**2 * missed + false)


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole != 0)


THRESHOLD_METRICS: dict[str, Callable[[Counts], Array]] = {
    "macro_f1": lambda c: (_f_beta(c["tp"], c["fp"], c["fn"]) + _f_beta(c["tn"], c["fn"], c["fp"])) / 2,
    "f1": lambda c: _f_beta(c["tp"], c["fp"], c["fn"]),
    "f2": lambda c: _f_beta(c["tp"], c["fp"], c["fn"], 2.0),
    "accuracy": lambda c: (c["tp"] + c["tn"]) / (c["tp"] + c["tn"] + c["fp"] + c["fn"]),
    "balanced_accuracy": lambda c: (_ratio(c["tp"], c["tp"] + c["fn"]) + _ratio(c["tn"], c["tn"] + c["fp"])) / 2,
}
"""Metrics of a two-class decision as functions of its counts; class 1 is the positive one."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Every decision that a threshold on the scores of some records can make, the lowest threshold first.

    Scores in rising order, shape (n,); the position from which on records are called positive, at first all of them, at
    last none, shape (m,); and the counts of each cut, each of shape (m,).
    """

    rising: Array
    starts: Codes
    counts: Counts

    def best(self, metric: str) -> float:
        """The threshold with the best value of a metric; of equal ones the lowest."""
        return self.threshold(first_largest(THRESHOLD_METRICS[metric](self.counts)))

    def threshold(self, index: int) -> float:
        """The threshold of one cut, halfway between scores that occur."""
        return _between(self.rising, int(self.starts[index]))


def all_cuts(positive: Flags | Array, scores: Array) -> Cuts:
    """The decisions between which a threshold can choose; records of equal score are called alike.

    `positive` says which records are, or how likely each of them is; counts are then those that are expected.
    """
    order = np.argsort(scores, kind="stable")
    rising = scores[order]
    # Cut k calls the records from position k on positive; only cuts between different scores are decisions.
    starts = np.concatenate([[0], np.flatnonzero(rising[1:] > rising[:-1]) + 1, [len(rising)]])
    positives_before = np.concatenate([[0], np.cumsum(positive[order])]).astype(np.float64)[starts]
    negatives_before = starts - positives_before
    counts = {
        "tp": positives_before[-1] - positives_before,
        "fn": positives_before,
        "fp": negatives_before[-1] - negatives_before,
        "tn": negatives_before,
    }
    return Cuts(rising, starts, counts)


def counts_at(positive: Flags, scores: Array, threshold: float, weights: Array | None = None) -> dict[str, int]:
    """``"tp"``, ``"fp"``, ``"fn"`` and ``"tn"`` when records with a score above the threshold are called positive.

    With `weights` they are sums of these, rounded.
    """
    called = scores > threshold
    pairs = {"tp": called & positive, "fp": called & ~positive, "fn": ~called & positive, "tn": ~called & ~positive}
    if weights is not None:
        return {name: round(float(weights[hit].sum())) for name, hit in pairs.items()}
    return {name: int(np.count_nonzero(hit)) for name, hit in pairs.items()}


def metric_at(codes: Codes, scores: Array, threshold: float, metric: str) -> float:
    """Value of the metric when records with a score above the threshold are called positive."""
    counts = counts_at(codes == 1, scores, threshold)
    return float(THRESHOLD_METRICS[metric]({name: np.array([count]) for name, count in counts.items()})[0])


def best_threshold(codes: Codes, scores: Array, metric: str) -> float:
    """The threshold, halfway between scores that occur, with the best value of the metric; of equal ones the lowest.

    `codes` are 0 or 1; `metric` is a name from `THRESHOLD_METRICS`.
    """
    return all_cuts(codes == 1, scores).best(metric)


def steady_threshold(codes: Codes, log_odds: Array, metric: str) -> float:
    """A threshold of log-odds for the metric that hangs less on single records than the best one of these does.

    Between the best threshold by the classes that the records have, which is free of what is wrong with the
    probabilities, and the best by the classes that are expected of them, which is free of chance and counts threefold.
    """
    observed = best_threshold(codes, log_odds, metric)
    probabilities = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
    expected = all_cuts(probabilities, log_odds).best(metric)
    return observed / 4 + 3 * expected / 4


def threshold_at_rate(scores: Array, rate: float) -> float:
    """The threshold above which a share `rate` of the scores lies: ⌊rate·n⌋ of them, or fewer where scores are equal.

    Scores that are equal are all above or all below; those that would exceed the budget are below.
    """
    # 0.29 · 100 is 28.999…96 in floating point, and means 29.
    return threshold_at_count(scores, math.floor(rate * len(scores) + 1e-9))


def threshold_at_count(scores: Array, count: int) -> float:
    """The threshold above which so many scores lie, or fewer where scores are equal: see `threshold_at_rate`."""
    rising = np.sort(scores)
    cut = len(rising) - min(len(rising), count)
    if 0 < cut < len(rising):
        cut = int(np.searchsorted(rising, rising[cut - 1], side="right"))
    return _between(rising, cut)


def _between(rising: Array, cut: int) -> float:
    """A threshold below the scores from position `cut` on, and not below the others."""
    if cut == 0:
        return math.nextafter(float(rising[0]), -math.inf)
    if cut == len(rising):
        return float(rising[-1])
    low, high = float(rising[cut - 1]), float(rising[cut])
    halfway = low / 2 + high / 2
    # Of neighboring floats the middle rounds to one of them; only the lower one still parts them.
    return halfway if low <= halfway < high else low


def checked(positive: Flags, scores: Array) -> tuple[Flags, Array]:
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


def check_share(name: str, value: float) -> None:
    """Refuse what is no number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ParameterError(f"The '{name}' must be a number from 0 to 1. Got {value!r} instead.")


def check_positive(name: str, value: float) -> None:
    """Refuse what is no finite number above 0."""
    if not is_number(value) or not 0 < value < math.inf:
        raise ParameterError(f"The '{name}' must be a finite number above 0. Got {value!r} instead.")


def is_number(value: object) -> bool:
    """Whether a value is a number; truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def threshold_at_precision(positive: Flags, scores: Array, floor: float) -> float:
    """The highest recall with a precision of at least `floor`; of equal recalls that of the highest precision.

    A `DataError` says what can be reached where no threshold has this precision.
    """
    cuts = all_cuts(*checked(positive, scores))
    check_share("floor", floor)
    hits, precision = cuts.counts["tp"], _precisions(cuts)
    allowed = np.flatnonzero(precision >= floor)
    if len(allowed) == 0:
        best = int(np.argmax(precision))
        # Rounded down, so that the figure can be asked for.
        reached, recall = (math.floor(value * 1e4) / 1e4 for value in (precision[best], hits[best] / hits[0]))
        alerts = hits[best] + cuts.counts["fp"][best]
        raise DataError(
            f"No threshold has a precision of {floor:g} or more on these {len(scores):,} rows. The best is "
            f"{reached:g} ({hits[best]:,.0f} of {alerts:,.0f} alerts are positive), at recall {recall:g}. Ask for a "
            f"floor of at most {reached:g}, or choose by recall, alert rate or cost instead."
        )
    # Hits and alerts fall from cut to cut: the first has the best recall, the last as good has the fewest alerts.
    return cuts.threshold(int(allowed[hits[allowed] == hits[allowed[0]]][-1]))


def most_precise_threshold(positive: Flags, scores: Array) -> float:
    """The highest precision that a threshold has; of equal ones the most alerts."""
    cuts = all_cuts(*checked(positive, scores))
    return cuts.threshold(int(np.argmax(_precisions(cuts))))


def _precisions(cuts: Cuts) -> Array:
    """Precision of every cut but the last, which has no alert."""
    hits, false = cuts.counts["tp"][:-1], cuts.counts["fp"][:-1]
    return np.asarray(hits / (hits + false))


def threshold_at_recall(positive: Flags, scores: Array, floor: float) -> float:
    """The fewest alerts with a recall of at least `floor`; every floor from 0 to 1 can be reached."""
    cuts = all_cuts(*checked(positive, scores))
    check_share("floor", floor)
    hits = cuts.counts["tp"]
    return cuts.threshold(int(np.flatnonzero(hits / hits[0] >= floor)[-1]))


def threshold_at_cost(positive: Flags, scores: Array, ratio: float) -> float:
    """The lowest total cost, where a missed positive costs `ratio` times a false alert; of equal ones the most alerts.

    With a ratio of 1 this is the best accuracy.
    """
    cuts = all_cuts(*checked(positive, scores))
    check_positive("ratio", ratio)
    # A cost beyond all floats is never the lowest: an alert for every record costs less than n.
    with np.errstate(over="ignore"):
        costs = float(ratio) * cuts.counts["fn"] + cuts.counts["fp"]
    # Equal costs may differ in their last digits: the first that is the lowest up to rounding.
    return cuts.threshold(int(np.argmax(costs <= costs.min() * (1.0 + 1e-14))))
