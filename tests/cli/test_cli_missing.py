"""``--missing``: cells that a table holds in place of empty ones are found, named, and read as missing everywhere."""

import numpy as np
import pandas as pd
import pytest

from missing_tables import MISSING, both_tables

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


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_are_scored_as_those_with_empty_cells(cli, fitted, tmp_path, suffix):
    folder, _ = fitted
    scored = {}
    for name in ("raw", "empty"):
        table = pd.read_csv(folder / f"{name}.csv", parse_dates=["day"])
        file = tmp_path / (name + suffix)
        table.to_csv(file, index=False) if suffix == ".csv" else table.to_parquet(file)
        out = tmp_path / f"{name}.out.csv"
        cli.ok("score", folder / name, file, "-o", out, "--add", "reasons")
        scored[name] = out.read_bytes()
    assert scored["raw"] == scored["empty"]


def test_evaluation_explanation_and_inspection_show_what_is_read(cli, fitted, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    folder, _ = fitted
    row = int(np.flatnonzero(pd.read_csv(folder / "raw.csv").chol == 0)[0])
    raw, empty = (
        (
            cli.ok("evaluate", folder / name, folder / f"{name}.csv", "--json").json,
            cli.ok("explain", folder / name, folder / f"{name}.csv", "--row", row, "--json").json,
        )
        for name in ("raw", "empty")
    )
    assert raw[0] == empty[0]
    assert raw[1]["record"]["chol"] is None
    assert all(raw[1][key] == empty[1][key] for key in ("record", "margin"))
    columns = cli.ok("inspect", folder / "raw", "--json").json["columns"]
    assert {one["name"]: one["missing_values"] for one in columns}["age"] == ["-9.5", "99"]
    assert "0 read as missing" in " ".join(cli.ok("inspect", folder / "raw").out.split())
    changed = cli.ok("diff", folder / "empty", folder / "raw", "--json").json["columns"]["changed"]
    assert {"name": "chol", "missing_values": [[], ["0"]]} in changed


def test_check_and_fit_find_the_value_and_name_the_option_that_reads_it(cli, fitted, tmp_path):
    folder, _ = fitted
    asked = (folder / "raw.csv", "--target", "y")
    printed = cli.ok("check", *asked).out
    assert "'chol' is 0 in " in printed
    assert "Read it as missing: --missing chol=0 (in Python missing={'chol': [0]})" in printed
    outcome = cli.ok("fit", *asked, "--method", "evidence", "-o", tmp_path / "model")
    assert "'chol' is 0 in " in outcome.out + outcome.err
    document = cli.ok("check", *asked, "--json", "--missing", "chol=0").json
    column = next(one for one in document["columns"] if one["name"] == "chol")
    assert column["missing"] == (pd.read_csv(folder / "raw.csv").chol == 0).sum()
    assert not [one for one in document["findings"] if one["code"] == "sentinel" and one["columns"] == ["chol"]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("chol", "--missing takes a column and a value, such as Cholesterol=0. Got 'chol' instead."),
        ("choll=0", "--missing names 'choll', which is not a column. Did you mean 'chol'"),
        ("chol=low", "'low' cannot stand in column 'chol', which holds numbers, such as"),
        ("y=0", "--missing names 'y', which is the target"),
    ],
)
def test_what_cannot_be_is_refused(cli, fitted, value, message):
    folder, _ = fitted
    for command in ("check", "fit"):
        outcome = cli(command, folder / "raw.csv", "--target", "y", "--missing", value)
        assert outcome.code
        assert message in " ".join(outcome.err.split())
