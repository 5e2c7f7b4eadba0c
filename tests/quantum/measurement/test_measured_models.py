"""Every kind of model is planned and measured: exact values decide as the closed form does, and shots nearly."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from sklearn.datasets import load_breast_cancer, load_wine

import qmedoid
from model_kinds import MODEL_KINDS, exported
from qmedoid import EvidenceClassifier, MedoidClassifier, NearestMedoidClassifier, SavedModel, VariationalClassifier
from qmedoid.exceptions import ContractError, DataError, ModelError, ParameterError
from qmedoid.quantum.measurement.result import joined


def exact_decisions(plan):
    return plan.decided_by(joined([tests.overlaps for tests in plan.tests]))


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.parametrize("register", ["column", "group"])
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_exact_values_decide_as_the_model_does(kind, register):
    model, table = exported(kind, 6)
    plan = model.measurement_plan(table, register=register, shots=100, calibrate=False)
    closed, decided = model.decide(table), exact_decisions(plan)
    np.testing.assert_array_equal(plan.exact.codes, closed.codes)
    np.testing.assert_allclose(plan.exact.margins, closed.margins, atol=1e-9)
    np.testing.assert_array_equal(decided.codes, closed.codes)
    np.testing.assert_allclose(decided.margins, closed.margins, atol=1e-6)
    assert plan.n_tests <= plan.n_asked
    if register == "column":
        assert [tests.n_features for tests in plan.tests] == [1]


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_every_model_is_measured_with_errors_of_its_margins(kind):
    model, table = exported(kind, 6)
    plan = model.measurement_plan(table, shots=4000, draws=16, seed=3)
    result = plan.run()
    assert (result.kept | result.undecided).all()
    columns = result.columns()
    np.testing.assert_array_equal(columns["class_in_closed_form"], model.predict(table))
    np.testing.assert_array_equal(columns["margin"], result.decided.margins)
    probabilistic = model.model.decision.probabilistic
    assert ("probability" in columns) == probabilistic
    if probabilistic:
        chosen = model.predict_proba(table)[np.arange(6), plan.exact.codes]
        np.testing.assert_allclose(columns["probability_in_closed_form"], chosen, atol=1e-9)
        near = root_mean_square(columns["probability"] - chosen)
        assert near < 5 * root_mean_square(columns["probability_error"]) + 1e-6
    assert (columns["margin_error"] > 0).all()
    # Trees jump, and most runs see none of the few jumps that their errors count.
    least = 0.05 if "sum" in kind else 0.2
    assert least < root_mean_square(result.margin_errors) / root_mean_square(columns["margin_error"]) < 3.0


def test_margins_that_decide_have_the_errors():
    """A cut and other priors move margins, class by class biases what is compared: errors stay those of the margin."""
    plain, shifted = (exported(kind, 6) for kind in ("evidence", "shifted priors and a cut"))
    plans = [one.saved.measurement_plan(one.table, shots=500, calibrate=False) for one in (plain, shifted)]
    moved = plans[1].exact.margins - plans[0].exact.margins
    assert np.ptp(moved) < 1e-9 < abs(moved[0])
    np.testing.assert_allclose(plans[1].expected_errors.margins, plans[0].expected_errors.margins, rtol=1e-9)
    biased = exported("biases", 6)
    plan = biased.saved.measurement_plan(biased.table, shots=500, calibrate=False)
    ranked = np.sort(plan.exact.scores, axis=1)
    np.testing.assert_allclose(plan.exact.margins, ranked[:, -1] - ranked[:, -2], atol=1e-12)
    assert not np.allclose(plan.exact.scores, biased.saved.decide(biased.table).scores)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :5], y


def printed(**settings):
    return NearestMedoidClassifier(angle="printed", **settings)


@pytest.mark.parametrize("make", [NearestMedoidClassifier.paper, printed])
def test_the_printed_angle_is_measured(make):
    X, y = load_wine(return_X_y=True)
    model = make(max_passes=0, random_state=0).fit(X, y)
    assert model.model_.parts[0].angle == "printed"
    plan = model.measurement_plan(X[::9], shots=2000, calibrate=False)
    closed, decided = SavedModel(model.model_).decide(X[::9]), exact_decisions(plan)
    np.testing.assert_allclose(decided.margins, closed.margins, atol=1e-6)
    assert plan.run().kept.mean() > 0.8


@pytest.fixture(scope="module")
def refined(cancer):
    """A model whose circuit decides about three of ten records."""
    method = EvidenceClassifier(n_medoids=6, n_neighbors=0)
    model = MedoidClassifier(method=method, refine=0.3, random_state=0).fit(*cancer)
    assert model.refinement_ == "selective"
    return SavedModel(model.model_)


def test_records_that_noise_sends_to_the_circuit_have_honest_errors(refined, cancer):
    rows = cancer[0][::15]
    settings = {"shots": 1000, "calibrate": False, "draws": 24, "refine": "simulated"}
    plans = [refined.measurement_plan(rows, **settings, seed=seed) for seed in range(10)]
    results = [plan.run() for plan in plans]
    changed = root_mean_square([result.margin_errors for result in results])
    assert root_mean_square([result.errors.margins for result in results]) == pytest.approx(changed, rel=0.25)
    wrong = sum((~result.kept & ~result.undecided).sum() for result in results)
    assert wrong <= 0.025 * len(rows) * len(results)
    assert "simulated exactly" in plans[0].notes[0]
    assert plans[0].notes[0] in results[0].notes


def test_planning_runs_no_circuit_of_a_measured_model(refined, cancer):
    def never(*_, **__):
        raise AssertionError("a circuit ran")

    measured = refined.measured_by(swap_test=never, expectations=never)
    plan = measured.measurement_plan(cancer[0][::40], shots=100, calibrate=False)
    np.testing.assert_allclose(plan.exact.margins, refined.decide(cancer[0][::40]).margins, atol=1e-9)
    plan.run()


def test_saved_models_and_data_frames_are_measured(tmp_path):
    model, table = exported("categories, dates and missing cells", 6)
    file = model.save(tmp_path / "mixed.qmedoid")
    loaded, frame = qmedoid.load(file), table.to_pandas()
    settings = {"shots": 500, "seed": 4, "draws": 8}
    results = [
        one.measurement_plan(data, **settings).run() for one, data in ((model, table), (loaded, table), (loaded, frame))
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.decided.margins, results[0].decided.margins)
        np.testing.assert_array_equal(result.errors.margins, results[0].errors.margins)
    other = loaded.measurement_plan(frame, **settings | {"seed": 5}).run()
    assert not np.array_equal(other.decided.margins, results[0].decided.margins)
    with pytest.raises(ContractError):
        loaded.measurement_plan(pd.DataFrame({"first": [1.0]}))


def test_a_circuit_alone_that_is_simulated_leaves_nothing_to_measure(cancer):
    X, y = cancer
    model = VariationalClassifier(random_state=0, n_steps=2).fit(X[:60], y[:60])
    with pytest.raises(ModelError, match=r"circuit alone.*refine='device'"):
        model.measurement_plan(X[:3], refine="simulated")


def test_settings_are_checked_before_anything_is_planned():
    model, table = exported("evidence", 6)
    with pytest.raises(ParameterError, match="'register'"):
        model.measurement_plan(table, register="columns")
    with pytest.raises(ParameterError, match="'shots'"):
        model.measurement_plan(table, shots=0)
    with pytest.raises(ParameterError, match="'refine'"):
        model.measurement_plan(table, refine="never")
    with pytest.raises(TypeError, match="shot"):
        model.measurement_plan(table, shot=5)
    with pytest.raises(DataError, match="at least one row"):
        model.measurement_plan(table.slice(0, 0))
    with pytest.raises(ParameterError, match="'backend'"):
        model.measurement_plan(table, 7)
