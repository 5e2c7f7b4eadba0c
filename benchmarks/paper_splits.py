"""The paper's three small data sets over 20 repeated splits of its proportions: its method as printed and by default.

Writes ``benchmarks/results/paper_splits.csv``: mean test accuracy and macro-F1 with standard errors, next to the
figures the paper prints for its single split.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from _timing import RESULTS, write_table
from benchmarks.datasets import Dataset
from benchmarks.studies.baselines import BASELINES, run_small
from benchmarks.studies.cells import (
    HEART_ORDINAL,
    Cell,
    Result,
    StudyMethod,
    classifier_metrics,
    data_digest,
    load_data,
    paper_split,
)
from benchmarks.studies.ours import run_printed
from benchmarks.studies.paper import PAPER
from benchmarks.studies.results import StudyResults, confusion
from benchmarks.studies.runner import Study, run_cells
from qmedoid import NearestMedoidClassifier

TITLES = {
    HEART_ORDINAL: "Heart disease (ordinal)",
    "heart": "Heart disease (one-hot)",
    "breast-cancer": "Breast cancer",
    "wine": "Wine",
}


def run_default(data: Dataset, cell: Cell, **changes: object) -> Result:
    """The nearest-medoid classifier with our defaults, fitted on training and validation rows."""
    split = paper_split(data.y, cell.seed)
    model = NearestMedoidClassifier(random_state=cell.seed, **changes).fit(data.X[split.fit], data.y[split.fit])
    return {"test": classifier_metrics(model, data, split.test)}


METHODS: dict[str, StudyMethod] = {
    "as printed": StudyMethod(run_printed),
    "as printed, without class weights": StudyMethod(run_printed, {"score_weight": None}),
    "as printed, true angle, without class weights": StudyMethod(run_printed, {"score_weight": None, "angle": "true"}),
    "as printed, k = 3, no search": StudyMethod(run_printed, {"max_passes": 0, "subset_sizes": (3, 3)}),
    "as printed, k = 3, no search, without class weights": StudyMethod(
        run_printed, {"max_passes": 0, "subset_sizes": (3, 3), "score_weight": None}
    ),
    "as printed, inputs scaled to [0, 1], without class weights": StudyMethod(
        run_printed, {"score_weight": None, "input_scaling": "minmax"}
    ),
    "default": StudyMethod(run_default),
    "default, without class weights": StudyMethod(run_default, {"score_weight": None}),
    "default, no search": StudyMethod(run_default, {"max_passes": 0}),
    "default, 3 medoids per class": StudyMethod(run_default, {"n_medoids": 3}),
    "default, no search, 3 medoids per class": StudyMethod(run_default, {"max_passes": 0, "n_medoids": 3}),
    **{name: StudyMethod(run_small, {"name": name}) for name in BASELINES if name != "LightGBM"},
}


def mean_rows(methods: Mapping[str, StudyMethod], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Mean accuracy and macro-F1 of every method on the splits of every data set, with standard errors."""
    study = Study({"splits": methods}, load_data, data_digest)
    of_test = confusion("test")
    for data, title in TITLES.items():
        for method in methods:
            cells = [Cell("splits", data, "random", seed, method) for seed in seeds]
            results = StudyResults(run_cells(study, cells, None))
            row: dict[str, Any] = {"data": title, "method": method, "splits": len(cells)}
            for name in ("accuracy", "macro_f1"):
                spread = results.spread(data, method, lambda result, name=name: getattr(of_test(result), name))
                assert spread is not None
                row |= {name: round(spread.mean, 4), f"{name}_se": round(spread.error or 0.0, 4)}
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    rows = []
    for row in mean_rows(METHODS, range(options.splits)):
        printed = str(row["method"]).startswith("as printed")
        figure = PAPER[row["data"].split(" (")[0]].get("Fusion" if printed else row["method"])
        theirs = ("", "") if figure is None else (figure.accuracy, figure.macro_f1)
        rows.append(row | {"paper_accuracy": theirs[0], "paper_macro_f1": theirs[1]})
        print(rows[-1], flush=True)
    write_table(RESULTS / "paper_splits.csv", f"python benchmarks/paper_splits.py --splits {options.splits}", rows)


if __name__ == "__main__":
    main()
