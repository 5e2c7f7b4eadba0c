"""Missing cells and sparse tables of estimators that take numbers mean what they mean to a `MedoidClassifier`."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import qmedoid
from qmedoid import (
    DeltaFeatures,
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)
from qmedoid.exceptions import DataError, QMedoidWarning

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y = np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=120) > 0, "yes", "no")
HOLES = X.copy()
HOLES[rng.random(120) < 0.3, 1] = np.nan
HOLES[rng.random(120) < 0.1, 3] = np.nan
NEAREST = NearestMedoidClassifier(max_passes=0, cv=2, n_models=1, random_state=0)
METHODS = [
    EvidenceClassifier(n_medoids=6, random_state=0),
    SumClassifier(n_medoids=6, comparisons=False, n_neighbors=0, random_state=0),
    RareEventClassifier(comparisons=False, random_state=0),
]
EVERY = [*METHODS, NEAREST, VariationalClassifier(n_steps=10, n_seeds=1, random_state=0)]


def name(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", METHODS, ids=name)
def test_missing_cells_give_the_model_of_the_front_door(estimator):
    fitted = clone(estimator).fit(HOLES, Y)
    front = MedoidClassifier(method=estimator, refine="never").fit(HOLES, Y)
    np.testing.assert_array_equal(fitted.predict_proba(HOLES), front.predict_proba(HOLES))
    ours, theirs = fitted.model_, front.model_
    assert ours.contract.columns == theirs.contract.columns
    assert ours.layout.names == theirs.layout.names
    assert ours.records == theirs.records
    np.testing.assert_array_equal(ours.training.missing, theirs.training.missing)
    np.testing.assert_array_equal(ours.novelty.edges, theirs.novelty.edges)


@pytest.mark.parametrize("estimator", EVERY, ids=name)
def test_missing_cells_survive_saving(estimator, tmp_path):
    fitted = clone(estimator).fit(pd.DataFrame(HOLES, columns=list("abcd")), Y)
    assert fitted.n_features_in_ == 4
    table = pd.DataFrame(HOLES, columns=list("abcd"))
    saved = qmedoid.load(fitted.save(tmp_path / "m"))
    np.testing.assert_array_equal(saved.predict(table), fitted.predict(table))
    np.testing.assert_array_equal(saved.decision_function(table), fitted.decision_function(table))
    if saved.model.medoids is not None:
        row = int(np.flatnonzero(np.isnan(HOLES[:, 1]))[0])
        why = saved.explain(table, row)
        parts = [one["contribution"] for one in why["columns"]] + list(why["terms"].values())
        assert sum(parts) == pytest.approx(why["margin"])
        assert why["record"]["b"] is None
        assert len(why["columns"]) == 4


@pytest.mark.parametrize("estimator", EVERY, ids=name)
def test_missing_cells_that_are_new_are_filled_in_with_a_warning(estimator):
    fitted = clone(estimator).fit(X, Y)
    filled, holes = X.copy(), X.copy()
    holes[:5, 2], filled[:5, 2] = np.nan, np.median(X[:, 2])
    with pytest.warns(QMedoidWarning, match="missing cells: 'x2' has 5, and had none in the training rows"):
        found = fitted.decision_function(holes)
    np.testing.assert_array_equal(found, fitted.decision_function(filled))
    holes[3, 0] = np.inf
    with pytest.raises(DataError, match="contains infinity in column 0, first at row 3"):
        fitted.predict(holes)


def test_columns_without_a_cell_are_left_out_with_a_warning():
    empty = np.column_stack([X[:, 0], np.full(120, np.nan), X[:, 1:]])
    with pytest.warns(QMedoidWarning, match="Column 'x1' was left out: every cell is missing"):
        fitted = clone(METHODS[0]).fit(empty, Y)
    assert fitted.n_features_in_ == 5
    assert fitted.model_.contract.left_out == {"x1": "every cell is missing"}
    np.testing.assert_array_equal(fitted.predict_proba(empty), clone(METHODS[0]).fit(X, Y).predict_proba(X))
    with pytest.raises(DataError, match="every cell of X is NaN"):
        clone(METHODS[0]).fit(np.full((120, 2), np.nan), Y)


def test_missing_cells_of_deltas_are_those_of_their_medoids():
    deltas = DeltaFeatures(NEAREST, standardize=False).fit(HOLES, Y)
    fitted = clone(NEAREST).fit(HOLES, Y)
    distance = fitted.channels(HOLES).distance
    expected = (distance[:, 0] - distance[:, 1]) / (distance[:, 0] + distance[:, 1])
    np.testing.assert_allclose(np.abs(deltas.transform(HOLES)[:, 0]), np.abs(expected), atol=1e-6)


# --- sparse tables ----------------------------------------------------------------------------------------------

SPARSE = np.where(X > 0.3, X, 0.0)


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("estimator", [*EVERY, MedoidClassifier(method="evidence", random_state=0)], ids=name)
def test_sparse_tables_give_the_model_of_the_dense_one(estimator, make):
    dense, sparse = clone(estimator).fit(SPARSE, Y), clone(estimator).fit(make(SPARSE), Y)
    np.testing.assert_array_equal(sparse.decision_function(make(SPARSE)), dense.decision_function(SPARSE))
    np.testing.assert_array_equal(sparse.predict(make(SPARSE)), dense.predict(SPARSE))
    if hasattr(dense, "predict_proba"):
        np.testing.assert_array_equal(sparse.predict_proba(make(SPARSE)), dense.predict_proba(SPARSE))


@pytest.mark.parametrize("estimator", [METHODS[0], MedoidClassifier()], ids=name)
def test_sparse_tables_that_would_not_fit_are_refused_before_any_work(estimator):
    wide = scipy.sparse.csr_array((200_000, 100_000))
    words = r"200,000 rows x 100,000 columns.*149\.0 GiB, and at most 1 GiB.*fewer rows at a time"
    with pytest.raises(DataError, match=words):
        clone(estimator).fit(wide, np.zeros(200_000))
    fitted = clone(METHODS[0]).fit(X, Y)
    with pytest.raises(DataError, match="Input X is sparse, with 100,000,000 rows x 4 columns"):
        fitted.predict(scipy.sparse.csr_array((100_000_000, 4)))
