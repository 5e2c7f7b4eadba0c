"""Another prevalence: probabilities that are right for it, thresholds that keep their meaning, and its estimation."""

import numpy as np
import pytest
from gaussian_classes import GaussianClasses, drawn

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.saved import SavedModel

FIFTY = [(0.5, 0.01), (0.01, 0.5), (0.3, 0.006)]
MOVED = ({"alert_rate": 0.1}, {"min_precision": 0.5}, {"min_recall": 0.8}, "macro_f1")
KEPT = (None, 0.3, {"cost": 5.0})


def shift_case(old, new, seed=0, apart=2.0, asked=None):
    fitted = GaussianClasses(apart=apart, operating_point=asked).fit(*drawn(20_000, [1 - old, old], seed, apart))
    return fitted, *drawn(40_000, [1 - new, new], seed + 1, apart)


@pytest.mark.parametrize(("old", "new"), FIFTY)
def test_predicted_prevalence_is_the_true_one_after_a_shift_of_fifty_times(old, new):
    fitted, X, y = shift_case(old, new)
    before, after = fitted.predict_proba(X)[:, 1].mean(), fitted.prior_shift(new).predict_proba(X)[:, 1].mean()
    assert 0.9 < after / y.mean() < 1.1
    assert not 0.5 < before / y.mean() < 2


@pytest.mark.parametrize(("old", "new"), FIFTY)
def test_new_prevalence_is_estimated_within_its_interval(old, new):
    fitted, X, y = shift_case(old, new, seed=7, apart=4.0)
    found = fitted.estimate_prevalence(X)
    assert found.low[1] < new < found.high[1]
    shifted = fitted.prior_shift(found.priors)
    assert 0.9 < shifted.predict_proba(X)[:, 1].mean() / y.mean() < 1.1
    # EM stops where the mean probability is the prevalence that it was made for.
    assert shifted.predict_proba(X)[:, 1].mean() == pytest.approx(found.prevalence, rel=1e-3)
    assert shifted.estimate_prevalence(X).prevalence == pytest.approx(found.prevalence, rel=1e-9)


def test_it_is_the_classifier_that_was_fitted_there():
    """Exact densities at other priors, once by a shift and once by a fit on rows with these priors."""
    fitted, X, _ = shift_case(0.4, 0.1)
    there = GaussianClasses().fit(*drawn(20_000, [0.9, 0.1], 5))
    moved = fitted.prior_shift(there.class_priors_)
    np.testing.assert_allclose(moved.predict_proba(X), there.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(moved.predict(X), there.predict(X))


def test_shifts_replace_each_other_and_leave_the_classifier_alone():
    fitted, X, _ = shift_case(0.3, 0.1, asked={"alert_rate": 0.2})
    before = fitted.predict_proba(X)
    once, twice = fitted.prior_shift(0.02), fitted.prior_shift(0.7).prior_shift(0.02)
    np.testing.assert_allclose(once.predict_proba(X), twice.predict_proba(X))
    assert once.threshold_ == pytest.approx(twice.threshold_)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)
    back = once.prior_shift(fitted.class_priors_)
    np.testing.assert_allclose(back.predict_proba(X), before, rtol=1e-9)
    assert back.threshold_ == pytest.approx(fitted.threshold_)


@pytest.mark.parametrize("asked", MOVED, ids=str)
def test_threshold_chosen_on_held_out_rows_keeps_its_records(asked):
    fitted, X, y = shift_case(0.1, 0.4, asked=asked)
    shifted = fitted.prior_shift(0.4)
    np.testing.assert_array_equal(shifted.predict(X), fitted.predict(X))
    assert shifted.threshold_ > fitted.threshold_
    np.testing.assert_array_equal(shifted.predict(X), shifted.predict_proba(X)[:, 1] > shifted.threshold_)
    # What is expected of it is known, because the classes look the same.
    called = shifted.predict(X) == 1
    expected = shifted.expected_
    assert expected.alert_rate.value == pytest.approx(called.mean(), rel=0.08)
    assert expected.precision.value == pytest.approx(y[called].mean(), rel=0.05)
    assert expected.recall.value == pytest.approx(called[y == 1].mean(), rel=0.05)
    assert expected.drift(int(called.sum()), len(called)).direction == "none"
    assert fitted.expected_.drift(int(called.sum()), len(called)).direction == "up"


@pytest.mark.parametrize("asked", KEPT, ids=str)
def test_rule_about_a_probability_keeps_its_probability(asked):
    fitted, X, _ = shift_case(0.1, 0.4, asked=asked)
    shifted = fitted.prior_shift(0.4)
    assert shifted.threshold_ == fitted.threshold_
    assert shifted.predict(X).sum() > fitted.predict(X).sum()
    np.testing.assert_array_equal(shifted.predict(X), shifted.predict_proba(X)[:, 1] > shifted.threshold_)
    assert shifted.expected_.counts is None


def test_several_classes():
    old, new = [0.2, 0.3, 0.5], [0.6, 0.35, 0.05]
    fitted = GaussianClasses(apart=3.0).fit(*drawn(20_000, old, 0, apart=3.0, labels=["a", "b", "c"]))
    X, y = drawn(20_000, new, 1, apart=3.0, labels=["a", "b", "c"])
    found = fitted.estimate_prevalence(X)
    assert ((found.low < new) & (new < found.high)).all()
    shifted = fitted.prior_shift(dict(zip("cab", [0.05, 0.6, 0.35], strict=True)))
    shares = [(y == label).mean() for label in "abc"]
    np.testing.assert_allclose(shifted.predict_proba(X).mean(axis=0), shares, rtol=0.1)
    np.testing.assert_array_equal(shifted.predict_proba(X), fitted.prior_shift(new).predict_proba(X))
    assert (shifted.predict(X) == y).mean() > (fitted.predict(X) == y).mean()


@pytest.mark.parametrize(
    ("given", "reason"),
    [(0, "above 0 and below 1"), (1.0, "above 0 and below 1"), (-0.1, "above 0"), (True, "all of them numbers"),
     ("0.1", "all of them numbers"), ([0.5], "one prior for each of the 2 classes"), ([0.5, 0.6], "add up to 1"),
     ({0: 0.5}, "lacks the class 1"), ({0: 0.5, 1: 0.3, 2: 0.2}, "names 2, which is no class"),
     ({0: "a", 1: 0.5}, "all of them numbers"), (np.nan, "above 0")],
)  # fmt: skip
def test_priors_that_make_no_sense_are_refused(given, reason):
    with pytest.raises(ParameterError, match=reason):
        GaussianClasses().fit(*drawn(50, [0.5, 0.5])).prior_shift(given)
    three = GaussianClasses().fit(*drawn(50, [0.3, 0.3, 0.4]))
    with pytest.raises(ParameterError, match="each of the 3 classes"):
        three.prior_shift(0.5)


@pytest.fixture(scope="module")
def case():
    X, y = drawn(1200, [0.7, 0.3], labels=["yes", "no"])
    new, new_y = drawn(6000, [0.97, 0.03], 1, labels=["yes", "no"])
    return X, y, new, new_y


def test_tables_speak_of_the_positive_class(case):
    X, y, new, new_y = case
    table = MedoidClassifier(
        method="nearest", refine="never", operating_point={"alert_rate": 0.2}, positive="no", random_state=0
    ).fit(X, y)
    share = (new_y == "no").mean()
    by_number = table.prior_shift(share)
    assert 0.85 < by_number.predict_proba(new)[:, 0].mean() / share < 1.15
    for same in ({"no": share, "yes": 1 - share}, [share, 1 - share]):
        np.testing.assert_allclose(table.prior_shift(same).predict_proba(new), by_number.predict_proba(new))
    assert table.expected_.rule == "alert_rate"
    assert table.estimate_prevalence(new).priors[0] == pytest.approx(share, abs=0.02)
    # The saved model of either says the same.
    saved, shifted = SavedModel(table.model_), SavedModel(by_number.model_)
    np.testing.assert_allclose(saved.prior_shift(share).predict_proba(new), shifted.predict_proba(new))
    np.testing.assert_array_equal(saved.prior_shift(share).predict(new), by_number.predict(new))
    np.testing.assert_allclose(shifted.predict_proba(new)[:, ::-1], by_number.predict_proba(new))
    assert saved.prior_shift(share).expected_ == shifted.expected_ == by_number.expected_
    drift = saved.alert_rate_drift(saved.decide(new))
    assert (drift.rows, drift.alerts) == (6000, int((saved.predict(new) == "no").sum()))


def test_estimate_can_be_used_even_where_a_class_hardly_occurs():
    X, y = drawn(2_000, [0.5, 0.5], 0, 40.0)
    fitted = GaussianClasses(apart=40.0).fit(X, y)
    found = fitted.estimate_prevalence(X[y == 0])
    assert found.priors[0] == 1.0  # the other is too small to show beside it
    shifted = fitted.prior_shift(found.priors)
    assert (shifted.predict(X[y == 0]) == 0).all()
    assert 0 < shifted.model_.decision.shift.priors.min() <= shifted.model_.decision.shift.priors.max() < 1
    assert fitted.prior_shift(np.array(0.2)).expected_ == fitted.prior_shift(0.2).expected_


def test_class_weights_are_counted_in(case):
    X, y, *_ = case
    settings = {"n_qubits": 1, "n_reps": 1, "n_steps": 5, "n_seeds": 1, "random_state": 0}
    balanced = VariationalClassifier(class_weight="balanced", **settings).fit(X, y)
    np.testing.assert_allclose(balanced.class_priors_, [0.5, 0.5])
    assert balanced.expected_.counts is None
    plain = VariationalClassifier(**settings).fit(X, y)
    np.testing.assert_allclose(plain.class_priors_, [(y == "no").mean(), (y == "yes").mean()])


def test_margins_alone_have_no_prevalence(case):
    X, y, *_ = case
    nearest = NearestMedoidClassifier(random_state=0).fit(X, y)
    assert not hasattr(nearest, "prior_shift")
    with pytest.raises(ModelError, match="no probabilities"):
        SavedModel(nearest.model_).prior_shift(0.1)
