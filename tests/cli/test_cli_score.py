"""`qmedoid score`: one answer, however the table comes in and however the decisions go out."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from small_tables import cells, csv_bytes, replaced, write

import qmedoid
from qmedoid import MedoidClassifier
from qmedoid.cli._training_rows import split_rows
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


@pytest.mark.parametrize("name", ["two", "three"])
def test_same_fit_in_python_says_the_same(cli, request, tmp_path, name):
    case = request.getfixturevalue(name)
    labels = np.array(case.table["y"].to_pylist())
    parts = split_rows(pd.factorize(labels)[0], 0.0, 0.25, order=None, seed=0)
    frame = case.table.drop_columns(["y"]).to_pandas()
    classifier = MedoidClassifier(refine="never", random_state=0)
    classifier.fit(frame.iloc[parts.train], labels[parts.train])
    out = scored(cli, case, case.file, tmp_path)
    assert classifier.predict(frame).tolist() == out["prediction"]
    best = classifier.predict_proba(frame)
    best = best[:, 1] if best.shape[1] == 2 else best.max(axis=1)
    np.testing.assert_allclose(best, out["score"], rtol=1e-12)
    held_out = classifier.score(frame.iloc[parts.test], labels[parts.test])
    assert held_out == pytest.approx(case.printed["held_out"]["accuracy"], rel=1e-12)


def test_one_answer_for_every_way_in(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    text = two.file.read_bytes()
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text))
    tabs = tmp_path / "t.tsv"
    tabs.write_bytes(text.replace(b",", b"\t"))
    files = [write(two.table, tmp_path / f"t.{ending}") for ending in ("parquet", "feather")]
    for file in (*files, packed, tabs):
        assert scored(cli, two, file, tmp_path) == expected
    for content in (text, packed.read_bytes(), *(file.read_bytes() for file in files)):
        assert scored(cli, two, "-", tmp_path, stdin=content) == expected


def test_parts_of_a_table_are_the_table(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        write(two.table.slice(30 * k, 30), parts / f"{k}.csv")
    assert scored(cli, two, parts, tmp_path) == expected
    assert scored(cli, two, parts / "*.csv", tmp_path) == expected


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "feather", "arrow", "pq"])
def test_one_answer_for_every_way_out(cli, two, tmp_path, ending):
    expected = scored(cli, two, two.file, tmp_path)
    out = tmp_path / f"o.{ending}"
    outcome = cli.ok("score", two.model, two.file, "-o", out)
    counts = {label: expected["prediction"].count(label) for label in ("no", "yes")}
    said, expected_rate = outcome.err.splitlines()
    assert said == f"90 rows scored: {counts['no']} of class no, {counts['yes']} of class yes."
    assert expected_rate.startswith(f"{percent_text(counts['yes'] / 90, 3)} are called yes, as expected (")
    if ending in ("feather", "arrow"):
        assert feather.read_table(out).to_pydict() == expected
    elif ending == "pq":
        assert pq.read_table(out).to_pydict() == expected
    else:
        separator = "\t" if ending == "tsv" else ","
        assert pd.read_csv(out, sep=separator).to_dict("list") == expected


def test_standard_output_is_the_file(cli, two, tmp_path):
    cli.ok("score", two.model, two.file, "-o", tmp_path / "o.csv")
    outcome = cli.ok("score", two.model, two.file, "-o", "-")
    assert outcome.raw == (tmp_path / "o.csv").read_bytes()
    assert outcome.err == ""


def test_json_counts_what_was_written(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    out = tmp_path / "o.csv"
    report = cli.ok("score", two.model, two.file, "-o", out, "--json").json
    assert report["rows"] == 90
    assert report["output"] == str(out)
    assert report["predicted"] == {label: expected["prediction"].count(label) for label in ("no", "yes")}
    assert report["difference"]["breaks"] is False
    outcome = cli("score", two.model, two.file, "-o", "-", "--json")
    assert (outcome.code, outcome.json["exit_code"]) == (2, 2)


def test_nearest_medoids_are_rows_of_the_file_with_that_class(cli, three, tmp_path):
    out = scored(cli, three, three.file, tmp_path)
    labels = three.table["y"].to_pylist()
    for label in "abc":
        assert {labels[row] for row in out[f"nearest_medoid_{label}"]} == {label}


def test_order_of_columns_and_rows_does_not_matter(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    order = np.random.default_rng(0).permutation(90)
    shuffled = write(two.table.take(order).select(two.table.column_names[::-1]), tmp_path / "t.csv")
    found = scored(cli, two, shuffled, tmp_path)
    assert found == {name: [values[k] for k in order] for name, values in expected.items()}


def test_decimal_commas_from_a_file_and_from_a_pipe(cli, two, tmp_path):
    expected = scored(cli, two, two.file, tmp_path)
    columns = {name: two.table[name].to_pylist() for name in two.table.column_names}
    lines = [";".join(columns)]
    lines += [";".join(str(cell).replace(".", ",") for cell in row) for row in zip(*columns.values(), strict=True)]
    text = ("\n".join(lines) + "\n").encode()
    (tmp_path / "t.csv").write_bytes(text)
    assert scored(cli, two, tmp_path / "t.csv", tmp_path) == expected
    assert scored(cli, two, "-", tmp_path, stdin=text) == expected
    cli.ok("score", two.model, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--columns", "x2")
    assert cells(tmp_path / "o.csv")["x2"] == [str(cell).replace(".", ",") for cell in columns["x2"]]


class TestCarried:
    def test_columns_come_first_in_the_order_asked_for(self, cli, two, tmp_path):
        cli.ok("score", two.model, two.file, "-o", tmp_path / "o.csv", "--columns", "y, id", "--columns", "color,id")
        out = cells(tmp_path / "o.csv")
        assert list(out)[:4] == ["y", "id", "color", "prediction"]
        assert out["id"] == two.table["id"].to_pylist()
        assert out["id"][7] == "007"

    def test_names_with_commas_are_put_in_quotes(self, cli, two, tmp_path):
        file = write(two.table.append_column("town, country", [two.table["id"].to_pylist()]), tmp_path / "t.csv")
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", 'id,"town, country"')
        assert list(cells(tmp_path / "o.csv"))[:2] == ["id", "town, country"]

    def test_cells_that_the_model_reads_stay_as_they_are_written(self, cli, two, tmp_path):
        written = [f"{value:+.3f}0" for value in two.table["x1"].to_pylist()]
        member = ["yes" if value else "no" for value in two.table["member"].to_pylist()]
        table = replaced(replaced(two.table, "x1", [written]), "member", [member])
        file = write(table, tmp_path / "t.csv")
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", "x1,member")
        out = cells(tmp_path / "o.csv")
        assert (out["x1"], out["member"]) == (written, member)
        plain = scored(cli, two, file, tmp_path)
        assert out["prediction"] == plain["prediction"]

    def test_absent_column_breaks_off(self, cli, two, tmp_path):
        outcome = cli("score", two.model, two.file, "-o", tmp_path / "o.csv", "--columns", "id,nowhere")
        assert outcome.code == 3
        assert "no column 'nowhere' to carry through" in outcome.err
        assert not (tmp_path / "o.csv").exists()

    @pytest.mark.parametrize("name", ["prediction", "nearest_medoid_no"])
    def test_column_may_not_hide_a_result(self, cli, two, tmp_path, name):
        file = write(two.table.append_column(name, [two.table["id"].to_pylist()]), tmp_path / "t.csv")
        outcome = cli("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", name)
        assert outcome.code == 2
        assert "a result has this name" in outcome.err
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv")

    def test_lists_and_bytes_are_written_as_text(self, cli, two, tmp_path):
        table = two.table.append_column("list", pa.array([[1, 2]] * 90)).append_column("raw", pa.array([b"=1"] * 90))
        file = write(table, tmp_path / "t.parquet")
        cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", "list,raw")
        out = cells(tmp_path / "o.csv")
        assert set(out["list"]) == {"[1, 2]"}
        assert set(out["raw"]) == {"'=1"}
        kept = scored(cli, two, file, tmp_path, "--columns", "list,raw")
        assert kept["list"][0] == [1, 2]
        assert kept["raw"][0] == b"=1"


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


def test_rows_are_counted_where_every_column_is_missing(cli, two, tmp_path):
    table = pa.table({"something": ["else"] * 5})
    outcome = cli.ok("score", two.model, "-", "-o", tmp_path / "o.csv", "--on-mismatch", "warn", stdin=csv_bytes(table))
    assert "5 rows scored" in outcome.err
