"""Figures of a report with 95 % intervals, and the first screen that is made of them."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import ClassMetrics, confidence_outcomes
from qmedoid.metrics.intervals import (
    Interval,
    macro_f1_error,
    mean_interval,
    normal_interval,
    pr_auc_interval,
    roc_auc_interval,
    share_interval,
)
from qmedoid.metrics.texts import FIGURE_NAMES, SMALLEST_FACTOR, figure_text, odds_text, percent_text
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.report.documents import (
    CalibrationBinDict,
    CardDict,
    DirectionDict,
    DirectionsDict,
    DirectionsOfColumnDict,
    OpeningDict,
    ReportCalibrationDict,
    ReportFigureDict,
)
from qmedoid.report.verdict import RARE, verdict

N_BINS = 15
"""Bins of the calibration, of about equally many rows."""
_SMALLEST = float(np.finfo(np.float64).eps)
# Figures of an operating point that have an interval each.
_OF_CUT = ("alert_rate", "precision", "recall")


def figure(name: str, value: float | None, interval: Interval | None = None) -> ReportFigureDict:
    """A figure as the page shows it; `value_text` is what ``qmedoid evaluate`` prints."""
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    text = figure_text(value)
    if interval is not None and value is not None:
        text += f" (95 % {figure_text(interval.low)} to {figure_text(interval.high)})"
    return {
        "key": name,
        "name": FIGURE_NAMES.get(name, name),
        "value": value,
        "low": low,
        "high": high,
        "text": text,
        "value_text": figure_text(value),
    }


def table_figures(
    report: Mapping[str, Any], decision: Decision, codes: Codes, margins: Array, scores: Array
) -> list[ReportFigureDict]:
    """The figures of `decision_report` over rows with classes, with intervals."""
    found = dict[str, Interval | None]()
    if decision.probabilistic:
        of_true = decision.probabilities(scores)[np.arange(len(codes)), codes]
        found["log_loss"] = mean_interval(-np.log(np.maximum(of_true, _SMALLEST)))
    if len(decision.classes) == 2:
        found["roc_auc"] = roc_auc_interval(codes == 1, margins)
        found["pr_auc"] = pr_auc_interval(codes == 1, margins)
    # Where no circuit decides there is nothing to say of it.
    known = {name: one for name, one in report.items() if name != "by_circuit" or one}
    return stored_figures(known, len(decision.classes), found)


def stored_figures(
    report: Mapping[str, Any], n_classes: int, intervals: Mapping[str, Interval | None] | None = None
) -> list[ReportFigureDict]:
    """The figures of a report, with intervals: these and those that follow from its counts."""
    confusion = np.array(report["confusion"], dtype=np.float64)
    n = float(confusion.sum())
    found: dict[str, Interval | None] = {
        "accuracy": share_interval(float(np.trace(confusion)), n),
        "macro_f1": normal_interval(report["macro_f1"], macro_f1_error(confusion[None])),
        **(intervals or {}),
    }
    if n_classes == 2:
        (tn, fp), (fn, tp) = confusion.astype(int).tolist()
        counts = OperatingSummary("likeliest", None, 0.0, Counts(tp, fp, fn, tn))
        found["prevalence"] = share_interval(tp + fn, n)
        found |= {name: getattr(counts, name) for name in _OF_CUT}
    return [figure(name, report[name], found.get(name)) for name in FIGURE_NAMES if name in report]


def held_out_figures(summary: OperatingSummary, positive: Flags, log_odds: Array) -> list[ReportFigureDict]:
    """The figures of two classes on held-out rows, from their curve."""
    tp, fp, fn, tn = summary.counts or (0, 0, 0, 0)
    metrics = ClassMetrics(np.array([[tn, fp], [fn, tp]], dtype=np.float64))
    found: dict[str, Interval | None] = {name: getattr(summary, name) for name in _OF_CUT}
    values: dict[str, float | None] = {}
    if summary.prevalence is None:
        per_row, n = summary.draws_per_row, tp + fp + fn + tn
        values["accuracy"], values["prevalence"] = metrics.accuracy, (tp + fn) / max(n, 1)
        values["f1"] = float(metrics.f1[1]) if tp + fn + fp else None
        found["accuracy"] = share_interval(per_row * (tp + tn), per_row * n)
        found["prevalence"] = share_interval(per_row * (tp + fn), per_row * n)
        found["f1"] = None
        found["macro_f1"] = normal_interval(float(metrics.f1.mean()), macro_f1_error(metrics.confusion[None]))
        found["pr_auc"] = pr_auc_interval(positive, log_odds)
    found["roc_auc"] = roc_auc_interval(positive, log_odds)
    values = {name: None if one is None else one.value for name, one in found.items()} | values
    return [figure(name, values[name], found[name]) for name in FIGURE_NAMES if name in found]


def calibration(
    report: Mapping[str, Any], decision: Decision, codes: Codes, scores: Array
) -> ReportCalibrationDict | None:
    """Probabilities and what happened, in bins of about equally many rows."""
    if not decision.probabilistic:
        return None
    happened, probabilities = confidence_outcomes(codes, decision.probabilities(scores))
    order = np.argsort(probabilities, kind="stable")
    ranked, outcomes, bins = probabilities[order], happened[order], list[CalibrationBinDict]()
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


MOST_DIRECTIONS = 8
MOST_LOOKED_AT = 3
_FEW = 100
"""Rows below which shares are not written as a count of 100."""
_LEAST_ROWS = 5

Summary = Mapping[str, Any]


def opening(summary: Summary) -> OpeningDict:
    """What a report opens with, from the other parts of its summary."""
    confusion, model, made, figures = (summary[part] for part in ("confusion", "model", "made", "figures"))
    counts = None if confusion is None else confusion["counts"]
    found = [one for one in summary["findings"] if one["status"] in ("problem", "tip")]
    on = "not evaluated: there are no rows with a known class" if figures is None else f"evaluated on {figures['on']}"
    day = datetime.fromisoformat(made["time"])
    return {
        "about": ["Model report", *([made["model"]] if made["model"] else []), on, f"{day.day} {day:%b %Y}"],
        "headline": _headline(model, counts),
        "sentences": [] if counts is None else _sentences(summary, counts),
        "cards": [] if counts is None else _cards(summary, counts),
        "directions": directions(summary["effects"]),
        "look": [one["code"] for one in found[:MOST_LOOKED_AT]],
        "more": max(len(found) - MOST_LOOKED_AT, 0),
        "passed": sum(one["status"] == "passed" for one in summary["findings"]),
    }


def _of_100(hits: int, n: int) -> str:
    """A share as a count of 100, or of the rows themselves where they are few, or where it would read as 0 or 100."""
    per = round(100 * hits / n)
    if n < _FEW or (per == 0 and hits) or (per == 100 and hits < n):
        return f"{hits:,} of {n:,}"
    return f"{per} of 100"


def _headline(model: Mapping[str, Any], counts: Sequence[Sequence[int]] | None) -> str:
    """One sentence on what the model finds and how often it is wrong."""
    if counts is None:
        return f"A model of {model['target'] or 'the class'}, not yet evaluated on rows with a known class."
    if len(counts) == 2:
        (_, false), (missed, found) = counts
        # In the words of the table, such as: rows where Sick is 1.
        label, target = model["positive"], model["target"]
        rows = f"rows of {str(label)!r}" if target is None else f"rows where {target} is {label}"
        if found + missed == 0:
            return f"There are no {rows} to find; {false:,} of {sum(counts[0]):,} are called so."
        finds = "It finds all" if not missed else f"It finds {_of_100(found, found + missed)}"
        if found + false == 0:
            return f"It finds none of {missed:,} {rows}: it raises no alert."
        if not false:
            return f"{finds} {rows}; no alert is false."
        share = _of_100(false, found + false)
        return f"{finds} {rows}; {share} alerts {'is' if share.startswith('1 ') else 'are'} false."
    total, right = sum(map(sum, counts)), sum(row[code] for code, row in enumerate(counts))
    said = f"It is right for {_of_100(right, total)} rows"
    weakest = _weakest(counts)
    if weakest is None or right == total:
        return f"{said}."
    name = model["classes"][weakest]
    return f"{said}; of those of {str(name)!r} it finds {_of_100(counts[weakest][weakest], sum(counts[weakest]))}."


def _weakest(counts: Sequence[Sequence[int]]) -> int | None:
    """The class of which the smallest share is found; None where there is but one."""
    present = [code for code, row in enumerate(counts) if sum(row)]
    return min(present, key=lambda code: counts[code][code] / sum(counts[code])) if len(present) > 1 else None


def _sentences(summary: Summary, counts: Sequence[Sequence[int]]) -> list[str]:
    """Next to a guess, next to plain baselines, and whether probabilities are to be trusted."""
    area = known_figure(summary, "roc_auc")
    report = {"classes": summary["confusion"]["labels"], "confusion": counts, "roc_auc": area and area["value"]}
    said = verdict(report, alerts=summary["model"]["rule"] not in (None, "likeliest"))[1:]
    return [*said, *_beside_baselines(summary["baselines"]), *_calibrated(summary["calibration"])]


def _beside_baselines(baselines: Mapping[str, Any] | None) -> list[str]:
    if baselines is None:
        return []
    if baselines["better"] is None or not baselines["figures"] or len(baselines["rows"]) < 2:
        return [baselines["verdict"]]
    ours, *others = baselines["rows"]
    figure, values = baselines["figures"][0], [_short(one["values"][0]) for one in baselines["rows"]]
    if ours["best"][0] and not baselines["better"]:
        names = _listed([one["name"] for one in others])
        return [f"Better than {names} on the same rows ({figure} {values[0]} against {', '.join(values[1:])})."]
    best = next((place for place, one in enumerate(others, 1) if one["best"][0]), None)
    if best is None:
        return [baselines["verdict"]]
    how, error = ("better", "") if baselines["better"] else ("as good", ", within error")
    name, against = baselines["rows"][best]["name"], f"{figure} {values[best]} against {values[0]}"
    return [f"{name} is {how} on the same rows{error} ({against})."]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _short(text: str) -> str:
    """A figure of a table in three decimals, without its error."""
    first = text.split(" ")[0]
    try:
        return f"{float(first):.3f}"
    except ValueError:
        return first


def _calibrated(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    error, chance = (f"{found[name]:.2g}" for name in ("error", "by_chance"))
    if found["error"] <= found["by_chance_high"]:
        return [f"Its probabilities are as good as chance allows (calibration error {error}; {chance} by chance)."]
    return [f"Its probabilities are off by {error} on average, more than chance explains ({chance})."]


def known_figure(summary: Summary, key: str) -> Mapping[str, Any] | None:
    """A figure of a summary that has a value."""
    figures = (summary["figures"] or {}).get("figures", ())
    return next((one for one in figures if one["key"] == key and one["value"] is not None), None)


def _card(name: str, value: str, *notes: str | None) -> CardDict:
    return {"name": name, "value": value, "note": " · ".join(filter(None, notes))}


def _number_card(name: str, found: Mapping[str, Any], against: str | None = None, digits: int = 2) -> CardDict:
    bounds = None if found["low"] is None else f"{found['low']:.{digits}f} to {found['high']:.{digits}f}"
    return _card(name, f"{found['value']:.{digits}f}", bounds, against)


def _share_card(name: str, shown: int, hits: int, n: int, words: str, nothing: str) -> CardDict:
    share = share_interval(hits, n)
    if not n:
        return _card(name, "none", nothing)
    note = f"{words}{percent_text(share.value)}, {bounds_text(share)}"
    return _card(name, f"{shown:,} of {n:,}", note)


def bounds_text(found: Interval) -> str:
    """The bounds of an interval in percent."""
    return f"{percent_text(found.low).removesuffix(' %')} to {percent_text(found.high)}"


def _cards(summary: Summary, counts: Sequence[Sequence[int]]) -> list[CardDict]:
    """Four figures, each with its interval and what guessing or a baseline reaches."""
    total, right = sum(map(sum, counts)), sum(row[code] for code, row in enumerate(counts))
    share, guess = share_interval(right, total), max(map(sum, counts)) / max(total, 1)
    accuracy = _card("Right", percent_text(share.value), bounds_text(share), f"guessing: {percent_text(guess)}")
    if len(counts) > 2:
        return [accuracy, *_many_cards(summary, counts)]
    (_, false), (missed, found) = counts
    positive, called = found + missed, found + false
    cards = [
        _share_card("Found (recall)", found, found, positive, "", "there are none to find"),
        _share_card("False alerts", false, found, called, "precision ", "there is no alert"),
    ]
    first, chance = None, f"by chance {percent_text(positive / max(total, 1))}"
    if positive < RARE * total:
        first = _area(summary, "pr_auc", "Precision over all cuts (PR-AUC)", chance)
    ranking = _area(summary, "roc_auc", "Ranking (ROC-AUC)", "by chance 0.5")
    return [first or accuracy, *cards, *([] if ranking is None else [ranking])]


def _area(summary: Summary, key: str, name: str, chance: str) -> CardDict | None:
    """An area with its interval, next to the best plain baseline's or to what chance reaches."""
    found = known_figure(summary, key)
    if found is None:
        return None
    baseline = _best_baseline(summary["baselines"], FIGURE_NAMES[key])
    return _number_card(name, found, baseline or chance, digits=3 if found["value"] >= 0.995 else 2)


def _best_baseline(baselines: Mapping[str, Any] | None, figure: str) -> str | None:
    if baselines is None or figure not in baselines["figures"]:
        return None
    place = baselines["figures"].index(figure)
    values = {one["name"]: _short(one["values"][place]) for one in baselines["rows"][1:]}
    known = {name: float(text) for name, text in values.items() if text[:1].isdigit()}
    return f"{max(known, key=lambda name: known[name])} {max(known.values()):.2f}" if known else None


def _many_cards(summary: Summary, counts: Sequence[Sequence[int]]) -> list[CardDict]:
    cards, labels, totals = [], summary["confusion"]["labels"], [sum(row) for row in counts]
    macro, weakest, loss = known_figure(summary, "macro_f1"), _weakest(counts), known_figure(summary, "log_loss")
    if macro is not None:
        cards.append(_number_card("All classes alike (macro-F1)", macro))
    if weakest is not None and counts[weakest][weakest] < totals[weakest]:
        hits = counts[weakest][weakest]
        cards.append(_share_card(f"Weakest class: {labels[weakest]}", hits, hits, totals[weakest], "found ", ""))
    if loss is not None:
        shares = [total / sum(totals) for total in totals if total]
        guess = -sum(share * math.log(share) for share in shares)
        cards.append(_number_card("Probabilities (log-loss)", loss, f"class shares: {guess:.2f}"))
    return cards


def directions(effects: Sequence[Mapping[str, Any]]) -> DirectionsDict | None:
    """The values of each column that lower and raise the odds most, beyond a printed 1.000; None without columns."""
    rows, ends = list[DirectionsOfColumnDict](), list[DirectionDict]()
    for effect in effects[:MOST_DIRECTIONS]:
        named = sorted(_named_bins(effect), key=lambda one: one[1])
        if not named:
            continue
        is_odds = effect["unit"] == "log-odds"
        least = math.log(SMALLEST_FACTOR) if is_odds else 0.0
        # Of equal values the first one.
        sides: list[DirectionDict | None] = [
            {"label": label, "value": value, "text": added_text(value, odds=is_odds), "share": 0.0}
            if sign * value > least
            else None
            for sign, (label, value) in ((-1, named[0]), (1, max(named, key=lambda one: one[1])))
        ]
        ends += [one for one in sides if one is not None]
        rows.append({"column": effect["column"], "lower": sides[0], "raise": sides[1]})
    for end in ends:
        end["share"] = abs(end["value"]) / max(abs(one["value"]) for one in ends)
    if not rows:
        return None
    rows = [row for row in rows if row["lower"] is not None or row["raise"] is not None]
    return {"toward": effects[0]["toward"], "unit": effects[0]["unit"], "rows": rows}


def added_text(value: float, *, odds: bool) -> str:
    """A contribution as a factor of the odds, or a score where the model has no probabilities."""
    return odds_text(value) if odds else f"{value:+.2g}".replace("-", "−")


def _number(value: float) -> str:
    """A number in four digits, more of a large whole one."""
    return (f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}").replace("-", "−")


def _named_bins(effect: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Values with their mean contributions; those at the ends of a column of numbers are open."""
    bins, is_number = effect["bins"], effect["kind"] == "number" and len(effect["bins"]) > 1
    found = []
    for place, one in enumerate(bins):
        label = one["label"]
        if is_number and one["x_low"] is not None:
            low, high = _number(one["x_low"]), _number(one["x_high"])
            label = f"{low} or more" if place == len(bins) - 1 else f"{low} to {high}" if place else f"up to {high}"
            label = low if one["x_low"] == one["x_high"] else label
        if one["count"] >= _LEAST_ROWS:
            found.append((label, one["mean"]))
    missing = effect["missing"]
    return [*found, *([("missing", missing["mean"])] if missing and missing["count"] >= _LEAST_ROWS else [])]
