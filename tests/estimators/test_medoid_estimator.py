"""MedoidClassifier as users meet it: who decides, what stays exact, operating points, meta-estimators."""

from dataclasses import replace

import numpy as np
import pytest
from quick_medoids import FUSION, X2, X3, Y2, Y3, drawn, quick
from sklearn.datasets import load_wine
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators import recipes, refining
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.geometry.channels import nearest_two
from qmedoid.geometry.row_groups import ranks, row_order
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.model.refinement import refinement_margins, two_nearest


@pytest.fixture(scope="module")
def selective():
    return quick(refine=0.2).fit(X2, Y2)


@pytest.fixture(scope="module")
def never():
    return quick(refine="never").fit(X2, Y2)


# --- the policy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refine", "refinement", "margin"),
    [("never", "none", -np.inf), ("always", "always", np.inf), ("auto", "none", -np.inf)],
)
def test_words_say_who_decides(refine, refinement, margin):
    fitted = quick(refine=refine).fit(X2, Y2)
    assert fitted.refinement_ == refinement
    assert fitted.margin_ == margin
    assert set(fitted.decided_by(X2)) == {"circuit" if refine == "always" else "nearest"}


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_number_is_the_share_of_the_training_rows_that_the_circuit_decides(share):
    fitted = quick(refine=share).fit(X2, Y2)
    assert fitted.refinement_ == "selective"
    decided = fitted.decided_by(X2) == "circuit"
    assert decided.mean() == pytest.approx(share, abs=2 / len(X2))
    margins = refinement_margins(fitted.model_.calibration.apply(fitted.model_.score(X2).scores))
    np.testing.assert_array_equal(decided, margins <= fitted.margin_)


def test_rows_that_are_not_picked_have_exactly_the_scores_of_fusion_alone(selective, never):
    by_method = selective.decided_by(X2) == "nearest"
    assert 0 < by_method.sum() < len(X2)
    p, alone = selective.predict_proba(X2), never.predict_proba(X2)
    np.testing.assert_array_equal(p[by_method], alone[by_method])
    assert (p[~by_method] != alone[~by_method]).any(axis=1).all()


def test_large_table_with_a_rare_class_goes_to_the_circuit():
    X, y = drawn(10_000, 0.02)
    fitted = quick().fit(X, y)
    assert fitted.refinement_ == "always"
    assert (fitted.decided_by(X[::50]) == "circuit").all()
    for n, share in ((9_999, 0.02), (10_000, 0.0501)):
        assert quick().fit(*drawn(n, share)).refinement_ == "none"


def test_other_methods_are_refined_only_on_request():
    X, y = drawn(10_000, 0.02)
    fitted = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=0), random_state=0).fit(X, y)
    assert fitted.refinement_ == "none"


@pytest.mark.parametrize("refine", ["never", "always"])
def test_labels_that_mean_nothing_are_not_learnt_from_medoids(refine):
    """Half of the rows are medoids: by the final model each of these lies at distance 0 from its own class."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    fitted = quick(refine=refine, method={"n_medoids": 100, "alpha": 1.0}).fit(X, y)
    assert fitted.held_out_scores_[0] == pytest.approx(-np.log(2), abs=0.03)
    assert np.abs(fitted.predict_proba(rng.normal(size=(400, 3))) - 0.5).mean() < 0.1


def test_separated_classes_leave_the_circuit_between_the_two_nearest_nothing_to_learn():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = 0.05 * rng.normal(size=(60, 3)) + 5 * np.eye(3)[y]
    with pytest.warns(QMedoidWarning, match="No training row belongs to its second-nearest class"):
        fitted = quick(refine="always", deltas="nearest").fit(X, y)
    assert fitted.refinement_ == "none"
    assert fitted.score(X, y) == 1


def test_better_of_several_fusion_models_comes_first():
    fitted = quick(method={"n_models": 3, "subset_sizes": (1, 3)}, refine="always").fit(X2, Y2)
    assert len(fitted.estimator_.candidates_) == len(fitted.held_out_scores_) == 3
    assert (np.diff(fitted.held_out_scores_) <= 0).all()


@pytest.mark.parametrize("better", [0, 1, 2])
def test_medoids_of_the_first_stage_are_those_that_decide(monkeypatch, better):
    asked = []
    monkeypatch.setattr(recipes, "out_of_fold_score", lambda *_: asked.append(0) or float(len(asked) == better + 1))
    fitted = quick(method={"n_models": 3, "subset_sizes": (1, 3)}, refine="always").fit(X2, Y2)
    assert len(asked) == 3
    assert fitted.estimator_.candidates_[0][0].configuration == fitted.estimator_.configuration_
    assert fitted.model_ is fitted.estimator_.model_
    assert fitted.estimator_.configuration_ == fitted.model_.parts[0].configuration
    np.testing.assert_array_equal(fitted.estimator_.medoids_, X2[fitted.model_.medoids.numbers])


# --- decisions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("X", "y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
def test_temperature_keeps_every_decision_of_the_fusion_score(X, y):
    fitted = quick(refine="never", calibration="temperature").fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), fitted.estimator_.predict(X))
    alone = NearestMedoidClassifier(**FUSION, random_state=fitted.estimator_.random_state).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))


@pytest.mark.parametrize("point", ["f1", "macro_f1", 0.3])
@pytest.mark.parametrize("refine", ["never", 0.3, "always"])
def test_with_an_operating_point_the_decision_is_the_sign_of_the_log_odds_beyond_it(point, refine):
    X, y = drawn(400, 0.15)
    fitted = quick(refine=refine, operating_point=point).fit(X, y)
    called = fitted.decision_function(X) > 0
    np.testing.assert_array_equal(fitted.predict(X), called.astype(int))
    np.testing.assert_array_equal(called, fitted.predict_proba(X)[:, 1] > fitted.threshold_)
    if point == 0.3:
        assert fitted.threshold_ == pytest.approx(0.3)


def test_chosen_operating_point_is_better_by_its_metric_than_even_odds():
    X, y = drawn(1500, 0.05)
    chosen = quick(refine="never", operating_point="f1").fit(X[::2], y[::2])
    even = quick(refine="never").fit(X[::2], y[::2])
    assert chosen.threshold_ < 0.5
    assert f1_score(y[1::2], chosen.predict(X[1::2])) > f1_score(y[1::2], even.predict(X[1::2]))


def test_fold_is_judged_at_a_threshold_that_the_others_chose(monkeypatch):
    seen = []
    original = recipes.out_of_fold_score

    def spy(found, codes, metric):
        seen.append(found)
        return original(found, codes, metric)

    monkeypatch.setattr(recipes, "out_of_fold_score", spy)
    quick(refine="never", operating_point="f1", method={"cv": 4}).fit(X2, Y2)
    quick(refine=0.2, operating_point="f1", method={"cv": 4}).fit(X2, Y2)
    for found in seen:
        assert np.ptp(np.bincount(found.fold)) <= 2
        assert len(np.unique(found.fold)) == 4
        assert np.isfinite(found.scores).all()


def with_circuit(model, circuit):
    return replace(model, refinement=replace(model.refinement, circuit=circuit))


@pytest.mark.parametrize("deltas", ["pairs", "nearest"])
@pytest.mark.parametrize(("X", "y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
def test_residual_circuit_that_says_nothing_leaves_the_fusion_score(X, y, deltas):
    fitted = quick(refine="always", residual=True, deltas=deltas).fit(X, y)
    alone = quick(refine="never").fit(X, y)
    assert np.abs(fitted.predict_proba(X) - alone.predict_proba(X)).max() > 1e-3
    circuit = fitted.model_.circuit
    fitted.model_ = with_circuit(fitted.model_, replace(circuit, theta=np.zeros_like(circuit.theta)))
    np.testing.assert_allclose(fitted.predict_proba(X), alone.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("residual", [False, True])
def test_between_the_two_nearest_only_their_probability_moves(residual):
    fitted = quick(refine="always", deltas="nearest", residual=residual).fit(X3, Y3)
    assert fitted.refinement_ == "always"
    p, alone = fitted.predict_proba(X3), quick(refine="never").fit(X3, Y3).predict_proba(X3)
    best, second = two_nearest(replace(fitted.model_, refinement=None).decide(X3).scores)
    rows = np.arange(len(X3))
    other = 3 - best - second
    np.testing.assert_allclose(p[rows, other], alone[rows, other], rtol=1e-9)
    assert np.abs(p[rows, best] - alone[rows, best]).max() > 1e-3


def test_small_margin_is_decided_between_the_classes_it_lies_between():
    """Biases of the calibration draw frequent classes nearer: the two likeliest are others than the two nearest."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [300, 200, 20])
    X = 1.2 * rng.normal(size=(520, 3)) + 1.5 * np.eye(3)[y]
    fitted = quick(refine="always", deltas="nearest").fit(X, y)
    scores = replace(fitted.model_, refinement=None).decide(X).scores
    best, second = two_nearest(scores)
    nearest = np.sort(nearest_two(fitted.model_.score(X).scores), axis=0)
    assert (nearest != np.sort([best, second], axis=0)).any()
    rows, other = np.arange(len(X)), 3 - best - second
    p, alone = fitted.predict_proba(X), np.exp(log_softmax(scores))
    np.testing.assert_allclose(p[rows, other], alone[rows, other], rtol=1e-9)
    assert (fitted.model_.decide(X).scores.argmax(axis=1) != other).all()


def test_splits_that_are_given_hold_rows_of_the_table(monkeypatch):
    """A circuit between two classes is trained on some of the rows, and their places among those are others."""
    y = np.arange(160) % 4
    X = np.random.default_rng(0).normal(size=(160, 3)) + np.eye(4)[y, :3]
    held_out = np.arange(160) % 5 == 0
    judged = []
    refined = refining.refined_held_out
    monkeypatch.setattr(
        refining, "refined_held_out",
        lambda *data: judged.append((np.flatnonzero(data[3].fold >= 0), data[4])) or refined(*data),
    )  # fmt: skip
    splits = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]
    quick(refine="always", deltas="nearest", variational={"cv": splits}).fit(X, y)
    found, rows = judged[0]
    assert len(rows) < len(y)
    given = row_order(ranks(X), y)[rows]
    assert set(given[found]) == set(given[held_out[given]])


def test_circuit_of_all_pairs_may_move_everything():
    fitted = quick(refine="always", fused_delta=True).fit(X3, Y3)
    assert fitted.model_.circuit.network.ansatz.n_inputs == 9
    p, alone = fitted.predict_proba(X3), quick(refine="never").fit(X3, Y3).predict_proba(X3)
    assert (np.abs(p - alone).max(axis=0) > 1e-3).all()


# --- as printed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", ["auto", "always", 0.2])
@pytest.mark.parametrize(("X", "y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
def test_preset_runs_on_two_and_on_three_classes(X, y, refine):
    """Parity tells two classes apart; of three, the circuit decides between the two nearest."""
    printed = NearestMedoidClassifier.paper(max_passes=0, subset_sizes=(2, 2))
    fitted = MedoidClassifier.paper(method=printed, refine=refine, random_state=0).fit(X, y)
    assert fitted.refinement_ == {"auto": "none", "always": "always", 0.2: "selective"}[refine]
    assert np.isfinite(fitted.predict_proba(X)).all()
    if refine == "auto":
        np.testing.assert_array_equal(fitted.predict(X), fitted.estimator_.predict(X))
    else:
        assert fitted.model_.circuit.network.readout.n_classes == 2


def test_parity_refuses_more_classes_where_the_circuit_decides_between_all():
    with pytest.raises(ParameterError, match="parity"):
        quick(refine="always", variational={"readout": "parity"}).fit(X3, Y3)


# --- circuits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deltas", ["pairs", "nearest"])
@pytest.mark.parametrize(("X", "y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
def test_exact_circuits_give_the_same_probabilities(X, y, deltas):
    pytest.importorskip("qiskit", reason='needs Qiskit: pip install "qmedoid[quantum]"')
    from qmedoid.quantum import StatevectorExpectations, StatevectorSwapTest

    fitted = quick(refine=0.5, deltas=deltas).fit(X, y)
    rows = X[::12]
    expected = fitted.predict_proba(rows)
    for backends in ((StatevectorSwapTest(), StatevectorExpectations()), (None, StatevectorExpectations())):
        measured = fitted.measured_by(*backends)
        np.testing.assert_allclose(measured.predict_proba(rows), expected, atol=1e-6)
        np.testing.assert_array_equal(measured.decided_by(rows), fitted.decided_by(rows))
        again = measured.measured_by(StatevectorSwapTest(), StatevectorExpectations())
        np.testing.assert_allclose(again.predict_proba(rows), expected, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected)


# --- scikit-learn -----------------------------------------------------------------------------------------------


def test_grid_search_reaches_into_both_stages():
    grid = {"method__use_angular": [True, False], "variational__n_reps": [1, 2], "refine": [0.2]}
    found = GridSearchCV(quick(), grid, cv=2, scoring="neg_log_loss").fit(X2, Y2)
    assert found.best_estimator_.refinement_ == "selective"
    assert found.best_estimator_.estimator_.use_angular == found.best_params_["method__use_angular"]
    network = found.best_estimator_.model_.circuit.network
    assert network.ansatz.n_reps == found.best_params_["variational__n_reps"]
    assert len(set(found.cv_results_["mean_test_score"])) == 4


def test_stages_keep_seeds_of_their_own():
    def weights(method, variational, seed):
        fitted = quick(method={"random_state": method}, variational={"random_state": variational}, refine="always")
        return fitted.set_params(random_state=seed).fit(X2, Y2).model_.circuit.theta

    np.testing.assert_array_equal(weights(3, 4, 0), weights(3, 4, 1))
    assert (weights(3, 4, 0) != weights(3, 5, 0)).any()
    assert (weights(3, None, 0) != weights(3, None, 1)).any()


# --- tables and labels ------------------------------------------------------------------------------------------


def test_parameters_that_cannot_be_used_are_refused():
    for changes, told in (
        ({"refine": 1.5}, r"'refine' parameter of MedoidClassifier must be one of 'auto', 'always', 'never' or a"),
        ({"refine": 1.0}, r"or a number above 0 and below 1\. Got 1\.0 instead"),
        ({"refine": "sometimes"}, r"'refine' parameter"),
        ({"deltas": "all"}, r"'deltas' parameter"),
        ({"calibration": "isotonic"}, r"'calibration' parameter"),
        ({"operating_point": "auc"}, r"'operating_point' parameter"),
        ({"variational": {"n_steps": 0}}, r"'n_steps' parameter of VariationalClassifier"),
        ({"method": {"alpha": 2}}, r"'alpha' parameter of NearestMedoidClassifier"),
        ({"variational": {"operating_point": "f1"}}, r"The operating point belongs to the MedoidClassifier: pass"),
    ):
        with pytest.raises(ParameterError, match=told):
            quick(**changes).fit(X2, Y2)
    with pytest.raises(ParameterError, match=r"'operating_point' of 3 classes is None, 'macro_f1'"):
        quick(operating_point="f1").fit(X3, Y3)
    with pytest.raises(ParameterError, match=r"'method' parameter"):
        MedoidClassifier(method="concave").fit(X2, Y2)
    with pytest.raises(ParameterError, match=r"no weights of classes: pass class_weight=None .* or deltas='pairs'"):
        quick(refine="always", deltas="nearest", variational={"class_weight": "balanced"}).fit(X3, Y3)


# --- circuits that cannot work, and many classes --------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"readout": "parity"}, "parity read-out is for 2 classes, and there are 3"),
        ({"readout": "direct", "n_qubits": 1}, "1 qubits have 2, and there are 3 classes"),
    ],
)
@pytest.mark.parametrize("method", ["nearest", "evidence"])
def test_circuit_that_cannot_work_is_refused_before_the_first_stage(monkeypatch, method, settings, message):
    def begun(*_arguments, **_named):
        raise AssertionError("The first stage has begun.")

    monkeypatch.setattr(NearestMedoidClassifier, "fit_parts", begun)
    monkeypatch.setattr(EvidenceClassifier, "fit_parts", begun)
    X, y = load_wine(return_X_y=True)
    circuit = VariationalClassifier(**settings)
    with pytest.raises(ValueError, match=message):
        MedoidClassifier(method=method, refine="always", variational=circuit, random_state=0).fit(X, y)


def test_circuit_is_there_as_an_estimator_of_its_own():
    grid = {"n_reps": [1, 2]}
    circuit = VariationalClassifier(n_steps=40, n_seeds=2, cv=2, grid=grid)
    fitted = MedoidClassifier(method="nearest", refine="always", variational=circuit, random_state=0).fit(X2, Y2)
    own = fitted.variational_
    assert own.best_params_["n_reps"] in (1, 2)
    assert own.cv_scores_.shape == (2,)
    assert own.seed_losses_.shape == (2,)
    assert own.loss_curve_.shape == (40,)
    np.testing.assert_array_equal(own.classes_, fitted.classes_)
    model = fitted.model_
    deltas = model.refinement.inputs.features(model.score(X2, channels=True))
    np.testing.assert_allclose(own.predict_proba(deltas), fitted.predict_proba(X2), rtol=0, atol=1e-12)
    assert quick(refine="never").fit(X2, Y2).variational_ is None


def test_many_classes_are_decided_between_two():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    X = rng.normal(size=(240, 4)) + 2.0 * np.eye(6)[y][:, :4]
    fitted = quick(refine="always").fit(X, y)
    assert fitted.model_.refinement.inputs.kind == "nearest"
    assert fitted.variational_.n_features_in_ == 2
    assert quick(refine="always").fit(X[y < 5], y[y < 5]).model_.refinement.inputs.kind == "pairs"
