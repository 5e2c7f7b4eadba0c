"""The data sets that the package knows, and `qmedoid data`: list, where, fetch, and what happens without a network."""

import json
from types import SimpleNamespace

import numpy as np
import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from qmedoid import datasets
from qmedoid.datasets import (
    CATALOG,
    FEATURES,
    check_whole,
    entry,
    load_creditcard,
    load_dataset,
    locate,
    status,
    table_of,
)
from qmedoid.exceptions import DataError, ParameterError

HERE = [name for name in CATALOG if name != "creditcard"]


def call(cli, *arguments):
    """Exit code, standard output and standard error of ``qmedoid data …``."""
    outcome = cli("data", *arguments)
    return outcome.code, outcome.out, outcome.err


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
    """A table with the columns of the whole one; times go up, and every number is another."""
    values = {name: 100.0 * place + np.arange(n_rows) for place, name in enumerate(FEATURES[:-1])}
    labels = (np.arange(n_rows) < n_frauds) * 1
    return pa.table(
        {"Time": np.arange(n_rows, dtype=float), **values, "Amount": np.full(n_rows, amount), "Class": labels}
    )


def as_kaggle_writes(table):
    """CSV text with quoted names and classes, and a large round second as Kaggle's file has it."""
    lines = [",".join(f'"{name}"' for name in table.column_names)]
    for row in table.to_pylist():
        *numbers, label = row.values()
        lines.append(",".join([*(f"{number:.5g}" for number in numbers), f'"{label}"']))
    return "\n".join(lines) + "\n"


@pytest.fixture
def small_counts(monkeypatch):
    """The counts of a table small enough for a test in the place of those published."""
    monkeypatch.setattr(datasets, "N_ROWS", 40)
    monkeypatch.setattr(datasets, "N_FRAUDS", 4)
    monkeypatch.setattr(datasets, "AMOUNTS", 100.0)


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


class TestChecks:
    @pytest.mark.parametrize("name", ["heart", "creditcard-sample"])
    def test_a_shipped_file_that_was_changed_is_refused(self, monkeypatch, tmp_path, name):
        whole = locate(name).read_bytes()
        spoilt = tmp_path / "spoilt"
        spoilt.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        monkeypatch.setattr(datasets, "shipped_path", lambda _: spoilt)
        with pytest.raises(DataError, match=r"is not the one that ships with qmedoid.*Install qmedoid again"):
            table_of(name)
        assert status(name)[0] == "refused"
        loader = {"heart": datasets.load_heart, "creditcard-sample": datasets.load_creditcard_sample}[name]
        with pytest.raises(DataError, match="SHA-256"):
            loader()

    def test_a_shipped_file_that_is_gone_is_told(self, monkeypatch, tmp_path):
        monkeypatch.setattr(datasets, "shipped_path", lambda _: tmp_path / "none")
        with pytest.raises(DataError, match="cannot be read"):
            table_of("heart")

    @pytest.mark.parametrize("name", ["breast-cancer", "wine"])
    def test_numbers_of_another_package_that_were_changed_are_refused(self, monkeypatch, name):
        import sklearn.datasets

        function = f"load_{name.replace('-', '_')}"
        bunch = getattr(sklearn.datasets, function)()
        bunch.data[3, 4] = np.nextafter(bunch.data[3, 4], np.inf)
        monkeypatch.setattr(sklearn.datasets, function, lambda: bunch)
        with pytest.raises(DataError, match=r"of the installed scikit-learn is not the one.*Install a released"):
            load_dataset(name)
        assert status(name)[0] == "refused"
        assert "SHA-256" in status(name)[1]

    def test_list_tells_what_is_refused(self, cli, offline):
        offline.mkdir()
        pyarrow.parquet.write_table(fake_creditcard(), offline / "creditcard.parquet")
        code, text, said = call(cli, "list")
        assert code == 0
        assert " refused " in text
        assert "Got 40, 4 and 100.00" in said
        listed = json.loads(call(cli, "list", "--json")[1])["sets"]["creditcard"]
        assert listed["here"]
        assert listed["status"] == "refused"
        assert "Got 40, 4 and 100.00" in listed["problem"]


class TestCreditCard:
    def test_without_a_network_says_what_to_do(self, cli, offline, tmp_path):
        out = tmp_path / "o.parquet"
        code, _, said = call(cli, "fetch", "creditcard", "-o", out)
        assert code == 3
        assert "could not be downloaded from OpenML (there is no network)" in said
        assert "QMEDOID_DATA" in said
        assert not out.exists()
        assert not offline.exists()

    @pytest.mark.usefixtures("offline", "small_counts")
    def test_a_folder_of_data_is_looked_into(self, monkeypatch, tmp_path):
        monkeypatch.setenv("QMEDOID_DATA", str(tmp_path))
        table = fake_creditcard()
        table = table.set_column(0, "Time", pa.array([*range(39), 100_000.0]))
        (tmp_path / "creditcard.csv").write_text(as_kaggle_writes(table))
        assert "1e+05" in (tmp_path / "creditcard.csv").read_text()
        assert locate("creditcard") == tmp_path / "creditcard.csv"
        assert table_of("creditcard").equals(table)
        pyarrow.parquet.write_table(table, tmp_path / "creditcard.parquet")
        assert locate("creditcard") == tmp_path / "creditcard.parquet"
        assert table_of("creditcard").equals(table)
        assert status("creditcard")[0] == "checked"

    @pytest.mark.usefixtures("offline", "small_counts")
    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_the_data_set_has_the_numbers_labels_and_times_of_the_file(self, monkeypatch, tmp_path, ending):
        table = fake_creditcard()
        if ending == "csv":
            (tmp_path / "creditcard.csv").write_text(as_kaggle_writes(table))
        else:
            pyarrow.parquet.write_table(table, tmp_path / "creditcard.parquet", row_group_size=7)
        monkeypatch.setenv("QMEDOID_DATA", str(tmp_path))
        data = load_creditcard()
        assert data.name == "Credit-card fraud"
        assert data.feature_names == FEATURES
        np.testing.assert_array_equal(data.X, np.column_stack([table[name].to_numpy() for name in FEATURES]))
        np.testing.assert_array_equal(data.y, table["Class"].to_numpy())
        np.testing.assert_array_equal(data.times, table["Time"].to_numpy())

    @pytest.mark.usefixtures("offline", "small_counts")
    def test_without_seconds_the_order_of_the_rows_is_that_of_time(self, monkeypatch, tmp_path):
        pyarrow.parquet.write_table(fake_creditcard().drop_columns(["Time"]), tmp_path / "creditcard.parquet")
        monkeypatch.setenv("QMEDOID_DATA", str(tmp_path))
        np.testing.assert_array_equal(load_creditcard().times, np.arange(40))

    @pytest.mark.usefixtures("small_counts")
    def test_a_wrong_file_is_refused_with_what_to_do(self, monkeypatch, offline, tmp_path):
        monkeypatch.setenv("QMEDOID_DATA", str(tmp_path))
        path = tmp_path / "creditcard.parquet"
        wrong = {
            "Got 39, 4 and 97.50 from": fake_creditcard(n_rows=39),
            r"lacks the numbers V3, Class\.": fake_creditcard().drop_columns(["V3", "Class"]),
            r"lacks the numbers Amount\.": fake_creditcard().set_column(29, "Amount", pa.array(["2.5"] * 40)),
        }
        for message, table in wrong.items():
            pyarrow.parquet.write_table(table, path)
            with pytest.raises(DataError, match=message) as caught:
                load_creditcard()
            assert "Kaggle" in str(caught.value)
            assert "QMEDOID_DATA" in str(caught.value)
            assert "cache" not in str(caught.value)
        path.write_bytes(b"PAR1 and then nothing")
        with pytest.raises(DataError, match="cannot be read as the credit-card table"):
            load_creditcard()
        path.unlink()
        (tmp_path / "creditcard.csv").write_text("V1,Class\n1,0\nmany,0\n")
        with pytest.raises(DataError, match="cannot be read as the credit-card table"):
            load_creditcard()
        (tmp_path / "creditcard.csv").unlink()
        offline.mkdir()
        pyarrow.parquet.write_table(fake_creditcard(n_frauds=3), offline / "creditcard.parquet")
        with pytest.raises(DataError, match="a copy in the cache: delete it"):
            table_of("creditcard")

    @pytest.mark.usefixtures("small_counts")
    def test_a_download_is_checked_kept_and_not_repeated(self, cli, monkeypatch, offline, tmp_path):
        import sklearn.datasets

        table = fake_creditcard()
        calls = []

        def download(**options):
            calls.append(options)
            features = ["Time", *FEATURES]
            data = np.column_stack([table[name].to_numpy() for name in features])
            return SimpleNamespace(feature_names=features, data=data, target=table["Class"].to_numpy().astype(str))

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", download)
        code, _, _ = call(cli, "fetch", "creditcard", "-o", tmp_path / "o.parquet")
        assert code == 0
        assert pyarrow.parquet.read_table(tmp_path / "o.parquet").equals(table)
        assert [path.name for path in offline.iterdir()] == ["creditcard.parquet"]
        assert locate("creditcard") == offline / "creditcard.parquet"
        assert table_of("creditcard").equals(table)
        assert len(calls) == 1

    @pytest.mark.parametrize("wrong", [{"n_rows": 39}, {"n_frauds": 5}, {"amount": 2.6}, {"amount": np.nan}])
    @pytest.mark.usefixtures("small_counts")
    def test_a_wrong_table_is_refused(self, wrong):
        check_whole(fake_creditcard(), "here")
        with pytest.raises(DataError, match=r"40 rows, 4 frauds and amounts of 100\.00 in all"):
            check_whole(fake_creditcard(**wrong), "here")

    @pytest.mark.usefixtures("small_counts")
    def test_a_wrong_download_is_not_kept(self, cli, monkeypatch, offline, tmp_path):
        import sklearn.datasets

        bunch = SimpleNamespace(feature_names=FEATURES, data=np.zeros((3, 29)), target=np.array(["0"] * 3))
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
        code, _, said = call(cli, "fetch", "creditcard", "-o", tmp_path / "o.csv")
        assert code == 3
        assert "Got 3, 0 and 0.00" in said
        assert not offline.exists()
        assert not (tmp_path / "o.csv").exists()
