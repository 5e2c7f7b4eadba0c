"""Every cell of the small data sets' tables against a figure that is computed another way, under its heading."""

import numpy as np
import pytest
from benchmarks.studies import small_tables
from benchmarks.studies.cells import HEART_ORDINAL, load_data
from benchmarks.studies.paper import PAPER, SUMMARIES, TEST_CONFUSIONS, VALIDATION_CONFUSIONS, Plan
from benchmarks.studies.results import Spread
from made_up_cells import expanded, made_up
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from table_rows import check_mean, rows_of

NAMES = ("heart", "breast-cancer", "wine")
SETS = {name: load_data(name) for name in NAMES}
SEARCHED = {"as printed": "printed", "convex": "convex"}
OURS = {**SEARCHED, "default": "default"}
BASELINES = ("LogReg", "LinearSVM", "RBF-SVM", "RandomForest", "LightGBM")


@pytest.fixture(scope="module")
def small():
    return made_up(Plan(NAMES, splits=4))


def decisions(results, name, method, part="test"):
    return [expanded(result[part]["confusion"]) for result in results.of(name, method)]


SCORES = {
    "accuracy": accuracy_score,
    "macro-F1": lambda truth, decided: f1_score(truth, decided, average="macro"),
    "weighted-F1": lambda truth, decided: f1_score(truth, decided, average="weighted"),
}
PAPER_FIELDS = {"accuracy": 0, "macro-F1": 1, "weighted-F1": 2, "ROC-AUC": 3, "PR-AUC": 4}


def figures(results, name, method, figure, part="test"):
    if figure in SCORES:
        return [SCORES[figure](*pair) for pair in decisions(results, name, method, part)]
    return [result[part][figure.lower().replace("-", "_")] for result in results.of(name, method)]


class TestComparison:
    def test_every_cell(self, small):
        rows = rows_of(small_tables.comparison_table(small, SETS), 2)
        assert list(rows) == [(data.name, figure) for data in SETS.values() for figure in PAPER_FIELDS]
        for name, data in SETS.items():
            for figure, field in PAPER_FIELDS.items():
                row = rows[data.name, figure]
                assert row["ours: paper"] == PAPER[data.name]["Fusion"][field]
                for title, method in OURS.items():
                    check_mean(row, f"ours: {title}", figures(small, name, method, figure))
                for method in BASELINES:
                    check_mean(row, f"{method}: here", figures(small, name, method, figure))
                    if method != "LightGBM":
                        assert row[f"{method}: paper"] == PAPER[data.name][method][field]
                assert len(row) == 1 + 3 * 2 + 4 * 3 + 2
                assert "LightGBM: paper" not in row


def test_classes_one_by_one(small):
    rows = rows_of(small_tables.class_table(small, SETS), 3)
    assert len(rows) == (2 + 2 + 3) * 3

    def by_class(pair):
        """Precision, recall and F1 by figure and class."""
        return np.array(precision_recall_fscore_support(*pair, zero_division=0)[:3])

    for name, data in SETS.items():
        printed = by_class(expanded(TEST_CONFUSIONS[name]))
        methods = {f"ours: {title}": method for title, method in OURS.items()}
        methods |= {f"{method}: here": method for method in BASELINES}
        values = {label: [by_class(pair) for pair in decisions(small, name, own)] for label, own in methods.items()}
        for code, label in enumerate(data.class_names):
            for place, figure in enumerate(("precision", "recall", "F1")):
                row = rows[data.name, label, figure]
                assert row["ours: paper"] == pytest.approx(printed[place, code])
                assert row["LogReg: paper"] is None
                for heading, own in values.items():
                    check_mean(row, heading, [one[place, code] for one in own])


def test_summary(small):
    rows = rows_of(small_tables.summary_table(small, SETS), 2)
    assert len(rows) == 27
    sizes = {"heart": ("918", "11"), "breast-cancer": ("569", "30"), "wine": ("178", "13")}
    for name, data in SETS.items():
        printed = SUMMARIES[name]
        for figure, count in zip(("rows", "columns"), sizes[name], strict=True):
            row = rows[data.name, figure]
            assert str(row["paper"]) == str(row["counted here"]) == count
            assert {row[title] for title in OURS} == {None}
        split = rows[data.name, "train/validation/test rows"]
        assert split["paper"] == "/".join(map(str, printed.split_sizes)) == split["counted here"]
        counts = rows[data.name, "rows of each class"]
        assert counts["counted here"] == ", ".join(str((data.y == label).sum()) for label in np.unique(data.y))
        assert rows[data.name, "classes"]["counted here"] == len(data.class_names)
        for title, method in SEARCHED.items():
            own = small.of(name, method)
            check_mean(rows[data.name, "best k"], title, [result["k"] for result in own])
            check_mean(rows[data.name, "α*"], title, [result["alpha"] for result in own])
        assert rows[data.name, "best k"]["default"] is rows[data.name, "α*"]["default"] is None
        for title, method in OURS.items():
            accuracy = figures(small, name, method, "accuracy", "val")
            check_mean(rows[data.name, "validation accuracy"], title, accuracy)
            check_mean(rows[data.name, "validation macro-F1"], title, figures(small, name, method, "macro-F1", "val"))
        chosen = ("best k", "α*", "validation accuracy", "validation macro-F1")
        assert [rows[data.name, figure]["paper"] for figure in chosen] == list(printed[4:])


def test_confusion_matrices(small):
    rows = rows_of(small_tables.confusion_table(small, SETS), 4)
    assert len(rows) == 2 * (4 + 4 + 9)
    for name, data in SETS.items():
        for part, title, printed in (("val", "validation", VALIDATION_CONFUSIONS), ("test", "test", TEST_CONFUSIONS)):
            for true, true_name in enumerate(data.class_names):
                for decided, decided_name in enumerate(data.class_names):
                    row = rows[data.name, title, true_name, decided_name]
                    assert row["paper"] == printed[name][true][decided]
                    for label, method in OURS.items():
                        counts = [result[part]["confusion"][true][decided] for result in small.of(name, method)]
                        assert row[label] == pytest.approx(sum(counts) / len(counts))


def test_variants(small):
    rows = rows_of(small_tables.variants_table(small, SETS), 2)
    assert len(rows) == 3 * 8 + 1
    for name, data in SETS.items():
        readings = {(data.name, method): (name, method) for method in small.methods(name) if "printed, " in method}
        readings[data.name, "as printed"] = (name, "printed")
        if name == "heart":
            readings[data.name, "printed, categories numbered"] = (HEART_ORDINAL, "printed")
        for key, (source, method) in readings.items():
            for figure in ("accuracy", "macro-F1"):
                values = figures(small, source, method, figure)
                check_mean(rows[key], f"{figure}: here", values)
                printed = PAPER[data.name]["Fusion"][PAPER_FIELDS[figure]]
                assert rows[key][f"{figure}: paper"] == printed
                within = Spread(np.array(values)).holds(printed)
                assert rows[key][f"{figure}: within the spread"] == within
