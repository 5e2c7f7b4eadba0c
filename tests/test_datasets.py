"""The data sets of the paper: sizes, classes, the encodings of heart, the sample of the credit-card frauds."""

import csv

import numpy as np
import pytest

from qmedoid import datasets
from qmedoid.datasets import (
    load_breast_cancer,
    load_creditcard_sample,
    load_dataset,
    load_heart,
    load_wine,
)
from qmedoid.exceptions import ParameterError


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
    assert datasets.shipped_path(datasets.FILE).stat().st_size < 2_000_000
    table = datasets.read_sample()
    assert table.column_names == ["Time", *load_creditcard_sample().feature_names, "Class"]
    times = table["Time"].to_numpy()
    assert (np.diff(times) >= 0).all()  # the rows stand in the order of the whole table: two days of payments
    assert times.max() < 2 * 24 * 3600
