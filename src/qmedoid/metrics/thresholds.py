"""Thresholds on a score that are best by a named metric, or that keep to a budget of alerts (algorithm 16)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
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

    Attributes
    ----------
    rising : ndarray of shape (n,)
        The scores in rising order.
    starts : ndarray of shape (m,)
        The records from this position on are called positive: at first all of them, at last none.
    counts : mapping of str to ndarray of shape (m,)
        ``"tp"``, ``"fp"``, ``"fn"`` and ``"tn"`` of each cut.
    """

    rising: Array
    starts: Codes
    counts: Counts

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


def counts_at(positive: Flags, scores: Array, threshold: float) -> dict[str, int]:
    """``"tp"``, ``"fp"``, ``"fn"`` and ``"tn"`` when records with a score above the threshold are called positive."""
    called = scores > threshold
    pairs = {"tp": called & positive, "fp": called & ~positive, "fn": ~called & positive, "tn": ~called & ~positive}
    return {name: int(np.count_nonzero(hit)) for name, hit in pairs.items()}


def metric_at(codes: Codes, scores: Array, threshold: float, metric: str) -> float:
    """Value of the metric when records with a score above the threshold are called positive."""
    counts = counts_at(codes == 1, scores, threshold)
    return float(THRESHOLD_METRICS[metric]({name: np.array([count]) for name, count in counts.items()})[0])


def best_threshold(codes: Codes, scores: Array, metric: str) -> float:
    """The threshold, halfway between scores that occur, with the best value of the metric; of equal ones the lowest.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        0 or 1.
    scores : ndarray of shape (n,)
        Larger means likelier 1. Records above the threshold are called positive.
    metric : str
        A name from `THRESHOLD_METRICS`.
    """
    return _best(all_cuts(codes == 1, scores), metric)


def _best(cuts: Cuts, metric: str) -> float:
    values = THRESHOLD_METRICS[metric](cuts.counts)
    return cuts.threshold(first_largest(values))


def steady_threshold(codes: Codes, log_odds: Array, metric: str) -> float:
    """A threshold of log-odds for the metric that hangs less on single records than the best one of these does.

    Between the best threshold by the classes that the records have, which is free of what is wrong with the
    probabilities, and the best by the classes that are expected of them, which is free of chance and counts threefold.
    """
    observed = best_threshold(codes, log_odds, metric)
    probabilities = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
    expected = _best(all_cuts(probabilities, log_odds), metric)
    return observed / 4 + 3 * expected / 4


def threshold_at_rate(scores: Array, rate: float) -> float:
    """The threshold above which a share `rate` of the scores lies: ⌊rate·n⌋ of them, or fewer where scores are equal.

    Scores that are equal are all above or all below; those that would exceed the budget are below.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    rate : float
        Between 0 and 1.
    """
    rising = np.sort(scores)
    # 0.29 · 100 is 28.999…96 in floating point, and means 29.
    budget = min(len(rising), math.floor(rate * len(rising) + 1e-9))
    cut = len(rising) - budget
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
