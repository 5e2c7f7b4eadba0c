"""Methods behind the front door and alone: which one is taken, what calibrates it, and that all obey the same laws."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import qmedoid
from qmedoid import MedoidClassifier, NearestMedoidClassifier, SumClassifier, VariationalClassifier
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.methods.calibration import fit_calibration

X2, Y2 = load_breast_cancer(return_X_y=True)
X2 = X2[:, :6]
X3, Y3 = load_wine(return_X_y=True)
TABLES = pytest.mark.parametrize(("X", "y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
pytestmark = pytest.mark.usefixtures("few_trees")
CIRCUIT = VariationalClassifier(n_steps=30, n_reps=1, n_seeds=1, cv=2)


def evidence(*, medoids=16, cv=None, refit=True, **changes):
    settings = EvidenceClassifier(n_medoids=medoids, cv=cv, refit=refit)
    return MedoidClassifier(method=settings, **({"random_state": 0} | changes))


@pytest.fixture(scope="module")
def fitted():
    return evidence().fit(X2, Y2)


# --- which one ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ([9_500, 500], RareEventClassifier),
        ([500, 9_500], RareEventClassifier),
        ([9_499, 500], SumClassifier),
        ([9_499, 501], SumClassifier),
        ([9_000, 800, 200], SumClassifier),
        ([150, 150], SumClassifier),
        ([150, 149], EvidenceClassifier),
        ([200, 50, 40], EvidenceClassifier),
    ],
)
def test_large_tables_with_a_rare_class_some_hundred_rows_and_few_rows_have_their_methods(counts, kind):
    assert type(MedoidClassifier().recipe(np.array(counts))) is kind


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("auto", "sum"),
        ("evidence", "evidence"),
        ("nearest", "nearest"),
        (EvidenceClassifier(), "evidence"),
        (NearestMedoidClassifier(max_passes=0), "nearest"),
    ],
    ids=str,
)
def test_what_was_asked_for_is_fitted(method, first):
    found = MedoidClassifier(method=method, random_state=0).fit(X2, Y2)
    assert found.method_ == first
    assert isinstance(found.estimator_, NearestMedoidClassifier) == (first == "nearest")
    assert found.estimator_.model_ is found.model_
    assert found.estimator_ is not method


# --- evidence -------------------------------------------------------------------------------------------------------


@TABLES
def test_medoids_are_training_rows_and_at_most_as_many_as_asked_for(X, y):
    for medoids, most in ((5, 5), (6, 6), (64, 64)):
        found = evidence(medoids=medoids).fit(X, y)
        model = found.model_.parts[0]
        assert len(np.unique(model.medoid_rows)) <= most
        np.testing.assert_allclose(model.medoids, X[model.medoid_rows], rtol=1e-12)
        np.testing.assert_array_equal(found.classes_[model.medoid_classes], y[model.medoid_rows])
        assert set(model.medoid_classes) == set(range(len(found.classes_)))


@TABLES
def test_decisions_are_better_than_chance_by_far(X, y):
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) * 2 // 3], order[len(y) * 2 // 3 :]
    assert evidence().fit(X[train], y[train]).score(X[test], y[test]) > 0.88


@pytest.mark.parametrize("cv", [None, 3], ids=["left out one by one", "folds"])
def test_labels_that_mean_nothing_are_not_learnt(cv):
    """Held-out rows calibrate: what a model remembers of training rows is not taken for knowledge."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 8)), np.arange(300) % 2
    found = evidence(cv=cv).fit(X, y)
    assert found.held_out_scores_[0] == pytest.approx(-np.log(2), abs=0.03)
    new = rng.normal(size=(1000, 8))
    assert log_loss(np.arange(1000) % 2, found.predict_proba(new)) < np.log(2) + 0.05


@TABLES
def test_folds_calibrate_and_all_rows_fit(X, y):
    """With folds the final model is that of all rows, and the calibration that of the rows that folds held out."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    by_folds, left_out = evidence(cv=folds).fit(X, y), evidence().fit(X, y)
    np.testing.assert_array_equal(
        by_folds.estimator_.model_.score(X).scores, left_out.estimator_.model_.score(X).scores
    )
    held = np.empty((len(y), len(np.unique(y))))
    for train, held_out in folds:
        held[held_out] = evidence().fit(X[train], y[train]).estimator_.model_.score(X[held_out]).scores
    rows = np.concatenate([held_out for _, held_out in folds])
    expected = fit_calibration(held[rows], y[rows], "curve")
    assert by_folds.model_.calibration.slope == pytest.approx(expected.slope)
    np.testing.assert_allclose(by_folds.model_.calibration.biases, expected.biases)


@TABLES
def test_without_refit_the_model_is_that_of_the_training_rows(X, y):
    train, held_out = next(StratifiedKFold(3, shuffle=True, random_state=2).split(X, y))
    found = evidence(cv=[(train, held_out)], refit=False).fit(X, y)
    alone = evidence().fit(X[train], y[train]).model_.parts[0]
    model = found.model_.parts[0]
    np.testing.assert_array_equal(model.score(X).scores, alone.score(X).scores)
    np.testing.assert_array_equal(model.medoid_rows, train[alone.medoid_rows])
    expected = fit_calibration(alone.score(X[held_out]).scores, y[held_out], "curve")
    assert found.model_.calibration.slope == pytest.approx(expected.slope)


def test_circuit_corrects_evidence_and_replaces_the_nearest_medoid(fitted):
    corrected = evidence(refine="always", variational=CIRCUIT).fit(X2, Y2)
    assert corrected.refinement_ == "always"
    assert corrected.model_.refinement.residual
    nearest = MedoidClassifier(
        method=NearestMedoidClassifier(max_passes=0), refine="always", variational=CIRCUIT, random_state=0
    )
    assert not nearest.fit(X2, Y2).model_.refinement.residual
    some = evidence(refine=0.2, variational=CIRCUIT).fit(X2, Y2)
    by_method = some.decided_by(X2) == "evidence"
    assert by_method.mean() == pytest.approx(0.8, abs=2 / len(X2))
    np.testing.assert_array_equal(some.predict_proba(X2)[by_method], fitted.predict_proba(X2)[by_method])


# --- laws of the front door -----------------------------------------------------------------------------------------


def test_class_of_one_row_has_its_medoid():
    y = np.where(np.arange(len(X3)) == 5, 9, Y3)
    found = evidence().fit(X3, y)
    assert 5 in found.model_.medoids.numbers
    assert np.isfinite(found.predict_proba(X3)).all()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"medoids": 0}, r"'n_medoids' parameter of EvidenceClassifier"),
        ({"medoids": "tiny"}, r"'n_medoids' parameter of EvidenceClassifier"),
        ({"cv": 1}, r"'cv' parameter of EvidenceClassifier"),
        ({"refit": 1}, r"'refit' parameter of EvidenceClassifier"),
        ({"cv": 3, "refit": False}, r"a single split, but cv made 3\. Pass refit=True, or a cv with one split"),
        ({"residual": "often"}, r"'residual' parameter of MedoidClassifier"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_used_are_refused(changes, told):
    with pytest.raises(ParameterError, match=told):
        evidence(**changes).fit(X2, Y2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method__n_medoids": 8}, "'method__n_medoids' is a parameter of the object that is passed as method="),
        ({"method": "rare", "method__n_hard": 0}, "method is 'rare'. Pass method=EvidenceClassifier"),
        ({"variational__n_steps": 3}, "variational is None. Pass variational=VariationalClassifier"),
    ],
)
def test_parameters_of_a_stage_that_is_a_name_are_not_set(changes, words):
    with pytest.raises(ParameterError, match=words):
        MedoidClassifier().set_params(**changes)
    together = MedoidClassifier().set_params(method=EvidenceClassifier(), method__n_medoids=8)
    assert together.method.n_medoids == 8


# --- methods alone --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [EvidenceClassifier(n_medoids=8), RareEventClassifier()], ids=["evidence", "rare"])
@pytest.mark.parametrize("point", [None, 0.3, "f1", {"alert_rate": 0.2}], ids=str)
def test_method_alone_decides_as_in_the_front_door(alone, point, tmp_path):
    """With the seed that the front door drew for it: the same model, calibration, threshold and saved model."""
    front = MedoidClassifier(method=alone, refine="never", operating_point=point, positive=1, random_state=0)
    front.fit(X2, Y2)
    seed = front.estimator_.random_state
    found = clone(alone).set_params(operating_point=point, random_state=seed).fit(X2, Y2)
    np.testing.assert_array_equal(found.predict_proba(X2), front.predict_proba(X2))
    np.testing.assert_array_equal(found.predict(X2), front.predict(X2))
    assert (found.threshold_, found.expected_) == (front.threshold_, front.expected_)
    np.testing.assert_array_equal(front.estimator_.predict_proba(X2), front.predict_proba(X2))
    saved = qmedoid.load(found.save(tmp_path / "model"))
    np.testing.assert_array_equal(saved.predict_proba(X2), found.predict_proba(X2))
    np.testing.assert_array_equal(saved.predict(X2), found.predict(X2))


def test_method_in_the_front_door_has_no_operating_point():
    with pytest.raises(ParameterError, match="operating_point=None to its EvidenceClassifier"):
        MedoidClassifier(method=EvidenceClassifier(operating_point="f1")).fit(X2, Y2)


def test_calibration_of_the_front_door_wins_over_that_of_the_method():
    by_method, by_front = (
        MedoidClassifier(method=EvidenceClassifier(n_medoids=8, calibration="curve"), calibration=kind, random_state=0)
        .fit(X2, Y2)
        .model_.calibration
        for kind in ("auto", "temperature")
    )
    assert by_method.biases.any()
    assert not by_front.biases.any()
