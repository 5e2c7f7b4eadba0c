"""Tables of the small data sets: the paper's with our figures, and those behind them."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from qmedoid.arrays import Array
from qmedoid.metrics.classification import ClassMetrics, f_beta_sweep
from qmedoid.reporting.document import Heading, Table, Value
from qmedoid.studies.catalog import HEART_ORDINAL
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.paper import SUMMARIES, TEST_CONFUSIONS, VALIDATION_CONFUSIONS, printed_figure
from qmedoid.studies.plan import NEAREST, NUMBERED, SMALL_VARIANTS
from qmedoid.studies.results import Measure, Spread, StudyResults, confusion, mean_columns, with_error
from qmedoid.studies.splits import paper_split

BASELINES = ("LogReg", "LinearSVM", "RBF-SVM", "RandomForest", "LightGBM")
SEARCHED = {"as printed": "printed", "convex": NEAREST}
"""Our methods that search groups and sweep α, by what their columns are called."""
OURS = {**SEARCHED, "default": "default"}
"""All our methods."""

_of_test, _of_val = confusion("test"), confusion("val")
MEASURES: dict[str, Measure] = {
    "accuracy": lambda result: _of_test(result).accuracy,
    "macro-F1": lambda result: _of_test(result).macro_f1,
    "weighted-F1": lambda result: _of_test(result).average(_of_test(result).f1, "weighted"),
    "ROC-AUC": lambda result: float(result["test"]["roc_auc"]),
    "PR-AUC": lambda result: float(result["test"]["pr_auc"]),
}
"""Figures of the test rows."""
VALIDATION_MEASURES: dict[str, Measure] = {
    "accuracy": lambda result: _of_val(result).accuracy,
    "macro-F1": lambda result: _of_val(result).macro_f1,
}


def summary_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Sizes, classes and splits, counted on our data, and the k and α that validation chooses."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        printed, split = SUMMARIES[name], paper_split(data.y, 0)
        counts = np.unique(data.y, return_counts=True)[1].tolist()
        facts: list[tuple[str, Value, Value]] = [
            ("rows", printed.n_rows, len(data.y)),
            ("columns", printed.n_columns, data.n_columns),
            ("classes", len(printed.class_counts), len(counts)),
            ("rows of each class", _joined(printed.class_counts, ", "), _joined(counts, ", ")),
            ("train/validation/test rows", _joined(printed.split_sizes, "/"), _joined(map(len, split), "/")),
        ]
        rows += [[data.name, what, theirs, ours, *[None] * len(_own_columns())] for what, theirs, ours in facts]
        chosen: dict[str, tuple[float, Measure]] = {
            "best k": (printed.best_k, lambda result: float(result.get("k", np.nan))),
            "α*": (printed.alpha, lambda result: float(result.get("alpha", np.nan))),
            "validation accuracy": (printed.validation_accuracy, VALIDATION_MEASURES["accuracy"]),
            "validation macro-F1": (printed.validation_macro_f1, VALIDATION_MEASURES["macro-F1"]),
        }
        for what, (theirs, measure) in chosen.items():
            own = [cell for method in OURS.values() for cell in with_error(results.spread(name, method, measure))]
            rows.append([data.name, what, theirs, None, *own])
    return Table(
        "summary",
        "Data sets, splits, and what validation chose",
        [Heading("data"), Heading("figure"), Heading("paper"), Heading("counted here"), *_own_columns()],
        rows,
        "As printed: fitted on the training rows and chosen on the validation rows; the validation figures are of the "
        "rows that chose, so they flatter. Convex: chosen by cross-validation. Default: evidence, without k and α. The "
        "validation figures of these two are of a fit on the training rows alone.",
    )


def comparison_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Every method on the test rows."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for what, measure in MEASURES.items():
            theirs = {model: printed_figure(name, model, what) for model in ("Fusion", *BASELINES)}
            rows.append([data.name, what, *_figures(results, name, measure, theirs)])
    return Table(
        "test_comparison",
        "Test rows: ours against plain classifiers",
        [Heading("data"), Heading("figure"), *_figure_columns()],
        rows,
        "Means over the splits, ± their standard errors; the paper has one split. Areas of three classes are means of "
        "one class against the others. Ours gets its areas from the margin; the paper leaves them out.",
    )


def class_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Precision, recall and F1 of every class."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        printed = ClassMetrics(np.array(TEST_CONFUSIONS[name], dtype=np.float64))
        for code, label in enumerate(data.class_names):
            for what in ("precision", "recall", "F1"):
                theirs = {"Fusion": _of_class(printed, what, code)}
                figures = _figures(results, name, _class_measure(what, code), theirs)
                rows.append([data.name, label, what, *figures])
    return Table(
        "class_wise",
        "Test rows, class by class",
        [Heading("data"), Heading("class"), Heading("figure"), *_figure_columns()],
        rows,
        "The paper's figures are computed from its confusion matrices; it has none for the other methods.",
    )


def own_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Our accuracy and macro-F1 with their range over the splits."""
    columns = [Heading("data"), Heading("figure"), Heading("paper")]
    for title in OURS:
        columns += [*mean_columns("mean", title), Heading("low", title), Heading("high", title)]
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for what in ("accuracy", "macro-F1"):
            row: list[Value] = [data.name, what, printed_figure(name, "Fusion", what)]
            for method in OURS.values():
                spread = results.spread(name, method, MEASURES[what])
                row += [None] * 4 if spread is None else [spread.mean, spread.error, spread.low, spread.high]
            rows.append(row)
    return Table("test_fusion", "Test rows: ours alone, with the range over the splits", columns, rows)


def _figures(results: StudyResults, name: str, measure: Measure, printed: Mapping[str, float | None]) -> list[Value]:
    """The cells of `_figure_columns` for one figure."""
    cells: list[Value] = [printed.get("Fusion")]
    for method in OURS.values():
        cells += with_error(results.spread(name, method, measure))
    for method in BASELINES:
        cells += [printed.get(method)] if method != "LightGBM" else []
        cells += with_error(results.spread(name, method, measure))
    return cells


def _figure_columns() -> list[Heading]:
    columns = [Heading("paper", "ours"), *_own_columns("ours")]
    for method in BASELINES:
        columns += [Heading("paper", method)] if method != "LightGBM" else []
        columns += mean_columns("here", method)
    return columns


def _own_columns(group: str = "") -> list[Heading]:
    return [column for title in OURS for column in mean_columns(title, group)]


def _of_class(metrics: ClassMetrics, what: str, code: int) -> float:
    return float(getattr(metrics, what.lower())[code])


def _class_measure(what: str, code: int) -> Measure:
    return lambda result: _of_class(_of_test(result), what, code)


def _joined(values: Iterable[int], sign: str) -> str:
    return sign.join(map(str, values))


BETAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
PRINTED_CONFUSIONS = {"val": VALIDATION_CONFUSIONS, "test": TEST_CONFUSIONS}
PART_NAMES = {"val": "validation", "test": "test"}


def mean_confusion(results: StudyResults, name: str, method: str, part: str) -> Array:
    """Confusion matrix of a method, the mean over its splits."""
    matrices = [confusion(part)(result).confusion for result in results.of(name, method)]
    mean: Array = np.mean(matrices, axis=0)
    return mean


def confusion_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
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
    columns = [Heading("data"), Heading("rows"), Heading("true class"), Heading("decided"), Heading("paper")]
    return Table(
        "confusion_matrices",
        "Confusion matrices",
        columns + [Heading(title, digits=1) for title in OURS],
        rows,
        "Ours are means over the splits.",
    )


def alpha_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Macro-F1 on the rows that choose α, along α."""
    title = "Macro-F1 of the rows that choose α, the share of the distance"
    note = "As printed on the validation rows, convex on the folds of the cross-validation."
    return _along("alpha_sweep", title, "α", SEARCHED, note, results, sets, sweep_spreads)


def sweep_spreads(results: StudyResults, name: str, method: str) -> dict[float, Spread]:
    """Macro-F1 by α over the splits."""
    sweeps = [result["sweep"] for result in results.of(name, method)]
    scores = np.array([sweep["macro_f1"] for sweep in sweeps])
    return {alpha: Spread(scores[:, place]) for place, alpha in enumerate(sweeps[0]["alphas"])}


def f_beta_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """Macro F-beta of fixed decisions on the test rows: whether they lean to recall or to precision."""
    title, note = "Macro F-beta of the decisions on the test rows", "Above 1, β counts recall for more than precision."
    return _along("f_beta_sweep", title, "β", OURS, note, results, sets, f_beta_spreads)


def f_beta_spreads(results: StudyResults, name: str, method: str) -> dict[float, Spread]:
    """Macro F-beta by β over the splits."""
    sweeps = [f_beta_sweep(confusion("test")(result), BETAS) for result in results.of(name, method)]
    return {beta: Spread(np.array([sweep[beta] for sweep in sweeps])) for beta in BETAS}


def _along(
    name: str,
    title: str,
    symbol: str,
    methods: Mapping[str, str],
    note: str,
    results: StudyResults,
    sets: Mapping[str, Dataset],
    spreads: Callable[[StudyResults, str, str], dict[float, Spread]],
) -> Table:
    """A figure of some of our methods along a grid."""
    rows: list[list[Value]] = []
    for source, data in sets.items():
        sweeps = [spreads(results, source, method) for method in methods.values()]
        for at in sweeps[0]:
            rows.append([data.name, at, *(cell for sweep in sweeps for cell in with_error(sweep.get(at)))])
    columns = [Heading("data"), Heading(symbol, digits=2), *(column for own in methods for column in mean_columns(own))]
    return Table(name, title, columns, rows, note)


def variants_table(results: StudyResults, sets: Mapping[str, Dataset]) -> Table:
    """The paper preset with its open points read otherwise."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        readings = [(name, "printed", "as printed"), *((name, variant, variant) for variant in SMALL_VARIANTS)]
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
    columns = [Heading("data"), Heading("reading")]
    for what in ("accuracy", "macro-F1"):
        columns += [Heading("paper", what), *mean_columns("here", what), Heading("within the spread", what)]
    return Table(
        "variants",
        "What the printed figures hang on: open points of the paper read otherwise",
        columns,
        rows,
        "Within the spread: the paper's figure lies in the range of the splits, or within two standard deviations of "
        "their mean.",
    )
