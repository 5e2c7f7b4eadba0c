"""The data sets of the paper: sizes, classes, the encodings of heart, the sample of the credit-card frauds."""

from types import SimpleNamespace

import numpy as np
import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from benchmarks.datasets import (
    load_creditcard,
    load_creditcard_sample,
    load_dataset,
)

from qmedoid import datasets
from qmedoid.datasets import CATALOG, FEATURES, entry, locate, status, table_of
from qmedoid.exceptions import DataError, ParameterError


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
