"""Tables of the frauds: the paper's four with our figures on all rows and on test rows, and those behind them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.cells import (
    CHOICES,
    FIXED,
    FULL_FRAUD,
    MATCHED,
    Result,
    SplitKind,
    duplicate_groups,
    load_data,
    split_of,
)
from benchmarks.studies.document import Table, Value
from benchmarks.studies.paper import FRAUD, FRAUD_FIGURES, FRAUD_VARIANTS, NEAREST, READINGS
from benchmarks.studies.results import Measure, StudyResults, headings, point

COUNTS = FRAUD_FIGURES[-4:]
PARTS = {"all": "all rows", "test": "test rows"}
"""What is scored: everything, as in the paper, and what nothing was fitted on."""


@dataclass(frozen=True)
class Model:
    """A column group of a fraud table: its title, the paper's name for it, our method, and where it is cut."""

    title: str
    printed: str | None
    method: str
    cut: str


def _models(cut: str, smote: bool) -> tuple[Model, ...]:
    """Our methods, and plain classifiers perhaps after SMOTE."""
    where, after = "cut to match" if cut == MATCHED else "at 0.5", ", SMOTE" if smote else ""
    svm = f"LinearSVM{after}, calibrated" if cut == FIXED else f"LinearSVM{after}"
    return (
        Model("ours as printed, τ = 0.3", "ours", "printed", FIXED),
        *([Model("ours as printed, cut to match", None, "printed", MATCHED)] if cut == MATCHED else []),
        Model(f"ours, convex, {where}", None, NEAREST, cut),
        Model(f"ours by default, {where}", None, "default", cut),
        Model(f"LogReg{after}", "LogReg", f"LogReg{after}", cut),
        Model(svm, "LinearSVM", svm, cut),
        Model(f"RandomForest{after}", "RandomForest", f"RandomForest{after}", cut),
        Model(f"LightGBM{after}", None, f"LightGBM{after}", cut),
    )


PRINTED_TABLES: dict[str, tuple[str, tuple[Model, ...]]] = {
    "fraud_matched": ("Frauds, cut to match the alert rate", _models(MATCHED, smote=False)),
    "fraud_matched_smote": (
        "Frauds, cut to match the alert rate, plain classifiers after SMOTE",
        _models(MATCHED, smote=True),
    ),
    "fraud_fixed": ("Frauds, plain classifiers cut at 0.5", _models(FIXED, smote=False)),
    "fraud_fixed_smote": ("Frauds, plain classifiers cut at 0.5 after SMOTE", _models(FIXED, smote=True)),
}
"""Title and models of the four tables, by the name of their file."""
SPLITS: dict[SplitKind, str] = {
    "random": "by chance",
    "grouped": "with equal rows on one side",
    "time": "in the order of time",
}


def measure_of(figure: str, part: str, cut: str) -> Measure:
    """A figure on the rows of a part at an operating point; NaN where validation rows could not reach the point."""

    def measure(result: Result) -> float:
        name = "n" if figure == "rows" else figure.lower().replace("-", "_").replace(" ", "_")
        if name.endswith("_auc"):
            return float(result[part][name])
        at = point(result, part, cut)
        return float("nan") if at is None else float(getattr(at, name))

    return measure


def fraud_table(results: StudyResults, data: str, name: str) -> Table:
    """One of the four tables; the paper's figures stand in it where the data are the paper's."""
    title, models = PRINTED_TABLES[name]
    labels = ["figure"]
    for model in models:
        labels += [f"{model.title}: paper"] if model.printed else []
        labels += [f"{model.title}: {part} ±" for part in PARTS.values()]
    rows: list[list[Value]] = []
    for figure in FRAUD_FIGURES:
        row: list[Value] = [figure]
        for model in models:
            row += [FRAUD[name][model.printed][figure] if data == FULL_FRAUD else None] if model.printed else []
            row += results.means(data, model.method, (measure_of(figure, part, model.cut) for part in PARTS))
        rows.append(row)
    return Table(
        name,
        title,
        headings(*labels),
        rows,
        "All rows: as in the paper, with the 56.25 % that the models were fitted on and the 18.75 % that chose their "
        "thresholds. Test rows: the 25 % that nothing has seen. Means over the splits, ± their standard errors.",
        [1 if figure in COUNTS else 0 if figure == "rows" else None for figure in FRAUD_FIGURES],
    )


def leak_table(results: StudyResults, data: str) -> Table:
    """PR-AUC on the rows a model was fitted on, on all rows and on held-out ones."""
    parts = {"train": "training rows", "all": "all rows", "test": "test rows"}
    names = [*(f"{title} ±" for title in parts.values()), "paper, all rows", "all rows − test rows ±"]
    printed: dict[str, float] = {}
    for table, (_, models) in PRINTED_TABLES.items() if data == FULL_FRAUD else ():
        for model in models:
            if model.printed:
                # Raw LogReg has two in the paper, of two fits; the first stands here.
                printed.setdefault(model.method, FRAUD[table][model.printed]["PR-AUC"])
    rows: list[list[Value]] = []
    for method in results.methods(data):
        if method in READINGS and method != "printed":
            continue
        share = results.spread(data, method, _fitted_share).cells[0]
        areas = results.means(data, method, (measure_of("PR-AUC", part, FIXED) for part in parts))
        rows.append([method, share, *areas, printed.get(method), *results.spread(data, method, _flattery).cells])
    return Table(
        "fraud_leak",
        "What scoring training rows does to PR-AUC",
        headings("method", "share of training rows", *(f"PR-AUC: {name}" for name in names)),
        rows,
        "A forest remembers the rows it was fitted on; a handful of weights hardly can.",
    )


def _fitted_share(result: Result) -> float:
    return float(result["train"]["rows"] / result["all"]["rows"])


def _flattery(result: Result) -> float:
    return float(result["all"]["pr_auc"]) - float(result["test"]["pr_auc"])


def leak_finding(results: StudyResults, data: str) -> Iterator[str]:
    """How far a random forest is flattered by the rows that it was fitted on."""
    everything, held_out = (
        results.spread(data, "RandomForest", measure_of("PR-AUC", part, FIXED)) for part in ("all", "test")
    )
    if everything and held_out:
        printed = FRAUD["fraud_matched"]["RandomForest"]["PR-AUC"]
        share = results.spread(data, "RandomForest", _fitted_share).mean
        yield (
            f"A random forest has a PR-AUC of {everything.mean:.3f} on all rows, {100 * share:.0f} % of which it was "
            f"fitted on, and {held_out.mean:.3f} on test rows."
            + (f" The paper prints {printed:.3f}, for all rows." if data == FULL_FRAUD else "")
        )


def counts_table(name: str) -> Table:
    """Rows, frauds and splits, counted on our data."""
    data, ours = load_data(name), FRAUD["fraud_matched"]["ours"]
    groups = duplicate_groups(data.X)
    printed = (int(ours["rows"]), int(ours["TP"] + ours["FN"])) if name == FULL_FRAUD else (None, None)
    rows: list[list[Value]] = [
        ["rows", printed[0], len(data.y)],
        ["frauds", printed[1], int(data.y.sum())],
        ["columns without Time and Class", None, data.X.shape[1]],
        ["rows that equal an earlier one in all these columns", None, len(groups) - len(np.unique(groups))],
    ]
    for kind, title in SPLITS.items():
        split = split_of(data, kind, 0)
        sizes, frauds = (len(part) for part in split), (int(data.y[part].sum()) for part in split)
        twins = float(np.isin(groups[split.test], groups[split.train]).mean())
        rows += [
            [f"split {title}: train/validation/test rows", None, "/".join(map(str, sizes))],
            [f"split {title}: frauds among them", None, "/".join(map(str, frauds))],
            [f"split {title}: share of test rows that equal a training row", None, twins],
        ]
    return Table(
        "fraud_counts",
        "The payments, counted",
        headings("figure", "paper", "counted here"),
        rows,
        "Splits of the first seed. The paper does not print the sizes of its split of the frauds.",
    )


def honest_table(results: StudyResults, data: str) -> Table:
    """Held-out figures by kind of split."""
    figures = {"PR-AUC": FIXED, "ROC-AUC": FIXED, "recall": MATCHED, "precision": MATCHED, "alert rate": MATCHED}
    measures = [measure_of(figure, "test", cut) for figure, cut in figures.items()]
    rows = [
        [title, method, len(results.of(data, method, split)), *results.means(data, method, measures, split)]
        for split, title in SPLITS.items()
        for method in _compared(results, data, split)
    ]
    return Table(
        "fraud_splits",
        "Test rows of three kinds of splits",
        headings("split", "method", "splits", *(f"{figure} ±" for figure in figures)),
        rows,
        "Recall, precision and alert rate are at the threshold that calls 1.31 % of the validation rows frauds. In the "
        "order of time the last 25 % of the payments are the test rows; there is one such split. The table has rows "
        "that are equal in all columns; split by chance, some stand in training and in test.",
    )


def _compared(results: StudyResults, data: str, split: SplitKind = "random") -> list[str]:
    """Methods that are compared: those that were run, but for open points read otherwise."""
    return [method for method in results.methods(data, split) if method not in FRAUD_VARIANTS]


def points_table(results: StudyResults, data: str) -> Table:
    """Operating points chosen on validation rows, and what they are worth on test rows."""
    figures = ("alert rate", "precision", "recall", "F1")
    names = [f"{part} rows: {figure} ±" for part in ("validation", "test") for figure in figures]
    rows: list[list[Value]] = []
    for choice in CHOICES:
        measures = [measure_of(figure, part, choice) for part in ("val", "test") for figure in figures]
        rows += [[choice, method, *results.means(data, method, measures)] for method in _compared(results, data)]
    return Table(
        "fraud_operating_points",
        "Operating points: chosen on validation rows, judged on test rows",
        headings("threshold chosen by", "method", *names),
        rows,
        "Empty where the validation rows of a split cannot reach the floor.",
    )


READING_FIGURES: dict[str, tuple[str, Measure]] = {
    "PR-AUC": ("PR-AUC", measure_of("PR-AUC", "all", FIXED)),
    "ROC-AUC": ("ROC-AUC", measure_of("ROC-AUC", "all", FIXED)),
    "alert rate at τ = 0.3": ("alert rate", measure_of("alert rate", "all", FIXED)),
    "recall at τ = 0.3": ("recall", measure_of("recall", "all", FIXED)),
    "precision at τ = 0.3": ("precision", measure_of("precision", "all", FIXED)),
    "recall at 1.31 % alerts": ("recall", measure_of("recall", "all", MATCHED)),
}
"""By title, the paper's name of a figure and ours of all rows."""


def readings_table(results: StudyResults, data: str) -> Table:
    """The paper's own method on all rows, read in several ways, beside its printed figures."""
    printed = FRAUD["fraud_matched"]["ours"]
    names = [f"{title}: {name}" for title in READING_FIGURES for name in ("mean ±", "low", "high", "fits")]
    paper: list[Value] = ["the paper"]
    for figure, _ in READING_FIGURES.values():
        paper += [printed[figure], None, None, None, None]
    rows: list[list[Value]] = [[*paper, None, None]]
    for reading in READINGS:
        if reading in results.methods(data):
            row: list[Value] = [reading]
            for figure, measure in READING_FIGURES.values():
                spread = results.spread(data, reading, measure)
                row += [*spread.range_cells, spread.holds(printed[figure])]
            rows.append([*row, *results.spread(data, reading, measure_of("PR-AUC", "test", FIXED)).cells])
    return Table(
        "fraud_readings",
        "What the printed fraud figures hang on: open points of the paper read otherwise",
        headings("reading", *names, "PR-AUC, test rows: mean ±"),
        rows,
        "All rows, as in the paper, but for the last column. Fits: the paper's figure lies in the range of the splits, "
        "or within two standard deviations of their mean. Which readings to show was chosen on other splits of these "
        "rows. Without a circuit the threshold is 0 of the fusion margin, not 0.3 of a probability.",
    )


def readings_findings(results: StudyResults, data: str) -> Iterator[str]:
    """Why the paper preset is not where the paper is: class weights that stop the search, and a circuit that loses."""
    own = results.of(data, "printed")
    idle = [result["search"] for result in own if result["search"]["different"] == 1]
    if idle:
        yield (
            f"Frauds, as printed: on {len(idle)} of {len(own)} splits all {idle[0]['evaluations']:,} evaluations of "
            "the search have the same macro-F1: class weights of 1/√π let no row be called a fraud, so that there is "
            "nothing to choose from."
        )
    area = measure_of("PR-AUC", "test", FIXED)
    with_circuit = results.spread(data, "printed, no class weights", area)
    without = results.spread(data, "printed, no class weights, no circuit", area)
    if with_circuit and without and without.mean > with_circuit.mean:
        yield (
            f"Frauds, as printed but without class weights: the fusion score alone has a PR-AUC of {without.mean:.3f} "
            f"on test rows, and {with_circuit.mean:.3f} after the printed circuit, which is fed by it."
        )
    printed = FRAUD["fraud_matched"]["ours"]
    fitting = [
        f"'{reading}'"
        for reading in READINGS
        if all(
            results.spread(data, reading, own).holds(printed[name]) == "yes" for name, own in READING_FIGURES.values()
        )
    ]
    yield (
        f"Frauds: readings of the paper whose spread over the splits holds all of {', '.join(READING_FIGURES)}: "
        f"{', '.join(fitting) or 'none'}."
    )
