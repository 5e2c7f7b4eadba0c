"""`qmedoid demo`: what it says is what the files hold that it leaves."""

import re
import shlex

import pytest
from pyarrow import csv

import qmedoid
from qmedoid.datasets import read_shipped
from qmedoid.metrics.intervals import share_interval


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


def test_commands_that_it_names_can_be_called(cli, shown, folder):
    (line,) = (line for line in shown.splitlines() if "qmedoid explain" in line)
    words = shlex.split(line, comments=True)
    assert words[:2] == ["qmedoid", "explain"]
    assert cli.ok(*words[1:]).out
    assert f"Open {folder / 'report.html'} in a browser" in shown


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
