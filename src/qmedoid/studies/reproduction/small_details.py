"""Behind the small data sets' figures: confusion matrices, sweeps, and the open points that figures hang on."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qmedoid.arrays import Array
from qmedoid.metrics.classification import f_beta_sweep
from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.paper import TEST_CONFUSIONS, VALIDATION_CONFUSIONS, printed_figure
from qmedoid.studies.reproduction.plan import HEART_ORDINAL, NUMBERED
from qmedoid.studies.reproduction.results import Results, Spread, confusion, mean_columns, with_error
from qmedoid.studies.reproduction.small import VARIANTS
from qmedoid.studies.reproduction.small_tables import MEASURES, OURS, SEARCHED

BETAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
PRINTED_CONFUSIONS = {"val": VALIDATION_CONFUSIONS, "test": TEST_CONFUSIONS}
PART_NAMES = {"val": "validation", "test": "test"}


def mean_confusion(results: Results, name: str, method: str, part: str) -> Array:
    """Confusion matrix of a method, the mean over its splits."""
    matrices = [confusion(part)(result).confusion for result in results.of(name, method)]
    mean: Array = np.mean(matrices, axis=0)
    return mean


def confusion_table(results: Results, sets: Mapping[str, Dataset]) -> Table:
    """Validation and test confusion matrices, a row for every pair of classes."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for part, printed in PRINTED_CONFUSIONS.items():
            means = [mean_confusion(results, name, method, part) for method in OURS.values()]
            for true, decided in np.ndindex(means[0].shape):
                theirs = printed[name][true][decided]
                ours = [float(mean[true, decided]) for mean in means]
                labels = (data.class_names[true], data.class_names[decided])
                rows.append([data.name, PART_NAMES[part], *labels, theirs, *ours])
    columns = [Column("data"), Column("rows"), Column("true class"), Column("decided"), Column("paper")]
    return Table(
        "confusion_matrices",
        "Confusion matrices",
        columns + [Column(title, digits=1) for title in OURS],
        rows,
        "Ours are means over the splits.",
    )


def alpha_table(results: Results, sets: Mapping[str, Dataset]) -> Table:
    """Macro-F1 on the rows that choose α, along α."""
    return _along(
        "alpha_sweep",
        "Macro-F1 of the rows that choose α, the share of the distance",
        "α",
        {data.name: _of_methods(sweep_spreads, results, name, SEARCHED) for name, data in sets.items()},
        SEARCHED,
        "As printed on the validation rows, convex on the folds of the cross-validation.",
    )


def sweep_spreads(results: Results, name: str, method: str) -> dict[float, Spread]:
    """Macro-F1 by α over the splits."""
    sweeps = [result["sweep"] for result in results.of(name, method)]
    scores = np.array([sweep["macro_f1"] for sweep in sweeps])
    return {alpha: Spread(scores[:, place]) for place, alpha in enumerate(sweeps[0]["alphas"])}


def f_beta_table(results: Results, sets: Mapping[str, Dataset]) -> Table:
    """Macro F-beta of fixed decisions on the test rows: whether they lean to recall or to precision."""
    return _along(
        "f_beta_sweep",
        "Macro F-beta of the decisions on the test rows",
        "β",
        {data.name: _of_methods(f_beta_spreads, results, name, OURS) for name, data in sets.items()},
        OURS,
        "Above 1, β counts recall for more than precision.",
    )


def f_beta_spreads(results: Results, name: str, method: str) -> dict[float, Spread]:
    """Macro F-beta by β over the splits."""
    sweeps = [f_beta_sweep(confusion("test")(result), BETAS) for result in results.of(name, method)]
    return {beta: Spread(np.array([sweep[beta] for sweep in sweeps])) for beta in BETAS}


def _of_methods(
    spreads: Callable[[Results, str, str], dict[float, Spread]], results: Results, name: str, methods: Mapping[str, str]
) -> list[dict[float, Spread]]:
    return [spreads(results, name, method) for method in methods.values()]


def _along(
    name: str,
    title: str,
    symbol: str,
    sweeps: Mapping[str, Sequence[Mapping[float, Spread]]],
    methods: Mapping[str, str],
    note: str,
) -> Table:
    """A figure of some of our methods along a grid, from the sweeps of each on every data set."""
    rows: list[list[Value]] = [
        [data, point, *(cell for sweep in of_methods for cell in with_error(sweep.get(point)))]
        for data, of_methods in sweeps.items()
        for point in of_methods[0]
    ]
    columns = [Column("data"), Column(symbol, digits=2), *(column for own in methods for column in mean_columns(own))]
    return Table(name, title, columns, rows, note)


def variants_table(results: Results, sets: Mapping[str, Dataset]) -> Table:
    """The paper preset with its open points read otherwise."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        readings = [(name, "printed", "as printed"), *((name, variant, variant) for variant in VARIANTS)]
        if name == "heart":
            readings.append((HEART_ORDINAL, "printed", f"printed, {NUMBERED}"))
        for source, method, title in readings:
            row: list[Value] = [data.name, title]
            for what in ("accuracy", "macro-F1"):
                spread = results.spread(source, method, MEASURES[what])
                theirs = printed_figure(name, "Fusion", what)
                within = None if spread is None or theirs is None else spread.contains(theirs)
                row += [theirs, *with_error(spread), None if within is None else "yes" if within else "no"]
            rows.append(row)
    columns = [Column("data"), Column("reading")]
    for what in ("accuracy", "macro-F1"):
        columns += [Column("paper", what), *mean_columns("here", what), Column("within the spread", what)]
    return Table(
        "variants",
        "What the printed figures hang on: open points of the paper read otherwise",
        columns,
        rows,
        "Within the spread: the paper's figure lies in the range of the splits, or within two standard deviations of "
        "their mean.",
    )
