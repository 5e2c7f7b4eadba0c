"""The data sets of the paper: sizes, classes, the encodings of heart, the sample of the credit-card frauds."""

import csv
from types import SimpleNamespace

import numpy as np
import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from benchmarks.datasets import (
    load_breast_cancer,
    load_creditcard,
    load_creditcard_sample,
    load_dataset,
    load_heart,
)

from qmedoid import datasets
from qmedoid.datasets import CATALOG, FEATURES, check_whole, entry, locate, status, table_of
from qmedoid.exceptions import DataError, ParameterError


def heart_rows():
    text = datasets.read_shipped("heart.csv").decode()
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [("heart", (918, 18), [410, 508]), ("breast-cancer", (569, 30), [357, 212]), ("wine", (178, 13), [59, 71, 48])],
)
def test_sizes_and_class_counts_are_those_of_the_paper(name, shape, counts):
    data = load_dataset(name)
    assert data.X.shape == shape
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert data.y.shape == shape[:1]
    assert np.bincount(data.y).tolist() == counts
    assert len(set(data.feature_names)) == shape[1]
    assert len(data.class_names) == len(counts)
    assert data.n_columns == {"heart": 11}.get(name, shape[1])
    table = table_of(name)
    labels = data.y.tolist() if name == "heart" else [data.class_names[code] for code in data.y]
    assert table[entry(name).target].to_pylist() == labels


def test_malignant_is_the_class_looked_for():
    data = load_breast_cancer()
    assert dict(zip(data.class_names, np.bincount(data.y), strict=True)) == {"benign": 357, "malignant": 212}
    radius = data.X[:, data.feature_names.index("mean radius")]
    assert radius[data.y == 1].mean() > radius[data.y == 0].mean()


def test_onehot_gives_each_category_a_column_and_two_valued_ones_one():
    data, rows = load_heart(), heart_rows()
    numbers = ["Age", "RestingBP", "Cholesterol", "FastingBS", "MaxHR", "Oldpeak"]
    categories = {
        "Sex=M", "ExerciseAngina=Y",
        "ChestPainType=ASY", "ChestPainType=ATA", "ChestPainType=NAP", "ChestPainType=TA",
        "RestingECG=LVH", "RestingECG=Normal", "RestingECG=ST",
        "ST_Slope=Down", "ST_Slope=Flat", "ST_Slope=Up",
    }  # fmt: skip
    by_name = dict(zip(data.feature_names, data.X.T, strict=True))
    assert set(by_name) == {*numbers, *categories}
    for name, values in by_name.items():
        column, _, level = name.partition("=")
        expected = [float(row[column] == level) if level else float(row[column]) for row in rows]
        np.testing.assert_array_equal(values, expected, err_msg=name)
    for column in ("ChestPainType", "RestingECG", "ST_Slope"):
        own = [values for name, values in by_name.items() if name.startswith(column + "=")]
        np.testing.assert_array_equal(np.sum(own, axis=0), 1)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"no data set 'iris'\. The data sets are heart, breast-cancer, wine\."):
        load_dataset("iris")


# --- the sample of the credit-card frauds -------------------------------------------------------------------------


def test_the_fraud_sample_has_every_fraud_and_one_in_twenty_normal_rows():
    data = load_creditcard_sample()
    assert data.X.shape == (14_707, 29)
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert data.feature_names == (*(f"V{i}" for i in range(1, 29)), "Amount")
    assert np.bincount(data.y).tolist() == [284_315 // 20, 492]
    assert data.class_names == ("normal", "fraud")
    assert (data.X.std(axis=0) > 0).all()
    np.testing.assert_array_equal(data.times, table_of("creditcard-sample")["Time"].to_numpy())
    for place in (0, 13, 28):
        own = table_of("creditcard-sample")[data.feature_names[place]].to_numpy()
        np.testing.assert_array_equal(data.X[:, place], own)


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


HERE = [name for name in CATALOG if name != "creditcard"]


@pytest.mark.parametrize("name", HERE)
def test_what_the_catalogue_says_is_what_the_table_is(name):
    table, known = table_of(name), entry(name)
    assert (table.num_rows, table.num_columns) == (known.rows, known.columns)
    assert table.column_names[-1] == known.target
    if known.positive:
        assert known.positive in set(map(str, table[known.target].unique().to_pylist()))


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

    def test_a_shipped_file_that_is_gone_is_told(self, monkeypatch, tmp_path):
        monkeypatch.setattr(datasets, "shipped_path", lambda _: tmp_path / "none")
        with pytest.raises(DataError, match="cannot be read"):
            table_of("heart")

    def test_list_tells_what_is_refused(self, cli, offline):
        offline.mkdir()
        pyarrow.parquet.write_table(fake_creditcard(), offline / "creditcard.parquet")
        outcome = cli.ok("data", "list")
        assert " refused " in outcome.out
        assert "Got 40, 4 and 100.00" in outcome.err
        listed = cli.ok("data", "list", "--json").json["sets"]["creditcard"]
        assert (listed["here"], listed["status"]) == (True, "refused")
        assert "Got 40, 4 and 100.00" in listed["problem"]


class TestCreditCard:
    @pytest.mark.usefixtures("offline")
    def test_without_a_network_says_what_to_do(self, cli, tmp_path):
        outcome = cli("data", "fetch", "creditcard", "-o", tmp_path / "o.parquet")
        assert outcome.code == 3
        assert "could not be downloaded from OpenML (there is no network)" in outcome.err
        assert "QMEDOID_DATA" in outcome.err
        assert list(tmp_path.iterdir()) == []

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
        cli.ok("data", "fetch", "creditcard", "-o", tmp_path / "o.parquet")
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
        outcome = cli("data", "fetch", "creditcard", "-o", tmp_path / "o.csv")
        assert (outcome.code, "Got 3, 0 and 0.00" in outcome.err) == (3, True)
        assert not offline.exists()
        assert not (tmp_path / "o.csv").exists()
