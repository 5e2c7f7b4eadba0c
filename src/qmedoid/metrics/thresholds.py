r"""Thresholds on a score: counts at every cut, and the best one by a metric, a budget or costs (algorithm 16).

A rule chooses among all decisions that a threshold can make, in the time of one sort. Records with a score above the
threshold are alerts. Three or more classes have biases instead: a record is called the class of the highest
:math:`s_c + b_c`. They are sought one class at a time: as :math:`b_c` rises, records flip to class c one by one, and
the figure after each flip is known from running sums. Classes of the rows count a quarter as they are and three
quarters as the probabilities say, so that a figure does not hang on a few rows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import warn
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


def threshold_at_count(scores: Array, count: int) -> float:
    """The threshold above which `count` scores lie, or fewer where scores are equal, which are all above or below."""
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


def is_number(value: object) -> bool:
    """Whether a value is a number; truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def chosen_threshold(rule: str, asked: float, positive: Flags, scores: Array) -> float:
    """The threshold that a rule chooses by rows of both classes, with finite scores.

    Parameters
    ----------
    rule : str
        ``"alert_rate"``: at most a share `asked` of the rows are alerts. ``"min_recall"``: a recall of at least `asked`
        with the fewest alerts. ``"min_precision"``: a precision of at least `asked` with the highest recall; where it
        is out of reach, the highest precision, with a warning. ``"cost"``: the lowest total cost, where a missed
        positive costs `asked` false alerts; of equal ones the most alerts. Else one of `THRESHOLD_METRICS`: log-odds
        have a threshold between the best by the classes of these rows, which is free of what is wrong with the
        probabilities, and the best by the classes that are expected of them, which is free of chance and counts
        threefold.
    """
    if rule == "alert_rate":
        # 0.29 · 100 is 28.999…96 in floating point, and means 29.
        return threshold_at_count(scores, math.floor(asked * len(scores) + 1e-9))
    cuts = all_cuts(positive, scores)
    hits, false = cuts.counts["tp"], cuts.counts["fp"]
    if rule == "min_recall":
        return cuts.threshold(int(np.flatnonzero(hits / hits[0] >= asked)[-1]))
    if rule == "cost":
        # A cost beyond all floats is never the lowest: an alert for every record costs less than n.
        with np.errstate(over="ignore"):
            costs = asked * cuts.counts["fn"] + false
        # Equal costs may differ in their last digits: the first that is the lowest up to rounding.
        return cuts.threshold(int(np.argmax(costs <= costs.min() * (1.0 + 1e-14))))
    if rule == "min_precision":
        precision = hits[:-1] / (hits[:-1] + false[:-1])  # the last cut has no alert
        allowed = np.flatnonzero(precision >= asked)
        if len(allowed):
            # Hits and alerts fall from cut to cut: the first has the best recall, the last as good the fewest alerts.
            return cuts.threshold(int(allowed[hits[allowed] == hits[allowed[0]]][-1]))
        best = int(np.argmax(precision))
        reached = math.floor(precision[best] * 1e4) / 1e4  # rounded down, so that the figure can be requested
        warn(
            f"No threshold has a precision of {asked:g} or more on these {len(scores):,} rows. The best is {reached:g} "
            f"({hits[best]:,.0f} of {hits[best] + false[best]:,.0f} alerts are positive), at recall "
            f"{hits[best] / hits[0]:.4g}: its threshold is used. Ask for a floor of at most {reached:g}, or choose by "
            "recall, alert rate or cost instead."
        )
        return cuts.threshold(best)
    probabilities = 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
    return cuts.best(rule) / 4 + 3 * all_cuts(probabilities, scores).best(rule) / 4


CLASS_METRICS = ("macro_f1", "balanced_accuracy")
"""Metrics that biases can be chosen for."""
# Share of the classes of the rows; the rest is that of their probabilities.
_AS_LABELED = 0.25
_PASSES = 3
# Figures that differ by less than this are the same: the bias stays nearer to where it was.
_SAME = 1e-9


def fit_class_biases(scores: Array, codes: Codes, rule: str, cost: Array | None = None) -> Array:
    """Biases of the classes, shape (C,), of mean 0, by out-of-fold rows.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Their softmax is a probability.
    codes : ndarray of shape (n,)
    rule : {"macro_f1", "balanced_accuracy", "cost"}
    cost : ndarray of shape (C, C), optional
        What it costs to call a record of class i class j, for ``"cost"``.
    """
    n_classes = scores.shape[1]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    targets = _AS_LABELED * np.eye(n_classes)[codes] + (1.0 - _AS_LABELED) * probabilities
    biases = np.zeros(n_classes)
    for _ in range(_PASSES):
        before = biases.copy()
        for code in range(n_classes):
            biases[code] = _best_bias(scores + biases, code, biases[code], targets, rule, cost)
        if np.array_equal(before, biases):
            break
    return np.asarray(biases - biases.mean())


def _best_bias(scores: Array, code: int, bias: float, targets: Array, rule: str, cost: Array | None) -> float:
    """The bias of one class of the best figure, the others as they are."""
    others = np.where(np.arange(scores.shape[1]) == code, -np.inf, scores)
    rival = others.argmax(axis=1)
    # By how much the bias has to rise for the row to be called this class.
    gap = others[np.arange(len(scores)), rival] - scores[:, code]
    order = np.argsort(gap, kind="stable")
    figures = figures_by_flips(targets[order], rival[order], code, rule, cost)
    now = int(np.searchsorted(gap[order], 0.0))
    best = np.flatnonzero(figures >= figures.max() - _SAME)
    place = int(best[np.abs(best - now).argmin()])
    if place == now:
        return bias
    edges = np.concatenate([[gap[order[0]] - 1.0], gap[order], [gap[order[-1]] + 1.0]])
    return bias + 0.5 * float(edges[place] + edges[place + 1])


def figures_by_flips(targets: Array, rival: Codes, code: int, rule: str, cost: Array | None) -> Array:
    """The figure after each number of flips, shape (n + 1,); larger is better."""
    n, n_classes = targets.shape
    called = np.eye(n_classes)[rival]
    if rule == "cost":
        assert cost is not None, "the rule comes with its costs"
        by_call = targets @ cost
        change = by_call[:, code] - by_call[np.arange(n), rival]
        return -np.concatenate([[0.0], np.cumsum(change)])
    # Hits and calls of every class, before any flip and after each.
    hits = (called * targets).sum(axis=0) - np.vstack([np.zeros(n_classes), np.cumsum(called * targets, axis=0)])
    hits[:, code] = np.concatenate([[0.0], np.cumsum(targets[:, code])])
    support = targets.sum(axis=0)
    if rule == "balanced_accuracy":
        return np.asarray((hits / np.maximum(support, 1e-12)).mean(axis=1))
    calls = called.sum(axis=0) - np.vstack([np.zeros(n_classes), np.cumsum(called, axis=0)])
    calls[:, code] = np.arange(n + 1)
    return np.asarray((2.0 * hits / np.maximum(calls + support, 1e-12)).mean(axis=1))


def cost_matrix(asked: Any, classes: list[Any]) -> Array | None:
    """The matrix of costs by class codes, from an array (C, C) or a mapping of class to mapping; None if it is none."""
    if isinstance(asked, Mapping):
        rows = [asked, *asked.values()]
        if not all(isinstance(row, Mapping) and set(row) == set(classes) for row in rows):
            return None
        asked = [[asked[true][called] for called in classes] for true in classes]
    try:
        matrix = np.asarray(asked, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return matrix if matrix.shape == (len(classes),) * 2 and np.isfinite(matrix).all() and matrix.min() >= 0 else None
