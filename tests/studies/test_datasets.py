"""The data sets of the paper: sizes, classes, the encodings of heart, the sample of the credit-card frauds."""

import csv
import os
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.studies import datasets
from qmedoid.studies.datasets import (
    LOADERS,
    load_breast_cancer,
    load_creditcard_sample,
    load_dataset,
    load_heart,
    load_wine,
)
from qmedoid.studies.paper import PAPER


def heart_rows():
    text = (files("qmedoid.studies") / "data" / "heart.csv").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("name", LOADERS)
def test_every_data_set_has_figures_of_the_paper_to_stand_beside(name):
    assert "Fusion" in PAPER[load_dataset(name).name]


def test_malignant_is_the_class_looked_for():
    data = load_breast_cancer()
    assert dict(zip(data.class_names, np.bincount(data.y), strict=True)) == {"benign": 357, "malignant": 212}
    radius = data.X[:, data.feature_names.index("mean radius")]
    assert radius[data.y == 1].mean() > radius[data.y == 0].mean()


def test_onehot_gives_each_category_a_column_and_two_valued_ones_one():
    data, rows = load_heart("onehot"), heart_rows()
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


def test_ordinal_numbers_the_categories_alphabetically():
    data, rows = load_heart("ordinal"), heart_rows()
    assert data.X.shape == (918, 11)
    assert list(data.feature_names) == [name for name in rows[0] if name != "HeartDisease"]
    slope = data.X[:, data.feature_names.index("ST_Slope")]
    np.testing.assert_array_equal(slope, [["Down", "Flat", "Up"].index(row["ST_Slope"]) for row in rows])
    sex = data.X[:, data.feature_names.index("Sex")]
    np.testing.assert_array_equal(sex, [float(row["Sex"] == "M") for row in rows])
    age = data.X[:, data.feature_names.index("Age")]
    np.testing.assert_array_equal(age, [float(row["Age"]) for row in rows])


def test_both_encodings_describe_the_same_patients():
    np.testing.assert_array_equal(load_heart("onehot").y, load_heart("ordinal").y)
    np.testing.assert_array_equal(load_heart().y, [int(row["HeartDisease"]) for row in heart_rows()])


def test_an_unknown_encoding_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"'onehot', 'ordinal'.*Got 'target' instead"):
        load_heart("target")  # type: ignore[arg-type]


def test_wine_keeps_its_three_cultivars():
    assert load_wine().class_names == ("1", "2", "3")


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
    np.testing.assert_array_equal(data.times, datasets.read_sample()["Time"].to_numpy())
    for place in (0, 13, 28):
        own = datasets.read_sample()[data.feature_names[place]].to_numpy()
        np.testing.assert_array_equal(data.X[:, place], own)


def test_the_file_is_small_and_keeps_the_time():
    with as_file(files("qmedoid.studies") / "data" / datasets.FILE) as path:
        assert path.stat().st_size < 2_000_000
    table = datasets.read_sample()
    assert table.column_names == ["Time", *load_creditcard_sample().feature_names, "Class"]
    times = table["Time"].to_numpy()
    assert (np.diff(times) >= 0).all()  # the rows stand in the order of the whole table: two days of payments
    assert times.max() < 2 * 24 * 3600


def test_writing_the_sample_gives_the_same_bytes_each_time(tmp_path):
    table = datasets.read_sample()
    for name in ("a", "b"):
        datasets.write_sample(table, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert pq.read_table(tmp_path / "a").equals(table)


def test_sample_is_not_drawn_from_another_table():
    with pytest.raises(DataError, match="lacks the numbers"):
        datasets.draw_sample(pa.table({"V1": [0.0, 1.0, 2.0, 3.0], "Class": [0, 0, 1, 0]}))


def test_drawing_again_without_the_whole_table_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("QMEDOID_DATA", "no-such-folder")
    with pytest.raises(SystemExit, match=r"mlg-ulb/creditcardfraud.*set QMEDOID_DATA"):
        datasets.main()


def test_the_sample_is_drawn_again_from_the_whole_table():
    path = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not path.is_file():
        pytest.skip(
            "needs creditcard.parquet (the Kaggle set mlg-ulb/creditcardfraud as Parquet): "
            "set QMEDOID_DATA to the folder that holds it"
        )
    whole = pq.read_table(path)
    assert datasets.draw_sample(whole).equals(datasets.read_sample())
