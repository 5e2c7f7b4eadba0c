"""Every cell of the frauds' tables against a figure that is computed another way, under its heading."""

from functools import cache

import numpy as np
import pytest
from benchmarks.studies import fraud_tables
from benchmarks.studies.cells import FRAUD_SAMPLE, FULL_FRAUD, load_data
from benchmarks.studies.paper import FRAUD, READINGS, Plan
from made_up_cells import expanded, made_up
from sklearn.metrics import f1_score, precision_recall_fscore_support
from table_rows import check_mean, rows_of


@pytest.fixture(scope="module")
def fraud():
    return made_up(Plan(["fraud"], fraud_splits=3))


CUTS = {"matched": "alert rate 1.31 %", "fixed": "fixed"}


def at_point(result, part, cut, figure):
    """A figure of a fraud table from counts, by scikit-learn where it has it."""
    if figure in ("PR-AUC", "ROC-AUC"):
        return result[part][figure.lower().replace("-", "_")]
    return of_counts(*result[part]["counts"][cut])[figure]


@cache
def of_counts(tp, fp, fn, tn):
    n = tp + fp + fn + tn
    truth, decided = expanded([[tn, fp], [fn, tp]])
    precision, recall, f1, _ = precision_recall_fscore_support(truth, decided, average="binary", zero_division=0)
    return {
        "rows": n, "prevalence": (tp + fn) / n, "alert rate": (tp + fp) / n, "precision": precision, "recall": recall,
        "F1": f1, "macro-F1": f1_score(truth, decided, average="macro"), "accuracy": (tp + tn) / n,
        "TP": tp, "FP": fp, "FN": fn, "TN": tn,
    }  # fmt: skip


class TestFraudTables:
    @pytest.mark.parametrize("smote", [False, True], ids=["as they are", "SMOTE"])
    @pytest.mark.parametrize("kind", ["matched", "fixed"])
    def test_every_cell(self, fraud, kind, smote):
        name, after = f"fraud_{kind}" + ("_smote" if smote else ""), ", SMOTE" if smote else ""
        cut = CUTS[kind]
        svm = f"LinearSVM{after}" + (", calibrated" if kind == "fixed" else "")
        # Title, method, cut, and the paper's name.
        groups = [
            ("ours as printed, τ = 0.3", "printed", "fixed", "ours"),
            (f"LogReg{after}", f"LogReg{after}", cut, "LogReg"),
            (svm, svm, cut, "LinearSVM"),
            (f"RandomForest{after}", f"RandomForest{after}", cut, "RandomForest"),
            (f"LightGBM{after}", f"LightGBM{after}", cut, None),
        ]
        if kind == "matched":
            groups.append(("ours as printed, cut to match", "printed", cut, None))
        where = "cut to match" if kind == "matched" else "at 0.5"
        groups.append((f"ours, convex, {where}", "convex", cut, None))
        groups.append((f"ours by default, {where}", "default", cut, None))
        table = fraud_tables.fraud_table(fraud, FULL_FRAUD, name)
        rows = rows_of(table, 1)
        assert len(table.columns) == 1 + 4 * len(groups) + 4
        assert [figure for (figure,) in rows] == list(FRAUD[name]["ours"])
        for (figure,), row in rows.items():
            for title, method, where, printed in groups:
                if printed is None:
                    assert f"{title}: paper" not in row
                else:
                    assert row[f"{title}: paper"] == FRAUD[name][printed][figure]
                for part, heading in (("all", "all rows"), ("test", "test rows")):
                    values = [at_point(one, part, where, figure) for one in fraud.of(FULL_FRAUD, method)]
                    check_mean(row, f"{title}: {heading}", values)

    def test_operating_points_are_empty_where_one_split_cannot_reach_them(self, fraud):
        rows = rows_of(fraud_tables.points_table(fraud, FULL_FRAUD), 2)
        assert len(rows) == 6 * 13
        lacking = 0
        for (choice, method), row in rows.items():
            own = fraud.of(FULL_FRAUD, method)
            reached = all(choice in result["thresholds"] for result in own)
            lacking += not reached
            for part, heading in (("val", "validation rows"), ("test", "test rows")):
                for figure in ("alert rate", "precision", "recall", "F1"):
                    if reached:
                        values = [at_point(result, part, choice, figure) for result in own]
                        check_mean(row, f"{heading}: {figure}", values)
                    else:
                        assert row[f"{heading}: {figure}"] is None
        assert 0 < lacking < 10

    def test_readings_of_the_paper(self, fraud):
        rows = rows_of(fraud_tables.readings_table(fraud, FULL_FRAUD), 1)
        assert list(rows) == [("the paper",), *((reading,) for reading in READINGS)]
        figures = {
            "PR-AUC": (0.3251, "fixed", "PR-AUC"),
            "ROC-AUC": (0.9249, "fixed", "ROC-AUC"),
            "alert rate at τ = 0.3": (0.0131, "fixed", "alert rate"),
            "recall at τ = 0.3": (0.8496, "fixed", "recall"),
            "precision at τ = 0.3": (0.1124, "fixed", "precision"),
            "recall at 1.31 % alerts": (0.8496, "alert rate 1.31 %", "recall"),
        }
        for title, (printed, cut, figure) in figures.items():
            assert rows["the paper",][f"{title}: mean"] == printed
            for reading in READINGS:
                row = rows[reading,]
                values = np.array([at_point(result, "all", cut, figure) for result in fraud.of(FULL_FRAUD, reading)])
                check_mean(row, f"{title}: mean", values)
                assert (row[f"{title}: low"], row[f"{title}: high"]) == (values.min(), values.max())
                away = abs(printed - values.mean()) / values.std(ddof=1)
                assert row[f"{title}: fits"] == (
                    "yes" if away <= 2 or values.min() <= printed <= values.max() else "no"
                )
        held_out = [result["test"]["pr_auc"] for result in fraud.of(FULL_FRAUD, "printed")]
        check_mean(rows["printed",], "PR-AUC, test rows: mean", held_out)

    def test_what_training_rows_do(self, fraud):
        rows = rows_of(fraud_tables.leak_table(fraud, FULL_FRAUD), 1)
        printed = {
            "printed": 0.3251, "LogReg": 0.7392, "LinearSVM": 0.7287, "RandomForest": 0.9269,
            "LogReg, SMOTE": 0.7521, "LinearSVM, SMOTE": 0.7609, "RandomForest, SMOTE": 0.9393,
            "LinearSVM, calibrated": 0.7242, "LinearSVM, SMOTE, calibrated": 0.7589,
        }  # fmt: skip
        for (method,), row in rows.items():
            own = fraud.of(FULL_FRAUD, method)
            by_part = {part: [result[part]["pr_auc"] for result in own] for part in ("train", "all", "test")}
            check_mean(row, "PR-AUC: training rows", by_part["train"])
            check_mean(row, "PR-AUC: all rows", by_part["all"])
            check_mean(row, "PR-AUC: test rows", by_part["test"])
            check_mean(row, "PR-AUC: all rows − test rows", np.subtract(by_part["all"], by_part["test"]))
            assert row["share of training rows"] == 0.5625
            assert row["PR-AUC: paper, all rows"] == printed.get(method)
        assert set(printed) <= {method for (method,) in rows}


def test_payments_are_counted(monkeypatch):
    data = load_data(FRAUD_SAMPLE)
    monkeypatch.setattr(fraud_tables, "load_data", lambda _: data)
    for name, printed in {FRAUD_SAMPLE: (None, None), FULL_FRAUD: (284_807, 492)}.items():
        rows = rows_of(fraud_tables.counts_table(name), 1)
        assert (rows[("rows",)]["counted here"], rows[("frauds",)]["counted here"]) == (14_707, 492)
        assert (rows[("rows",)]["paper"], rows[("frauds",)]["paper"]) == printed
    unique = len({row.tobytes() for row in data.X + 0.0})
    assert rows[("rows that equal an earlier one in all these columns",)]["counted here"] == 14_707 - unique
    for kind in ("by chance", "with equal rows on one side", "in the order of time"):
        sizes = rows[(f"split {kind}: train/validation/test rows",)]["counted here"].split("/")
        assert sum(map(int, sizes)) == 14_707
        frauds = rows[(f"split {kind}: frauds among them",)]["counted here"].split("/")
        assert sum(map(int, frauds)) == 492
    shares = [rows[(f"split {kind}: share of test rows that equal a training row",)]["counted here"] for kind in
              ("by chance", "with equal rows on one side")]  # fmt: skip
    assert shares[0] > shares[1] == 0.0
