"""Measures the numbers of ``docs/findings.md`` on the small data sets and writes its tables.

``python docs/make_findings.py`` writes them between the markers of the page; ``--check`` only compares.
Every number is a mean over 20 splits in the paper's proportions, seeds 0 to 19 (10 of them for searches).
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # the studies lie beside the documentation

import numpy as np
import numpy.typing as npt
from benchmarks.datasets import Dataset, load_dataset
from benchmarks.studies.cells import paper_split
from benchmarks.studies.paper import PAPER
from marked_sections import Row, number, table, write_or_check
from sklearn.metrics import average_precision_score, roc_auc_score

from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.metrics.classification import evaluate

Array = npt.NDArray[np.float64]

PAGE = Path(__file__).parent / "findings.md"
SPLITS = range(20)
SEARCH_SPLITS = range(10)
NO_SEARCH = {"max_passes": 0, "subset_sizes": (3, 3)}
PAPER_CONFUSION = "[[90, 0], [16, 37]]"
NAMES = {"heart": "Heart disease", "breast-cancer": "Breast cancer", "wine": "Wine"}


class Measured(NamedTuple):
    """Means over splits; `chosen` is the macro-F1 on the validation rows that chose the configuration and α."""

    accuracy: float
    macro_f1: float
    confusion: Array
    roc_auc: float
    pr_auc: float
    chosen: float


def measure(make: Callable[[], NearestMedoidClassifier], name: str, splits: range = SPLITS) -> Measured:
    """Choose on the validation rows, fit on the training rows, judge on the test rows."""
    data = load_dataset(name)
    each = [_one(make, data, seed) for seed in splits]
    return Measured(*(np.mean(values, axis=0) for values in zip(*each, strict=True)))


def _one(make: Callable[[], NearestMedoidClassifier], data: Dataset, seed: int) -> Measured:
    split = paper_split(data.y, seed)
    fitted = make().set_params(random_state=seed)
    fitted.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
    X, y = data.X[split.test], data.y[split.test]
    metrics = evaluate(y.astype(np.intp), fitted.model_.parts[0].labels(X), len(data.class_names))
    two = len(data.class_names) == 2
    margin = fitted.decision_function(X)
    ranking = (roc_auc_score(y, margin), average_precision_score(y, margin)) if two else (np.nan, np.nan)
    return Measured(metrics.accuracy, metrics.macro_f1, metrics.confusion, *ranking, fitted.alpha_sweep_.score)


@cache
def printed(name: str, **changes: object) -> Measured:
    """The paper preset with changes, no search, k = 3."""
    return measure(lambda: NearestMedoidClassifier.paper(**(NO_SEARCH | changes)), name)


def printed_table() -> str:
    """The paper preset and the paper's figures."""
    ours, theirs = {name: printed(name) for name in NAMES}, {name: PAPER[NAMES[name]]["Fusion"] for name in NAMES}
    rows: list[Row] = []
    for field in ("accuracy", "macro_f1"):
        label = field.replace("_f1", "-F1")
        rows.append([f"paper preset, {label}", *(number(getattr(ours[name], field), 3) for name in NAMES)])
        rows.append([f"the paper, one split, {label}", *(number(getattr(theirs[name], field), 3) for name in NAMES)])
    return table(["", *NAMES.values()], rows)


def angle_table() -> str:
    """Accuracy by one channel alone."""
    settings = {
        "distance alone": {"alpha": 1.0},
        "printed angle alone": {"alpha": 0.0},
        "true angle alone": {"alpha": 0.0, "angle": "true"},
    }
    rows: list[Row] = [
        [label, *(number(printed(name, score_weight=None, **changes).accuracy, 3) for name in NAMES)]
        for label, changes in settings.items()
    ]
    return table(["accuracy", *NAMES.values()], rows)


def weights_table() -> str:
    """Class weights on breast cancer."""
    settings = {"times 1/√π (printed)": "printed", "none": None, "chosen among those that help": "auto"}
    rows: list[Row] = []
    for label, weight in settings.items():
        found = printed("breast-cancer", score_weight=weight)
        cells = ", ".join("[" + ", ".join(number(value, 1) for value in line) + "]" for line in found.confusion)
        rows.append([label, number(found.accuracy, 3), number(found.macro_f1, 3), f"[{cells}]"])
    figure = PAPER["Breast cancer"]["Fusion"]
    rows.append(["the paper, one split", number(figure.accuracy, 3), number(figure.macro_f1, 3), PAPER_CONFUSION])
    return table(["class weights", "accuracy", "macro-F1", "mean confusion matrix"], rows)


def sign_table() -> str:
    """Scaling of the inputs with and without the sign."""
    settings: dict[str, dict[str, object]] = {
        "plain norm, raw inputs": {},
        "plain norm, inputs scaled to [0, 1]": {"input_scaling": "minmax"},
        "plain norm, standardized inputs": {"input_scaling": "standard"},
        "signed norm, standardized inputs": {"input_scaling": "standard", "kind": "signed"},
    }
    rows: list[Row] = [
        [label, *(number(printed(name, score_weight=None, **changes).accuracy, 3) for name in NAMES)]
        for label, changes in settings.items()
    ]
    return table(["accuracy", *NAMES.values()], rows)


def ranking_table() -> str:
    """Areas under the curves of the margin."""
    default = {name: measure(lambda: NearestMedoidClassifier(**NO_SEARCH), name) for name in ("heart", "breast-cancer")}
    rows: list[Row] = []
    for name, found in default.items():
        for label, values in (("default", found), ("paper preset", printed(name))):
            rows.append([NAMES[name], label, number(values.roc_auc, 3), number(values.pr_auc, 3)])
    return table(["data", "settings (k = 3, no search)", "ROC-AUC", "PR-AUC"], rows, 2)


def search_table() -> str:
    """Macro-F1 on the rows that chose a configuration and on the test rows, with and without a search."""
    settings: dict[str, dict[str, object]] = {
        "no search": {"max_passes": 0},
        "search at α = 0.5": {"search_alpha": 0.5},
        "search at α = 1": {"search_alpha": 1.0},
    }
    rows: list[Row] = []
    for name, title in NAMES.items():
        for label, changes in settings.items():
            found = measure(lambda changes=changes: NearestMedoidClassifier.paper(**changes), name, SEARCH_SPLITS)
            gap = found.chosen - found.macro_f1
            rows.append([title, label, *(number(value, 3) for value in (found.chosen, found.macro_f1, gap))])
    return table(["data", "paper preset", "macro-F1 on the rows that chose", "on test rows", "difference"], rows, 2)


def ties_table() -> str:
    """The paper preset with the center of the plateau of α, and with the lowest α of equal macro-F1."""
    rows: list[Row] = []
    for name, title in NAMES.items():
        data = load_dataset(name)
        lowest: list[float] = []
        differ = 0
        for seed in SPLITS:
            split = paper_split(data.y, seed)
            fitted = NearestMedoidClassifier.paper(**NO_SEARCH, random_state=seed)
            fitted.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
            sweep = fitted.alpha_sweep_
            alpha = float(sweep.grid[sweep.scores.argmax()])
            differ += alpha != fitted.alpha_
            again = _one(lambda alpha=alpha: NearestMedoidClassifier.paper(**NO_SEARCH, alpha=alpha), data, seed)
            lowest.append(again.macro_f1)
        center = number(printed(name).macro_f1, 3)
        rows.append([title, f"{differ} of {len(SPLITS)}", center, number(float(np.mean(lowest)), 3)])
    header = ["data", "splits on which the two differ", "macro-F1, center (paper preset)", "macro-F1, lowest"]
    return table(header, rows)


SECTIONS = {
    "printed": printed_table,
    "angle": angle_table,
    "weights": weights_table,
    "sign": sign_table,
    "search": search_table,
    "ties": ties_table,
    "ranking": ranking_table,
}
"""What is written between the markers of the page."""


def sections() -> dict[str, str]:
    """Text of every marked section."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)
        return {name: write() for name, write in SECTIONS.items()}


def main() -> None:
    """Write the tables of the page, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date; write nothing")
    write_or_check(PAGE, sections(), check=parser.parse_args().check)


if __name__ == "__main__":
    main()
