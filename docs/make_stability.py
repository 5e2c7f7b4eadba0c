"""Makes what ``docs/stability.md`` shows: the command on the heart data, and a table of rules of choice.

``python docs/make_stability.py`` writes the sections between the markers of the page; it takes some minutes.
``python docs/make_stability.py --check`` writes nothing and fails when the page differs from what would be written.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the studies lie beside the documentation

from benchmarks.datasets import LOADERS, load_dataset
from marked_sections import Row, number, table, write_or_check
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from qmedoid import NearestMedoidClassifier
from qmedoid.cli.stability import StabilityOptions, run
from qmedoid.datasets import locate
from qmedoid.estimators.stability import StabilityReport, stability
from qmedoid.metrics.classification import mean_and_error

PAGE = Path(__file__).parent / "stability.md"
REFITS = 20
SPLITS = range(100, 110)
"""Seeds of the splits on whose test rows the two rules are compared."""


def command() -> str:
    """What the command prints on the heart data."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    asked = StabilityOptions(table=str(locate("heart")), target="HeartDisease", bootstraps=REFITS)
    with redirect_stdout(io.StringIO()) as printed:
        run(asked)
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    return "\n".join(["```console", "$ qmedoid stability heart.csv --target HeartDisease", *lines, "```"])


def rules() -> str:
    """The search under both rules of choice: how stable its groups are, and what the choice costs."""
    rows: list[Row] = []
    for name in LOADERS:
        data = load_dataset(name)
        for rule in ("best", "one_se"):
            classifier = NearestMedoidClassifier(selection=rule, random_state=0)
            report = stability(classifier, data.X, data.y, n_bootstraps=REFITS, random_state=0)
            groups = report.groups
            assert groups is not None
            figures = (number(groups["agreement"], 3), number(groups["kept"], 3), _flips(report))
            rows.append([name, f'`"{rule}"`', *figures, _macro_f1(name, rule)])
    header = ["data", "selection", "with full fit", "found again", "flips", "macro-F1"]
    return table(header, rows, 2)


def _flips(report: StabilityReport) -> str:
    decisions = report.decisions
    return f"{number(decisions['flip_rate'] or 0.0, 3)} ± {number(decisions['flip_error'] or 0.0, 3)}"


def _macro_f1(name: str, rule: str) -> str:
    """Mean over test rows of repeated splits, with its standard error."""
    data, scores = load_dataset(name), []
    for seed in SPLITS:
        X_train, X_test, y_train, y_test = train_test_split(
            data.X, data.y, test_size=0.25, stratify=data.y, random_state=seed
        )
        fitted = NearestMedoidClassifier(selection=rule, random_state=seed).fit(X_train, y_train)
        scores.append(f1_score(y_test, fitted.predict(X_test), average="macro"))
    mean, error = mean_and_error(scores)
    return f"{number(mean, 3)} ± {number(error or 0.0, 3)}"


SECTIONS: Mapping[str, Callable[[], str]] = {"command": command, "rules": rules}
"""The sections of the page."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, {name: make() for name, make in SECTIONS.items()}, check=arguments.check)
