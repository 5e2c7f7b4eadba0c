"""The data sets that the package knows, and `qmedoid data`: list, where, fetch, and what happens without a network."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from qmedoid.cli.app import main
from qmedoid.evaluation import catalog
from qmedoid.evaluation.catalog import CATALOG, check_creditcard, entry, locate, table_of
from qmedoid.evaluation.datasets import load_dataset
from qmedoid.exceptions import DataError, ParameterError

HERE = [name for name in CATALOG if name != "creditcard"]


def call(monkeypatch, *arguments):
    """Exit code, standard output and standard error of ``qmedoid data …``."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["qmedoid", "data", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as stop:
            main()
    return stop.value.code or 0, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No data folder, an empty cache, and no network."""
    import sklearn.datasets

    def refuse(**_):
        raise OSError("there is no network")

    monkeypatch.delenv("QMEDOID_DATA", raising=False)
    monkeypatch.setenv("QMEDOID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    return tmp_path / "cache"


def fake_creditcard(n_rows=40, n_frauds=4, amount=2.5):
    labels = np.arange(n_rows) < n_frauds
    return pa.table({"Time": np.arange(n_rows, dtype=float), "Amount": np.full(n_rows, amount), "Class": labels * 1})


@pytest.fixture
def small_counts(monkeypatch):
    """The counts of a table small enough for a test in the place of those published."""
    monkeypatch.setattr(catalog, "N_ROWS", 40)
    monkeypatch.setattr(catalog, "N_FRAUDS", 4)
    monkeypatch.setattr(catalog, "AMOUNTS", 100.0)


@pytest.mark.parametrize("name", HERE)
def test_what_the_catalogue_says_is_what_the_table_is(name):
    table, known = table_of(name), entry(name)
    assert (table.num_rows, table.num_columns) == (known.rows, known.columns)
    assert table.column_names[-1] == known.target
    if known.positive:
        assert known.positive in set(map(str, table[known.target].unique().to_pylist()))


@pytest.mark.parametrize("name", ["heart", "breast-cancer", "wine"])
def test_labels_are_those_of_the_loaders(name):
    data, table = load_dataset(name), table_of(name)
    labels = table[entry(name).target].to_pylist()
    names = data.y.tolist() if name == "heart" else [data.class_names[code] for code in data.y]
    assert labels == names


def test_unknown_names_are_told_the_known_ones():
    with pytest.raises(ParameterError, match=r"no data set 'iris'\. The data sets are heart, breast-cancer"):
        entry("iris")


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fetched_files_hold_the_table(monkeypatch, tmp_path, name, ending):
    out = tmp_path / f"set.{ending}"
    code, text, _ = call(monkeypatch, "fetch", name, "-o", out, "--json")
    assert code == 0
    assert json.loads(text) == {"name": name, "path": str(out), "rows": entry(name).rows, "target": entry(name).target}
    read = pyarrow.csv.read_csv(out) if ending == "csv" else pyarrow.parquet.read_table(out)
    expected = table_of(name)
    assert read.column_names == expected.column_names
    for column in (read.column_names[0], entry(name).target):
        assert list(map(str, read[column].to_pylist()[:50])) == list(map(str, expected[column].to_pylist()[:50]))


def test_fetch_writes_into_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, said = call(monkeypatch, "fetch", "wine")
    assert code == 0
    assert said == "178 rows written to wine.csv; the classes are in the column 'target'.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


def test_fetch_refuses_an_ending_that_says_nothing(monkeypatch, tmp_path):
    code, _, said = call(monkeypatch, "fetch", "wine", "-o", tmp_path / "wine.xlsx")
    assert code == 2
    assert ".parquet" in said
    assert list(tmp_path.iterdir()) == []


def test_where_is_a_file_that_is_there(monkeypatch):
    for name in ("heart", "creditcard-sample"):
        code, text, _ = call(monkeypatch, "where", name)
        assert code == 0
        assert text.strip() == str(locate(name))
        assert locate(name).is_file()
        assert json.loads(call(monkeypatch, "where", name, "--json")[1]) == {"name": name, "path": text.strip()}


@pytest.mark.usefixtures("offline")
def test_where_tells_how_to_get_what_has_no_file(monkeypatch):
    code, _, said = call(monkeypatch, "where", "wine")
    assert code == 3
    assert "qmedoid data fetch wine" in said
    assert "download" not in said
    code, text, _ = call(monkeypatch, "where", "creditcard", "--json")
    assert code == json.loads(text)["exit_code"] == 3
    assert "after a download; or set QMEDOID_DATA" in json.loads(text)["error"]


@pytest.mark.usefixtures("offline")
def test_list_says_what_is_here(monkeypatch):
    code, text, _ = call(monkeypatch, "list", "--json")
    assert code == 0
    assert {name: one["here"] for name, one in json.loads(text).items()} == {
        name: name != "creditcard" for name in CATALOG
    }
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        code, text, _ = call(monkeypatch, "list")
        assert code == 0
        assert all(f" {word} " in text for name in CATALOG for word in (name, CATALOG[name].target))
        assert "qmedoid data fetch creditcard" in text


class TestCreditCard:
    def test_without_a_network_says_what_to_do(self, monkeypatch, offline, tmp_path):
        out = tmp_path / "o.parquet"
        code, _, said = call(monkeypatch, "fetch", "creditcard", "-o", out)
        assert code == 3
        assert "could not be downloaded from OpenML (there is no network)" in said
        assert "QMEDOID_DATA" in said
        assert not out.exists()
        assert not offline.exists()

    @pytest.mark.usefixtures("offline")
    def test_a_folder_of_data_is_looked_into(self, monkeypatch, tmp_path):
        pyarrow.parquet.write_table(fake_creditcard(), tmp_path / "creditcard.parquet")
        monkeypatch.setenv("QMEDOID_DATA", str(tmp_path))
        assert locate("creditcard") == tmp_path / "creditcard.parquet"
        assert table_of("creditcard").equals(fake_creditcard())

    @pytest.mark.usefixtures("small_counts")
    def test_a_download_is_checked_kept_and_not_repeated(self, monkeypatch, offline, tmp_path):
        import sklearn.datasets

        table = fake_creditcard()
        calls = []

        def download(**options):
            calls.append(options)
            features = ["Time", "Amount"]
            data = np.column_stack([table[name].to_numpy() for name in features])
            return SimpleNamespace(feature_names=features, data=data, target=table["Class"].to_numpy().astype(str))

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", download)
        code, _, _ = call(monkeypatch, "fetch", "creditcard", "-o", tmp_path / "o.parquet")
        assert code == 0
        assert pyarrow.parquet.read_table(tmp_path / "o.parquet").equals(table)
        assert [path.name for path in offline.iterdir()] == ["creditcard.parquet"]
        assert locate("creditcard") == offline / "creditcard.parquet"
        assert table_of("creditcard").equals(table)
        assert len(calls) == 1

    @pytest.mark.parametrize("wrong", [{"n_rows": 39}, {"n_frauds": 5}, {"amount": 2.6}])
    @pytest.mark.usefixtures("small_counts")
    def test_a_wrong_table_is_refused(self, wrong):
        check_creditcard(fake_creditcard())
        with pytest.raises(DataError, match=r"40 rows, 4 frauds and amounts of 100\.00 in all"):
            check_creditcard(fake_creditcard(**wrong))

    @pytest.mark.usefixtures("small_counts")
    def test_a_wrong_download_is_not_kept(self, monkeypatch, offline, tmp_path):
        import sklearn.datasets

        bunch = SimpleNamespace(feature_names=["Time", "Amount"], data=np.zeros((3, 2)), target=np.array(["0"] * 3))
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
        code, _, said = call(monkeypatch, "fetch", "creditcard", "-o", tmp_path / "o.csv")
        assert code == 3
        assert "Got 3, 0 and 0.00" in said
        assert not offline.exists()
        assert not (tmp_path / "o.csv").exists()
