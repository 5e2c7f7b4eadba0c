"""Ours against the others: means, differences on the same splits and over tables, calibration, cost and ablations."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.quality.figures import MEASURES, METHODS, SMALLER, Figures, Place, by_group, by_size
from benchmarks.quality.ours import OURS
from benchmarks.studies.cells import TEST_SHARE
from benchmarks.studies.results import Paired, Spread
from qmedoid.arrays import Array

Line = dict[str, object]
_DRAWS = 2000


def pair(figures: Figures, place: Place, rival: str, measure: str) -> Paired | None:
    """Ours against another method on the splits of a table that both were run on.

    The correction of Nadeau and Bengio takes the shares of the split before the caps of rows, so it is too careful for
    large tables, whose splits share fewer rows than that.
    """
    both = figures.values(place, [OURS, rival], measure)
    if both is None:
        return None
    share = TEST_SHARE / (1.0 - TEST_SHARE)
    return Paired(place.data, "random", measure, rival, Spread(both[0]), Spread(both[1]), share)


def lead(found: Paired) -> float:
    """By how much ours is better in the mean, whichever way the measure counts."""
    return found.difference.mean if found.figure in SMALLER else -found.difference.mean


def wins(found: Paired) -> int:
    """Splits on which ours is better."""
    return int((found.difference.values * (1 if found.figure in SMALLER else -1) > 0).sum())


def mean_table(figures: Figures) -> list[Line]:
    """Means of every measure by table, size and method."""
    lines: list[Line] = []
    for measure, title in MEASURES.items():
        for place in figures.places:
            about, methods = figures.about(place), figures.at(place)
            shown = {name: _blank(figures.mean(place, name, measure)) for name in METHODS}
            if any(value != "" for value in shown.values()):
                lines.append(
                    {
                        "measure": title,
                        "set": place.data,
                        "group": place.group,
                        "size": place.size,
                        "fit rows": about["fit_rows"],
                        "columns": about["columns"],
                        "classes": about["classes"],
                        "splits": max(len(figures.of(place, name)) for name in methods),
                        **shown,
                    }
                )
    return lines


def paired_table(figures: Figures) -> list[Line]:
    """Differences split by split, with corrected standard errors; above 0 ours is better."""
    lines: list[Line] = []
    for measure, title in MEASURES.items():
        for place in figures.places:
            for rival in METHODS[1:]:
                found = pair(figures, place, rival, measure)
                if found is not None:
                    lines.append(
                        {
                            "measure": title,
                            "set": place.data,
                            "group": place.group,
                            "size": place.size,
                            "rival": rival,
                            "ours": found.ours.mean,
                            "theirs": found.theirs.mean,
                            "ours better by": lead(found),
                            "±": _blank(found.error),
                            "splits we win": f"{wins(found)} of {len(found.ours.values)}",
                        }
                    )
    return lines


def over_tables(figures: Figures) -> list[Line]:
    """Differences over tables: their mean with an interval of resampled tables, wins, and Wilcoxon's test."""
    lines: list[Line] = []
    for measure, title in MEASURES.items():
        for size, places in by_size(figures.places).items():
            for group, members in by_group(places).items():
                for rival in METHODS[1:]:
                    found = [own for place in members if (own := pair(figures, place, rival, measure)) is not None]
                    if len(found) < 2:
                        continue
                    leads = np.array([lead(own) for own in found])
                    low, high = _interval(leads)
                    lines.append(
                        {
                            "measure": title,
                            "size": size,
                            "group": group,
                            "rival": rival,
                            "tables": len(found),
                            "tables we win": int((leads > 0).sum()),
                            "ours better by": float(leads.mean()),
                            "low": low,
                            "high": high,
                            "ours better by, median of tables": float(np.median(leads)),
                            "mean log of theirs over ours": _log_ratio(found) if measure in SMALLER else "",
                            "Wilcoxon p": float(wilcoxon(leads).pvalue) if np.any(leads) else 1.0,
                        }
                    )
    return lines


def _interval(leads: Array) -> tuple[float, float]:
    """95 % of the means of resampled tables."""
    drawn = np.random.default_rng(0).choice(leads, (_DRAWS, len(leads))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _log_ratio(found: Sequence[Paired]) -> float:
    """Positive where their losses are larger; tables of which one has next to no loss count little more than others."""
    return float(np.mean([math.log(max(own.theirs.mean, 1e-4) / max(own.ours.mean, 1e-4)) for own in found]))


def rival_wins(figures: Figures) -> list[Line]:
    """Where a rival is better than ours in the mean, table by table: the best of them, by each measure."""
    lines: list[Line] = []
    for measure, title in MEASURES.items():
        for place in figures.places:
            pairs = [own for name in METHODS[1:] if (own := pair(figures, place, name, measure)) is not None]
            ahead = sorted((own for own in pairs if lead(own) < 0), key=lead)
            if ahead:
                best = ahead[0]
                clear = best.error is not None and -lead(best) > 2.0 * best.error
                lines.append(
                    {
                        "measure": title,
                        "set": place.data,
                        "group": place.group,
                        "size": place.size,
                        "best rival": best.rival,
                        "theirs": best.theirs.mean,
                        "ours": best.ours.mean,
                        "theirs better by": -lead(best),
                        "±": _blank(best.error),
                        "more than two errors": "yes" if clear else "no" if best.error is not None else "",
                        "rivals ahead": ", ".join(own.rival for own in ahead),
                    }
                )
    return lines


def calibration_table(figures: Figures) -> list[Line]:
    """Calibration errors, and those of perfect probabilities on as many rows."""
    lines: list[Line] = []
    for place in figures.places:
        for method in figures.at(place):
            found, chance = (figures.mean(place, method, figure) for figure in ("ece", "chance_ece"))
            if found is not None and chance is not None:
                lines.append(
                    {
                        "set": place.data,
                        "size": place.size,
                        "method": method,
                        "ECE": found,
                        "by chance": chance,
                        "ratio": found / chance if chance else 1.0,
                    }
                )
    return lines


def cost_table(figures: Figures) -> list[Line]:
    """Core-seconds by size and method, means over tables, and the fit with its tuning in units of LightGBM's."""
    lines: list[Line] = []
    for size, places in by_size(figures.places).items():
        for method in METHODS:
            times = [own for place in places if (own := spent(figures, place, method)) is not None]
            if not times:
                continue
            tuned, fitted, predicted = np.mean(times, axis=0).tolist()
            ratios = list(cost_ratios(figures, places, method).values())
            known = [figures.mean(place, method, "medoids") for place in places if figures.of(place, method)]
            rows = [own for own in known if own is not None]
            lines.append(
                {
                    "size": size,
                    "method": method,
                    "tables": len(times),
                    "tuning, core-s": tuned,
                    "fit, core-s": fitted,
                    "prediction, core-s": predicted,
                    "slowest, core-s": max(own[0] + own[1] for own in times),
                    "times LightGBM, total": _total_ratio(figures, places, method),
                    "times LightGBM, median": float(np.median(ratios)) if ratios else "",
                    "times LightGBM, worst": max(ratios) if ratios else "",
                    "medoids, mean": float(np.mean(rows)) if rows else "",
                }
            )
    return lines


def spent(figures: Figures, place: Place, method: str) -> tuple[float, float, float] | None:
    """Mean core-seconds of tuning (0 where there is none), fit and prediction."""
    fitted, predicted = (figures.mean(place, method, figure) for figure in ("fit_s", "predict_s"))
    if fitted is None or predicted is None:
        return None
    return figures.mean(place, method, "tune_s") or 0.0, fitted, predicted


def cost_ratios(figures: Figures, places: Sequence[Place], method: str) -> dict[Place, float]:
    """Core-seconds of tuning and fit in units of LightGBM's, by place."""
    return {place: own / theirs for place, own, theirs in _costs(figures, places, method)}


def _total_ratio(figures: Figures, places: Sequence[Place], method: str) -> object:
    both = [(own, theirs) for _, own, theirs in _costs(figures, places, method)]
    return sum(own for own, _ in both) / sum(theirs for _, theirs in both) if both else ""


def _costs(figures: Figures, places: Sequence[Place], method: str) -> Iterator[tuple[Place, float, float]]:
    for place in places:
        own, theirs = (spent(figures, place, name) for name in (method, "LightGBM"))
        if own is not None and theirs is not None:
            yield place, own[0] + own[1], theirs[0] + theirs[1]


def ablation_table(figures: Figures) -> list[Line]:
    """Ours with one thing changed against ours as it is; above 0 the change is worse."""
    lines: list[Line] = []
    for method in figures.methods:
        if method in METHODS:
            continue
        line: Line = {"change": method.removeprefix(f"{OURS}, ")}
        for measure in ("log_loss", "roc_auc", "macro_f1"):
            found = [own for place in figures.places if (own := pair(figures, place, method, measure)) is not None]
            leads = [lead(own) for own in found]
            line |= {"tables": len(found), f"{MEASURES[measure]}: ours better by": float(np.mean(leads))}
            line[f"{MEASURES[measure]}: tables it makes worse"] = sum(own > 0 for own in leads)
        seconds = [
            both[1].mean() / both[0].mean()
            for place in figures.places
            if (both := figures.values(place, [OURS, method], "fit_s")) is not None
        ]
        lines.append(line | {"times the fit": float(np.exp(np.mean(np.log(seconds))))})
    return sorted(lines, key=lambda line: -float(str(line["log-loss: ours better by"])))


def _blank(value: float | None) -> object:
    return "" if value is None else value
