"""Another cut of a fitted model is the one that a fit would have chosen, by the curve of held-out rows."""

import numpy as np
import pytest

from qmedoid import EvidenceClassifier
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.metrics.thresholds import counts_at
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary, curve_counts, curve_rows, cut_on_curve
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve

POINTS = [None, 0.3, "f1", "macro_f1", {"alert_rate": 0.1}, {"min_precision": 0.9}, {"min_recall": 0.9}, {"cost": 4}]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    codes = (rng.random(160) < 0.3).astype(int)
    return rng.normal(size=(160, 2)) + 1.2 * codes[:, None], codes


@pytest.fixture(scope="module")
def plain(rows):
    return EvidenceClassifier(n_medoids=4, random_state=0).fit(*rows)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_moved_cut_is_that_of_a_fit(rows, plain, point):
    fitted = EvidenceClassifier(n_medoids=4, random_state=0, operating_point=point).fit(*rows)
    moved = plain.at_operating_point(point)
    assert moved.expected_ == fitted.expected_
    assert moved.model_.decision.cut == fitted.model_.decision.cut
    assert moved.threshold_ == fitted.threshold_
    assert moved.operating_point == point
    np.testing.assert_array_equal(moved.predict(rows[0]), fitted.predict(rows[0]))
    assert plain.operating_point is None
    assert plain.model_.decision.cut is None


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_prevalence_and_cut_can_change_in_any_order(plain, point):
    one = plain.at_operating_point(point).prior_shift(0.1).model_.decision
    other = plain.prior_shift(0.1).at_operating_point(point).model_.decision
    assert one.cut == other.cut
    # The curve knows what a probability does to the records at another prevalence; counts alone do not.
    assert other.operating.counts is not None
    assert one.operating.counts in (None, other.operating.counts)


def test_counts_at_another_prevalence_are_those_of_the_shifted_rows(plain):
    curve, moved = plain.model_.training.curve, plain.prior_shift(0.1).at_operating_point(0.2).model_.decision
    positive, log_odds = curve_rows(curve)
    expected = counts_at(positive, log_odds + moved.shift.of_log_odds, moved.cut)
    assert moved.operating.counts == Counts(**expected)


def test_rows_of_a_curve_have_its_counts():
    rng = np.random.default_rng(1)
    positive, log_odds = rng.random(500) < 0.2, np.round(rng.normal(size=500), 1)
    curve = HeldOutCurve.of(positive, log_odds)
    again = HeldOutCurve.of(*curve_rows(curve))
    for name in ("thresholds", "true_positives", "false_positives"):
        np.testing.assert_array_equal(getattr(again, name), getattr(curve, name))
    for cut in (-9.0, -1.05, 0.0, 0.3, 9.0):
        assert curve_counts(curve, cut) == Counts(**counts_at(positive, log_odds, cut))


@pytest.mark.parametrize("point", [("alert_rate", 0.01), ("min_recall", 0.8), ("cost", 20.0), ("f1", None)], ids=str)
def test_counts_are_exact_and_the_cut_is_near_where_thresholds_were_left_out(point):
    rng = np.random.default_rng(2)
    positive = rng.random(20_000) < 0.02
    log_odds = rng.normal(size=20_000) + 2.0 * positive - 3.0
    curve = HeldOutCurve.of(positive, log_odds)
    assert len(curve.thresholds) <= MOST_CUTS < len(np.unique(log_odds))
    chosen = cut_on_curve(*point, curve)
    assert chosen.counts == Counts(**counts_at(positive, log_odds, chosen.log_odds))
    exact = cut_on_curve(*point, HeldOutCurve.of(positive, log_odds, most=20_000))
    one, other = (np.array(summary.counts) / [400, 20_000, 400, 20_000] for summary in (chosen, exact))
    np.testing.assert_allclose(one, other, atol=0.03)
    if point[0] == "alert_rate":
        assert sum(chosen.counts[:2]) <= 200


def test_draws_per_row_stay_those_of_the_fit(plain):
    decision = plain.model_.decision
    few = Decision(decision.classes, priors=decision.priors,
                   operating=OperatingSummary("likeliest", None, 0.0, draws_per_row=0.5))  # fmt: skip
    moved = few.at_operating_point({"alert_rate": 0.1}, plain.model_.training.curve)
    assert moved.operating.draws_per_row == 0.5


def test_without_a_curve_only_a_probability_is_cut_at(plain):
    decision = plain.model_.decision
    assert decision.at_operating_point(0.2, None).operating.threshold == pytest.approx(0.2)
    for point in ("f1", {"alert_rate": 0.1}, {"cost": 2}):
        with pytest.raises(DataError, match="no curve of held-out rows"):
            decision.at_operating_point(point, None)


@pytest.mark.parametrize(
    "point",
    [0.0, 1.0, -1, 2, True, "f3", float("nan"), {}, {"alert_rate": 1.0}, {"alert_rate": 0}, {"min_recall": 1.1},
     {"cost": float("inf")}, {"cost": [[0, 1], [1, 0]]}, {"f1": 1}, {"alert_rate": 0.1, "cost": 2}, [0.5], {1: 2}],
    ids=str,
)  # fmt: skip
def test_what_is_no_operating_point_is_refused(plain, point):
    with pytest.raises(ParameterError, match="The operating point must be"):
        plain.at_operating_point(point)


def test_more_classes_and_models_without_probabilities_are_refused():
    for decision, words in (
        (Decision(("a", "b", "c")), "cut of 3 classes"),
        (Decision(("a", "b"), probabilistic=False), "no probabilities"),
    ):
        with pytest.raises(ModelError, match=words):
            decision.at_operating_point(0.3, None)
