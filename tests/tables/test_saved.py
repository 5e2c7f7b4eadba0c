"""A loaded model: any data frame in, the decisions of the fit out."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import qmedoid
from fitted_tables import fitted, with_column
from qmedoid import MedoidClassifier, NearestMedoidClassifier, SavedModel
from qmedoid.exceptions import ContractError, DataError, ParameterError, QMedoidWarning
from qmedoid.model.contract import Numbers


@pytest.fixture(scope="module", params=[2, 3])
def case(request, tmp_path_factory):
    table, classifier = fitted(request.param)
    path = classifier.save(tmp_path_factory.mktemp("saved") / "model")
    return table.drop_columns(["y"]), classifier, qmedoid.load(path), path


def test_decisions_are_those_of_the_fit_whatever_the_frame(case):
    table, classifier, model, _ = case
    frames = [table, table.to_pandas(), pl.from_arrow(table), table.to_pydict(), table.to_batches()[0]]
    for frame in frames:
        np.testing.assert_array_equal(model.predict(frame), classifier.predict(table))
        np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(table))
        np.testing.assert_array_equal(model.decided_by(frame), classifier.decided_by(table))
    np.testing.assert_allclose(model.predict_proba(table), classifier.predict_proba(table), rtol=1e-12)
    assert model.decision_function(table).shape == classifier.decision_function(table).shape


def test_saved_again_it_decides_the_same(case, tmp_path):
    table, _, model, _ = case
    again = qmedoid.load(model.save(tmp_path / "again"))
    np.testing.assert_array_equal(again.decide(table).scores, model.decide(table).scores)
    assert again.contract == model.contract
    assert repr(again) == repr(model)
    assert "4 columns" in repr(model)


def test_derived_model_names_the_file_it_was_derived_from(case, tmp_path):
    model = case[2]
    first = qmedoid.load(model.save(tmp_path / "a"))
    assert first.sha256 == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert first.model.parent is None
    assert first.versions["numpy"] == np.__version__
    assert qmedoid.load(first.save(tmp_path / "b")).sha256 == first.sha256  # a copy is no other model
    priors = [np.roll([0.2, 0.3, 0.5] if len(first.classes_) == 3 else [0.4, 0.6], k) for k in range(3)]
    shifted = first.prior_shift(priors[0])
    assert shifted.sha256 is None
    for derived in (shifted, shifted.prior_shift(priors[1]), qmedoid.load(shifted.save(tmp_path / "c"))):
        assert derived.model.parent == first.sha256
    second = qmedoid.load(tmp_path / "c")
    assert second.prior_shift(priors[1]).model.parent == second.sha256 != first.sha256


def test_broken_contract_is_refused_or_warned_of(case):
    table, _, model, _ = case
    for broken in (table.drop_columns(["x1"]), with_column(table, "color", [["violet"] * 80])):
        for method in (model.predict, model.predict_proba, model.decision_function, model.decided_by, model.explain):
            with pytest.raises(ContractError, match="not like the one that the model was fitted on"):
                method(broken)
        with pytest.warns(QMedoidWarning):
            assert len(model.predict(broken, on_mismatch="warn")) == 80


def test_rows_are_explained_from_either_end(case):
    table, _, model, _ = case
    assert model.explain(table, -1) == model.explain(table, 79)
    assert model.explain(table.to_pandas(), 3)["prediction"] == model.predict(table)[3]
    for row in (80, -81):
        with pytest.raises(DataError, match=f"There is no row {row}: the table has 80 rows"):
            model.explain(table, row)
    for row in ("3", 3.0, True, None):
        with pytest.raises(ParameterError, match="The 'row' parameter must be the number of a row"):
            model.explain(table, row)
    assert model.explain(table, np.int64(3)) == model.explain(table, 3)


def test_arrays_go_by_the_order_of_the_contract(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    classifier = MedoidClassifier(method=NearestMedoidClassifier(random_state=0)).fit(X, y)
    model = qmedoid.load(classifier.save(tmp_path / "m"))
    np.testing.assert_array_equal(model.predict(X), classifier.predict(X))
    assert model.predict(X).dtype == y.dtype


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A model that has nothing to put in place of missing cells."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["x0", "x1", "x2"])
    y = (frame["x0"] + frame["x1"] - frame["x2"] > 0).astype(int)
    model = MedoidClassifier(method="evidence", random_state=0).fit(frame, y).model_
    saved = SavedModel(replace(model, encodings=(Numbers(np.nan),) * 3))
    return frame, qmedoid.load(saved.save(tmp_path_factory.mktemp("plain") / "m"))


@pytest.mark.parametrize("mode", ["error", "warn"])
@pytest.mark.parametrize(
    ("cell", "said"),
    [(np.nan, "missing cells: 'x0' has 2 of 80"), (np.inf, "huge: 'x0' has 2"), (1e200, "huge: 'x0' has")],
)
def test_refused_cells_are_named_by_column_in_either_mode(plain, mode, cell, said):
    frame, model = plain
    broken = frame.copy()
    broken.loc[[5, 9], "x0"] = cell
    with pytest.raises(ContractError, match=said) as raised:
        model.predict(broken, on_mismatch=mode)
    assert "MedoidClassifier" in str(raised.value)
    with pytest.raises(ContractError, match="'x0' has 1 of 1"):
        model.explain(broken, 5, on_mismatch=mode)
    np.testing.assert_array_equal(model.predict(frame, on_mismatch=mode), model.predict(frame))


def test_declared_categories_of_numbers_stay_categories_whatever_is_scored(tmp_path):
    rng = np.random.default_rng(1)
    kind = rng.integers(1, 4, 90)
    frame = pd.DataFrame({"kind": pd.Categorical(kind), "x": rng.normal(size=90)})
    y = np.where(kind == 2, "b", "a")
    classifier = MedoidClassifier(refine="never", random_state=0).fit(frame, y)
    model = qmedoid.load(classifier.save(tmp_path / "m"))
    assert model.contract.columns[0].levels == ("1", "2", "3")
    expected = model.decide(frame).scores
    assert (model.predict(frame) == y).mean() > 0.9
    for values in (kind, kind.astype(float), [str(k) for k in kind], [f" {k}.0" for k in kind]):
        np.testing.assert_array_equal(model.decide(frame.assign(kind=values)).scores, expected)
