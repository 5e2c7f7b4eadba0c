"""What a report evaluates: figures with 95 % intervals, confusion matrix, calibration, and what every cut means."""

import math
from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import confidence_outcomes
from qmedoid.metrics.intervals import (
    Interval,
    macro_f1_interval,
    mean_interval,
    next_table,
    pr_auc_interval,
    roc_auc_interval,
    share_interval,
)
from qmedoid.metrics.texts import FIGURE_NAMES, figure_text, interval_text
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model
from qmedoid.model.operating_point import Counts, OperatingSummary, curve_counts, curve_rows, probability
from qmedoid.model.training_summary import MOST_CUTS, seen_in_words
from qmedoid.report import documents
from qmedoid.report.reading import Looked
from qmedoid.tables.evaluating import SEEN, labeled_report

N_BINS = 15
"""Bins of the calibration, of about equally many rows."""
_SMALLEST = float(np.finfo(np.float64).eps)


def _held_out_rows(model: Model) -> tuple[Flags, Array, bool, Counts] | None:
    """The out-of-fold rows of two classes: whether each is positive, their log-odds, whether those are compressed.

    The last are the counts at the present cut. None where the model keeps no curve.
    """
    decision, curve = model.decision, None if model.training is None else model.training.curve
    if curve is None or not decision.probabilistic or len(decision.classes) != 2:
        return None
    shift = 0.0 if decision.shift is None else decision.shift.of_log_odds
    positive, log_odds = curve_rows(curve)
    counts = curve_counts(curve, (decision.cut or 0.0) - shift)
    return positive, log_odds + shift, len(positive) > MOST_CUTS, counts


def evaluated(model: Model, looked: Looked | None, *, cost: float | None) -> documents.EvaluatedDict:
    """The table, and figures, confusion, operating point and calibration of its rows, else of held-out rows.

    Rows of the table that the fit has seen and that are not to be counted have the code `SEEN`.
    """
    decision, per_day = model.decision, None if model.training is None else model.training.rows_per_day
    table = None if looked is None else _table(model, looked)
    labels = [str(label) for label in decision.classes]
    known = np.zeros(0, dtype=np.bool_) if looked is None else looked.codes >= 0
    held_out, stored, curve, ranked = _held_out_rows(model), model.metrics.get("held_out"), None, None
    is_new: bool | None = True
    if looked is not None and known.any():
        report = labeled_report(model, looked.codes, looked.decided, looked.hashes)
        codes, scores, margins = looked.codes[known], looked.decided.scores[known], looked.decided.margins[known]
        # Whether the fit has seen none of the rows that are counted; None where that is not known.
        is_new = None if report["seen"] is None else bool(report["left_out"]["seen"] or not report["seen"]["rows"])
        n, confusion, stops = len(codes), report["confusion"], "rows of the table"
        on, about = _about_table(report)
        ranks = (codes == 1, margins) if len(labels) == 2 else (None, None)
        intervals = _intervals(confusion, None, *ranks)
        if decision.probabilistic:
            of_true = decision.probabilities(scores)[np.arange(n), codes]
            intervals["log_loss"] = mean_interval(-np.log(np.maximum(of_true, _SMALLEST)))
        # Where no circuit decides there is nothing to say of it.
        figures = _figures({key: one for key, one in report.items() if key != "by_circuit" or one}, intervals)
        curve = _calibration(report, decision, codes, scores)
        if len(labels) == 2 and decision.probabilistic:
            ranked = codes == 1, scores[:, 1] - scores[:, 0], False
    elif held_out is not None:
        (tp, fp, fn, tn), ranked = held_out[3], held_out[:3]
        n, confusion, stops = tp + fp + fn + tn, [[tn, fp], [fn, tp]], "out-of-fold rows of the fit"
        on = f"{n:,} training rows, each decided by a fit that had not seen it (out-of-fold)"
        about = f"{on}, at the present cut."
        at_cut = at_counts(decision, decision.cut or 0.0, held_out[3], is_held_out=True)
        intervals = {name: one for name, one in _intervals(confusion, at_cut, *held_out[:2]).items() if one is not None}
        values: dict[str, float | None] = {name: None if one is None else one.value for name, one in intervals.items()}
        if at_cut.prevalence is None:
            values["f1"] = 2 * tp / (2 * tp + fn + fp) if tp + fn + fp else None
        figures = _figures({"precision": None, "recall": None, **values}, intervals)
    elif isinstance(stored, Mapping) and "confusion" in stored:
        n, confusion, figures = stored["rows"], stored["confusion"], _figures(stored, _intervals(stored["confusion"]))
        on = f"{n:,} rows that the fit held out"
        about = f"{on}, from the model file."
    else:
        return {"figures": None, "confusion": None, "operating": None, "calibration": None, "table": table}
    seen = 0 if looked is None or known.any() else int((looked.codes == SEEN).sum())
    if seen:
        about += f" All {seen:,} rows of the table that have a class were seen in fitting, and show nothing new."
    if len(labels) == 2:
        about += (
            " 19 of 20 new tables with as many rows will show accuracy, prevalence, alert rate, precision, recall and "
            "F1 between their bounds; those of other figures are 95 % confidence intervals."
        )
    source: Literal["table", "held-out"] = "table" if known.any() else "held-out"
    point: documents.ReportOperatingDict | None = None
    if ranked is not None:
        counted = f"Counted on {n:,} {stops}; intervals are of the model's rate: Clopper and Pearson's, at 95 %."
        if per_day is not None:
            counted += f" Alerts per day are for {per_day:,.6g} rows per day, the mean of the training rows."
        positive, log_odds, is_compressed = ranked
        cuts = operating(
            positive,
            log_odds,
            decision,
            is_held_out=not known.any(),
            is_compressed=is_compressed,
            cost=cost,
            rows_per_day=per_day,
        )
        point = {**cuts, "source": source, "about": counted}
    return {
        "figures": {"source": source, "on": on, "is_new": is_new, "about": about, "rows": n, "figures": figures},
        "confusion": {"labels": labels, "counts": confusion, "about": about},
        "operating": point,
        "calibration": curve,
        "table": table,
    }


def _about_table(report: Mapping[str, Any]) -> tuple[str, str]:
    """Which rows a report on a table is of and whether the model has seen them, in short and in sentences."""
    seen, left_out, on = report["seen"], report["left_out"], f"{report['rows']:,} rows"
    if seen is None:
        on += " of the table; whether the model has seen them is not known, as it keeps no hashes"
    elif seen["rows"] and not left_out["seen"]:
        on += f" of the table, {seen['rows']:,} of which were seen in fitting"
    else:
        on += " the model has never seen"
    kinds = {
        "seen": "seen in fitting (--all-rows counts them)",
        "missing": "without a class",
        "unknown": "of other classes",
    }
    without = [f"{left_out[key]:,} rows {words}" for key, words in kinds.items() if left_out[key]]
    about = f"{on}." + (f" Left out: {', '.join(without)}." if without else "")
    words = None if left_out["seen"] else seen_in_words(seen, report["rows"])
    return on, about if words is None else f"{about} {words[0].upper()}{words[1:]}"


def _figures(report: Mapping[str, Any], intervals: Mapping[str, Interval | None]) -> list[documents.ReportFigureDict]:
    """The figures of a report as the page shows them, with their intervals."""
    found = list[documents.ReportFigureDict]()
    for key, name in FIGURE_NAMES.items():
        if key in report:
            value, interval, text = report[key], intervals.get(key), figure_text(report[key])
            low, high = (None, None) if interval is None else (interval.low, interval.high)
            if value is not None and interval is not None:
                text += f" (95 % {figure_text(low)} to {figure_text(high)})"
            found.append({"key": key, "name": name, "value": value, "low": low, "high": high, "text": text})
    return found


def _intervals(
    confusion: list[list[int]],
    summary: OperatingSummary | None = None,
    positive: Flags | None = None,
    log_odds: Array | None = None,
) -> dict[str, Interval | None]:
    """Intervals of the figures that follow from counts, and of the areas where rows are ranked.

    Counts of held-out rows have a summary: with draws per row, and perhaps another prevalence, at which most figures
    have no meaning.
    """
    counts, per_row = np.array(confusion, dtype=np.float64), 1.0 if summary is None else summary.draws_per_row
    n, found = per_row * float(counts.sum()), dict[str, Interval | None]()
    if summary is None or summary.prevalence is None:
        found["accuracy"] = share_interval(per_row * float(np.trace(counts)), n) if len(confusion) > 2 else None
        found["macro_f1"] = macro_f1_interval(counts)
    if len(confusion) == 2:
        (tn, fp), (fn, tp) = confusion
        forecast = next_table((tp, fp, fn, tn), tp + fp + fn + tn) if summary is None else summary.forecast()
        # Of held-out rows at another prevalence most figures have no meaning.
        names = ("accuracy", "prevalence", "f1") if "accuracy" in found else ()
        found |= {name: forecast.get(name) for name in ("alert_rate", "precision", "recall", *names)}
    if positive is not None and log_odds is not None:
        found["roc_auc"] = roc_auc_interval(positive, log_odds)
        found["pr_auc"] = pr_auc_interval(positive, log_odds) if "accuracy" in found else None
    return found


def _calibration(
    report: Mapping[str, Any], decision: Decision, codes: Codes, scores: Array
) -> documents.ReportCalibrationDict | None:
    """Probabilities and what happened, in bins of about equally many rows."""
    if not decision.probabilistic:
        return None
    happened, probabilities = confidence_outcomes(codes, decision.probabilities(scores))
    order = np.argsort(probabilities, kind="stable")
    ranked, outcomes, bins = probabilities[order], happened[order], list[documents.CalibrationBinDict]()
    wanted = np.arange(N_BINS) * len(ranked) // N_BINS
    starts = np.unique(np.searchsorted(ranked, ranked[wanted], side="left")).tolist()
    for begin, end in zip(starts, [*starts[1:], len(ranked)], strict=True):
        share = share_interval(int(outcomes[begin:end].sum()), end - begin)
        mean = float(ranked[begin:end].mean())
        bins.append({"mean": mean, "share": share.value, "low": share.low, "high": share.high, "count": end - begin})
    found = report["calibration"]
    return {
        "of": None if len(decision.classes) > 2 else str(decision.classes[1]),
        "bins": bins,
        "error": found["error"],
        "by_chance": found["by_chance"],
        "by_chance_high": found["by_chance_high"],
    }


def _table(model: Model, looked: Looked) -> documents.ReportTableDict:
    """What there is to say of a table; its decisions are those about rows not seen in fitting, if there are any."""
    labels, labeled = model.decision.classes, (looked.codes >= 0) | (looked.codes == SEEN)
    codes, is_new = looked.decided.codes, looked.codes != SEEN
    codes = codes[is_new] if is_new.any() else codes
    called = np.bincount(codes, minlength=len(labels)).tolist()
    drift = None
    if model.decision.operating is not None and len(labels) == 2:
        drift = model.decision.operating.drift(int(called[1]), len(codes))
    return {
        "rows": looked.rows,
        "target": looked.target,
        "labeled": int(labeled.sum()),
        "called": [{"class": str(label), "rows": n} for label, n in zip(labels, called, strict=True)],
        "drift": None if drift is None else drift._asdict(),
        "novelty": {**looked.novelty.found, "lines": looked.novelty.lines},
        "difference": {**looked.difference.as_dict(), "lines": looked.difference.lines()},
    }


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


def operating(
    positive: Flags,
    log_odds: Array,
    decision: Decision,
    *,
    is_held_out: bool = False,
    is_compressed: bool = False,
    cost: float | None = None,
    rows_per_day: float | None = None,
) -> documents.CutsDict:
    """The operating part of a summary, without its sentence: stops and curves of rows of two classes.

    Rows of the held-out curve have draws and a prevalence that the decision knows. Compressed, those between two
    thresholds that were kept have the lower one, so that a cut is exact only just below a threshold.
    """
    order = np.argsort(-log_odds, kind="stable")
    falling, hits = log_odds[order], np.concatenate([[0], np.cumsum(positive[order])])
    n, n_positive = len(falling), int(hits[-1])
    # After these numbers of alerts a cut is possible: the next score is lower.
    possible = np.concatenate([[0], np.flatnonzero(falling[1:] < falling[:-1]) + 1, [n]])
    # Stops go one by one, then evenly on a log scale.
    many = np.geomspace(ONE_BY_ONE, max(n, ONE_BY_ONE), MORE_STOPS).round().astype(np.intp)
    wanted = np.union1d(np.arange(min(n, ONE_BY_ONE) + 1), many[many <= n])
    present = 0.0 if decision.cut is None else decision.cut
    here = int((log_odds > present).sum())
    stops, texts = list[dict[str, Any]](), list[dict[str, str]]()
    for alerts in np.union1d(possible[np.searchsorted(possible, wanted, side="right") - 1], [here]).tolist():
        high = math.inf if alerts == 0 else float(falling[alerts - 1])
        low = -math.inf if alerts == n else float(falling[alerts])
        if is_compressed and math.isfinite(low) and math.isfinite(high):
            # Rows were counted at the upper threshold: the cut belongs just below it.
            low = high - (high - low) / 64.0
        text = threshold_text(low, high, probability(present) if low <= present < high else None)
        if text is None:
            continue
        tp = int(hits[alerts])
        counts = Counts(tp, alerts - tp, n_positive - tp, n - n_positive - alerts + tp)
        summary = at_counts(decision, _log_odds(text), counts, is_held_out=is_held_out)
        stops.append({"alerts": alerts, "threshold": float(text), "threshold_text": text, **counts._asdict()})
        texts.append(_texts(counts, summary, cost, rows_per_day))
    columns: dict[str, Any] = {name: [stop[name] for stop in stops] for name in stops[0]}
    columns["texts"] = {name: [one[name] for one in texts] for name in texts[0]}
    columns["command"] = [f"--threshold {text}" for text in columns["threshold_text"]]
    drawn = _curves(hits, possible)
    if is_held_out and decision.shift is not None:
        # Held-out rows have the training prevalence: this curve would mix it with the expected one.
        drawn["pr"] = []
    return {
        "positive": decision.classes[1],
        "negative": decision.classes[0],
        "rows": n,
        "positives": n_positive,
        "per_day": rows_per_day,
        "cost": cost,
        "start": columns["alerts"].index(here) if here in columns["alerts"] else 0,
        "stops": cast("documents.StopsDict", columns),
        "curves": drawn,
    }


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


def at_counts(decision: Decision, log_odds: float, counts: Counts, *, is_held_out: bool) -> OperatingSummary:
    """An operating point by its counts; of held-out rows with their draws per row and at the expected prevalence."""
    per_row, expected = 1.0, None
    if is_held_out:
        per_row = 1.0 if decision.operating is None else decision.operating.draws_per_row
        expected = None if decision.shift is None else decision.shift.prevalence
    return OperatingSummary("probability", None, log_odds, counts, expected, per_row)


def _texts(counts: Counts, summary: OperatingSummary, cost: float | None, rows_per_day: float | None) -> dict[str, str]:
    tp, fp, fn, tn = counts
    is_shifted = summary.prevalence is not None
    figures = {name: getattr(summary, name) for name in ("alert_rate", "precision", "recall")}
    texts = {
        "alerts": f"{tp + fp:,}",
        **{name: figure_text(None if one is None else one.value) for name, one in figures.items()},
        **{f"{name}_interval": interval_text(one) for name, one in figures.items()},
        # Counts are of the rows as they were, and these figures have no meaning at another prevalence.
        "f1": figure_text(2 * tp / (2 * tp + fn + fp) if tp + fn + fp and not is_shifted else None),
        "accuracy": figure_text(None if is_shifted else (tp + tn) / (tp + fp + fn + tn)),
    }
    if rows_per_day is not None:
        alerts = 0.0 if figures["alert_rate"] is None else figures["alert_rate"].value * rows_per_day
        texts["per_day"] = f"{alerts:,.0f}" if alerts >= 100 else f"{alerts:.3g}"
    if cost is not None:
        texts["cost"] = f"{cost * fn + fp:,.2f}".removesuffix(".00")
    return texts


def _curves(hits: Codes, possible: Codes) -> documents.CurvesDict:
    """ROC, precision against recall, and recall against alert rate; rows have falling log-odds."""
    n, n_positive = int(possible[-1]), int(hits[-1])
    n_negative = n - n_positive
    if n_positive == 0 or n_negative == 0:
        return {"roc": [], "pr": [], "recall_by_alert_rate": []}
    found = hits[possible]
    recall, false, rate = found / n_positive, (possible - found) / n_negative, possible / n
    precision = np.divide(found, possible, out=np.ones(len(possible)), where=possible > 0)
    return {
        "roc": _points(false, recall, recall + false),
        "pr": _points(recall[1:], precision[1:], recall[1:] + np.log1p(possible[1:]) / math.log1p(n)),
        "recall_by_alert_rate": _points(rate, recall, recall + rate),
    }


def _points(x: Array, y: Array, along: Array) -> list[list[float]]:
    """At most `MOST_POINTS` points of a curve, at even steps of a rising quantity, both ends included."""
    places = np.arange(len(x))
    if len(x) > MOST_POINTS:
        steps = np.linspace(along[0], along[-1], MOST_POINTS)
        places = np.unique(np.minimum(np.searchsorted(along, steps), len(x) - 1))
    return [[float(f"{one:.6g}") for one in pair] for pair in zip(x[places].tolist(), y[places].tolist(), strict=True)]
