"""Where two classes are told apart: every rule does on new rows what it promised, within its interval."""

import numpy as np
import pytest
from gaussian_classes import GaussianClasses, drawn

from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.metrics.thresholds import chosen_threshold, counts_at
from qmedoid.model.operating_point import ASKED as WITH_A_NUMBER
from qmedoid.model.operating_point import RULES, Counts, chosen_cut

PRIORS = [0.9, 0.1]
ASKED = {
    "likeliest": {},
    "probability": {"operating_point": 0.3},
    "alert_rate": {"operating_point": {"alert_rate": 0.08}},
    "min_precision": {"operating_point": {"min_precision": 0.7}},
    "min_recall": {"operating_point": {"min_recall": 0.75}},
    "cost": {"operating_point": {"cost": 8.0}},
    "macro_f1": {"operating_point": "macro_f1"},
    "f1": {"operating_point": "f1"},
    "f2": {"operating_point": "f2"},
    "accuracy": {"operating_point": "accuracy"},
    "balanced_accuracy": {"operating_point": "balanced_accuracy"},
}
EVERY = pytest.mark.parametrize("rule", ASKED)


def judged(classifier, X, y):
    """What a classifier does to rows: counts, and the figures that they make."""
    counts = Counts(**counts_at(y == 1, classifier.decision_function(X), 0.0))
    alerts = counts.tp + counts.fp
    return counts, {"precision": counts.tp / max(alerts, 1), "recall": counts.tp / (counts.tp + counts.fn),
                    "alert_rate": alerts / len(y)}  # fmt: skip


def test_every_rule_is_asked_for_somehow():
    assert set(ASKED) == set(RULES)
    points = [asked["operating_point"] for asked in ASKED.values() if asked]
    assert {name for point in points if isinstance(point, dict) for name in point} == {*WITH_A_NUMBER} - {"probability"}


@EVERY
def test_predictions_are_cut_at_the_threshold(rule):
    X, y = drawn(2000, PRIORS)
    fitted = GaussianClasses(**ASKED[rule]).fit(X, y)
    assert fitted.expected_.rule == rule
    point = ASKED[rule].get("operating_point")
    asked = point[rule] if isinstance(point, dict) else point
    assert fitted.expected_.asked == (None if rule in ("likeliest", *RULES[6:]) else asked)
    assert fitted.expected_.threshold == fitted.threshold_
    new, _ = drawn(1000, PRIORS, 1)
    np.testing.assert_array_equal(fitted.predict(new), fitted.decision_function(new) > 0)
    np.testing.assert_array_equal(fitted.predict(new), fitted.predict_proba(new)[:, 1] > fitted.threshold_)


@EVERY
def test_new_rows_are_within_the_intervals_as_often_as_stated(rule):
    """Intervals are for the true share, so that of 8,000 new rows lies in nearly as many of them."""
    within = {"precision": [], "recall": [], "alert_rate": []}
    for seed in range(100, 140):
        fitted = GaussianClasses(**ASKED[rule]).fit(*drawn(600, PRIORS, seed))
        _, shown = judged(fitted, *drawn(8_000, PRIORS, seed + 1000))
        for name, found in within.items():
            _, low, high = getattr(fitted.expected_, name)
            found.append(low <= shown[name] <= high)
    # 95 % less three standard errors of 40 draws, and the rows that chose a cut think a little too well of it.
    assert min(np.mean(found) for found in within.values()) > 0.83, {k: np.mean(v) for k, v in within.items()}


def test_floors_and_costs_are_those_of_the_metrics():
    X, y = drawn(3000, PRIORS)
    margin = GaussianClasses().fit(X, y).decision_function(X)
    for rule, asked in (("min_precision", 0.7), ("min_recall", 0.75), ("cost", 8)):
        fitted = GaussianClasses(operating_point={rule: asked}).fit(X, y)
        assert fitted.expected_.log_odds == chosen_threshold(rule, asked, y == 1, margin)
    # With true probabilities the cheapest cut is where a false alert and a miss cost the same.
    costs = [
        GaussianClasses(operating_point={"cost": 8.0}).fit(*drawn(20_000, PRIORS, seed)).threshold_ for seed in range(5)
    ]
    assert np.mean(costs) == pytest.approx(1 / 9, rel=0.25)


def test_counts_are_those_of_the_held_out_rows():
    X, y = drawn(500, PRIORS)
    fitted = GaussianClasses(operating_point={"min_recall": 0.8}).fit(X, y)
    assert fitted.expected_.counts == judged(fitted, X, y)[0]


def test_precision_out_of_reach_is_said_and_the_nearest_is_used():
    X, y = drawn(800, PRIORS, 3, apart=0.5)
    with pytest.warns(QMedoidWarning, match=r"No threshold has a precision of 0\.99.*The best is .* is used"):
        fitted = GaussianClasses(apart=0.5, operating_point={"min_precision": 0.99}).fit(X, y)
    margin = fitted.decision_function(X)
    best = max((y[margin > cut] == 1).mean() for cut in margin if (margin > cut).any())
    assert judged(fitted, X, y)[1]["precision"] == pytest.approx(best)


def test_budget_below_one_row_is_said():
    X, y = drawn(200, PRIORS)
    with pytest.warns(QMedoidWarning, match="An alert rate of 0.001 is less than one of the 200 held-out rows"):
        fitted = GaussianClasses(operating_point={"alert_rate": 0.001}).fit(X, y)
    assert fitted.predict(X).sum() == 0


def test_scores_that_are_equal_but_for_rounding_raise_no_alert():
    margins, positive = np.full(200, -3.9), np.arange(200) % 50 == 0
    with pytest.warns(QMedoidWarning, match="alerts will be rarer than that rate"):
        cut = chosen_cut("alert_rate", 0.01, positive, margins)
    assert not (margins + 1e-6 > cut).any()


@pytest.mark.parametrize("asked", [{"min_recall": 0.9}, {"cost": 2.0}, {"alert_rate": 0.1}, "f1"])
def test_without_held_out_rows_the_cut_stays_at_even_odds(asked):
    with pytest.warns(QMedoidWarning, match="No row was held out"):
        fitted = GaussianClasses(n_folds=0, operating_point=asked).fit(*drawn(100, PRIORS))
    assert fitted.threshold_ == 0.5
    assert fitted.expected_.counts is None
    assert fitted.expected_.precision is None


def test_probability_needs_no_held_out_rows():
    fitted = GaussianClasses(n_folds=0, operating_point=0.25).fit(*drawn(100, PRIORS))
    assert fitted.threshold_ == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_precision", 0), ("min_precision", 1.1), ("min_recall", "0.9"), ("min_recall", True), ("cost", 0),
     ("cost", -1.0), ("cost", np.inf), ("alert_rate", 1)],
)  # fmt: skip
def test_other_values_are_refused(name, value):
    with pytest.raises(ParameterError, match=rf"'operating_point' parameter of Gauss.* '{name}' \(a number above 0"):
        GaussianClasses(operating_point={name: value}).fit(*drawn(50, PRIORS))


def test_at_most_one_rule_and_two_classes():
    two, three = drawn(60, PRIORS), drawn(60, [0.3, 0.3, 0.4])
    for wrong in ({"alert_rate": 0.5, "min_recall": 0.5}, {}, {"accuracy": 0.5}, ["f1"]):
        with pytest.raises(ParameterError, match="or a dict with one of 'alert_rate'"):
            GaussianClasses(operating_point=wrong).fit(*two)
    for point in (0.5, "f1", *({name: 0.5} for name in WITH_A_NUMBER[1:])):
        with pytest.raises(ParameterError, match=r"'operating_point' of 3 classes is None, 'macro_f1'"):
            GaussianClasses(operating_point=point).fit(*three)
    assert GaussianClasses().fit(*three).expected_ is None


def test_held_out_rows_of_one_class_cannot_choose_a_floor(recwarn):
    X, y = drawn(200, PRIORS)
    for name, can_cut in (("min_recall", False), ("min_precision", False), ("cost", False), ("alert_rate", True)):
        fitted = GaussianClasses(operating_point={name: 0.5}).fit(X, y)
        recwarn.clear()
        fitted.hold(X, y, np.where(y == 0, 0, -1))
        assert [str(one.message) for one in recwarn if "are of one class" in str(one.message)] == (
            []
            if can_cut
            else [f"All {(y == 0).sum()} held-out rows are of one class: the threshold stays at even odds."]
        )
        assert (fitted.threshold_ == 0.5) != can_cut


def test_larger_budget_keeps_the_alerts_of_a_smaller_one():
    few, more = (
        GaussianClasses(operating_point={"alert_rate": rate}).fit(*drawn(600, PRIORS)).predict(drawn(600, PRIORS, 1)[0])
        for rate in (0.05, 0.2)
    )
    assert (more >= few).all()
    assert more.sum() > few.sum()
