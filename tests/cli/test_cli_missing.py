"""``--missing``: cells that a table holds in place of empty ones are found, named, and read as missing everywhere."""

import json

import numpy as np
import pandas as pd
import pytest

import qmedoid
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
    figures = [cli.ok("evaluate", folder / name, folder / f"{name}.csv", "--json").json for name in ("raw", "empty")]
    for one in figures:
        for key in ("model", "table", "seconds", "path", "sha256"):
            one.pop(key, None)
    assert figures[0] == figures[1]
    row = str(int(np.flatnonzero(pd.read_csv(folder / "raw.csv").chol == 0)[0]))
    why = [cli.ok("explain", folder / name, folder / f"{name}.csv", "--row", row, "--json").json
           for name in ("raw", "empty")]  # fmt: skip
    assert why[0]["record"] == why[1]["record"]
    assert why[0]["record"]["chol"] is None
    assert why[0]["margin"] == why[1]["margin"]
    columns = cli.ok("inspect", folder / "raw", "--json").json["columns"]
    assert {one["name"]: one["missing_values"] for one in columns}["age"] == ["-9.5", "99"]
    assert "0 read as missing" in " ".join(cli.ok("inspect", folder / "raw").out.split())
    changed = cli.ok("diff", folder / "empty", folder / "raw", "--json").json["columns"]["changed"]
    assert {"name": "chol", "missing_values": [[], ["0"]]} in changed


def test_stability_fits_the_same_rows_again(cli, fitted):
    folder, _ = fitted
    found = [
        cli.ok("stability", folder / f"{name}.csv", "--target", "y", "--method", "evidence", "--bootstraps", "2",
               "--json", *options).json
        for name, options in (("raw", OPTIONS), ("empty", []))
    ]  # fmt: skip
    for one in found:
        one["notes"] = [note for note in one["notes"] if "read as missing" not in note]
    assert json.dumps(found[0]) == json.dumps(found[1])


def test_check_finds_the_value_and_names_the_option_that_reads_it(cli, fitted):
    folder, _ = fitted
    printed = cli.ok("check", folder / "raw.csv", "--target", "y").out
    assert "'chol' is 0 in " in printed
    assert "Read it as missing: --missing chol=0 (in Python missing={'chol': [0]})" in printed
    document = cli.ok("check", folder / "raw.csv", "--target", "y", "--json", "--missing", "chol=0").json
    column = next(one for one in document["columns"] if one["name"] == "chol")
    assert column["missing"] == (pd.read_csv(folder / "raw.csv").chol == 0).sum()
    assert not [one for one in document["findings"] if one["code"] == "sentinel" and one["columns"] == ["chol"]]


def test_fit_prints_the_same_note(cli, fitted, tmp_path):
    folder, _ = fitted
    outcome = cli.ok("fit", folder / "raw.csv", "--target", "y", "--method", "evidence", "-o", tmp_path / "model")
    assert "'chol' is 0 in " in outcome.out + outcome.err


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


def test_a_name_may_hold_an_equals_sign(cli, tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "t.csv"
    pd.DataFrame({"a=b": np.r_[rng.normal(50, 9, 90), [0] * 30], "y": rng.integers(0, 2, 120)}).to_csv(
        file, index=False
    )
    (column,) = cli.ok("check", file, "--target", "y", "--json", "--missing", "a=b=0").json["columns"]
    assert column["missing"] == 30


def test_the_loaded_model_knows_the_values(fitted):
    folder, _ = fitted
    raw, empty, _ = both_tables(50, seed=3)
    models = [qmedoid.load(folder / name) for name in ("raw", "empty")]
    assert models[0].predict_proba(raw).tobytes() == models[1].predict_proba(empty).tobytes()
