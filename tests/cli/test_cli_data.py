"""The data sets that the package knows, and `qmedoid data`: list, where, fetch, and what happens without a network."""

import json

import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow.csv
import pyarrow.parquet
import pytest

from qmedoid.datasets import (
    CATALOG,
    entry,
    locate,
    table_of,
)

HERE = [name for name in CATALOG if name != "creditcard"]


def call(cli, *arguments):
    """Exit code, standard output and standard error of ``qmedoid data …``."""
    outcome = cli("data", *arguments)
    return outcome.code, outcome.out, outcome.err


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fetched_files_hold_the_table(cli, tmp_path, name, ending):
    out = tmp_path / f"set.{ending}"
    code, text, _ = call(cli, "fetch", name, "-o", out, "--json")
    assert code == 0
    known = entry(name)
    assert json.loads(text) == {
        "name": name, "path": str(out), "rows": known.rows, "target": known.target, "notes": []
    }  # fmt: skip
    read = pyarrow.csv.read_csv(out) if ending == "csv" else pyarrow.parquet.read_table(out)
    expected = table_of(name)
    assert read.column_names == expected.column_names
    for column in (read.column_names[0], entry(name).target):
        assert list(map(str, read[column].to_pylist()[:50])) == list(map(str, expected[column].to_pylist()[:50]))


def test_fetch_writes_into_the_current_folder(cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, said = call(cli, "fetch", "wine")
    assert code == 0
    assert said == "178 rows written to wine.csv; the classes are in the column 'target'.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


def test_fetch_refuses_an_ending_that_says_nothing(cli, tmp_path):
    code, _, said = call(cli, "fetch", "wine", "-o", tmp_path / "wine.xlsx")
    assert code == 2
    assert ".parquet" in said
    assert list(tmp_path.iterdir()) == []


def test_where_is_a_file_that_is_there(cli):
    for name in ("heart", "creditcard-sample"):
        code, text, _ = call(cli, "where", name)
        assert code == 0
        assert text.strip() == str(locate(name))
        assert locate(name).is_file()
        found = json.loads(call(cli, "where", name, "--json")[1])
        assert (found["name"], found["path"]) == (name, text.strip())


@pytest.mark.usefixtures("offline")
def test_where_tells_how_to_get_what_has_no_file(cli):
    code, _, said = call(cli, "where", "wine")
    assert code == 3
    assert "qmedoid data fetch wine" in said
    assert "download" not in said
    code, text, _ = call(cli, "where", "creditcard", "--json")
    assert code == json.loads(text)["exit_code"] == 3
    assert "after a download; or set QMEDOID_DATA" in json.loads(text)["error"]


@pytest.mark.usefixtures("offline")
def test_list_says_what_is_here(cli, monkeypatch):
    code, text, _ = call(cli, "list", "--json")
    assert code == 0
    listed = json.loads(text)["sets"]
    assert {name: one["here"] for name, one in listed.items()} == {name: name != "creditcard" for name in CATALOG}
    assert {name: one["status"] for name, one in listed.items()} == {
        name: "absent" if name == "creditcard" else "checked" for name in CATALOG
    }
    assert all(one["problem"] == "" and one["check"] for one in listed.values())
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        code, text, _ = call(cli, "list")
        assert code == 0
        assert all(f" {word} " in text for name in CATALOG for word in (name, CATALOG[name].target))
        assert "qmedoid data fetch creditcard" in text
        assert text.count(" checked ") - text.count("; checked by ") == len(HERE)
