"""Behind the fraud figures: splits that are harder than chance, and operating points chosen in other ways."""

import numpy as np

from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.paper import FRAUD
from qmedoid.studies.reproduction.cells import SplitKind
from qmedoid.studies.reproduction.fraud import CHOICES, FIXED, MATCHED, VARIANTS, split_of
from qmedoid.studies.reproduction.fraud_tables import measure_of
from qmedoid.studies.reproduction.results import Results, mean_columns, with_error
from qmedoid.studies.splits import Split, duplicate_groups

SPLITS: dict[SplitKind, str] = {
    "random": "by chance",
    "apart": "with equal rows on one side",
    "time": "in the order of time",
}


def counts_table(data: Dataset, *, comparable: bool) -> Table:
    """Rows, frauds and splits, counted on our data."""
    frauds = int(data.y.sum())
    groups = duplicate_groups(data.X)
    ours = FRAUD["fraud_matched"]["ours"]
    printed: tuple[Value, Value] = (int(ours["rows"]), int(ours["TP"] + ours["FN"])) if comparable else (None, None)
    rows: list[list[Value]] = [
        ["rows", printed[0], len(data.y)],
        ["frauds", printed[1], frauds],
        ["columns without Time and Class", None, data.X.shape[1]],
        ["rows that equal an earlier one in all these columns", None, len(groups) - len(np.unique(groups))],
    ]
    for kind, title in SPLITS.items():
        split = split_of(data, kind, 0)
        sizes, hits = ("/".join(str(count) for count in counts) for counts in _counts(data, split))
        twins = float(np.isin(groups[split.test], groups[split.train]).mean())
        rows += [
            [f"split {title}: train/validation/test rows", None, sizes],
            [f"split {title}: frauds among them", None, hits],
            [f"split {title}: share of test rows that equal a training row", None, twins],
        ]
    return Table(
        "fraud_counts",
        "The payments, counted",
        [Column("figure"), Column("paper"), Column("counted here")],
        rows,
        "Splits of the first seed. The paper does not print the sizes of its split of the frauds.",
    )


def _counts(data: Dataset, split: Split) -> tuple[list[int], list[int]]:
    return [len(part) for part in split], [int(data.y[part].sum()) for part in split]


def honest_table(results: Results, data: str) -> Table:
    """Held-out figures by kind of split."""
    figures = {"PR-AUC": FIXED, "ROC-AUC": FIXED, "recall": MATCHED, "precision": MATCHED, "alert rate": MATCHED}
    columns = [Column("split"), Column("method"), Column("splits")]
    columns += [column for figure in figures for column in mean_columns(figure)]
    rows: list[list[Value]] = []
    for split, title in SPLITS.items():
        for method in _compared(results, data, split):
            row: list[Value] = [title, method, len(results.of(data, method, split))]
            for figure, cut in figures.items():
                row += with_error(results.spread(data, method, measure_of(figure, "test", cut), split))
            rows.append(row)
    return Table(
        "fraud_splits",
        "Test rows of three kinds of splits",
        columns,
        rows,
        "Recall, precision and alert rate are at the threshold that calls 1.31 % of the validation rows frauds. In the "
        "order of time the last 25 % of the payments are the test rows; there is one such split. The table has rows "
        "that are equal in all columns; split by chance, some stand in training and in test.",
    )


def _compared(results: Results, data: str, split: SplitKind = "random") -> list[str]:
    """Methods that are compared: those that were run, but for open points read otherwise."""
    return [method for method in results.methods(data, split) if method not in VARIANTS]


def points_table(results: Results, data: str) -> Table:
    """Operating points chosen on validation rows, and what they are worth on test rows."""
    figures = ("alert rate", "precision", "recall", "F1")
    columns = [Column("threshold chosen by"), Column("method")]
    columns += [column for figure in figures for column in mean_columns(figure, "validation rows")]
    columns += [column for figure in figures for column in mean_columns(figure, "test rows")]
    rows: list[list[Value]] = []
    for choice in CHOICES:
        for method in _compared(results, data):
            row: list[Value] = [choice, method]
            for part in ("val", "test"):
                for figure in figures:
                    row += with_error(results.spread(data, method, measure_of(figure, part, choice)))
            rows.append(row)
    return Table(
        "fraud_operating_points",
        "Operating points: chosen on validation rows, judged on test rows",
        columns,
        rows,
        "Empty where the validation rows of a split cannot reach the floor.",
    )
