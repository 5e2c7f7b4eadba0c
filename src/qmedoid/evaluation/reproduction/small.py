"""The small data sets: every method on the test rows of a split in the paper's proportions (algorithms 7 to 11)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.estimators.fusion import FusionClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.evaluation.baselines import BASELINES, lightgbm
from qmedoid.evaluation.datasets import Dataset
from qmedoid.evaluation.reproduction.cells import Cell, Result
from qmedoid.evaluation.reproduction.judging import judged
from qmedoid.evaluation.splits import Split, paper_split

Rows = npt.NDArray[np.intp]

TRACE_POINTS = 400
"""At most so many points of a search are kept."""


@dataclass(frozen=True)
class SmallMethod:
    """How a method is fitted on a split and what is kept of it.

    Attributes
    ----------
    run : callable (Dataset, Split, seed) -> Result
    is_ours : bool
    seconds : float
        What one cell takes, roughly: for the time left.
    """

    run: Callable[[Dataset, Split, int], Result]
    is_ours: bool
    seconds: float


def _printed(**changes: Any) -> SmallMethod:
    """The paper preset: fitted on the training rows, chosen on the validation rows."""

    def run(data: Dataset, split: Split, seed: int) -> Result:
        model = FusionClassifier.paper(random_state=seed, **changes)
        model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
        return _chosen(model) | {"test": _on(model, data, split.test), "val": _on(model, data, split.val)}

    return SmallMethod(run, True, 0.2)


def _default(data: Dataset, split: Split, seed: int) -> Result:
    """The front door: fitted on training and validation rows, which cross-validation chooses within.

    For the figures of the validation rows another is fitted on the training rows alone.
    """
    model = GeometricClassifier(random_state=seed).fit(data.X[split.fit], data.y[split.fit])
    before = GeometricClassifier(random_state=seed).fit(data.X[split.train], data.y[split.train])
    return _chosen(model.fusion_) | {"test": _on(model, data, split.test), "val": _on(before, data, split.val)}


def _baseline(make: Callable[[int], Any], seconds: float) -> SmallMethod:
    """A plain classifier, fitted on training and validation rows."""

    def run(data: Dataset, split: Split, seed: int) -> Result:
        model = make(seed).fit(data.X[split.fit], data.y[split.fit])
        return {"test": _on(model, data, split.test)}

    return SmallMethod(run, False, seconds)


VARIANTS: dict[str, SmallMethod] = {
    "printed, no class weights": _printed(class_weight=None),
    "printed, true angle": _printed(angle="true"),
    "printed, no search, k = 3": _printed(max_passes=0, subset_sizes=(3, 3)),
    "printed, search at α = 0.5": _printed(search_alpha=0.5),
    "printed, search at α = 1": _printed(search_alpha=1.0),
    "printed, inputs scaled to [0, 1]": _printed(input_scaling="minmax"),
    "printed, inputs standardised": _printed(input_scaling="standard"),
}
"""The paper preset with one open point read otherwise: what its figures hang on."""

METHODS: dict[str, SmallMethod] = {
    "printed": _printed(),
    "default": SmallMethod(_default, True, 1.0),
    "LogReg": _baseline(BASELINES["LogReg"], 0.05),
    "LinearSVM": _baseline(BASELINES["LinearSVM"], 0.05),
    "RBF-SVM": _baseline(BASELINES["RBF-SVM"], 0.05),
    "RandomForest": _baseline(BASELINES["RandomForest"], 0.6),
    "LightGBM": _baseline(lightgbm, 0.3),
    **VARIANTS,
}


def run_small(cell: Cell, data: Dataset) -> Result:
    """The result of a cell: figures of the test rows and, for our methods, of the validation rows and the search."""
    return METHODS[cell.method].run(data, paper_split(data.y, cell.seed), cell.seed)


def _on(model: Any, data: Dataset, rows: Rows) -> dict[str, Any]:
    """What a fitted classifier does with some rows."""
    classes, codes = np.unique(data.y, return_inverse=True)
    decisions = np.searchsorted(classes, model.predict(data.X[rows]))
    scores = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    values = np.asarray(scores(data.X[rows]), dtype=np.float64)
    if len(classes) == 2 and values.ndim == 2:
        values = values[:, 1]
    return judged(codes[rows], decisions, values)


def _chosen(model: FusionClassifier) -> Result:
    """What the search and the α sweep chose, and how they came there."""
    sweep = model.alpha_sweep_
    best = np.maximum.accumulate([step.score for step in model.search_trace_])
    kept = np.unique(np.linspace(0, len(best) - 1, TRACE_POINTS).astype(int)) if len(best) else np.array([], dtype=int)
    return {
        "k": max(len(subset) for subset in model.configuration_),
        "alpha": float(model.alpha_),
        "sweep": {"alphas": sweep.grid.tolist(), "macro_f1": sweep.scores.tolist()},
        "trace": {"evaluation": (kept + 1).tolist(), "best": best[kept].tolist()},
        "evaluations": len(best),
    }
