"""`qmedoid score`: one answer, however the table comes in and however the decisions go out."""

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from small_tables import cells, small_table, write

import qmedoid
from few_trees import few_trees
from qmedoid import MedoidClassifier
from qmedoid.metrics.texts import percent_text


def scored(cli, case, table, folder, *options, stdin=None):
    """The decisions about a table as a dictionary of columns."""
    cli.ok("score", case.model, table, "-o", folder / "o.parquet", *options, stdin=stdin)
    return pq.read_table(folder / "o.parquet").to_pydict()


@pytest.mark.parametrize("name", ["two", "three"])
def test_loaded_model_says_the_same(cli, request, tmp_path, name):
    case = request.getfixturevalue(name)
    out = scored(cli, case, case.file, tmp_path)
    model = qmedoid.load(case.model)
    for frame in (case.table.to_pandas(), pl.from_arrow(case.table), pd.read_csv(case.file), pl.read_csv(case.file)):
        assert model.predict(frame).tolist() == out["prediction"]
        probabilities, margins = model.predict_proba(frame), model.decision_function(frame)
        if len(model.classes_) == 2:
            assert probabilities[:, 1].tolist() == out["score"]
            assert margins.tolist() == out["margin"]
        else:
            assert probabilities.max(axis=1).tolist() == out["score"]
            ranked = np.sort(margins, axis=1)
            assert (ranked[:, -1] - ranked[:, -2]).tolist() == out["margin"]
        assert model.decided_by(frame).tolist() == out["decided_by"]


@pytest.mark.parametrize("labels", [("no", "yes"), ("a", "b", "c")])
def test_same_fit_in_python_says_the_same(cli, tmp_path, labels):
    train, test = small_table(labels), small_table(labels, n=40, seed=3)
    files = [write(one, tmp_path / f"{name}.csv") for name, one in (("train", train), ("test", test))]
    fit = ("fit", files[0], "--target", "y", "--test", files[1], "--refine", "never", "-o", tmp_path / "m", "--json")
    printed = cli.ok(*fit).json
    classifier = MedoidClassifier(refine="never", random_state=0)
    with few_trees():
        classifier.fit(train.drop_columns(["y"]), train["y"].to_pylist())
    case = SimpleNamespace(model=tmp_path / "m")
    out, new = scored(cli, case, files[1], tmp_path), test.drop_columns(["y"])
    assert classifier.predict(new).tolist() == out["prediction"]
    best = classifier.predict_proba(new)
    np.testing.assert_allclose(best[:, 1] if len(labels) == 2 else best.max(axis=1), out["score"], rtol=1e-12)
    assert classifier.score(new, test["y"].to_pylist()) == pytest.approx(printed["held_out"]["accuracy"], rel=1e-12)


def test_one_answer_for_every_way_in(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    text, packed, tabs, parts = two.file.read_bytes(), tmp_path / "t.csv.gz", tmp_path / "t.tsv", tmp_path / "parts"
    packed.write_bytes(gzip.compress(text))
    tabs.write_bytes(text.replace(b",", b"\t"))
    parts.mkdir()
    for k in range(3):
        write(two.table.slice(30 * k, 30), parts / f"{k}.csv")
    files = [write(two.table, tmp_path / f"t.{ending}") for ending in ("parquet", "feather")]
    for file in (*files, packed, tabs, parts, parts / "*.csv"):
        assert scored(cli, two, file, tmp_path) == expected
    for content in (text, packed.read_bytes()):
        assert scored(cli, two, "-", tmp_path, stdin=content) == expected


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "feather", "arrow", "pq"])
def test_one_answer_for_every_way_out(cli, two, tmp_path, ending):
    expected, out = scored(cli, two, two.file, tmp_path), tmp_path / f"o.{ending}"
    counts = {label: expected["prediction"].count(label) for label in ("no", "yes")}
    said, expected_rate = cli.ok("score", two.model, two.file, "-o", out).err.splitlines()
    assert said == f"90 rows scored: {counts['no']} of class no, {counts['yes']} of class yes."
    assert expected_rate.startswith(f"{percent_text(counts['yes'] / 90, 3)} are called yes, as expected (")
    if ending in ("feather", "arrow", "pq"):
        assert (pq if ending == "pq" else feather).read_table(out).to_pydict() == expected
    else:
        assert pd.read_csv(out, sep="\t" if ending == "tsv" else ",").to_dict("list") == expected


def test_standard_output_is_the_file_and_json_counts_what_was_written(cli, two, tmp_path):
    out = tmp_path / "o.csv"
    report = cli.ok("score", two.model, two.file, "-o", out, "--json").json
    predicted = cells(out)["prediction"]
    assert (report["rows"], report["output"], report["difference"]["breaks"]) == (90, str(out), False)
    assert report["predicted"] == {label: predicted.count(label) for label in ("no", "yes")}
    outcome = cli.ok("score", two.model, two.file, "-o", "-")
    assert (outcome.raw, outcome.err) == (out.read_bytes(), "")
    assert cli("score", two.model, two.file, "-o", "-", "--json").json["exit_code"] == 2


def test_nearest_medoids_are_rows_of_the_file_with_that_class(cli, three, tmp_path):
    out = scored(cli, three, three.file, tmp_path)
    labels = three.table["y"].to_pylist()
    for label in "abc":
        assert {labels[row] for row in out[f"nearest_medoid_{label}"]} == {label}


class TestCarried:
    def test_columns_come_first_in_the_order_asked_for_and_names_with_commas_in_quotes(self, cli, two, tmp_path):
        file = write(two.table.append_column("town, country", [two.table["id"].to_pylist()]), tmp_path / "t.csv")
        asked = ("--columns", 'y, id,"town, country"', "--columns", "color,id")
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", *asked)
        out = cells(tmp_path / "o.csv")
        assert list(out)[:5] == ["y", "id", "town, country", "color", "prediction"]
        assert out["id"] == out["town, country"] == two.table["id"].to_pylist()
        assert out["id"][7] == "007"

    def test_absent_column_breaks_off(self, cli, two, tmp_path):
        outcome = cli("score", two.model, two.file, "-o", tmp_path / "o.csv", "--columns", "id,nowhere")
        assert (outcome.code, "no column 'nowhere' to carry through" in outcome.err) == (3, True)
        assert not (tmp_path / "o.csv").exists()

    @pytest.mark.parametrize("name", ["prediction", "nearest_medoid_no"])
    def test_column_may_not_hide_a_result(self, cli, two, tmp_path, name):
        file = write(two.table.append_column(name, [two.table["id"].to_pylist()]), tmp_path / "t.csv")
        outcome = cli("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", name)
        assert outcome.code == 2
        assert "a result has this name" in outcome.err
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv")


def test_pipe_sees_every_row_once(cli, two, tmp_path):
    """A cell that is no number, far behind the first batch: what was sent cannot be taken back."""
    lines = two.file.read_bytes().splitlines(keepends=True)
    body = b"".join(lines[1:]) * 800
    spoilt = lines[0] + body + lines[1].replace(lines[1].split(b",")[1], b"abc")
    (tmp_path / "t.csv").write_bytes(spoilt)
    outcome = cli.ok("score", two.model, tmp_path / "t.csv", "-o", "-", "--on-mismatch", "warn", "--columns", "id")
    assert outcome.raw.count(b"\n") == spoilt.count(b"\n")
    assert "1 of 72,001 cells is not, such as 'abc'" in outcome.err
    cli.ok("score", two.model, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--on-mismatch", "warn", "--columns", "id")
    assert outcome.raw == (tmp_path / "o.csv").read_bytes()
