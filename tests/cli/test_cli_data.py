"""The data sets that the package knows, and `qmedoid data`: list, fetch, and what happens without a network."""

import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow.csv
import pyarrow.parquet
import pytest

from qmedoid.datasets import CATALOG, entry, table_of

HERE = [name for name in CATALOG if name != "creditcard"]


def call(cli, *arguments, code=0):
    """What ``qmedoid data …`` left."""
    outcome = cli("data", *arguments)
    assert outcome.code == code, outcome
    return outcome


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fetched_files_hold_the_table(cli, tmp_path, name, ending):
    out, known = tmp_path / f"set.{ending}", entry(name)
    printed = call(cli, "fetch", name, "-o", out, "--json").json
    assert printed == {"name": name, "path": str(out), "rows": known.rows, "target": known.target, "notes": []}
    read = pyarrow.csv.read_csv(out) if ending == "csv" else pyarrow.parquet.read_table(out)
    expected = table_of(name)
    assert read.column_names == expected.column_names
    for column in (read.column_names[0], known.target):
        assert list(map(str, read[column].to_pylist()[:50])) == list(map(str, expected[column].to_pylist()[:50]))


def test_fetch_writes_into_the_current_folder_and_needs_an_ending(cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = call(cli, "fetch", "wine").err
    assert said == "178 rows written to wine.csv; the classes are in the column 'target'.\n"
    assert ".parquet" in call(cli, "fetch", "wine", "-o", tmp_path / "wine.xlsx", code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


@pytest.mark.usefixtures("offline")
def test_list_says_what_is_here(cli, monkeypatch):
    listed = call(cli, "list", "--json").json["sets"]
    for name in CATALOG:
        status = "absent" if name == "creditcard" else "checked"
        assert (listed[name]["here"], listed[name]["status"]) == (name != "creditcard", status)
        assert listed[name]["problem"] == ""
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        text = call(cli, "list").out
        assert all(f" {word} " in text for name in CATALOG for word in (name, CATALOG[name].target))
        assert "qmedoid data fetch creditcard" in text
        assert text.count(" checked ") == len(HERE)
