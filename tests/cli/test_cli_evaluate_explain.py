"""`evaluate` and `explain`: each against another way to the same figures, and in words."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn import metrics
from small_tables import csv_bytes, replaced, write

import qmedoid
from qmedoid.metrics.texts import odds_text
from qmedoid.report.verdict import verdict


def decisions(cli, case, folder):
    cli.ok("score", case.model, case.file, "-o", folder / "o.parquet")
    return pq.read_table(folder / "o.parquet").to_pydict()


class TestEvaluate:
    def test_two_classes_as_scikit_learn_counts(self, cli, two, tmp_path):
        out, truth = decisions(cli, two, tmp_path), two.table["y"].to_pylist()
        report = cli.ok("evaluate", two.model, two.file, "--json", "--all-rows").json
        predicted, is_yes = out["prediction"], np.array(truth) == "yes"
        expected = {
            "accuracy": metrics.accuracy_score(truth, predicted),
            "macro_f1": metrics.f1_score(truth, predicted, average="macro"),
            "weighted_f1": metrics.f1_score(truth, predicted, average="weighted"),
            "precision": metrics.precision_score(truth, predicted, pos_label="yes"),
            "recall": metrics.recall_score(truth, predicted, pos_label="yes"),
            "f1": metrics.f1_score(truth, predicted, pos_label="yes"),
            "roc_auc": metrics.roc_auc_score(is_yes, out["margin"]),
            "pr_auc": metrics.average_precision_score(is_yes, out["margin"]),
            "log_loss": metrics.log_loss(is_yes, out["score"]),
            "prevalence": is_yes.mean(),
            "alert_rate": predicted.count("yes") / 90,
        }
        assert {name: report[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert report["confusion"] == metrics.confusion_matrix(truth, predicted).tolist()
        text = cli.ok("evaluate", two.model, two.file, "--all-rows").out
        shown = expected.keys() - {"macro_f1", "weighted_f1", "f1"}
        assert all(f"{expected[name]:.4f}" in text for name in shown)

    def test_labels_that_say_nothing_are_left_out_with_a_note(self, cli, two, tmp_path):
        asked = ("--json", "--all-rows")
        whole = cli.ok("evaluate", two.model, "-", *asked, stdin=csv_bytes(two.table.slice(3))).json
        labels = [None, "perhaps", " ", *two.table["y"].to_pylist()[3:]]
        file = write(replaced(two.table, "y", [labels]), tmp_path / "t.parquet")
        found = cli.ok("evaluate", two.model, file, *asked).json
        assert found["left_out"] == {"missing": 2, "unknown": 1, "seen": 0}
        # Rows without a class are compared with the training rows all the same.
        assert found["novelty"]["compared_rows"] == whole["novelty"]["compared_rows"] + 3
        assert found["notes"][0] == "left out: 2 rows without a class, 1 of other classes."
        own = {"left_out": None, "novelty": None, "notes": None}
        assert found | own == whole | own
        assert found["rows"] == 87

    def test_target_may_be_called_otherwise(self, cli, two):
        table = replaced(two.table, "y", two.table["y"], "truth")
        outcome = cli("evaluate", two.model, "-", stdin=csv_bytes(table))
        assert outcome.code == 3
        assert "Pass --target" in outcome.err
        asked = ("--target", "truth", "--all-rows", "--json")
        report = cli.ok("evaluate", two.model, "-", *asked, stdin=csv_bytes(table)).json
        assert report == cli.ok("evaluate", two.model, two.file, "--json", "--all-rows").json

    def test_no_label_of_the_model_is_an_error(self, cli, two):
        outcome = cli("evaluate", two.model, two.file, "--target", "color", "--all-rows")
        assert outcome.code == 3
        assert "90 are other labels" in outcome.err


class TestExplain:
    @pytest.mark.parametrize("name", ["two", "three"])
    def test_json_is_what_python_explains_of_what_score_decides(self, cli, request, tmp_path, name):
        case = request.getfixturevalue(name)
        out = decisions(cli, case, tmp_path)
        report = cli.ok("explain", case.model, case.file, "--row", "7", "--top", "0", "--json").json
        row = case.table.slice(7, 1).to_pylist()[0]
        learnt = ("x1", "x2", "color", "member", "day")
        assert report["record"] == {one: row[one].isoformat() if one == "day" else row[one] for one in learnt}
        in_python = qmedoid.load(case.model).explain(case.table, 7).to_dict(top=0)
        assert {**in_python, "time": None, "notes": report["notes"]} == {**report, "time": None}
        assert report["prediction"] == out["prediction"][7]
        assert report["margin"] == pytest.approx(out["margin"][7], abs=1e-9)
        rows = {medoid["class"]: medoid["training_row"] for medoid in report["medoids"]}
        assert rows == {label: out[f"nearest_medoid_{label}"][7] for label in rows}

    def test_text_shows_the_decision_the_rows_and_the_sum(self, cli, two):
        report = cli.ok("explain", two.model, two.file, "--row", "7", "--top", "0", "--json").json
        text = cli.ok("explain", two.model, two.file, "--row", "7").out
        assert text.startswith(f"Row 7 of {two.file}\n\nCalled y = {report['prediction']}: ")
        for sentence in (*report["sentences"], *(one["sentence"] for one in report["similar"])):
            assert sentence in " ".join(text.split())
        for column in report["columns"]:
            if column["contribution"]:
                word = "raises" if column["contribution"] > 0 else "lowers"
                assert re.search(rf"{column['name']} .*{odds_text(column['contribution'])} .*{word}", text)
        assert f"{report['margin']:+.6f}" not in text
        assert f"{report['margin']:+.6f}" in cli.ok("explain", two.model, two.file, "--row", "7", "--verbose").out

    def test_rows_beyond_the_table(self, cli, two):
        outcome = cli("explain", two.model, two.file, "--row", "90")
        assert (outcome.code, "the table has 90 rows" in outcome.err) == (3, True)


def test_explain_replaces_its_own_files_and_nothing_else(cli, two, tmp_path):
    model = tmp_path / "small.qmedoid"
    model.write_bytes(two.model.read_bytes())
    page, picture = tmp_path / "why.html", tmp_path / "why.svg"
    for _ in range(2):
        cli.ok("explain", model, two.file, "--row", "0", "--html", page, "--svg", picture)
    for output in (model, two.file):
        before = output.read_bytes()
        for option in ("--html", "--svg"):
            failed = cli("explain", model, two.file, "--row", "0", option, output)
            assert failed.code != 0
            assert "is no explanation of a decision" in failed.err
        assert output.read_bytes() == before
    assert "two files" in cli("explain", model, two.file, "--row", "0", "--html", page, "--svg", page).err
    assert "written to files" in cli("explain", model, two.file, "--row", "0", "--html", "-").err


def test_evaluation_begins_with_the_verdict_of_its_figures(cli, two):
    report = cli.ok("evaluate", two.model, two.file, "--json").json
    said = cli.ok("evaluate", two.model, two.file).out
    assert said.startswith("\n".join(verdict(report)) + "\n")
    assert "rows the model never saw" in said
    seen = cli.ok("evaluate", two.model, two.file, "--all-rows").out
    assert f"({two.printed['training_rows']} of them were in the fit)" in seen.splitlines()[0]


def flat(text):
    return " ".join(text.split())


def test_nearest_rows_of_a_known_table_are_shown(cli, two):
    report = cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file, "--json").json
    labels = two.table["y"].to_pylist()
    nearest = report["known"]["nearest"]
    assert report["known"]["rows"] == 90
    assert 7 not in [one["row"] for one in nearest]  # the record itself
    assert [one["class"] for one in nearest] == [labels[one["row"]] for one in nearest]
    assert [one["difference"] for one in nearest] == sorted(one["difference"] for one in nearest)
    text = flat(cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file).out)
    of_class = [one["class"] for one in nearest].count(report["prediction"])
    assert f"Of the 5 most similar of 90 known rows {of_class} are y = {report['prediction']}." in text
    for one in report["similar"]:
        assert f"Most similar known y = {one['class']}: row {one['row']} — " in text


def test_standard_input_is_read_once(cli, two):
    outcome = cli("explain", two.model, "-", "--row", "0", "--known", "-", stdin=csv_bytes(two.table))
    assert outcome.code == 2
    assert "Standard input can be read once" in outcome.err


def test_model_without_rows_names_the_nearest_medoids_and_says_so(cli, two, tmp_path):
    saved = qmedoid.load(two.model)
    saved.save(tmp_path / "m", raw_rows=False)
    text = flat(cli.ok("explain", tmp_path / "m", two.file, "--row", "4").out)
    for medoid in saved.explain(two.table, 4)["medoids"]:
        row = f"training row {medoid['training_row']}, by distance: the model keeps no cells of training rows."
        assert f"Most similar known y = {medoid['class']}: {row}" in text
