"""The stops of the operating-point slider: alerts, thresholds that reproduce them, counts and texts; and the curves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import ClassMetrics
from qmedoid.metrics.texts import count_text, figure_text, interval_text
from qmedoid.model.cut import curve_rows
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve

ONE_BY_ONE = 1_000
"""Alerts up to which every number of them is a stop."""
MORE_STOPS = 200
"""Stops beyond these, each with about the same share of alerts more than the one before."""
SAME_LOG_ODDS = 0.001
"""Thresholds whose log-odds differ by less than this are shown as one."""
MOST_POINTS = 200
"""Points of a curve at most."""
_LARGEST = math.nextafter(1.0, 0.0)


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows of two classes by their log-odds.

    Attributes
    ----------
    positive : ndarray of bool of shape (n,)
    log_odds : ndarray of shape (n,)
    is_compressed : bool
        Whether rows between thresholds that were kept have the lower one, so that a cut is exact only just below a
        threshold.
    is_held_out : bool
        Whether they are the rows of the held-out curve, whose draws and prevalence the decision knows.
    """

    positive: Flags
    log_odds: Array
    is_compressed: bool = False
    is_held_out: bool = False

    @classmethod
    def of_curve(cls, curve: HeldOutCurve, shift: float) -> "RankedRows":
        """The rows of a held-out curve."""
        positive, log_odds = curve_rows(curve)
        return cls(positive, log_odds + shift, len(positive) > MOST_CUTS, is_held_out=True)


def threshold_text(low: float, high: float, first: float | None = None) -> str | None:
    """The shortest decimal probability whose log-odds t have low ≤ t < high; None where no float has.

    A cut there calls records with log-odds of at least `high` positive, and those up to `low` not. `first` is a
    probability that is taken if it is one, in as few digits as leave its log-odds in place up to `SAME_LOG_ODDS`.
    """
    if first is not None and _is_between(repr(first), low, high):
        odds = math.log(first) - math.log1p(-first)
        around = max(low, odds - SAME_LOG_ODDS), min(high, odds + SAME_LOG_ODDS)
        texts = (f"{first:.{digits}g}" for digits in range(1, 18))
        return next((text for text in texts if _is_between(text, *around)), repr(first))
    middle = low / 2 + high / 2 if math.isfinite(low) and math.isfinite(high) else (high if math.isinf(low) else low)
    for odds in (middle, low, math.nextafter(high, -math.inf)):
        chance = min(max(_probability(odds), 5e-324), _LARGEST)
        for digits in range(1, 18):
            text = f"{chance:.{digits}g}"
            if _is_between(text, low, high):
                return text
    return None


def _is_between(text: str, low: float, high: float) -> bool:
    chance = float(text)
    return 0.0 < chance < 1.0 and low <= math.log(chance) - math.log1p(-chance) < high


def _probability(log_odds: float) -> float:
    if log_odds > 0:
        return 1.0 / (1.0 + math.exp(-min(log_odds, 700.0)))
    grown = math.exp(max(log_odds, -740.0))
    return grown / (1.0 + grown)


def wanted_alerts(n_rows: int) -> Codes:
    """Numbers of alerts that are stops: 0 to `ONE_BY_ONE` one by one, then evenly on a log scale, and all rows."""
    few = np.arange(min(n_rows, ONE_BY_ONE) + 1)
    if n_rows <= ONE_BY_ONE:
        return few
    return np.unique(np.concatenate([few, np.geomspace(ONE_BY_ONE, n_rows, MORE_STOPS).round().astype(np.intp)]))


def operating(
    rows: RankedRows,
    decision: Decision,
    *,
    cost: float | None = None,
    rows_per_day: float | None = None,
) -> dict[str, Any]:
    """The operating part of a summary, without its sentence; see `summary`."""
    order = np.argsort(-rows.log_odds, kind="stable")
    falling, hits = rows.log_odds[order], np.concatenate([[0], np.cumsum(rows.positive[order])])
    n, n_positive = len(falling), int(hits[-1])
    # After so many alerts a cut is possible: the next score is lower.
    possible = np.concatenate([[0], np.flatnonzero(falling[1:] < falling[:-1]) + 1, [n]])
    present = 0.0 if decision.cut is None else decision.cut
    here = int((rows.log_odds > present).sum())
    chosen = np.union1d(possible[np.searchsorted(possible, wanted_alerts(n), side="right") - 1], [here])
    stops = [_stop(rows, falling, int(alerts), present) for alerts in chosen]
    kept = [(int(alerts), stop) for alerts, stop in zip(chosen, stops, strict=True) if stop is not None]
    counts = [
        Counts(int(hits[alerts]), alerts - int(hits[alerts]), n_positive - int(hits[alerts]),
               n - n_positive - alerts + int(hits[alerts]))
        for alerts, _ in kept
    ]  # fmt: skip
    summaries = [
        at_counts(decision, log_odds, one, is_held_out=rows.is_held_out)
        for (_, (_, log_odds)), one in zip(kept, counts, strict=True)
    ]
    texts = [_texts(one, of) for one, of in zip(counts, summaries, strict=True)]
    if rows_per_day is not None:
        for of, one in zip(texts, summaries, strict=True):
            rate = one.alert_rate
            of["per_day"] = "–" if rate is None else per_day_text(rate.value * rows_per_day)
    if cost is not None:
        for of, counted in zip(texts, counts, strict=True):
            of["cost"] = cost_text(cost * counted.fn + counted.fp)
    drawn = curves(rows.positive[order], falling, hits, possible)
    # Held-out rows have the training prevalence: these curves would mix it with the expected one.
    is_shifted = rows.is_held_out and decision.shift is not None
    return {
        "positive": decision.classes[1],
        "negative": decision.classes[0],
        "rows": n,
        "positives": n_positive,
        "per_day": rows_per_day,
        "cost": cost,
        "start": [alerts for alerts, _ in kept].index(here) if here in [alerts for alerts, _ in kept] else 0,
        "stops": {
            "alerts": [alerts for alerts, _ in kept],
            "threshold": [float(text) for _, (text, _) in kept],
            "threshold_text": [text for _, (text, _) in kept],
            **{name: [getattr(one, name) for one in counts] for name in Counts._fields},
            "texts": {name: [one[name] for one in texts] for name in (texts[0] if texts else {})},
            "command": [f"--threshold {text}" for _, (text, _) in kept],
        },
        "curves": {**drawn, **({"pr": [], "net_benefit": None} if is_shifted else {})},
    }


def _stop(rows: RankedRows, falling: Array, alerts: int, present: float) -> tuple[str, float] | None:
    """The threshold of a stop as text and as log-odds; None where no probability has it."""
    n = len(falling)
    high = math.inf if alerts == 0 else float(falling[alerts - 1])
    low = -math.inf if alerts == n else float(falling[alerts])
    if rows.is_compressed and math.isfinite(low) and math.isfinite(high):
        # Rows were counted at the upper threshold: the cut belongs just below it.
        low = high - (high - low) / 64.0
    first = _probability(present) if low <= present < high else None
    text = threshold_text(low, high, first)
    if text is None:
        return None
    chance = float(text)
    return text, math.log(chance) - math.log1p(-chance)


def at_counts(decision: Decision, log_odds: float, counts: Counts, *, is_held_out: bool) -> OperatingSummary:
    """An operating point by its counts; of held-out rows with their draws per row and at the expected prevalence."""
    plain = OperatingSummary("probability", None, log_odds, counts)
    if not is_held_out:
        return plain
    per_row = 1.0 if decision.operating is None else decision.operating.draws_per_row
    expected = None if decision.shift is None else decision.shift.prevalence
    return replace(plain, draws_per_row=per_row, prevalence=expected)


def _texts(counts: Counts, summary: OperatingSummary) -> dict[str, str]:
    tp, fp, fn, tn = counts
    metrics = ClassMetrics(np.array([[tn, fp], [fn, tp]], dtype=np.float64))
    is_shifted = summary.prevalence is not None
    rate, precision, recall = summary.alert_rate, summary.precision, summary.recall
    f1 = float(metrics.f1[1]) if tp + fn + fp else None
    return {
        "alerts": count_text(tp + fp),
        "alert_rate": figure_text(None if rate is None else rate.value),
        "precision": figure_text(None if precision is None else precision.value),
        "recall": figure_text(None if recall is None else recall.value),
        "alert_rate_interval": interval_text(rate),
        "precision_interval": interval_text(precision),
        "recall_interval": interval_text(recall),
        # Counts are of the rows as they were, and these figures have no meaning at another prevalence.
        "f1": figure_text(None if is_shifted else f1),
        "accuracy": figure_text(None if is_shifted else metrics.accuracy),
    }


def cost_text(cost: float) -> str:
    """A cost in false alerts."""
    return f"{cost:,.0f}" if float(cost).is_integer() else f"{cost:,.2f}"


def per_day_text(alerts: float) -> str:
    """Alerts per day, with as many digits as say something."""
    return f"{alerts:,.0f}" if alerts >= 100 else f"{alerts:.3g}"


def curves(positive: Flags, falling: Array, hits: Codes, possible: Codes) -> dict[str, Any]:
    """ROC, precision against recall, recall against alert rate, and net benefit; rows have falling log-odds."""
    n, n_positive = len(falling), int(hits[-1])
    n_negative = n - n_positive
    if n_positive == 0 or n_negative == 0:
        return {"roc": [], "pr": [], "recall_by_alert_rate": [], "net_benefit": None}
    found = hits[possible]
    recall, false, rate = found / n_positive, (possible - found) / n_negative, possible / n
    precision = np.divide(found, possible, out=np.ones(len(possible)), where=possible > 0)
    return {
        "roc": _points(false, recall, recall + false),
        "pr": _points(recall[1:], precision[1:], recall[1:] + np.log1p(possible[1:]) / math.log1p(n)),
        "recall_by_alert_rate": _points(rate, recall, recall + rate),
        "net_benefit": net_benefit(positive, falling),
    }


def _points(x: Array, y: Array, along: Array) -> list[list[float]]:
    """At most `MOST_POINTS` points of a curve, at even steps of a rising quantity, both ends included."""
    places = np.arange(len(x))
    if len(x) > MOST_POINTS:
        steps = np.linspace(along[0], along[-1], MOST_POINTS)
        places = np.unique(np.minimum(np.searchsorted(along, steps), len(x) - 1))
    return [[_short(a), _short(b)] for a, b in zip(x[places].tolist(), y[places].tolist(), strict=True)]


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def net_benefit(positive: Flags, falling: Array) -> Mapping[str, list[list[float]]]:
    r"""Net benefit :math:`TP/n - (FP/n)\,p/(1-p)` by the probability p from which a record is acted on.

    Next to it, acting on all records and on none. Points below the loss of the prevalence are left out.
    """
    n, share = len(positive), float(positive.mean())
    grid = np.unique(np.concatenate([np.linspace(0.01, 0.99, 99), np.geomspace(min(share, 0.5) / 20.0, 0.5, 99)]))
    cuts = np.log(grid) - np.log1p(-grid)
    hits = np.concatenate([[0], np.cumsum(positive)])
    alerts = n - np.searchsorted(falling[::-1], cuts, side="right")
    odds = grid / (1.0 - grid)
    model = hits[alerts] / n - (alerts - hits[alerts]) / n * odds
    acting = share - (1.0 - share) * odds

    def pairs(values: Array) -> list[list[float]]:
        near = values >= -share
        return [[_short(p), _short(b)] for p, b in zip(grid[near].tolist(), values[near].tolist(), strict=True)]

    return {"model": pairs(model), "all": pairs(acting), "none": pairs(np.zeros(len(grid)))}
