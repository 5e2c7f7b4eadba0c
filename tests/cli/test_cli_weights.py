"""Weights of rows and classes on the command line."""

import numpy as np
import pyarrow as pa
import pytest
from small_tables import small_table, write

QUICK = ("--method", "evidence", "--neighbors", "0", "--medoids", "8")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
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


def test_weight_column_is_no_feature_and_counts_rows(cli, files, tmp_path):
    command = ("--target", "y", "--test", "0", "--json", *QUICK)
    weighted = cli.ok(
        "fit", files["weighted"], "-o", tmp_path / "weighted.qmedoid", "--weight-column", "times", *command
    ).json
    copied = cli.ok("fit", files["copied"], "-o", tmp_path / "copied.qmedoid", *command).json
    assert weighted["left_out"]["times"] == "it weighs the rows"
    assert weighted["operating"] == copied["operating"]
    said = [
        cli.ok("score", tmp_path / f"{name}.qmedoid", files["plain"], "-o", "-").out.splitlines()
        for name in ("weighted", "copied")
    ]
    # Prediction, score and margin; medoids are numbered by their rows in each file.
    first, second = ([line.split(",")[:3] for line in lines] for lines in said)
    assert first == second


def test_held_out_figures_say_that_they_are_not_weighted(cli, files, tmp_path):
    found = cli.ok(
        "fit", files["plain"], "--target", "y", "-o", tmp_path / "m", "--class-weight", "balanced", "--json", *QUICK
    ).json
    assert any("without weights" in note for note in found["notes"])
    counts = found["operating"]["counts"]
    assert abs(counts["tp"] + counts["fn"] - counts["fp"] - counts["tn"]) <= 4


def test_weight_that_is_none_is_refused_with_its_row(cli, files, tmp_path):
    refused = cli("fit", files["bad"], "--target", "y", "-o", tmp_path / "m", "--weight-column", "times")
    assert refused.code == 3
    assert "holds nothing in row 3" in refused.err
    absent = cli("fit", files["plain"], "--target", "y", "-o", tmp_path / "m", "--weight-column", "times")
    assert absent.code == 3
    assert "There is no column 'times'" in absent.err
