"""Columns and shares of a fit on the command line: groups, weights, missing values, and percentages."""

import numpy as np
import pyarrow as pa
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from small_tables import small_table, write

from missing_tables import MISSING, both_tables
from qmedoid.cli.options import share


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A table, the same table twice, and with a column of customers who have three rows each."""
    folder, table = tmp_path_factory.mktemp("groups"), small_table()
    customers = pa.array([f"customer {row // 3}" for row in range(len(table))])
    return {
        "once": write(table, folder / "once.csv"),
        "twice": write(pa.concat_tables([table, table]).combine_chunks(), folder / "twice.csv"),
        "customers": write(table.append_column("customer", customers), folder / "customers.csv"),
    }


def fit_grouped(cli, file, output, *more):
    return cli.ok("fit", file, "--target", "y", "-o", output, "--json", *more).json


def test_doubled_file_expects_what_the_file_does_and_says_so(cli, grouped, tmp_path):
    once, twice = (fit_grouped(cli, grouped[name], tmp_path / name) for name in ("once", "twice"))
    assert any("rows are equal to an earlier row" in note for note in twice["notes"])
    assert not any("equal" in note for note in once["notes"])
    assert twice["operating"]["draws_per_row"] == 0.5
    for figure in ("precision", "recall", "alert_rate"):
        before, after = once["operating"][figure], twice["operating"][figure]
        assert before["low"] <= after["value"] <= before["high"]
    assert twice["held_out"]["rows"] % 2 == 0  # both copies of a row, or none


def test_group_column_is_no_feature_and_keeps_its_rows_together(cli, grouped, tmp_path):
    found = fit_grouped(cli, grouped["customers"], tmp_path / "m", "--group-column", "customer", "--test", "0.3")
    assert found["left_out"]["customer"] == "it says which rows belong together"
    assert found["operating"]["draws_per_row"] == pytest.approx(1 / 3)
    assert found["training_rows"] % 3 == found["held_out"]["rows"] % 3 == 0
    assert abs(found["held_out"]["rows"] / 90 - 0.3) < 0.05
    others = fit_grouped(
        cli, grouped["customers"], tmp_path / "m", "--group-column", "customer", "--test", grouped["once"]
    )
    assert others["held_out"]["rows"] == 90  # which need no such column
    stability = ("stability", grouped["customers"], "--target", "y", "--group-column", "customer", "--bootstraps", 2)
    assert cli.ok(*stability, "--json").json["rows"] == 90


SMALL = ("--method", "evidence", "--neighbors", "0", "--medoids", "8")


@pytest.fixture(scope="module")
def weighted_files(tmp_path_factory):
    """A table with a column of whole weights, the same with its rows repeated, and with weights that are none."""
    # Without the id: a column of copies is no row number.
    folder, table = tmp_path_factory.mktemp("weights"), small_table().drop_columns(["id"])
    times = np.random.default_rng(0).integers(0, 4, len(table))
    bad = [None if row == 3 else 1.5 for row in range(len(table))]
    return {
        "weighted": write(table.append_column("times", pa.array(times)), folder / "weighted.csv"),
        "copied": write(table.take(np.repeat(np.arange(len(table)), times)), folder / "copied.csv"),
        "bad": write(table.append_column("times", pa.array(bad)), folder / "bad.csv"),
        "plain": write(table, folder / "plain.csv"),
    }


def test_weight_column_is_no_feature_and_counts_rows(cli, weighted_files, tmp_path):
    command = ("--target", "y", "--test", "0", "--json", *SMALL)
    weighted = cli.ok(
        "fit", weighted_files["weighted"], "-o", tmp_path / "weighted.qmedoid", "--weight-column", "times", *command
    ).json
    copied = cli.ok("fit", weighted_files["copied"], "-o", tmp_path / "copied.qmedoid", *command).json
    assert weighted["left_out"]["times"] == "it weighs the rows"
    assert weighted["operating"] == copied["operating"]
    said = [
        cli.ok("score", tmp_path / f"{name}.qmedoid", weighted_files["plain"], "-o", "-").out.splitlines()
        for name in ("weighted", "copied")
    ]
    # Prediction, score and margin; medoids are numbered by their rows in each file.
    first, second = ([line.split(",")[:3] for line in lines] for lines in said)
    assert first == second


def test_weight_that_is_none_is_refused_with_its_row(cli, weighted_files, tmp_path):
    refused = cli("fit", weighted_files["bad"], "--target", "y", "-o", tmp_path / "m", "--weight-column", "times")
    assert refused.code == 3
    assert "holds nothing in row 3" in refused.err
    absent = cli("fit", weighted_files["plain"], "--target", "y", "-o", tmp_path / "m", "--weight-column", "times")
    assert absent.code == 3
    assert "There is no column 'times'" in absent.err


@given(st.integers(0, 10_000))
def test_a_percentage_is_a_hundredth_of_its_number(hundredths):
    assert share(f"{hundredths / 100}%") == pytest.approx(share(f"{hundredths / 10_000}"), abs=1e-15)
    assert share(f"{hundredths // 100} %") == (hundredths // 100) / 100


@pytest.mark.parametrize("text", ["5", "-0.1", "101%", "nan", "inf", "five", "", "%", "5%%"])
def test_what_is_no_share_is_refused_and_a_whole_number_is_no_percentage(text):
    with pytest.raises(typer.BadParameter, match=r"such as 0\.05, or a percentage, such as 5%") as refused:
        share(text)
    assert ("5 percent is 5%" in str(refused.value)) == (text == "5")


def test_fit_and_score_take_percentages(cli, two, tmp_path):
    fit = ("fit", two.file, "--target", "y", "--method", "evidence", "--json", "-o", tmp_path / "m")
    # The same share in both spellings is the same split and the same rule.
    spelled = [cli.ok(*fit, "--alert-rate", rate, "--test", test).json for rate, test in (("5%", "20%"), (0.05, 0.2))]
    for key in ("operating", "held_out", "training_rows"):
        assert spelled[0][key] == spelled[1][key]
    scores = [
        cli.ok("score", tmp_path / "m", two.file, "-o", tmp_path / "s.csv", "--prevalence", text, "--json").json
        for text in ("10%", "0.1")
    ]
    assert scores[0]["prevalence"] == scores[1]["prevalence"]
    assert cli(*fit, "--alert-rate", "5").code == 2
    assert "25%" in cli(*fit, "--test", "120%").json["error"]


OPTIONS = [part for name, values in MISSING.items() for value in values for part in ("--missing", f"{name}={value}")]


@pytest.fixture(scope="module")
def fitted(cli, tmp_path_factory):
    """Files of the table with the values and of the one with empty cells, and a model of each."""
    folder = tmp_path_factory.mktemp("missing")
    raw, empty, y = both_tables()
    for name, table in (("raw", raw), ("empty", empty)):
        table.assign(y=y).to_csv(folder / f"{name}.csv", index=False)
    made = {
        name: cli.ok("fit", folder / f"{name}.csv", "--target", "y", "-o", folder / name, "--json", *options)
        for name, options in (("raw", OPTIONS), ("empty", []))
    }
    return folder, {name: one.json for name, one in made.items()}


def test_a_fit_is_that_of_the_table_with_empty_cells(fitted):
    _, printed = fitted
    assert printed["raw"]["held_out"] == printed["empty"]["held_out"]
    notes = "\n".join(printed["raw"]["notes"])
    assert "column 'chol': " in notes
    assert "hold 0, read as missing" in notes
    assert "may mean 'not measured'" not in notes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("chol", "--missing takes a column and a value, such as Cholesterol=0. Got 'chol' instead."),
        ("choll=0", "--missing names 'choll', which is not a column. Did you mean 'chol'"),
        ("chol=low", "'low' cannot stand in column 'chol', which holds numbers, such as"),
        ("chol= ", "--missing must name values of 'chol' that are not missing anyway"),
    ],
)
def test_what_cannot_be_is_refused(cli, fitted, value, message):
    folder, _ = fitted
    for command in ("check", "fit"):
        outcome = cli(command, folder / "raw.csv", "--target", "y", "--missing", value)
        assert outcome.code
        assert message in " ".join(outcome.err.split())
