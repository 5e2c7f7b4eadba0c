"""Fits of Dask collections: the model of the same rows in memory, or, of more, that of passes over all of them."""

import numpy as np
import pandas as pd
import pytest

from qmedoid import MedoidClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning
from qmedoid.large import split

da = pytest.importorskip("dask.array", reason="pip install 'qmedoid[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="pip install 'qmedoid[dask]'")

N_ROWS = 12_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N_ROWS))
    shop = rng.choice(["north", "south", "west"], size=N_ROWS)
    is_fraud = rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(5.5 - 2.0 * a - 1.5 * (shop == "west")))
    return pd.DataFrame({"a": a, "b": b, "shop": pd.Categorical(shop), "class": np.where(is_fraud, "fraud", "normal")})


def parts(data, n):
    return dd.from_pandas(data, npartitions=n)


def test_a_data_frame_that_fits_in_memory_is_fitted_as_such(frame):
    some = frame[:800]
    rows, labels = some.drop(columns="class"), some["class"]
    plain = MedoidClassifier(method="evidence", random_state=0).fit(rows, labels)
    for n in (1, 7):
        found = MedoidClassifier(method="evidence", random_state=0).fit(parts(rows, n), parts(labels, n))
        assert found.predict_proba(rows).tobytes() == plain.predict_proba(rows).tobytes()
        assert found.feature_names_in_.tolist() == ["a", "b", "shop"]
        assert found.notes_ == plain.notes_


def test_values_that_are_missing_are_read_as_empty_cells(frame):
    some = frame[:800].copy()
    labels, absent = some.pop("class"), np.arange(800) % 7 == 0
    values, empty = some.assign(b=some["b"].mask(absent, -99)), some.assign(b=some["b"].mask(absent))
    plain = MedoidClassifier(method="evidence", random_state=0).fit(empty, labels)
    found = MedoidClassifier(method="evidence", missing={"b": [-99]}, random_state=0)
    found.fit(parts(values, 3), parts(labels, 3))
    expected = plain.predict_proba(empty).tobytes()
    assert found.predict_proba(values).tobytes() == expected
    assert found.predict_proba(parts(values, 4)).compute().to_numpy().tobytes() == expected


def test_so_is_an_array(frame):
    X, y = frame[["a", "b"]].to_numpy()[:800], (frame["class"] == "fraud").to_numpy()[:800].astype(int)
    plain = MedoidClassifier(method="evidence", random_state=0).fit(X, y)
    found = MedoidClassifier(method="evidence", random_state=0).fit(
        da.from_array(X, chunks=(300, 1)), da.from_array(y, chunks=170)
    )
    assert found.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()
    assert not hasattr(found, "feature_names_in_")
    assert found.n_features_in_ == 2
    assert found.model_.contract == plain.model_.contract


def test_one_that_needs_more_memory_is_fitted_in_passes(frame, monkeypatch):
    monkeypatch.setattr(split, "ROW_BYTES", 50_000)
    method = RareEventClassifier(comparisons=False, n_rare=60, n_common=120, n_hard=40)

    def fit(n):
        made = MedoidClassifier(method=method, operating_point={"alert_rate": 0.05}, positive="fraud", random_state=0)
        with pytest.warns(QMedoidWarning, match="fitted in passes"):
            return made.fit(parts(frame, n), "class", memory="640MB")

    one, many = fit(1), fit(6)
    rows = frame.drop(columns="class")
    assert one.predict_proba(rows).tobytes() == many.predict_proba(rows).tobytes()
    assert one.classes_.tolist() == ["fraud", "normal"]
    shares = one.predict_proba(rows).mean(axis=0)
    # Probabilities and alerts are those of all rows, of which the sample has every fraud.
    assert abs(shares[0] - (frame["class"] == "fraud").mean()) < 0.01
    assert 0.03 < (one.predict(rows) == "fraud").mean() < 0.07
    assert one.expected_.n_rows > 500
    assert one.model_.training.n_rows == N_ROWS
    loaded = one.model_
    assert loaded.decision is one.model_.decision
    assert one.medoid_records_[0] == frame.iloc[one.model_.medoids.numbers[0]].drop("class").to_dict()
    expected = np.zeros(3)
    expected[[["a", "b", "shop"].index(name) for name in one.model_.contract.names]] = loaded.importances
    np.testing.assert_array_equal(one.feature_importances_, expected)


def test_what_cannot_be_is_refused(frame):
    rows = parts(frame.drop(columns="class"), 3)
    with pytest.raises(ParameterError, match="sample_weight is for tables in memory"):
        MedoidClassifier().fit(rows, parts(frame["class"], 3), sample_weight=np.ones(N_ROWS))
    with pytest.raises(DataError, match="X has 3 partitions and y has 2"):
        MedoidClassifier().fit(rows, parts(frame["class"], 2))
    with pytest.raises(DataError, match="must be a Dask series"):
        MedoidClassifier().fit(rows, frame["class"])
    with pytest.raises(ParameterError, match="memory= is for Dask collections"):
        MedoidClassifier().fit(frame.drop(columns="class"), frame["class"], memory="1GB")
    with pytest.raises(ParameterError, match="a size such as 2GB"):
        MedoidClassifier().fit(rows, parts(frame["class"], 3), memory="plenty")
