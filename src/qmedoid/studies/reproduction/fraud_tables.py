"""The paper's four fraud tables, each figure beside ours on all rows, as the paper counts, and on held-out rows."""

from collections.abc import Callable
from dataclasses import dataclass

from qmedoid.metrics.operating_points import OperatingPoint
from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.paper import FRAUD
from qmedoid.studies.reproduction.cells import Result
from qmedoid.studies.reproduction.fraud import FIXED, MATCHED
from qmedoid.studies.reproduction.fraud_printed import READINGS
from qmedoid.studies.reproduction.results import Measure, Results, mean_columns, point, with_error

FIGURES: dict[str, Callable[[OperatingPoint], float]] = {
    "rows": lambda at: float(at.n),
    "prevalence": lambda at: at.prevalence,
    "alert rate": lambda at: at.alert_rate,
    "precision": lambda at: at.precision,
    "recall": lambda at: at.recall,
    "F1": lambda at: at.f1,
    "macro-F1": lambda at: at.macro_f1,
    "accuracy": lambda at: at.accuracy,
    "TP": lambda at: float(at.tp),
    "FP": lambda at: float(at.fp),
    "FN": lambda at: float(at.fn),
    "TN": lambda at: float(at.tn),
}
"""Figures at an operating point; class 1, fraud, is the positive one."""
AREAS = {"PR-AUC": "pr_auc", "ROC-AUC": "roc_auc"}
ORDER = ("rows", "prevalence", "alert rate", "precision", "recall", "F1", "PR-AUC", "ROC-AUC", "macro-F1", "accuracy")
COUNTS = ("TP", "FP", "FN", "TN")
PARTS = {"all": "all rows", "test": "test rows"}
"""What is scored: everything, as in the paper, and what nothing was fitted on."""


@dataclass(frozen=True)
class Model:
    """A column group of a fraud table: its title, the paper's name for it, our method, and where it is cut."""

    title: str
    printed: str | None
    method: str
    cut: str


def _ours(cut: str) -> tuple[Model, ...]:
    where = "cut to match" if cut == MATCHED else "at 0.5"
    fronts = (
        Model(f"ours, convex, {where}", None, "convex", cut),
        Model(f"ours by default, {where}", None, "default", cut),
    )
    printed = Model("ours as printed, τ = 0.3", "ours", "printed", FIXED)
    if cut == FIXED:
        return printed, *fronts
    return printed, Model("ours as printed, cut to match", None, "printed", MATCHED), *fronts


def _baselines(cut: str, smote: bool) -> tuple[Model, ...]:
    after = ", SMOTE" if smote else ""
    svm = f"LinearSVM{after}, calibrated" if cut == FIXED else f"LinearSVM{after}"
    names = {f"LogReg{after}": "LogReg", svm: "LinearSVM", f"RandomForest{after}": "RandomForest"}
    return (
        *(Model(method, printed, method, cut) for method, printed in names.items()),
        Model(f"LightGBM{after}", None, f"LightGBM{after}", cut),
    )


PRINTED_TABLES: dict[str, tuple[str, tuple[Model, ...]]] = {
    "fraud_matched": ("Frauds, cut to match the alert rate", (*_ours(MATCHED), *_baselines(MATCHED, False))),
    "fraud_matched_smote": (
        "Frauds, cut to match the alert rate, plain classifiers after SMOTE",
        (*_ours(MATCHED), *_baselines(MATCHED, True)),
    ),
    "fraud_fixed": ("Frauds, plain classifiers cut at 0.5", (*_ours(FIXED), *_baselines(FIXED, False))),
    "fraud_fixed_smote": (
        "Frauds, plain classifiers cut at 0.5 after SMOTE",
        (*_ours(FIXED), *_baselines(FIXED, True)),
    ),
}
"""Title and models of the four tables, by the name of their file."""


def measure_of(figure: str, part: str, cut: str) -> Measure:
    """A figure on the rows of a part at an operating point; NaN where validation rows could not reach the point."""

    def measure(result: Result) -> float:
        if figure in AREAS:
            return float(result[part][AREAS[figure]])
        at = point(result, part, cut)
        return float("nan") if at is None else FIGURES[figure](at)

    return measure


def fraud_table(results: Results, data: str, name: str, *, comparable: bool) -> Table:
    """One of the four tables; the paper's figures stand in it where the data are the paper's."""
    title, models = PRINTED_TABLES[name]
    columns = [Column("figure")]
    for model in models:
        columns += [Column("paper", model.title)] if model.printed else []
        columns += [column for part in PARTS.values() for column in mean_columns(part, model.title)]
    rows: list[list[Value]] = []
    for figure in (*ORDER, *COUNTS):
        row: list[Value] = [figure]
        for model in models:
            row += [FRAUD[name][model.printed][figure] if comparable else None] if model.printed else []
            for part in PARTS:
                row += with_error(results.spread(data, model.method, measure_of(figure, part, model.cut)))
        rows.append(row)
    return Table(
        name,
        title,
        columns,
        rows,
        "All rows: as in the paper, with the 56.25 % that the models were fitted on and the 18.75 % that chose their "
        "thresholds. Test rows: the 25 % that nothing has seen. Means over the splits, ± their standard errors.",
        [1 if figure in COUNTS else 0 if figure == "rows" else None for figure in (*ORDER, *COUNTS)],
    )


def leak_table(results: Results, data: str, *, comparable: bool) -> Table:
    """PR-AUC on the rows a model was fitted on, on all rows and on held-out ones."""
    columns = [Column("method"), Column("share of training rows", digits=4)]
    parts = {"train": "training rows", "all": "all rows", "test": "test rows"}
    columns += [column for title in parts.values() for column in mean_columns(title, "PR-AUC")]
    columns += [Column("paper, all rows", "PR-AUC"), *mean_columns("all rows − test rows", "PR-AUC")]
    rows: list[list[Value]] = []
    printed: dict[str, float] = {}
    for name, (_, models) in PRINTED_TABLES.items():
        for model in models:
            if model.printed:
                # Raw LogReg has two in the paper, of two fits; the first stands here.
                printed.setdefault(model.method, FRAUD[name][model.printed]["PR-AUC"])
    for method in results.methods(data):
        if method in READINGS and method != "printed":
            continue
        shares = results.spread(data, method, lambda result: result["train"]["rows"] / result["all"]["rows"])
        row: list[Value] = [method, None if shares is None else shares.mean]
        for part in parts:
            row += with_error(results.spread(data, method, measure_of("PR-AUC", part, FIXED)))
        flattery = results.spread(
            data, method, lambda result: float(result["all"]["pr_auc"]) - float(result["test"]["pr_auc"])
        )
        rows.append([*row, printed.get(method) if comparable else None, *with_error(flattery)])
    return Table(
        "fraud_leak",
        "What scoring training rows does to PR-AUC",
        columns,
        rows,
        "A forest remembers the rows it was fitted on; a handful of weights hardly can.",
    )
