"""The small data sets: every method on the test rows of a split in the paper's proportions (algorithms 7 to 11)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from qmedoid.studies.baselines import BASELINES, lightgbm
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.reproduction.cells import Cell, Result
from qmedoid.studies.reproduction.judging import judged_on
from qmedoid.studies.reproduction.own import front_small, printed_small
from qmedoid.studies.splits import Split, paper_split


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
    """The paper preset, perhaps with changes."""
    return SmallMethod(partial(printed_small, **changes), True, 0.2)


def _baseline(make: Callable[[int], Any], seconds: float) -> SmallMethod:
    """A plain classifier, fitted on training and validation rows."""

    def run(data: Dataset, split: Split, seed: int) -> Result:
        model = make(seed).fit(data.X[split.fit], data.y[split.fit])
        return {"test": judged_on(model, data, split.test)}

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
    "convex": SmallMethod(partial(front_small, method="convex"), True, 1.0),
    "default": SmallMethod(front_small, True, 1.0),
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
