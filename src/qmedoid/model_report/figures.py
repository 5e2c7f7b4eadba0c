"""Figures of a report with 95 % intervals: of a table with classes, of held-out rows, or of a table without classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.area_intervals import mean_interval, normal_interval, pr_auc_interval, roc_auc_interval
from qmedoid.metrics.classification import ClassMetrics, confidence_outcomes
from qmedoid.metrics.intervals import Interval, macro_f1_error, share_interval
from qmedoid.metrics.texts import FIGURE_NAMES, count_text, figure_text
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary

N_BINS = 15
"""Bins of the calibration, of about equally many rows."""
_SMALLEST = float(np.finfo(np.float64).eps)


def figure(name: str, value: float | None, interval: Interval | None = None) -> dict[str, Any]:
    """A figure as the page shows it; `value_text` is what ``qmedoid evaluate`` prints."""
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    text = figure_text(value)
    if interval is not None and value is not None:
        text += f" (95 % {figure_text(interval.low)} to {figure_text(interval.high)})"
    about = {"key": name, "name": FIGURE_NAMES.get(name, name), "value": value, "low": low, "high": high}
    return {**about, "text": text, "value_text": figure_text(value)}


def table_figures(
    report: Mapping[str, Any], decision: Decision, codes: Codes, margins: Array, scores: Array
) -> list[dict[str, Any]]:
    """The figures of `decision_report` over rows with classes, with intervals."""
    confusion = np.array(report["confusion"], dtype=np.float64)
    found = {
        **of_confusion(confusion, report, len(decision.classes) == 2),
        "macro_f1": normal_interval(report["macro_f1"], macro_f1_error(confusion[None])),
    }
    if decision.probabilistic:
        of_true = decision.probabilities(scores)[np.arange(len(codes)), codes]
        found["log_loss"] = mean_interval(-np.log(np.maximum(of_true, _SMALLEST)))
    if len(decision.classes) == 2:
        found["roc_auc"] = roc_auc_interval(codes == 1, margins)
        found["pr_auc"] = pr_auc_interval(codes == 1, margins)
    return [figure(name, report[name], found.get(name)) for name in FIGURE_NAMES if name in report]


def of_confusion(confusion: Array, report: Mapping[str, Any], is_two: bool) -> dict[str, Interval | None]:
    """Intervals of the figures that are shares of counted rows."""
    n = float(confusion.sum())
    found: dict[str, Interval | None] = {"accuracy": share_interval(float(np.trace(confusion)), n)}
    if is_two:
        (tn, fp), (fn, tp) = confusion.tolist()
        counts = OperatingSummary("likeliest", None, 0.0, Counts(int(tp), int(fp), int(fn), int(tn)))
        found |= {
            "prevalence": share_interval(tp + fn, n), "alert_rate": counts.alert_rate, "precision": counts.precision,
            "recall": counts.recall,
        }  # fmt: skip
    del report
    return found


def held_out_figures(summary: OperatingSummary, positive: Flags, log_odds: Array) -> list[dict[str, Any]]:
    """The figures of two classes on held-out rows, from their curve."""
    tp, fp, fn, tn = summary.counts or (0, 0, 0, 0)
    metrics = ClassMetrics(np.array([[tn, fp], [fn, tp]], dtype=np.float64))
    known: dict[str, tuple[float | None, Interval | None]] = {}
    for name in ("alert_rate", "precision", "recall"):
        found: Interval | None = getattr(summary, name)
        known[name] = (None if found is None else found.value, found)
    if summary.prevalence is None:
        per_row, n = summary.draws_per_row, tp + fp + fn + tn
        known["accuracy"] = metrics.accuracy, share_interval(per_row * (tp + tn), per_row * n)
        known["prevalence"] = (tp + fn) / max(n, 1), share_interval(per_row * (tp + fn), per_row * n)
        known["f1"] = (float(metrics.f1[1]) if tp + fn + fp else None), None
        known["macro_f1"] = (
            float(metrics.f1.mean()),
            normal_interval(float(metrics.f1.mean()), macro_f1_error(metrics.confusion[None])),
        )
        area = pr_auc_interval(positive, log_odds)
        known["pr_auc"] = (None if area is None else area.value), area
    area = roc_auc_interval(positive, log_odds)
    known["roc_auc"] = (None if area is None else area.value), area
    return [figure(name, *known[name]) for name in FIGURE_NAMES if name in known]


def stored_figures(report: Mapping[str, Any], n_classes: int) -> list[dict[str, Any]]:
    """The figures that a fit kept of its held-out rows, with the intervals that follow from its counts."""
    confusion = np.array(report["confusion"], dtype=np.float64)
    found = of_confusion(confusion, report, n_classes == 2)
    found["macro_f1"] = normal_interval(report["macro_f1"], macro_f1_error(confusion[None]))
    return [figure(name, report.get(name), found.get(name)) for name in FIGURE_NAMES if name in report]


def calibration(report: Mapping[str, Any], decision: Decision, codes: Codes, scores: Array) -> dict[str, Any] | None:
    """Probabilities and what happened, in bins of about equally many rows."""
    if not decision.probabilistic or "calibration" not in report:
        return None
    happened, probabilities = confidence_outcomes(codes, decision.probabilities(scores))
    found = report["calibration"]
    mean, once = (figure_text(found[name]) for name in ("by_chance", "by_chance_high"))
    return {
        "of": None if len(decision.classes) > 2 else str(decision.classes[1]),
        "bins": _bins(happened, probabilities),
        "error": found["error"],
        "by_chance": found["by_chance"],
        "by_chance_high": found["by_chance_high"],
        "error_text": figure_text(found["error"]),
        "by_chance_text": f"{mean} on average; 1 table in 20 exceeds {once}",
    }


def _bins(happened: Flags, probabilities: Array) -> list[dict[str, Any]]:
    order = np.argsort(probabilities, kind="stable")
    ranked, outcomes = probabilities[order], happened[order]
    wanted = np.arange(N_BINS) * len(ranked) // N_BINS
    starts = np.unique(np.searchsorted(ranked, ranked[wanted], side="left")).tolist()
    made = []
    for begin, end in zip(starts, [*starts[1:], len(ranked)], strict=True):
        share = share_interval(int(outcomes[begin:end].sum()), end - begin)
        mean = float(ranked[begin:end].mean())
        made.append({
            "mean": mean, "share": share.value, "low": share.low, "high": share.high, "count": end - begin,
            "text": f"{figure_text(mean)}: {figure_text(share.value)} (95 % {figure_text(share.low)} to "
                    f"{figure_text(share.high)}) of {count_text(end - begin)} rows",
        })  # fmt: skip
    return made
