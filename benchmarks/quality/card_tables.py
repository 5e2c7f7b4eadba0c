"""Tables of the payments: figures of every method, and paired intervals of ours against the others."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import versions, write_table
from benchmarks.quality.card import make_payments, stored_scores
from benchmarks.quality.ours import OURS
from benchmarks.quality.protocol import Seeds
from benchmarks.studies.cells import PAPER_ALERT_RATE, TEST_SHARE, Cell
from qmedoid.arrays import Array, Codes

RESAMPLES = 1000
LEVEL = 95.0
FIGURES = {"pr_auc": "PR-AUC", "recall": "recall at 1.31 % alerts"}
MEANS = (
    *("pr_auc", "recall", "roc_auc", "ece", "chance_ece", "predicted_over_true"),
    *("shifted_unaware", "shifted_told", "shifted_estimated", "own_recall", "own_alerts"),
    *("tune_s", "fit_s", "fit_wall_s", "rows_per_s", "peak_mb"),
)
GOALS = {("random", "pr_auc"): 0.86, ("random", "recall"): 0.92, ("time", "pr_auc"): 0.805, ("time", "recall"): 0.86}
Results = Mapping[Cell, Mapping[str, Any]]
Line = dict[str, object]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm")


class Ranking:
    """Scores of the test rows in falling order, for figures of many resamples.

    Parameters
    ----------
    y : ndarray of shape (n,)
    scores : ndarray of shape (n,)
        Rows of equal score are called alike.
    """

    def __init__(self, y: Codes, scores: Array) -> None:
        self._order = np.argsort(-scores, kind="stable")
        falling = scores[self._order]
        self._ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
        self._is_one = (y[self._order] == 1).astype(np.float64)

    def figures(self, weights: Array) -> Array:
        """PR-AUC, and recall at the budget of alerts, where each row counts so often."""
        own = weights[self._order]
        hits = np.cumsum(own * self._is_one)[self._ends]
        alerts = np.cumsum(own)[self._ends]
        precision = np.divide(hits, alerts, out=np.zeros_like(hits), where=alerts > 0)
        pr_auc = float(np.diff(hits, prepend=0.0) @ precision / hits[-1])
        # Rows that tie at the cut count in proportion.
        recall = float(
            np.interp(round(PAPER_ALERT_RATE * alerts[-1]), np.append(0.0, alerts), np.append(0.0, hits)) / hits[-1]
        )
        return np.array([pr_auc, recall])


def resampled(y: Codes, scores: Sequence[Array], seed: int, resamples: int) -> Array:
    """Figures of resamples of the test rows, shape (resamples, methods, 2): the same rows for all methods.

    Frauds and other payments are drawn with replacement each among themselves, so that a resample has as many of both.
    """
    generator = np.random.default_rng(seed)
    rankings = [Ranking(y, own) for own in scores]
    members = [np.flatnonzero(y == code) for code in (0, 1)]
    found = np.empty((resamples, len(scores), 2))
    for number in range(resamples):
        drawn = [generator.choice(rows, len(rows)) for rows in members]
        weights = np.bincount(np.concatenate(drawn), minlength=len(y)).astype(np.float64)
        found[number] = [ranking.figures(weights) for ranking in rankings]
    return found


def write_card(target: Path, seeds: Seeds, found: Results) -> None:
    """Write the tables of the payments."""
    command = "python -m benchmarks.quality tables --part card" + (f" --seeds {seeds}" if seeds != "report" else "")
    kinds = list(dict.fromkeys(cell.split for cell in found))
    _write_cells(target / "card_cells.csv", command, found)
    write_table(target / "card.csv", command, [line for kind in kinds for line in mean_lines(kind, found)], _PACKAGES)
    pairs = [line for kind in kinds for line in paired_lines(kind, found)]
    if pairs:
        write_table(target / "card_paired.csv", command, pairs, _PACKAGES)
        compared = dict.fromkeys(str(line["split"]) for line in pairs)
        goals = [line for kind in compared for line in goal_lines(kind, found, pairs)]
        write_table(target / "card_goals.csv", command, goals, _PACKAGES)


def mean_lines(kind: str, found: Results) -> list[Line]:
    """Means over the splits of a kind, method by method."""
    lines = []
    for method in dict.fromkeys(cell.method for cell in found):
        own = [result for cell, result in found.items() if (cell.split, cell.method) == (kind, method)]
        line: Line = {"split": kind, "method": method, "splits": len(own)}
        for name in MEANS:
            known = [result[name] for result in own if result.get(name) is not None]
            line[name] = float(np.mean(known)) if known else ""
        lines.append(line)
    return lines


def paired_lines(kind: str, found: Results) -> list[Line]:
    """Ours minus every other method: each split with an interval over its test rows, and their mean."""
    seeds = sorted({cell.seed for cell in found if (cell.split, cell.method) == (kind, OURS)})
    by_method: dict[str, dict[int, Mapping[str, Any]]] = {cell.method: {} for cell in found}
    for cell, result in found.items():
        if cell.split == kind and cell.seed in seeds:
            by_method[cell.method][cell.seed] = result
    methods = [name for name, own in by_method.items() if len(own) == len(seeds)]
    if OURS not in methods or len(methods) < 2:
        return []
    drawn = {}
    for seed in seeds:
        scores = [stored_scores(dict(by_method[name][seed])) for name in methods]
        drawn[seed] = resampled(make_payments(kind, seed).y_test, scores, seed, RESAMPLES)
    lines: list[Line] = []
    for rival in methods:
        if rival == OURS:
            continue
        for place, (figure, title) in enumerate(FIGURES.items()):
            ours, theirs = ({seed: float(by_method[name][seed][figure]) for seed in seeds} for name in (OURS, rival))
            gaps = {
                seed: drawn[seed][:, methods.index(OURS), place] - drawn[seed][:, methods.index(rival), place]
                for seed in seeds
            }
            lines += [_pair(kind, str(seed), rival, title, ours[seed] - theirs[seed], gaps[seed]) for seed in seeds]
            if len(seeds) > 1:
                differences = np.array([ours[seed] - theirs[seed] for seed in seeds])
                mean = _pair(
                    kind, "mean", rival, title, float(differences.mean()), np.mean(list(gaps.values()), axis=0)
                )
                share = TEST_SHARE / (1.0 - TEST_SHARE)
                error = differences.std(ddof=1) * np.sqrt(1.0 / len(seeds) + share)
                lines.append(mean | {"± over splits (Nadeau–Bengio)": float(error)})
    return lines


def _pair(kind: str, seed: str, rival: str, figure: str, difference: float, drawn: Array) -> Line:
    low, high = np.percentile(drawn, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return {
        "split": kind,
        "seed": seed,
        "rival": rival,
        "figure": figure,
        "ours − theirs": difference,
        "low": float(low),
        "high": float(high),
        "± over splits (Nadeau–Bengio)": "",
        "verdict": "level" if low <= 0 <= high else "ours better" if low > 0 else "ours worse",
    }


def goal_lines(kind: str, found: Results, pairs: Sequence[Line]) -> list[Line]:
    """The goals and what was measured."""
    own = next(line for line in mean_lines(kind, found) if line["method"] == OURS)
    lines = []
    for figure, title in FIGURES.items():
        wanted, value = GOALS[kind, figure], float(str(own[figure]))
        lines.append(_goal(kind, title, f"≥ {wanted:g}", value, value >= wanted))
    whole = [line for line in pairs if line["split"] == kind and line["rival"] == "LightGBM, raw columns"]
    seed = "mean" if any(line["seed"] == "mean" for line in whole) else whole[0]["seed"] if whole else ""
    for line in whole:
        if line["seed"] == seed:
            verdict = str(line["verdict"])
            lines.append(
                _goal(kind, f"{line['figure']} against LightGBM", "not worse", verdict, verdict != "ours worse")
            )
    ratio = float(str(own["ece"])) / float(str(own["chance_ece"]))
    told, seconds, speed = (float(str(own[name])) for name in ("shifted_told", "fit_s", "rows_per_s"))
    lines.append(_goal(kind, "ECE / chance", "≤ 1.2", ratio, ratio <= 1.2))
    lines.append(_goal(kind, "predicted / true at 50 × the prevalence", "0.9 to 1.1", told, 0.9 <= told <= 1.1))
    lines.append(_goal(kind, "core-seconds of a fit", "< 180", seconds, seconds < 180))
    lines.append(_goal(kind, "rows per core-second", "≥ 50,000", speed, speed >= 50_000))
    return lines


def _goal(kind: str, goal: str, wanted: str, value: object, met: bool) -> Line:
    return {"split": kind, "goal": goal, "wanted": wanted, "found": value, "met": "yes" if met else "no"}


def _write_cells(path: Path, command: str, found: Results) -> None:
    names = (*MEANS, "setting")
    with path.open("w", newline="") as file:
        file.write(f"# {command} | {versions(*_PACKAGES)}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["split", "seed", "method", *names])
        for cell, result in found.items():
            writer.writerow([cell.split, cell.seed, cell.method, *(_text(result.get(name)) for name in names)])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    return "" if value is None else f"{value:.6g}"
