"""The paper's three small data sets over 20 repeated splits of its proportions: its method as printed and by default.

Writes ``benchmarks/results/paper_splits.csv``: mean test accuracy and macro-F1 with standard errors, next to the
figures the paper prints for its single split.
"""

import argparse
import dataclasses
import warnings

from _timing import RESULTS, write_table
from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.studies.baselines import BASELINES
from qmedoid.studies.comparison import Method, baseline, compare, fusion_with_validation, method
from qmedoid.studies.datasets import Dataset, load_breast_cancer, load_heart, load_wine
from qmedoid.studies.paper import PAPER


def printed(**changes: object) -> Method:
    return fusion_with_validation(lambda: NearestMedoidClassifier.paper(**changes))


METHODS: dict[str, Method] = {
    "as printed": printed(),
    "as printed, without class weights": printed(class_weight=None),
    "as printed, true angle, without class weights": printed(class_weight=None, angle="true"),
    "as printed, k = 3, no search": printed(max_passes=0, subset_sizes=(3, 3)),
    "as printed, k = 3, no search, without class weights": printed(
        max_passes=0, subset_sizes=(3, 3), class_weight=None
    ),
    "as printed, inputs scaled to [0, 1], without class weights": printed(class_weight=None, input_scaling="minmax"),
    "default": method(NearestMedoidClassifier),
    "default, without class weights": method(lambda: NearestMedoidClassifier(class_weight=None)),
    "default, no search": method(lambda: NearestMedoidClassifier(max_passes=0)),
    "default, 3 medoids per class": method(lambda: NearestMedoidClassifier(n_medoids=3)),
    "default, no search, 3 medoids per class": method(lambda: NearestMedoidClassifier(max_passes=0, n_medoids=3)),
    **{name: baseline(make) for name, make in BASELINES.items()},
}


def tables() -> list[Dataset]:
    ordinal = dataclasses.replace(load_heart("ordinal"), name="Heart disease (ordinal)")
    onehot = dataclasses.replace(load_heart("onehot"), name="Heart disease (one-hot)")
    return [ordinal, onehot, load_breast_cancer(), load_wine()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", QMedoidWarning)
    rows = []
    for data in tables():
        figures = PAPER[data.name.split(" (")[0]]
        for outcome in compare(data, METHODS, range(options.splits)):
            figure = figures.get("Fusion" if outcome.method.startswith("as printed") else outcome.method)
            ours = {k: round(v, 4) if isinstance(v, float) else v for k, v in outcome.as_dict().items()}
            theirs = ("", "") if figure is None else (figure.accuracy, figure.macro_f1)
            rows.append(ours | {"paper_accuracy": theirs[0], "paper_macro_f1": theirs[1]})
            print(rows[-1], flush=True)
    write_table(RESULTS / "paper_splits.csv", f"python benchmarks/paper_splits.py --splits {options.splits}", rows)


if __name__ == "__main__":
    main()
