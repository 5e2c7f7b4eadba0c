"""A new method is one folder and one entry of the registry: everything else works with it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from toy_method import ENTRY, ToyClassifier, ToyPart

import qmedoid
from qmedoid import MedoidClassifier, VariationalClassifier
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.methods import registry

WINE = load_wine(as_frame=True)
X, Y = (WINE.data - WINE.data.mean()) / WINE.data.std(), WINE.target_names[WINE.target]


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "toy", ENTRY)


@pytest.fixture(params=["by name", "as an object"])
def toy(request, known):  # noqa: ARG001
    method = "toy" if request.param == "by name" else ToyClassifier(cv=5)
    return MedoidClassifier(method=method, random_state=0).fit(X, Y)


def test_new_method_fits_and_predicts(toy):
    assert (toy.method_, toy.refinement_) == ("toy", "none")
    assert isinstance(toy.model_.method, ToyPart)
    assert toy.score(X, Y) > 0.9
    np.testing.assert_allclose(toy.predict_proba(X).sum(axis=1), 1.0)
    assert set(toy.decided_by(X)) == {"toy"}
    rows = toy.estimator_.model_.rows.numbers
    assert pd.DataFrame(toy.medoid_records_).equals(X.iloc[rows].reset_index(drop=True))


def test_new_method_is_saved_loaded_and_explained(toy, tmp_path):
    toy.save(tmp_path / "model")
    loaded = qmedoid.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), toy.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), toy.predict_proba(X))
    assert set(loaded.decided_by(X)) == {"toy"}
    why = loaded.explain(X, 3)
    assert why["decided_by"] == "toy"
    assert why["prediction"] == toy.predict(X)[3]
    added = sum(column["contribution"] for column in why["columns"]) + sum(why["terms"].values())
    assert added == pytest.approx(why["margin"])


def test_new_method_is_measured_by_swap_tests(toy):
    measured = toy.measured_by(swap_test=qmedoid.compact_swap_test)
    np.testing.assert_allclose(measured.predict_proba(X), toy.predict_proba(X), atol=1e-9)
    with pytest.raises(ModelError, match="backends are not saved"):
        measured.model_


@pytest.mark.usefixtures("known")
def test_new_method_is_refined_by_circuits_and_has_operating_points():
    two = Y == "class_1"
    circuit = VariationalClassifier(n_steps=5, n_seeds=1, n_reps=1, cv=2)
    found = MedoidClassifier(
        method="toy", refine=0.3, variational=circuit, operating_point={"alert_rate": 0.2}, random_state=0
    ).fit(X, two)
    assert found.refinement_ == "selective"
    assert set(found.decided_by(X)) == {"toy", "circuit"}
    assert found.expected_.rule == "alert_rate"


def test_new_method_is_an_estimator_alone(tmp_path):
    alone = ToyClassifier(random_state=0).fit(X, Y)
    assert alone.score(X, Y) > 0.9
    front = MedoidClassifier(method=ToyClassifier(random_state=0), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(front.predict_proba(X), alone.predict_proba(X))
    search = GridSearchCV(clone(front), {"method__cv": [2, 4]}, cv=2).fit(X, Y)
    assert search.best_estimator_.estimator_.cv in (2, 4)
    with pytest.raises(ModelError, match="ToyClassifier is not fitted"):
        ToyClassifier().save(tmp_path / "model")


def test_method_that_is_not_in_the_registry_is_unknown_by_name(tmp_path):
    with pytest.raises(ParameterError, match="'method' parameter of MedoidClassifier must be one of 'auto'"):
        MedoidClassifier(method="toy").fit(X, Y)
    with pytest.raises(ModelError, match=r"ToyPart at .* cannot be stored: its type must be one of"):
        MedoidClassifier(method=ToyClassifier(), random_state=0).fit(X, Y).save(tmp_path / "model")
