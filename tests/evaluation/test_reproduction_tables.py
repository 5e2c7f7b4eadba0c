"""Every cell of every table against a figure that is computed another way, under the heading it belongs to."""

import math
from functools import cache

import numpy as np
import pytest
from made_up_cells import ALPHAS, expanded, made_up, only
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, precision_recall_fscore_support

from qmedoid.evaluation.paper import FRAUD, PAPER, SUMMARIES, TEST_CONFUSIONS, VALIDATION_CONFUSIONS
from qmedoid.evaluation.reproduction import (
    fraud_details,
    fraud_readings,
    fraud_tables,
    report,
    small_details,
    small_tables,
)
from qmedoid.evaluation.reproduction.cost import cost_table
from qmedoid.evaluation.reproduction.fraud_printed import READINGS
from qmedoid.evaluation.reproduction.plan import FRAUD_SAMPLE, FULL_FRAUD, HEART_ORDINAL, PARTS, Plan, load_data
from qmedoid.evaluation.reproduction.report import PAPER_TABLES, make_report
from qmedoid.evaluation.reproduction.results import Results, Spread

NAMES = ("heart", "breast-cancer", "wine")
SETS = {name: load_data(name) for name in NAMES}
SMALL = Plan(NAMES, splits=4)
FULL = Plan(["fraud"], fraud_splits=3)
OURS = {"as printed": "printed", "default": "default"}
BASELINES = ("LogReg", "LinearSVM", "RBF-SVM", "RandomForest", "LightGBM")


@pytest.fixture(scope="module")
def small():
    return made_up(SMALL)


@pytest.fixture(scope="module")
def fraud():
    return made_up(FULL)


def rows_of(table, n_keys):
    """Rows by their first cells; each a dictionary by the labels of the other columns."""
    found = {tuple(row[:n_keys]): dict(zip(table.labels[n_keys:], row[n_keys:], strict=True)) for row in table.rows}
    assert len(found) == len(table.rows)
    return found


def check_mean(row, label, values):
    """A mean and its standard error in the columns of a label."""
    assert row[label] == pytest.approx(np.mean(values)), label
    assert row[f"{label} ±"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values))), label


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
                assert len(row) == 3 + 2 * 2 + 4 * 3 - 2 + 2
                assert "LightGBM: paper" not in row

    def test_a_method_that_was_not_run_is_empty(self, small):
        table = small_tables.comparison_table(only(small, "printed", "LogReg"), SETS)
        for row in rows_of(table, 2).values():
            assert row["ours: as printed"] is not None
            assert row["LogReg: here"] is not None
            for label in ("ours: default", "ours: default ±", "RBF-SVM: here", "LightGBM: here", "LightGBM: here ±"):
                assert row[label] is None

    def test_a_single_split_has_no_error(self):
        table = small_tables.comparison_table(made_up(Plan(["wine"], splits=1)), {"wine": SETS["wine"]})
        for row in rows_of(table, 2).values():
            assert row["ours: default"] is not None
            assert row["ours: default ±"] is None


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


def test_ours_alone(small):
    rows = rows_of(small_tables.own_table(small, SETS), 2)
    assert len(rows) == 6
    for name, data in SETS.items():
        for figure in ("accuracy", "macro-F1"):
            row = rows[data.name, figure]
            assert row["paper"] == PAPER[data.name]["Fusion"][PAPER_FIELDS[figure]]
            for title, method in OURS.items():
                values = figures(small, name, method, figure)
                check_mean(row, f"{title}: mean", values)
                assert row[f"{title}: low"] == pytest.approx(min(values))
                assert row[f"{title}: high"] == pytest.approx(max(values))


def test_summary(small):
    rows = rows_of(small_tables.summary_table(small, SETS), 2)
    assert len(rows) == 27
    sizes = {"heart": ("918", "11"), "breast-cancer": ("569", "30"), "wine": ("178", "13")}
    for name, data in SETS.items():
        printed = SUMMARIES[name]
        for figure, count in zip(("rows", "columns"), sizes[name], strict=True):
            row = rows[data.name, figure]
            assert str(row["paper"]) == str(row["counted here"]) == count
            assert row["as printed"] is row["default"] is None
        split = rows[data.name, "train/validation/test rows"]
        assert split["paper"] == "/".join(map(str, printed.split_sizes)) == split["counted here"]
        counts = rows[data.name, "rows of each class"]
        assert counts["counted here"] == ", ".join(str((data.y == label).sum()) for label in np.unique(data.y))
        assert rows[data.name, "classes"]["counted here"] == len(data.class_names)
        for title, method in OURS.items():
            own = small.of(name, method)
            check_mean(rows[data.name, "best k"], title, [result["k"] for result in own])
            check_mean(rows[data.name, "α*"], title, [result["alpha"] for result in own])
            accuracy = figures(small, name, method, "accuracy", "val")
            check_mean(rows[data.name, "validation accuracy"], title, accuracy)
            check_mean(rows[data.name, "validation macro-F1"], title, figures(small, name, method, "macro-F1", "val"))
        chosen = ("best k", "α*", "validation accuracy", "validation macro-F1")
        assert [rows[data.name, figure]["paper"] for figure in chosen] == list(printed[4:])


def test_confusion_matrices(small):
    rows = rows_of(small_details.confusion_table(small, SETS), 4)
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


def test_alpha_sweep(small):
    rows = rows_of(small_details.alpha_table(small, SETS), 2)
    assert len(rows) == 3 * len(ALPHAS)
    for name, data in SETS.items():
        for place, alpha in enumerate(ALPHAS):
            for title, method in OURS.items():
                scores = [result["sweep"]["macro_f1"][place] for result in small.of(name, method)]
                check_mean(rows[data.name, alpha], title, scores)


def test_f_beta_sweep(small):
    rows = rows_of(small_details.f_beta_table(small, SETS), 2)
    assert {beta for _, beta in rows} == set(small_details.BETAS)
    for name, data in SETS.items():
        for beta in small_details.BETAS:
            for title, method in OURS.items():
                pairs = decisions(small, name, method)
                scores = [fbeta_score(*pair, beta=beta, average="macro", zero_division=0) for pair in pairs]
                check_mean(rows[data.name, beta], title, scores)


def test_variants(small):
    rows = rows_of(small_details.variants_table(small, SETS), 2)
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
                within = "yes" if Spread(np.array(values)).contains(printed) else "no"
                assert rows[key][f"{figure}: within the spread"] == within


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
            groups.append(("ours by default, cut to match", "default", cut, None))
        else:
            groups.append(("ours by default, at 0.5", "default", cut, None))
        table = fraud_tables.fraud_table(fraud, FULL_FRAUD, name, comparable=True)
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

    def test_figures_of_a_sample_do_not_stand_beside_those_of_the_paper(self):
        results = made_up(Plan(["fraud"]).quick())
        for name in fraud_tables.PRINTED_TABLES:
            rows = rows_of(fraud_tables.fraud_table(results, FRAUD_SAMPLE, name, comparable=False), 1)
            for row in rows.values():
                assert {value for label, value in row.items() if label.endswith("paper")} == {None}
                assert row["LightGBM: all rows" if "smote" not in name else "LightGBM, SMOTE: all rows"] is not None

    def test_counts_have_one_digit_and_rows_none(self, fraud):
        table = fraud_tables.fraud_table(fraud, FULL_FRAUD, "fraud_fixed", comparable=True)
        digits = {row[0]: table.digits_of(number, 2) for number, row in enumerate(table.rows)}
        assert digits["rows"] == 0
        assert {digits[count] for count in ("TP", "FP", "FN", "TN")} == {1}
        assert {digits[figure] for figure in digits if figure not in ("rows", "TP", "FP", "FN", "TN")} == {4}
        at = table.labels.index("ours as printed, τ = 0.3: all rows")
        assert table.cell_text(0, at) == "1600"

    def test_a_method_that_was_not_run_is_empty(self, fraud):
        table = fraud_tables.fraud_table(only(fraud, "printed"), FULL_FRAUD, "fraud_fixed", comparable=True)
        for row in rows_of(table, 1).values():
            assert row["ours as printed, τ = 0.3: test rows"] is not None
            assert row["LogReg: all rows"] is row["LogReg: test rows ±"] is None
            assert row["LogReg: paper"] is not None

    def test_a_point_that_one_split_cannot_reach_is_empty(self, fraud):
        choice = "precision at least 0.5"
        rows = rows_of(fraud_details.points_table(fraud, FULL_FRAUD), 2)
        lacking = 0
        for method in {method for _, method in rows}:
            own = fraud.of(FULL_FRAUD, method)
            reached = all(choice in result["thresholds"] for result in own)
            lacking += not reached
            row = rows[choice, method]
            for part, heading in (("val", "validation rows"), ("test", "test rows")):
                for figure in ("alert rate", "precision", "recall", "F1"):
                    if reached:
                        values = [at_point(result, part, choice, figure) for result in own]
                        check_mean(row, f"{heading}: {figure}", values)
                    else:
                        assert row[f"{heading}: {figure}"] is None
        assert 0 < lacking < 10

    def test_operating_points(self, fraud):
        rows = rows_of(fraud_details.points_table(fraud, FULL_FRAUD), 2)
        assert len(rows) == 6 * 12
        for (choice, method), row in rows.items():
            if choice == "precision at least 0.5":
                continue
            for part, heading in (("val", "validation rows"), ("test", "test rows")):
                values = [at_point(result, part, choice, "recall") for result in fraud.of(FULL_FRAUD, method)]
                check_mean(row, f"{heading}: recall", values)

    def test_kinds_of_splits(self, fraud):
        rows = rows_of(fraud_details.honest_table(fraud, FULL_FRAUD), 2)
        kinds = {"by chance": "random", "with equal rows on one side": "apart", "in the order of time": "time"}
        assert len(rows) == 12 + 7 + 7
        for (kind, method), row in rows.items():
            own = fraud.of(FULL_FRAUD, method, kinds[kind])
            assert row["splits"] == len(own) == (1 if kinds[kind] == "time" else 3)
            for figure in ("PR-AUC", "ROC-AUC", "recall", "precision", "alert rate"):
                values = [at_point(result, "test", "alert rate 1.31 %", figure) for result in own]
                assert row[figure] == pytest.approx(np.mean(values))
                assert (row[f"{figure} ±"] is None) == (len(own) == 1)

    def test_readings_of_the_paper(self, fraud):
        rows = rows_of(fraud_readings.readings_table(fraud, FULL_FRAUD), 1)
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

    def test_a_search_without_a_choice_is_told(self, fraud):
        def told(different):
            search = {"evaluations": 2_730, "different": different, "best": 0.4996}
            cells = {cell: result | {"search": search} for cell, result in fraud.by_cell.items()}
            return [line for line in fraud_readings.readings_findings(Results(cells), FULL_FRAUD) if "2,730" in line]

        assert len(told(1)) == 1
        assert "on 3 of 3 splits" in told(1)[0]
        assert told(2) == []

    def test_a_circuit_that_loses_is_told(self, fraud):
        def told(with_circuit, without):
            areas = {"printed, no class weights": with_circuit, "printed, no class weights, no circuit": without}
            cells = {
                cell: result | {"test": result["test"] | {"pr_auc": areas.get(cell.method, 0.5)}}
                for cell, result in fraud.by_cell.items()
            }
            lines = fraud_readings.readings_findings(Results(cells), FULL_FRAUD)
            return [line for line in lines if "after the printed circuit" in line]

        assert "0.600 on test rows, and 0.200 after" in told(0.2, 0.6)[0]
        assert told(0.6, 0.2) == []

    def test_what_training_rows_do(self, fraud):
        rows = rows_of(fraud_tables.leak_table(fraud, FULL_FRAUD, comparable=True), 1)
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


def test_payments_are_counted():
    data = load_data(FRAUD_SAMPLE)
    for comparable in (False, True):
        rows = rows_of(fraud_details.counts_table(data, comparable=comparable), 1)
        assert (rows[("rows",)]["counted here"], rows[("frauds",)]["counted here"]) == (14_707, 492)
        assert (rows[("rows",)]["paper"], rows[("frauds",)]["paper"]) == ((284_807, 492) if comparable else (None,) * 2)
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


def test_what_it_took(small):
    rows = rows_of(cost_table(small, {"wine": "Wine"}), 2)
    assert {method for _, method in rows} == set(small.methods("wine"))
    for (_, method), row in rows.items():
        own = small.of("wine", method)
        seconds = [result["seconds"] for result in own]
        assert row["cells"] == 4
        assert row["seconds of a cell: mean"] == pytest.approx(np.mean(seconds))
        assert row["seconds of a cell: most"] == max(seconds)
        assert row["seconds in all"] == pytest.approx(sum(seconds))
        assert row["peak of its process, MB"] == max(result["peak_mb"] for result in own)


@pytest.fixture
def without_pictures(monkeypatch):
    """Reports of tables and sentences alone; pictures take longer than all else and have tests of their own."""
    for name in ("small_pictures", "small_detail_pictures", "fraud_pictures"):
        monkeypatch.setattr(report, name, lambda *_, **__: [])


@pytest.fixture
def sample_for_all(monkeypatch):
    """The sample of the payments in place of all of them, which are not on every machine."""
    monkeypatch.setattr(report, "load_data", lambda name: load_data(FRAUD_SAMPLE if name == FULL_FRAUD else name))


class TestReport:
    def test_it_does_not_depend_on_the_order_in_which_cells_were_done(self):
        plan = Plan(["wine"]).quick()
        results = made_up(plan)
        backwards = Results(dict(reversed(results.by_cell.items())))
        first, second = (make_report(plan, one, "command") for one in (results, backwards))
        assert first.pictures
        assert first == second

    @pytest.mark.usefixtures("without_pictures")
    def test_nor_do_the_tables_of_the_frauds(self):
        plan = Plan(["heart", "fraud"]).quick()
        results = made_up(plan)
        backwards = Results(dict(reversed(results.by_cell.items())))
        assert make_report(plan, results, "command") == make_report(plan, backwards, "command")

    @pytest.mark.usefixtures("without_pictures", "sample_for_all")
    def test_a_full_run_has_every_table_of_the_paper_and_what_stands_behind_it(self, small, fraud):
        plan = Plan(PARTS, splits=4, fraud_splits=3)
        document = make_report(plan, Results({**small.by_cell, **fraud.by_cell}), "qmedoid reproduce")
        names = [table.name for table in document.tables]
        assert set(PAPER_TABLES) <= set(names)
        assert {"variants", "fraud_readings", "paired_differences", "within_the_spread"} <= set(names)
        # So few splits say nothing about a spread.
        assert not [finding for finding in document.findings if "within the spread" in finding]
        for data in (*SETS.values(), load_data(FRAUD_SAMPLE)):
            assert [finding for finding in document.findings if finding.startswith(data.name)]

    @pytest.mark.usefixtures("without_pictures")
    def test_enough_splits_say_which_printed_figures_are_outside(self):
        plan = Plan(["wine"], splits=5)
        findings = make_report(plan, made_up(plan), "command").findings
        assert len([one for one in findings if "are within the spread of repeated splits" in one]) == 2

    @pytest.mark.usefixtures("without_pictures")
    def test_a_sample_is_not_held_against_the_paper(self):
        plan = Plan(["fraud"]).quick()
        document = make_report(plan, made_up(plan), "command")
        assert "one payment in 30" in " ".join(document.introduction)
        for table in document.tables:
            at = [place for place, column in enumerate(table.columns) if column.name.startswith("paper")]
            assert {row[place] for row in table.rows for place in at} <= {None}
        assert not [finding for finding in document.findings if "paper" in finding]

    def test_pictures_of_the_frauds_are_drawn(self):
        plan = Plan(["fraud"]).quick()
        names = {picture.name for picture in make_report(plan, made_up(plan), "command").pictures}
        assert names == {"fraud_pr_auc", "fraud_pr", "fraud_roc", "fraud_recall_by_alert_rate"}
