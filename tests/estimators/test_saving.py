"""Fitted classifiers saved and loaded: the same decisions, bit for bit, and clear words for what cannot be saved."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold

from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    VariationalClassifier,
    compact_swap_test,
    load,
)
from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import load_model

WINE, WINE_CLASSES = (array for array in load_wine(return_X_y=True))
CANCER = load_breast_cancer(as_frame=True)
SMALL = {"n_steps": 15, "n_seeds": 1, "n_reps": 1}


def circuit(**changes):
    return VariationalClassifier(**(SMALL | changes))


def method(**changes):
    return NearestMedoidClassifier(**({"max_passes": 1, "subset_sizes": (2, 3), "cv": 3, "random_state": 0} | changes))


ESTIMATORS = {
    "method": method(n_medoids=2),
    "printed": NearestMedoidClassifier.paper(max_passes=0),
    "geometric": MedoidClassifier(method=method(), refine="never", random_state=0),
    "selective": MedoidClassifier(method=method(n_medoids=2), variational=circuit(), refine=0.3, random_state=0),
    "always": MedoidClassifier(
        method=method(), variational=circuit(readout="direct"), refine="always", residual=True, random_state=0
    ),
    "circuit": circuit(random_state=0, precision="float32"),
    "evidence": EvidenceClassifier(n_medoids=6, random_state=0),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    """Estimators on three classes without column names, and on two named classes with column names."""
    estimator = ESTIMATORS[request.param]
    table = CANCER.data.iloc[:, :4]
    labels = np.where(CANCER.target == 0, "malignant", "benign")
    more = clone(estimator).fit(WINE[:, :4], WINE_CLASSES)
    if request.param in ("selective", "circuit"):
        estimator = clone(estimator).set_params(operating_point="macro_f1")
    return [(more, WINE[:, :4]), (clone(estimator).fit(table, labels), table)]


def test_saved_classifier_decides_as_the_fitted_one(fitted, tmp_path):
    for number, (estimator, X) in enumerate(fitted):
        path = estimator.save(tmp_path / str(number))
        model = load_model(path)
        decided = model.decide([np.ascontiguousarray(column) for column in np.asarray(X).T])
        np.testing.assert_array_equal(np.array(model.decision.classes)[decided.codes], estimator.predict(X))
        expected = decided.margins if len(model.decision.classes) == 2 else decided.scores
        np.testing.assert_array_equal(expected, estimator.decision_function(X))
        if model.decision.probabilistic:
            np.testing.assert_array_equal(model.decision.probabilities(decided.scores), estimator.predict_proba(X))
        assert model.decision.probabilistic == hasattr(estimator, "predict_proba")
        if isinstance(estimator, MedoidClassifier):
            assert model.policy == estimator.refinement_
            np.testing.assert_array_equal(decided.by_circuit, estimator.decided_by(X) == "circuit")


def test_contract_and_parameters_say_what_was_fitted(fitted):
    (nameless, _), (named, table) = fitted
    assert nameless.model_.contract.names == ("x0", "x1", "x2", "x3")
    model = named.model_
    assert model.contract.names == tuple(table.columns)
    assert {column.kind for column in model.contract.columns} == {"number"}
    medians = np.median(table, axis=0)
    assert [(one.fill, one.indicator) for one in model.encodings] == [(median, False) for median in medians]
    assert model.decision.classes == ("benign", "malignant")
    assert model.parameters["estimator"] == type(named).__name__
    parameters = json.loads(json.dumps(model.parameters, allow_nan=False))
    assert set(parameters) - {"estimator"} == set(named.get_params(deep=False))


def test_rows_can_be_left_out(fitted, tmp_path):
    for number, (estimator, _) in enumerate(fitted):
        estimator.save(tmp_path / str(number), raw_rows=False)
        assert load_model(tmp_path / str(number)).records is None


def test_circuits_are_written_on_request(tmp_path):
    pytest.importorskip("qiskit", reason="needs the extra quantum")
    estimator = clone(ESTIMATORS["always"]).fit(WINE[:, :4], WINE_CLASSES)
    path = estimator.save(tmp_path / "m.qmedoid", circuits=True)
    with zipfile.ZipFile(path) as archive:
        assert {"circuit.qpy", "circuit.qasm", "swap_test.qpy", "swap_test.qasm"} <= set(archive.namelist())
        circuit_text = archive.read("circuit.qasm").decode()
    assert circuit_text.count("input float") == estimator.variational_.n_features_in_
    assert estimator.save(path) == path
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist()[-1] == "card.md"


def test_parameters_without_a_plain_form_are_described(tmp_path):
    folds = [(np.arange(0, 178, 2), np.arange(1, 178, 2))]
    estimator = method(
        cv=StratifiedKFold(2), random_state=np.random.RandomState(0), score_weight={0: 1.0, 1: np.float64(2), 2: 1}
    )
    parameters = estimator.fit(WINE, WINE_CLASSES).model_.parameters
    assert parameters["cv"].startswith("StratifiedKFold(n_splits=2")
    assert parameters["random_state"] == "RandomState"
    assert parameters["score_weight"] == {"0": 1.0, "1": 2.0, "2": 1}
    assert parameters["subset_sizes"] == [2, 3]
    given = method(cv=folds, max_passes=0).fit(WINE, WINE_CLASSES)
    assert load_model(given.save(tmp_path / "m")).parameters["cv"] == [[list(range(0, 178, 2)), list(range(1, 178, 2))]]


def test_estimator_that_cannot_be_saved_is_refused_in_one_line(tmp_path):
    alone = method(max_passes=0).fit(WINE, WINE_CLASSES)
    small = circuit(random_state=0).fit(WINE[:, :2], WINE_CLASSES)
    both = MedoidClassifier(method=method(), variational=circuit(), refine="always", random_state=0)
    both.fit(WINE[:, :3], WINE_CLASSES)
    for estimator, reason in [
        (NearestMedoidClassifier(), "This NearestMedoidClassifier is not fitted: call fit before it is saved"),
        (MedoidClassifier(), "This MedoidClassifier is not fitted"),
        (VariationalClassifier(), "This VariationalClassifier is not fitted"),
        (alone.measured_by(compact_swap_test), "run by a backend, which is not saved"),
        (both.measured_by(swap_test=compact_swap_test), "run by a backend, which is not saved"),
        (both.measured_by(expectations=print), "run by a backend, which is not saved"),
        (small.measured_by(print), "run by a backend, which is not saved"),
    ]:
        with pytest.raises(ModelError, match=reason) as caught:
            estimator.save(tmp_path / "model")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("estimator", [method(max_passes=0), EvidenceClassifier(random_state=0)])
def test_classifier_explains_as_its_saved_model_does(estimator, tmp_path):
    fitted = estimator.fit(WINE, WINE_CLASSES)
    why, loaded = fitted.explain(WINE, row=-1), load(fitted.save(tmp_path / "model"))
    assert why["row"] == len(WINE) - 1
    assert dict(why) == dict(fitted.to_saved().explain(WINE, -1)) == dict(loaded.explain(WINE, -1))
    np.testing.assert_array_equal(fitted.to_saved().predict(WINE), loaded.predict(WINE))


def test_explaining_what_is_not_fitted_or_has_no_sum_says_so():
    with pytest.raises(ModelError, match="not fitted: call fit before it is saved or explained"):
        MedoidClassifier().explain(WINE)
    with pytest.raises(ModelError, match="a circuit alone"):
        circuit(random_state=0).fit(WINE[:, :2], WINE_CLASSES).explain(WINE[:, :2])
