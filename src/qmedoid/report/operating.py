"""The stops of the operating-point slider: alerts, thresholds that reproduce them, counts and texts; and the curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import ClassMetrics
from qmedoid.metrics.texts import figure_text, interval_text
from qmedoid.model.cut import curve_rows
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary, probability
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve
from qmedoid.report.documents import CurvesDict, CutsDict, NetBenefitDict, StopsDict

ONE_BY_ONE = 1_000
"""Alerts up to which every number of them is a stop."""
MORE_STOPS = 200
"""Stops beyond these, each with about the same share of alerts more than the one before."""
SAME_LOG_ODDS = 0.001
"""Thresholds whose log-odds differ by less than this are shown as one."""
MOST_POINTS = 200
"""Points of a curve at most."""
_LARGEST = math.nextafter(1.0, 0.0)
# Log-odds whose probability is still above 0.
_LOWEST = -740.0


@dataclass(frozen=True, eq=False)
class RankedLogOdds:
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
    def of_curve(cls, curve: HeldOutCurve, shift: float) -> "RankedLogOdds":
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
        chance = min(probability(max(odds, _LOWEST)), _LARGEST)
        for digits in range(1, 18):
            text = f"{chance:.{digits}g}"
            if _is_between(text, low, high):
                return text
    return None


def _is_between(text: str, low: float, high: float) -> bool:
    return 0.0 < float(text) < 1.0 and low <= _log_odds(text) < high


def _log_odds(text: str) -> float:
    chance = float(text)
    return math.log(chance) - math.log1p(-chance)


def wanted_alerts(n_rows: int) -> Codes:
    """Numbers of alerts that are stops: 0 to `ONE_BY_ONE` one by one, then evenly on a log scale, and all rows."""
    few = np.arange(min(n_rows, ONE_BY_ONE) + 1)
    many = np.geomspace(ONE_BY_ONE, max(n_rows, ONE_BY_ONE), MORE_STOPS).round().astype(np.intp)
    return np.union1d(few, many[many <= n_rows])


def operating(
    rows: RankedLogOdds, decision: Decision, *, cost: float | None = None, rows_per_day: float | None = None
) -> CutsDict:
    """The operating part of a summary, without its sentence; see `summary`."""
    order = np.argsort(-rows.log_odds, kind="stable")
    falling, hits = rows.log_odds[order], np.concatenate([[0], np.cumsum(rows.positive[order])])
    n, n_positive = len(falling), int(hits[-1])
    # After these numbers of alerts a cut is possible: the next score is lower.
    possible = np.concatenate([[0], np.flatnonzero(falling[1:] < falling[:-1]) + 1, [n]])
    present = 0.0 if decision.cut is None else decision.cut
    here = int((rows.log_odds > present).sum())
    chosen = np.union1d(possible[np.searchsorted(possible, wanted_alerts(n), side="right") - 1], [here]).tolist()
    stops, texts = list[dict[str, Any]](), list[dict[str, str]]()
    for alerts in chosen:
        text = _stop(rows, falling, alerts, present)
        if text is None:
            continue
        tp = int(hits[alerts])
        counts = Counts(tp, alerts - tp, n_positive - tp, n - n_positive - alerts + tp)
        summary = at_counts(decision, _log_odds(text), counts, is_held_out=rows.is_held_out)
        stops.append({"alerts": alerts, "threshold": float(text), "threshold_text": text, **counts._asdict()})
        texts.append(_texts(counts, summary, cost, rows_per_day))
    columns = _columns(stops)
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
        "start": columns["alerts"].index(here) if here in columns["alerts"] else 0,
        "stops": cast(
            "StopsDict",
            {
                **columns,
                "texts": _columns(texts),
                "command": [f"--threshold {text}" for text in columns["threshold_text"]],
            },
        ),
        "curves": {**drawn, "pr": [], "net_benefit": None} if is_shifted else drawn,
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows by name as lists by name."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def _stop(rows: RankedLogOdds, falling: Array, alerts: int, present: float) -> str | None:
    """The threshold of a stop as text; None where no probability has it."""
    n = len(falling)
    high = math.inf if alerts == 0 else float(falling[alerts - 1])
    low = -math.inf if alerts == n else float(falling[alerts])
    if rows.is_compressed and math.isfinite(low) and math.isfinite(high):
        # Rows were counted at the upper threshold: the cut belongs just below it.
        low = high - (high - low) / 64.0
    return threshold_text(low, high, probability(present) if low <= present < high else None)


def at_counts(decision: Decision, log_odds: float, counts: Counts, *, is_held_out: bool) -> OperatingSummary:
    """An operating point by its counts; of held-out rows with their draws per row and at the expected prevalence."""
    per_row, expected = 1.0, None
    if is_held_out:
        per_row = 1.0 if decision.operating is None else decision.operating.draws_per_row
        expected = None if decision.shift is None else decision.shift.prevalence
    return OperatingSummary("probability", None, log_odds, counts, expected, per_row)


def _texts(counts: Counts, summary: OperatingSummary, cost: float | None, rows_per_day: float | None) -> dict[str, str]:
    tp, fp, fn, tn = counts
    metrics = ClassMetrics(np.array([[tn, fp], [fn, tp]], dtype=np.float64))
    is_shifted = summary.prevalence is not None
    figures = {name: getattr(summary, name) for name in ("alert_rate", "precision", "recall")}
    f1 = float(metrics.f1[1]) if tp + fn + fp else None
    rate = figures["alert_rate"]
    texts = {
        "alerts": f"{tp + fp:,}",
        **{name: figure_text(None if one is None else one.value) for name, one in figures.items()},
        **{f"{name}_interval": interval_text(one) for name, one in figures.items()},
        # Counts are of the rows as they were, and these figures have no meaning at another prevalence.
        "f1": figure_text(None if is_shifted else f1),
        "accuracy": figure_text(None if is_shifted else metrics.accuracy),
    }
    if rows_per_day is not None:
        texts["per_day"] = "–" if rate is None else per_day_text(rate.value * rows_per_day)
    if cost is not None:
        texts["cost"] = cost_text(cost * fn + fp)
    return texts


def cost_text(cost: float) -> str:
    """A cost in false alerts."""
    return f"{cost:,.0f}" if float(cost).is_integer() else f"{cost:,.2f}"


def per_day_text(alerts: float) -> str:
    """Alerts per day, with as many digits as say something."""
    return f"{alerts:,.0f}" if alerts >= 100 else f"{alerts:.3g}"


def curves(positive: Flags, falling: Array, hits: Codes, possible: Codes) -> CurvesDict:
    """ROC, precision against recall, recall against alert rate, and net benefit; rows have falling log-odds."""
    n, n_positive, n_negative = len(falling), int(hits[-1]), len(falling) - int(hits[-1])
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
    return _pairs(x[places], y[places])


def _pairs(x: Array, y: Array) -> list[list[float]]:
    return [[float(f"{one:.6g}") for one in pair] for pair in zip(x.tolist(), y.tolist(), strict=True)]


def net_benefit(positive: Flags, falling: Array) -> NetBenefitDict:
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
    drawn = [_pairs(grid[one >= -share], one[one >= -share]) for one in (model, acting, np.zeros(len(grid)))]
    return {"model": drawn[0], "all": drawn[1], "none": drawn[2]}
