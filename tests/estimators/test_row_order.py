"""A fit does not depend on the order of the rows: the same rows in another order give the same model, bit for bit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import PredefinedSplit

from few_trees import few_trees
from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)

CIRCUIT = VariationalClassifier(n_steps=10, n_reps=1, n_seeds=1, cv=3)
EVIDENCE = EvidenceClassifier(n_medoids=12, n_pairs=3, n_triples=2, random_state=0)
NEAREST = NearestMedoidClassifier(n_anchors=3, subset_sizes=(2, 2), max_passes=1, n_models=2, random_state=0)
ESTIMATORS = {
    "evidence": EVIDENCE,
    "evidence, folds": EvidenceClassifier(n_medoids=8, n_pairs=2, n_triples=1, cv=3, random_state=0),
    "sum": SumClassifier(n_medoids=12, n_pairs=3, n_triples=2, random_state=0),
    "rare": RareEventClassifier(n_common=40, n_hard=10, operating_point="macro_f1", random_state=0),
    "nearest": NEAREST,
    "circuit": VariationalClassifier(n_steps=10, n_reps=1, n_seeds=1, operating_point="macro_f1", random_state=0),
    "front door": MedoidClassifier(method=EVIDENCE, random_state=0),
    "front door, circuit": MedoidClassifier(method=EVIDENCE, refine=0.5, variational=CIRCUIT, random_state=0),
    "front door, nearest": MedoidClassifier(method=NEAREST, refine="never", random_state=0),
}


@pytest.fixture(autouse=True)
def ten_trees():
    with few_trees(n_iterations=10), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def drawn(n=140, seed=0):
    """Numbers, some of them equal, a copy of a column, a few equal rows, and two classes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 3, size=(n, 2))])
    X = np.column_stack([X, X[:, 0]])
    X[-6:] = X[:6]
    return X, (X[:, 0] * X[:, 1] + X[:, 3] + 0.7 * rng.normal(size=n) > 1.2).astype(int)


def with_categories(n=220, seed=0):
    """A raw table with missing cells, few levels, many levels, truth values and dates."""
    rng = np.random.default_rng(seed)
    shop, size = rng.integers(0, 60, n), rng.normal(size=n)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "shop": [f"shop {number}" for number in shop],
            "color": rng.choice(["red", "green", "blue", None], n),
            "paid": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )
    return table, np.where(size + 0.3 * (shop % 7) + rng.normal(size=n) > 1, "yes", "no")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("grouped", [False, True])
def test_shuffled_rows_give_the_same_model(name, grouped):
    X, y = drawn()
    new, _ = drawn(60, seed=1)
    groups = np.arange(len(X)) // 3 if grouped else None
    order = np.random.default_rng(5).permutation(len(X))
    estimator = ESTIMATORS[name]
    one = estimator.fit(X, y, groups=groups)
    decided, rows = one.decision_function(new), medoid_records(one, X)
    other = estimator.fit(X[order], y[order], groups=None if groups is None else groups[order])
    np.testing.assert_array_equal(other.decision_function(new), decided)
    np.testing.assert_array_equal(medoid_records(other, X[order]), rows)


def medoid_records(fitted, X):
    """The rows of the table that the models name as medoids, and what they keep of them."""
    model = fitted.model_
    if model.medoids is None:
        return np.zeros(0)
    named = X[model.medoids.numbers]
    kept = np.array([list(record.values()) for record in model.records])
    places = getattr(fitted, "_number_places", np.arange(X.shape[1]))
    np.testing.assert_array_equal(named[:, places], kept)
    return named


@pytest.mark.parametrize("few", [True, False])
def test_raw_table_with_large_categories_may_be_shuffled(few):
    table, y = with_categories(220 if few else 1100)
    new, _ = with_categories(80, seed=1)
    order = np.random.default_rng(5).permutation(len(table))
    model = MedoidClassifier(method=EVIDENCE, operating_point="macro_f1", random_state=0)
    model.fit(table, y)
    decided, records, expected = model.decision_function(new), model.medoid_records_, model.expected_
    model.fit(table.iloc[order], y[order])
    np.testing.assert_array_equal(model.decision_function(new), decided)
    assert model.expected_ == expected
    assert repr(model.medoid_records_) == repr(records)


def test_names_of_levels_and_classes_play_no_part():
    table, y = with_categories()
    new, _ = with_categories(80, seed=1)
    renamed = {f"shop {number}": f"{(number * 37) % 61:02d}" for number in range(60)}
    model = MedoidClassifier(method=EVIDENCE, random_state=0)
    decided = model.fit(table, y).decision_function(new)
    again = model.fit(table.assign(shop=table["shop"].map(renamed)), np.where(y == "yes", "b", "a"))
    np.testing.assert_array_equal(again.decision_function(new.assign(shop=new["shop"].map(renamed))), decided)


@pytest.mark.parametrize("name", ["nearest", "front door", "front door, circuit"])
def test_validation_rows_may_be_shuffled_too(name):
    X, y = drawn()
    X_val, y_val = drawn(60, seed=2)
    new, _ = drawn(60, seed=1)
    first, second = (np.random.default_rng(seed).permutation(n) for seed, n in ((5, len(X)), (6, len(X_val))))
    estimator = ESTIMATORS[name]
    decided = estimator.fit(X, y, X_val=X_val, y_val=y_val).decision_function(new)
    estimator.fit(X[first], y[first], X_val=X_val[second], y_val=y_val[second])
    np.testing.assert_array_equal(estimator.decision_function(new), decided)


@pytest.mark.parametrize("grouped", [False, True])
def test_splits_name_rows_as_they_are_given(grouped):
    """Splits that are given, by row numbers or by a splitter that has a fold for every row, follow the rows."""
    X, y = drawn()
    new, _ = drawn(60, seed=1)
    groups = np.arange(len(X)) // 2 if grouped else np.arange(len(X))
    fold = groups % 3
    order = np.random.default_rng(5).permutation(len(X))
    decided = []
    for rows in (np.arange(len(X)), order):
        by_number = [(np.flatnonzero(fold[rows] != part), np.flatnonzero(fold[rows] == part)) for part in range(3)]
        splits = [by_number] if grouped else [by_number, PredefinedSplit(fold[rows])]
        for cv in splits:
            model = EvidenceClassifier(n_medoids=8, n_pairs=2, n_triples=1, cv=cv, random_state=0)
            decided.append(model.fit(X[rows], y[rows], groups=groups[rows]).decision_function(new))
        circuit = VariationalClassifier(n_steps=10, n_reps=1, n_seeds=1, cv=by_number)
        front = MedoidClassifier(method=EVIDENCE, refine="always", variational=circuit, random_state=0)
        decided.append(front.fit(X[rows], y[rows], groups=groups[rows]).decision_function(new))
    half = len(decided) // 2
    for one, other in zip(decided[:half], decided[half:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_that_are_named_are_those_of_the_table():
    """Medoids and rows of comparisons are numbered as in the table that was given."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0.3)).astype(int)
    total = SumClassifier(n_medoids=4, n_pairs=0, n_triples=0, n_neighbors=0, random_state=0).fit(X, y).model_
    np.testing.assert_array_equal(y[total.medoids.numbers], total.medoids.classes)
    _, trees = total.parts
    np.testing.assert_array_equal(y[trees.row_numbers], trees.row_classes)
