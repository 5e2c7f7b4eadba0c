"""Encodings are scikit-learn's: our plain arrays, applied to new rows, give what its encoders give."""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from qmedoid.estimators.encoding import fit_encodings
from qmedoid.model.contract import Column
from qmedoid.tables.encode import encode_column
from qmedoid.tables.kinds import infer_columns


def fit(values, codes=None, *, classes=("no", "yes"), seed=0, **settings_):
    table = pa.table({"c": values})
    codes = np.arange(table.num_rows) % len(classes) if codes is None else np.asarray(codes)
    inferred = infer_columns(table)
    rng = np.random.default_rng(seed)
    return fit_encodings(table, inferred.columns, codes, classes, rng, **settings_)


def apply(encoded, values):
    given_ = pa.array(values, pa.string()) if encoded.columns[0].kind == "category" else pa.array(values)
    return np.column_stack(encode_column(given_, encoded.columns[0], encoded.encodings[0]))


def as_column(values):
    return np.array(values, dtype=object)[:, None]


some_levels = st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=2, max_size=30).filter(
    lambda values: len(set(values)) > 1 and any(value is not None for value in values)
)


@given(some_levels, st.lists(st.sampled_from(["a", "b", "c", "d", "new", None]), min_size=1))
@settings(max_examples=30, deadline=None)
def test_few_levels_are_one_hot(values, new):
    encoded = fit(values)
    drop = "if_binary" if None not in values else None
    sklearn = OneHotEncoder(sparse_output=False, handle_unknown="ignore", drop=drop).fit(as_column(values))
    if None not in values:  # scikit-learn then takes None for a level like any other that is new
        assert not encoded.columns[0].missing
    np.testing.assert_array_equal(apply(encoded, values), sklearn.transform(as_column(values)))
    np.testing.assert_array_equal(encoded.matrix, apply(encoded, values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn tells of new levels
        np.testing.assert_array_equal(apply(encoded, new), sklearn.transform(as_column(new)))
    assert encoded.columns[0].levels == tuple(sorted({value for value in values if value is not None}))
    assert not encoded.columns[0].is_open


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("with_missing", [False, True])
def test_many_levels_are_encoded_by_target(n_classes, with_missing):
    rng = np.random.default_rng(1)
    values = [f"level {number}" for number in rng.integers(0, 30, 400)]
    if with_missing:
        values[::7] = [None] * len(values[::7])
    codes = rng.integers(0, n_classes, 400)
    classes = tuple("xyz"[:n_classes])
    encoded = fit(values, codes, classes=classes)
    sklearn = TargetEncoder(target_type="binary" if n_classes == 2 else "multiclass").fit(as_column(values), codes)
    new = [*values[:50], "never seen"]
    width = 1 if n_classes == 2 else 3
    assert encoded.matrix.shape == (400, width + 1)
    np.testing.assert_allclose(apply(encoded, new)[:, :width], sklearn.transform(as_column(new)), rtol=1e-13)
    # The frequency of a level as a power of two, 0 for one that is new.
    counts = np.array([values.count(value) for value in new])
    expected = np.where(counts > 0, 2.0 ** np.round(np.log2(np.maximum(counts, 1) / 400)), 0.0)
    np.testing.assert_allclose(apply(encoded, new)[:, width], expected, rtol=1e-13)
    assert encoded.columns[0].is_open
    assert encoded.columns[0].levels == ()
    outputs = [": share of y"] if n_classes == 2 else [f": share of {label}" for label in classes]
    assert encoded.encodings[0].outputs == (*outputs, ": frequency")


def test_training_rows_are_described_by_others():
    # Every level says its class, but each occurs once: what a row is told of itself must not be its own label.
    codes = np.random.default_rng(0).integers(0, 2, 300)
    values = [f"level {number}" for number in range(299)] + ["level 0"]
    encoded = fit(values, codes)
    own = encoded.matrix[1:299, 0]
    assert np.abs(own - codes.mean()).max() < 0.1
    # All rows together do tell it, as the table for new rows shows.
    in_sample = apply(encoded, values)[1:299, 0]
    assert in_sample[codes[1:299] == 1].min() > in_sample[codes[1:299] == 0].max()


def test_rare_levels_beyond_the_bound_count_as_unseen():
    values = ["a"] * 30 + ["b"] * 20 + ["c"] * 10 + [f"rare {number}" for number in range(10)]
    codes = np.arange(70) % 2
    encoded = fit(values, codes, max_one_hot=2, max_levels=3)
    assert encoded.encodings[0].levels == ("a", "b", "c")
    unseen = apply(encoded, ["never seen"])
    np.testing.assert_array_equal(unseen, [[codes.mean(), 0.0]])
    np.testing.assert_array_equal(apply(encoded, values)[60:], np.repeat(unseen, 10, axis=0))
    np.testing.assert_array_equal(encoded.matrix[60:], np.repeat(unseen, 10, axis=0))


numbers = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=2).filter(
    lambda values: len({value for value in values if value is not None}) > 1
)


@given(numbers)
@settings(deadline=None)
def test_numbers_are_filled_with_the_median(values):
    encoded = fit(pa.array(values, pa.float64()))
    column = np.array([np.nan if value is None else value for value in values])[:, None]
    sklearn = SimpleImputer(strategy="median", add_indicator=True).fit(column)
    np.testing.assert_array_equal(encoded.matrix, sklearn.transform(column))
    if None not in values:  # scikit-learn has an indicator only where cells were missing, and so do we
        np.testing.assert_array_equal(apply(encoded, [1.5, None]), sklearn.transform([[1.5], [np.nan]]))


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ([dt.date(2024, 1, 1), dt.date(2024, 2, 6)], ("days", "month", "weekday")),
        ([dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 2, 6)], ("days", "month", "weekday", "hour")),
        ([dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 8, 5)], ("days",)),
        ([dt.time(5), dt.time(6)], ("days", "hour")),
    ],
    ids=str,
)
def test_dates_have_the_parts_that_vary(values, parts):
    encoding = fit(values).encodings[0]
    assert encoding.parts == parts
    assert not encoding.indicator


def test_folds_of_tiny_classes_need_no_warning(recwarn):
    values = [f"level {number % 12}" for number in range(13)]
    encoded = fit(values, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5], classes=tuple("abcdef"))
    assert np.isfinite(encoded.matrix).all()
    assert not recwarn.list


def test_seed_decides_the_folds():
    values = [f"level {number % 40}" for number in range(200)]
    codes = np.random.default_rng(0).integers(0, 2, 200)
    one, same, other = (fit(values, codes, seed=seed).matrix for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_boolean_is_one_number():
    encoded = fit([True, False, True])
    assert encoded.columns == (Column("c", "boolean"),)
    np.testing.assert_array_equal(encoded.matrix, [[1.0], [0.0], [1.0]])
