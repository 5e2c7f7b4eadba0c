"""The plots of a reproduction, drawn from the same results as its tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.studies.cells import BUDGETS, FIXED, FULL_FRAUD, PAPER_ALERT_RATE, RATES, Result
from benchmarks.studies.document import Picture
from benchmarks.studies.fraud_tables import PARTS, PRINTED_TABLES, measure_of
from benchmarks.studies.panels import (
    Curve,
    CurvePanel,
    Dot,
    Role,
    Stated,
    confusion_grid,
    curve_grid,
    dots_against_paper,
    trace_grid,
)
from benchmarks.studies.paper import FRAUD, NEAREST, printed_figure
from benchmarks.studies.results import Spread, StudyResults
from benchmarks.studies.small_tables import (
    BASELINES,
    MEASURES,
    OURS,
    PART_NAMES,
    PRINTED_CONFUSIONS,
    SEARCHED,
    Sets,
    f_beta_spreads,
    mean_confusion,
    sweep_spreads,
)
from qmedoid.arrays import Array

_ROLES: dict[str, Role] = {"printed": "printed", "default": "ours", NEAREST: "ours"}
_TITLES = {"printed": "ours as printed", "default": "ours by default", NEAREST: "ours, convex"}
_BANDS = "Means over the splits; bands reach from the least to the most."
_FRAUD_METHODS = ("default", NEAREST, "printed", "LogReg", "LinearSVM", "RandomForest", "LightGBM")
_AXES: dict[str, tuple[Sequence[float], dict[str, Any]]] = {
    "roc": (RATES, {"x_label": "false positive rate", "y_label": "recall", "diagonal": True}),
    "pr": (RATES, {"x_label": "recall", "y_label": "precision"}),
    "recall_by_rate": (BUDGETS, {"x_label": "alert rate", "y_label": "recall", "log_x": True}),
}
"""Kinds of curves that cells keep: their grid, and how a picture shows them."""


def small_pictures(results: StudyResults, sets: Sets) -> list[Picture]:
    """Accuracy against the paper's, confusion matrices, ROC and PR curves of the small data sets."""
    dots = {
        data.name: [_accuracy_dot(results, name, method) for method in (*_ROLES, *BASELINES)]
        for name, data in sets.items()
    }
    pictures = [
        dots_against_paper("accuracy_against_paper", "Accuracy on test rows", dots, x_label="accuracy"),
        _confusions(results, sets, "test", "confusion_matrices"),
        _confusions(results, sets, "val", "confusion_matrices_validation"),
    ]
    binary = {name: data for name, data in sets.items() if len(data.class_names) == 2}
    for kind, title in {"roc": "ROC curves on test rows", "pr": "Precision by recall on test rows"}.items():
        panels = [
            _panel(data.name, kind, {method: results.of(name, method) for method in (*_ROLES, *BASELINES)}, "test")
            for name, data in binary.items()
        ]
        if panels:
            pictures.append(curve_grid(f"small_{kind}", title, panels, **_AXES[kind][1], note=_BANDS))
    return pictures


def small_detail_pictures(results: StudyResults, sets: Sets) -> list[Picture]:
    """The α and F-beta sweeps and the searches."""
    alphas, betas, traces = [], [], {}
    for name, data in sets.items():
        sweeps = {method: sweep_spreads(results, name, method) for method in SEARCHED.values()}
        grid = list(sweeps["printed"])
        curves = [_curve(method, [sweep[x] for x in grid]) for method, sweep in sweeps.items()]
        alphas.append(CurvePanel(data.name, grid, curves))
        by_beta = {method: f_beta_spreads(results, name, method) for method in _ROLES}
        curves = [_curve(method, list(sweep.values())) for method, sweep in by_beta.items()]
        betas.append(CurvePanel(data.name, list(by_beta["printed"]), curves))
        found = [result["trace"] for result in results.of(name, "printed")]
        traces[data.name] = [(one["evaluation"], one["best"]) for one in found]
    return [
        curve_grid(
            "alpha_sweep",
            "Macro-F1 of the rows that choose α",
            alphas,
            x_label="α, share of the distance",
            y_label="macro-F1",
            note=f"{_BANDS} At 0 the angle decides alone.",
        ),
        curve_grid(
            "f_beta_sweep", "Macro F-beta on test rows", betas, x_label="β", y_label="macro F-beta", note=_BANDS
        ),
        trace_grid(
            "search_trace",
            "Searches as printed: best macro-F1 on validation rows so far",
            traces,
            role="printed",
            note="A line for each split, and their median.",
        ),
    ]


def fraud_pictures(results: StudyResults, data: str) -> list[Picture]:
    """PR and ROC curves and recall by alert rate, on all rows and on test rows, and PR-AUC against the paper's."""
    recall = PAPER_ALERT_RATE, FRAUD["fraud_matched"]["ours"]["recall"], "the paper, all rows"
    markers = {"recall_by_rate": recall} if data == FULL_FRAUD else {}
    dots = {
        title: [_area_dot(results, data, method, part) for method in _FRAUD_METHODS] for part, title in PARTS.items()
    }
    title = "PR-AUC of the frauds: on all rows, as the paper has it, and on test rows"
    pictures = [dots_against_paper("fraud_pr_auc", title, dots, x_label="PR-AUC")]
    found = {method: own for method in _FRAUD_METHODS if (own := results.of(data, method))}
    for name, kind, title in (
        ("fraud_pr", "pr", "Frauds: precision by recall"),
        ("fraud_roc", "roc", "Frauds: ROC curves"),
        ("fraud_recall_by_alert_rate", "recall_by_rate", "Frauds: recall by alert rate"),
    ):
        panels = [_panel(rows, kind, found, part, markers.get(kind)) for part, rows in PARTS.items()]
        pictures.append(curve_grid(name, title, panels, **_AXES[kind][1], note=_BANDS))
    return pictures


def _panel(
    title: str,
    kind: str,
    found: Mapping[str, Sequence[Result]],
    part: str,
    marker: Stated | None = None,
) -> CurvePanel:
    """Curves of one kind on the rows of a part, by method."""
    curves = [_band(method, np.array([one[part]["curves"][kind] for one in own])) for method, own in found.items()]
    return CurvePanel(title, _AXES[kind][0], curves, marker)


def _confusions(results: StudyResults, sets: Sets, part: str, name: str) -> Picture:
    panels: list[tuple[str, Any, tuple[str, ...]]] = []
    for source, data in sets.items():
        panels.append((f"{data.name}: paper", PRINTED_CONFUSIONS[part][source], data.class_names))
        for title, method in OURS.items():
            mean = mean_confusion(results, source, method, part)
            panels.append((f"{data.name}: {title}", mean, data.class_names))
    note = "The paper's are of one split, ours means over the splits."
    return confusion_grid(name, f"Confusion matrices of the {PART_NAMES[part]} rows", panels, note)


def _band(method: str, values: Array) -> Curve:
    """A curve from its values on every split; only ours have bands, lest nothing be seen."""
    title, role = _TITLES.get(method, method), _ROLES.get(method, "baseline")
    if role == "baseline" or len(values) == 1:
        return Curve(title, values.mean(axis=0), role=role)
    return Curve(title, values.mean(axis=0), values.min(axis=0), values.max(axis=0), role)


def _curve(method: str, spreads: Sequence[Spread]) -> Curve:
    return _band(method, np.array([spread.values for spread in spreads]).T)


def _accuracy_dot(results: StudyResults, name: str, method: str) -> Dot:
    printed = printed_figure(name, "Fusion" if method == "printed" else method, "accuracy")
    return _dot(method, results.spread(name, method, MEASURES["accuracy"]), printed)


def _area_dot(results: StudyResults, data: str, method: str, part: str) -> Dot:
    models = PRINTED_TABLES["fraud_matched"][1] if data == FULL_FRAUD and part == "all" else ()
    printed = {own.method: FRAUD["fraud_matched"][own.printed]["PR-AUC"] for own in models if own.printed}
    return _dot(method, results.spread(data, method, measure_of("PR-AUC", part, FIXED)), printed.get(method))


def _dot(method: str, spread: Spread, printed: float | None) -> Dot:
    title, role = _TITLES.get(method, method), _ROLES.get(method, "baseline")
    if not spread:
        return Dot(title, None, paper=printed, role=role)
    return Dot(title, spread.mean, spread.low, spread.high, printed, role)
