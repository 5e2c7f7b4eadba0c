"""`qmedoid demo`: what it says and draws is what the files hold that it leaves."""

import re
import shlex

import numpy as np
import pytest
from pyarrow import csv

import qmedoid
from qmedoid.cli import demo
from qmedoid.datasets import read_shipped
from qmedoid.metrics.intervals import share_interval

SIGNS = {"□": False, "■": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "files"


@pytest.fixture(scope="module")
def shown(cli, folder):
    return cli.ok("demo", "-o", folder).out


@pytest.fixture(scope="module")
def document(cli, shown, folder):  # noqa: ARG001 (the second run, in the same folder)
    return cli.ok("demo", "-o", folder, "--json").json


def heart_rows(folder):
    return csv.read_csv(folder / "heart.csv").drop_columns("HeartDisease")


def test_demo_fits_what_fit_fits(cli, document, tmp_path):
    (tmp_path / "heart.csv").write_bytes(read_shipped("heart.csv"))
    fitted = cli.ok("fit", tmp_path / "heart.csv", "--target", "HeartDisease", "-o", tmp_path / "m", "--json").json
    assert document["held_out"] == fitted["held_out"]
    assert document["rows"] == {"training": fitted["training_rows"], "test": fitted["held_out"]["rows"]}
    table, models = heart_rows(tmp_path), [qmedoid.load(one) for one in (tmp_path / "m", document["files"]["model"])]
    assert (models[0].decision_function(table) == models[1].decision_function(table)).all()


def test_second_run_says_the_same_and_leaves_the_same_files(cli, shown, document, folder):
    assert {path.name for path in folder.iterdir()} == {"heart.csv", "heart.qmedoid", "report.html"}
    assert (folder / "heart.csv").read_bytes() == read_shipped("heart.csv")
    model, seconds = (folder / "heart.qmedoid").read_bytes(), re.compile(r"The fit took .*")
    assert seconds.sub("", cli.ok("demo", "-o", folder).out) == seconds.sub("", shown)
    assert all(sentence in shown for sentence in document["verdict"])
    assert (folder / "heart.qmedoid").read_bytes() == model


def test_verdict_and_explanation_are_those_of_the_files(document, folder):
    (_, false), (missed, found) = document["held_out"]["confusion"]
    says = f"it calls {found + false} '1': {found} rightly; it finds {found} of {found + missed}."
    assert document["verdict"][0].endswith(says)
    right = share_interval(document["held_out"]["rows"] - false - missed, document["held_out"]["rows"]).value
    assert f"this model for {100 * right:.0f} %" in document["verdict"][1]
    row = document["explained"]["row"]
    why = qmedoid.load(folder / "heart.qmedoid").explain(heart_rows(folder), row=row)
    assert document["explained"]["sentences"] == str(why).splitlines()


def test_squares_are_the_test_rows_by_class_and_probability(shown, document):
    strips = {strip["high"]: strip for strip in document["picture"]}
    drawn = {}
    for line in shown.splitlines():
        words = re.match(r"  (.{14})([□■]*)$", line)
        if words is None:
            continue
        label, signs = words.groups()
        high = round(float(label.split()[2]) / 100, 1) if label.strip() else high  # noqa: F821 (the line before)
        drawn.setdefault(high, []).extend(SIGNS[sign] for sign in signs)
    assert set(drawn) == set(strips)
    for high, signs in drawn.items():
        assert (len(signs) - sum(signs), sum(signs)) == (strips[high]["negative"], strips[high]["positive"])
    (right_0, false), (missed, right_1) = document["held_out"]["confusion"]
    rows = [(strip["negative"], strip["positive"]) for strip in document["picture"]]
    assert np.sum(rows[:5], axis=0).tolist() == [right_0, missed]  # the threshold is one half
    assert np.sum(rows[5:], axis=0).tolist() == [false, right_1]
    assert f"called '1' above this line ({false} wrongly), '0' below it ({missed} wrongly)" in shown


def test_commands_that_it_names_can_be_called(cli, shown, folder):
    (line,) = (line for line in shown.splitlines() if "qmedoid explain" in line)
    words = shlex.split(line, comments=True)
    assert words[:2] == ["qmedoid", "explain"]
    assert cli.ok(*words[1:]).out
    assert f"Open {folder / 'report.html'} in a browser" in shown


def test_report_is_about_the_rows_that_the_model_never_saw(document, folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    (_, false), (missed, found) = document["held_out"]["confusion"]
    assert document["verdict"][1] in page
    assert f">{found} of {found + missed}<" in page
    assert f">{false} of {found + false}<" in page


def test_nothing_is_written_over_what_is_no_file_of_the_demo(cli, tmp_path):
    for name in ("heart.csv", "heart.qmedoid", "report.html"):
        folder = tmp_path / name.replace(".", "")
        folder.mkdir()
        (folder / name).write_text("mine")
        outcome = cli("demo", "-o", folder)
        assert outcome.code == 2, outcome.err
        assert name in outcome.err
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    assert "is a file: give another folder" in cli("demo", "-o", tmp_path / "file").err


def test_letters_stand_for_squares_where_there_are_none():
    strips = demo.count_strips(np.array([False, True, False, True]), np.array([0.05, 0.2, 0.7, 0.99]))
    lines = [str(line) for line in demo.picture(strips, ["0", "1"], [0, 0], "ascii")]
    assert "".join(re.findall(r"%  ([.#]*)$", "\n".join(lines), flags=re.MULTILINE)) == "#.#."
