"""Tables of the small data sets: the paper's with our figures, and those behind them."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.studies.cells import HEART_ORDINAL, paper_split
from benchmarks.studies.document import Heading, Table, Value
from benchmarks.studies.paper import (
    NEAREST,
    NUMBERED,
    SMALL_VARIANTS,
    SUMMARIES,
    TEST_CONFUSIONS,
    VALIDATION_CONFUSIONS,
    printed_figure,
)
from benchmarks.studies.results import Measure, Spread, StudyResults, confusion, headings
from qmedoid.arrays import Array
from qmedoid.metrics.classification import ClassMetrics

Sets = Mapping[str, Dataset]
BASELINES = ("LogReg", "LinearSVM", "RBF-SVM", "RandomForest", "LightGBM")
SEARCHED = {"as printed": "printed", "convex": NEAREST}
"""Our methods that search groups and sweep α, by what their columns are called."""
OURS = {**SEARCHED, "default": "default"}
"""All our methods."""
_FIGURE_COLUMNS = [
    "ours: paper",
    *(f"ours: {title} ±" for title in OURS),
    *(f"{own}: {name}" for own in BASELINES for name in ("paper", "here ±") if f"{own} {name}" != "LightGBM paper"),
]
BETAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
PRINTED_CONFUSIONS = {"val": VALIDATION_CONFUSIONS, "test": TEST_CONFUSIONS}
PART_NAMES = {"val": "validation", "test": "test"}

_of_test, _of_val = confusion("test"), confusion("val")
MEASURES: dict[str, Measure] = {
    "accuracy": lambda result: _of_test(result).accuracy,
    "macro-F1": lambda result: _of_test(result).macro_f1,
    "weighted-F1": lambda result: _of_test(result).average(_of_test(result).f1, "weighted"),
    "ROC-AUC": lambda result: float(result["test"]["roc_auc"]),
    "PR-AUC": lambda result: float(result["test"]["pr_auc"]),
}
"""Figures of the test rows."""


def summary_table(results: StudyResults, sets: Sets) -> Table:
    """Sizes, classes and splits, counted on our data, and the k and α that validation chooses."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        printed = SUMMARIES[name]
        counts = np.unique(data.y, return_counts=True)[1].tolist()
        facts: dict[str, tuple[Value, Value]] = {
            "rows": (printed.n_rows, len(data.y)),
            "columns": (printed.n_columns, data.n_columns),
            "classes": (len(printed.class_counts), len(counts)),
            "rows of each class": (", ".join(map(str, printed.class_counts)), ", ".join(map(str, counts))),
            "train/validation/test rows": (
                "/".join(map(str, printed.split_sizes)),
                "/".join(str(len(part)) for part in paper_split(data.y, 0)),
            ),
        }
        rows += [[data.name, what, *both, *[None] * 2 * len(OURS)] for what, both in facts.items()]
        chosen: dict[str, tuple[float, Measure]] = {
            "best k": (printed.best_k, lambda result: float(result.get("k", np.nan))),
            "α*": (printed.alpha, lambda result: float(result.get("alpha", np.nan))),
            "validation accuracy": (printed.validation_accuracy, lambda result: _of_val(result).accuracy),
            "validation macro-F1": (printed.validation_macro_f1, lambda result: _of_val(result).macro_f1),
        }
        for what, (theirs, measure) in chosen.items():
            rows.append([data.name, what, theirs, None, *_means(results, name, OURS.values(), measure)])
    return Table(
        "summary",
        "Data sets, splits, and what validation chose",
        headings("data", "figure", "paper", "counted here", *(f"{title} ±" for title in OURS)),
        rows,
        "As printed: fitted on the training rows and chosen on the validation rows; the validation figures are of the "
        "rows that chose, so they flatter. Convex: chosen by cross-validation. Default: evidence, without k and α. The "
        "validation figures of these two are of a fit on the training rows alone.",
    )


def comparison_table(results: StudyResults, sets: Sets) -> Table:
    """Every method on the test rows."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for what, measure in MEASURES.items():
            theirs = {model: printed_figure(name, model, what) for model in ("Fusion", *BASELINES)}
            rows.append([data.name, what, *_figures(results, name, measure, theirs)])
    return Table(
        "test_comparison",
        "Test rows: ours against plain classifiers",
        headings("data", "figure", *_FIGURE_COLUMNS),
        rows,
        "Means over the splits, ± their standard errors; the paper has one split. Areas of three classes are means of "
        "one class against the others. Ours gets its areas from the margin; the paper leaves them out.",
    )


def class_table(results: StudyResults, sets: Sets) -> Table:
    """Precision, recall and F1 of every class."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        printed = ClassMetrics(np.array(TEST_CONFUSIONS[name], dtype=np.float64))
        for code, label in enumerate(data.class_names):
            for what in ("precision", "recall", "F1"):
                theirs = {"Fusion": float(getattr(printed, what.lower())[code])}
                figures = _figures(results, name, _class_measure(what, code), theirs)
                rows.append([data.name, label, what, *figures])
    return Table(
        "class_wise",
        "Test rows, class by class",
        headings("data", "class", "figure", *_FIGURE_COLUMNS),
        rows,
        "The paper's figures are computed from its confusion matrices; it has none for the other methods.",
    )


def _class_measure(what: str, code: int) -> Measure:
    return lambda result: float(getattr(_of_test(result), what.lower())[code])


def own_table(results: StudyResults, sets: Sets) -> Table:
    """Our accuracy and macro-F1 with their range over the splits."""
    names = [f"{title}: {name}" for title in OURS for name in ("mean ±", "low", "high")]
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for what in ("accuracy", "macro-F1"):
            spreads = [results.spread(name, method, MEASURES[what]) for method in OURS.values()]
            cells = [cell for spread in spreads for cell in spread.range_cells]
            rows.append([data.name, what, printed_figure(name, "Fusion", what), *cells])
    columns = headings("data", "figure", "paper", *names)
    return Table("test_fusion", "Test rows: ours alone, with the range over the splits", columns, rows)


def _means(results: StudyResults, name: str, methods: Iterable[str], measure: Measure) -> list[Value]:
    return [cell for method in methods for cell in results.spread(name, method, measure).cells]


def _figures(results: StudyResults, name: str, measure: Measure, printed: Mapping[str, float | None]) -> list[Value]:
    """The cells of `_FIGURE_COLUMNS` for one figure."""
    cells = [printed.get("Fusion"), *_means(results, name, OURS.values(), measure)]
    for method in BASELINES:
        cells += [printed.get(method)] if method != "LightGBM" else []
        cells += results.spread(name, method, measure).cells
    return cells


def mean_confusion(results: StudyResults, name: str, method: str, part: str) -> Array:
    """Confusion matrix of a method, the mean over its splits."""
    mean: Array = np.mean([confusion(part)(result).confusion for result in results.of(name, method)], axis=0)
    return mean


def confusion_table(results: StudyResults, sets: Sets) -> Table:
    """Validation and test confusion matrices, a row for every pair of classes."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        for part, printed in PRINTED_CONFUSIONS.items():
            means = [mean_confusion(results, name, method, part) for method in OURS.values()]
            for true, decided in np.ndindex(means[0].shape):
                labels = (data.class_names[true], data.class_names[decided])
                figures = (printed[name][true][decided], *(float(mean[true, decided]) for mean in means))
                rows.append([data.name, PART_NAMES[part], *labels, *figures])
    columns = headings("data", "rows", "true class", "decided", "paper")
    columns += [Heading(title, digits=1) for title in OURS]
    return Table("confusion_matrices", "Confusion matrices", columns, rows, "Ours are means over the splits.")


def alpha_table(results: StudyResults, sets: Sets) -> Table:
    """Macro-F1 on the rows that choose α, along α."""
    columns, rows = _along("α", SEARCHED, results, sets, sweep_spreads)
    title = "Macro-F1 of the rows that choose α, the share of the distance"
    note = "As printed on the validation rows, convex on the folds of the cross-validation."
    return Table("alpha_sweep", title, columns, rows, note)


def f_beta_table(results: StudyResults, sets: Sets) -> Table:
    """Macro F-beta of fixed decisions on the test rows: whether they lean to recall or to precision."""
    columns, rows = _along("β", OURS, results, sets, f_beta_spreads)
    title, note = "Macro F-beta of the decisions on the test rows", "Above 1, β counts recall for more than precision."
    return Table("f_beta_sweep", title, columns, rows, note)


def sweep_spreads(results: StudyResults, name: str, method: str) -> dict[float, Spread]:
    """Macro-F1 by α over the splits."""
    sweeps = [result["sweep"] for result in results.of(name, method)]
    scores = np.array([sweep["macro_f1"] for sweep in sweeps])
    return {alpha: Spread(scores[:, place]) for place, alpha in enumerate(sweeps[0]["alphas"])}


def f_beta_spreads(results: StudyResults, name: str, method: str) -> dict[float, Spread]:
    """Macro F-beta by β over the splits (algorithm 11): how much decisions lean to recall or precision."""
    found = [_of_test(result) for result in results.of(name, method)]
    return {beta: Spread(np.array([one.average(one.f_beta(beta)) for one in found])) for beta in BETAS}


def _along(
    symbol: str,
    methods: Mapping[str, str],
    results: StudyResults,
    sets: Sets,
    spreads: Callable[[StudyResults, str, str], dict[float, Spread]],
) -> tuple[list[Heading], list[list[Value]]]:
    """Columns and rows of a figure of some of our methods along a grid."""
    rows: list[list[Value]] = []
    for source, data in sets.items():
        sweeps = [spreads(results, source, method) for method in methods.values()]
        rows += [[data.name, at, *(cell for sweep in sweeps for cell in sweep[at].cells)] for at in sweeps[0]]
    return [Heading("data"), Heading(symbol, digits=2), *headings(*(f"{title} ±" for title in methods))], rows


def variants_table(results: StudyResults, sets: Sets) -> Table:
    """The paper preset with its open points read otherwise."""
    figures = ("accuracy", "macro-F1")
    names = [f"{what}: {name}" for what in figures for name in ("paper", "here ±", "within the spread")]
    rows: list[list[Value]] = []
    for name, data in sets.items():
        readings = [(name, "printed", "as printed"), *((name, variant, variant) for variant in SMALL_VARIANTS)]
        if name == "heart":
            readings.append((HEART_ORDINAL, "printed", f"printed, {NUMBERED}"))
        for source, method, title in readings:
            row: list[Value] = [data.name, title]
            for what in figures:
                spread, theirs = results.spread(source, method, MEASURES[what]), printed_figure(name, "Fusion", what)
                row += [theirs, *spread.cells, spread.holds(theirs)]
            rows.append(row)
    return Table(
        "variants",
        "What the printed figures hang on: open points of the paper read otherwise",
        headings("data", "reading", *names),
        rows,
        "Within the spread: the paper's figure lies in the range of the splits, or within two standard deviations of "
        "their mean.",
    )
