"""The goals that were set before the recipe was made, line by line, and what was measured."""

import csv
import math
from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata

from benchmarks._timing import RESULTS
from benchmarks.quality.comparison import cost_ratios, lead, pair
from benchmarks.quality.figures import MEASURES, METHODS, STRONG, Figures, Place, by_group, by_size
from benchmarks.quality.ours import OURS
from benchmarks.quality.ranks import THREE, Ranks, run_at

Line = dict[str, object]
RANKED = ("log_loss", "roc_auc", "macro_f1")
SMALL, LARGE = "≤ 4,000", "≥ 20,000"
WORSE = {"log_loss": 0.05, "roc_auc": 0.01}
"""What is too far behind the best strong rival: a share of its log-loss, and so much ROC-AUC."""
LOST = ("covertype", "electricity", "churn_mlc", "hypothyroid")
"""Tables on which an earlier recipe was far behind LightGBM."""
CALIBRATED = 1.1
"""Mean calibration error in units of what chance shows."""
TIMES = 3.0
"""Core time of a fit in units of tuned LightGBM's."""
HOURS, CORES = 3.0, 2


def goal_table(figures: Figures) -> list[Line]:
    """All goals."""
    sizes = by_size(place for place in figures.places if figures.of(place, OURS))
    return [
        *_ranks(figures, sizes),
        *_distances(figures, sizes),
        *_lost(figures, sizes),
        *_earlier(figures, sizes),
        *_calibration(figures, sizes),
        *_cost(figures, sizes),
        *_hours(figures),
    ]


def _goal(goal: str, size: str, wanted: str, found: object, met: bool) -> Line:
    return {"goal": goal, "rows": size, "wanted": wanted, "found": found, "met": "yes" if met else "no"}


def _ranks(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    for size in (SMALL, LARGE):
        for group, members in by_group(sizes.get(size, [])).items():
            for among, methods in (("all methods", run_at(figures, sizes[size])), ("the three", THREE)):
                for measure in RANKED:
                    found = Ranks.of(figures, measure, members, methods)
                    if not found.places or not set(THREE) <= set(methods):
                        continue
                    own = found.average[OURS]
                    told = ", ".join(f"{name} {found.average[name]:.2f}" for name in STRONG)
                    which = f"{'all tables' if group == 'all' else group} ({len(found.places)})"
                    yield _goal(
                        f"average rank among {among} by {MEASURES[measure]}, {which}",
                        size,
                        f"better than {' and '.join(STRONG)}",
                        f"{own:.2f} against {told}",
                        all(own < found.average[name] for name in STRONG),
                    )


def behind(figures: Figures, place: Place, measure: str) -> float | None:
    """How far ours is behind the better of the strong rivals: a share of the log-loss, or a difference."""
    found = figures.values(place, THREE, measure)
    if found is None:
        return None
    own, *others = found.mean(axis=1).tolist()
    return float(own / max(min(others), 1e-12) - 1.0 if measure == "log_loss" else max(others) - own)


def _distances(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    for size in (SMALL, LARGE):
        for measure, limit in WORSE.items():
            gaps = {place: gap for place in sizes.get(size, []) if (gap := behind(figures, place, measure)) is not None}
            if not gaps:
                continue
            far = sorted((place for place in gaps if gaps[place] > limit), key=lambda place: -gaps[place])
            form = "{:+.1%}" if measure == "log_loss" else "{:+.4f}"
            told = ", ".join(f"{place} {form.format(gaps[place])}" for place in far)
            by = "5 %" if measure == "log_loss" else "0.01"
            goal = f"tables whose {MEASURES[measure]} is worse than the best of both by more than {by} (of {len(gaps)})"
            yield _goal(goal, size, "0", f"{len(far)}: {told}" if far else "0", not far)


def _lost(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    for size in (SMALL, LARGE):
        for place in sizes.get(size, []):
            if place.data not in LOST:
                continue
            for measure in RANKED:
                found = pair(figures, place, "LightGBM", measure)
                if found is None:
                    continue
                error = found.error
                told = f"{lead(found):+.4f}" + ("" if error is None else f" ± {error:.4f}")
                yield _goal(
                    f"{place}: {MEASURES[measure]} better than LightGBM's by",
                    size,
                    "no less than minus a standard error",
                    told,
                    lead(found) >= -(error or 0.0),
                )


def _earlier(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    """The rank among the methods of the third report, on its tables, beside the rank of its recipe there."""
    with (RESULTS / "quality" / "third" / "macro_f1.csv").open(newline="", encoding="utf-8") as file:
        next(file)
        before = {row["set"]: row for row in csv.DictReader(file)}
    methods = tuple(name for name in METHODS if name in next(iter(before.values())))
    places = [place for place in sizes.get(SMALL, []) if place.data in before]
    found = Ranks.of(figures, "macro_f1_tuned", places, methods)
    if found.places:
        then = [[-float(before[place.data][name]) for name in methods] for place in found.places]
        rank = float(np.mean([rankdata(row)[methods.index(OURS)] for row in then]))
        among = ", ".join(methods[1:])
        yield _goal(
            f"average rank among ours, {among} by {MEASURES['macro_f1_tuned']}, tables of the third report "
            f"({len(found.places)})",
            SMALL,
            f"≤ {rank:.2f}, as its recipe had",
            f"{found.average[OURS]:.2f}",
            found.average[OURS] <= rank,
        )


def _calibration(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    for size in (SMALL, LARGE):
        ratios = [
            own / chance
            for place in sizes.get(size, [])
            if (own := figures.mean(place, OURS, "ece")) is not None
            and (chance := figures.mean(place, OURS, "chance_ece"))
        ]
        if ratios:
            mean = float(np.mean(ratios))
            yield _goal("mean of ECE / chance", size, f"≤ {CALIBRATED}", f"{mean:.3f}", mean <= CALIBRATED)


def _cost(figures: Figures, sizes: dict[str, list[Place]]) -> Iterator[Line]:
    for size in ("4,000", "20,000", "100,000"):
        ratios = cost_ratios(figures, sizes.get(size, []), OURS)
        if ratios:
            mean = math.exp(float(np.mean(np.log(list(ratios.values())))))
            worst = max(ratios, key=lambda place: ratios[place])
            told = f"{mean:.2f} (worst: {worst.data} {ratios[worst]:.2f})"
            goal = "core time of a fit over that of tuned LightGBM, geometric mean of tables"
            yield _goal(goal, size, f"≤ {TIMES:g}", told, mean <= TIMES)


def _hours(figures: Figures) -> Iterator[Line]:
    seconds = sum(row.get(name) or 0.0 for row in figures.rows for name in ("tune_s", "fit_s", "predict_s"))
    hours = seconds / CORES / 3600.0
    goal = f"hours of the tables on {CORES} cores, by the core time of their cells"
    yield _goal(goal, "all", f"≤ {HOURS:g}", f"{hours:.2f}", hours <= HOURS)
