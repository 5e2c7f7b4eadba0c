"""Which α the search should run with: the choice behind the two presets.

Writes ``benchmarks/results/search_alpha.csv``: mean test accuracy and macro-F1 over splits with seeds 100 to 119, which
no reported figure uses (``paper_splits.py`` reports seeds 0 to 19).
"""

import dataclasses
import warnings

from _timing import RESULTS, write_table
from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.studies.comparison import Method, compare, fusion_with_validation, method
from qmedoid.studies.datasets import load_breast_cancer, load_heart, load_wine

SEEDS = range(100, 120)


def as_printed(alpha: float) -> Method:
    return fusion_with_validation(lambda: NearestMedoidClassifier.paper(search_alpha=alpha))


def by_default(alpha: float) -> Method:
    return method(lambda: NearestMedoidClassifier(search_alpha=alpha))


METHODS: dict[str, Method] = {
    **{f"as printed, search at {alpha}": as_printed(alpha) for alpha in (0.5, 0.7, 0.8, 0.9, 1.0)},
    **{f"default, search at {alpha}": by_default(alpha) for alpha in (0.5, 0.75, 1.0)},
}


def main() -> None:
    warnings.simplefilter("ignore", QMedoidWarning)
    ordinal = dataclasses.replace(load_heart("ordinal"), name="Heart disease (ordinal)")
    onehot = dataclasses.replace(load_heart("onehot"), name="Heart disease (one-hot)")
    rows = [
        {key: round(value, 4) if isinstance(value, float) else value for key, value in outcome.as_dict().items()}
        for data in (ordinal, onehot, load_breast_cancer(), load_wine())
        for outcome in compare(data, METHODS, SEEDS)
    ]
    write_table(RESULTS / "search_alpha.csv", "python benchmarks/search_alpha.py", rows)


if __name__ == "__main__":
    main()
