"""Budgets of alerts: the threshold that each means, with the counts that it has."""

import numpy as np
import pytest

from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.metrics.thresholds import counts_at, threshold_at_count
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary, budget_dict, budget_of, budgets_on_rows
from qmedoid.model.training_summary import HeldOutCurve


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.2
    return positive, rng.normal(size=n) + 1.5 * positive


def test_budget_is_a_number_or_a_share():
    given = [10, "10", 10.0, 0.05, "0.05", "5%", " 5 % ", "100%", 1, "1"]
    assert [budget_of(one, 200)[0] for one in given] == ["10"] * 3 + ["5%"] * 4 + ["100%", "1", "1"]
    assert [budget_of(one, 200)[1] for one in (7, "2.5%", 0.29, "100%", 500)] == [7, 5, 58, 200, 500]
    for wrong in (0, -1, 1.5, "0%", "101%", "x", "", None, True, float("nan"), float("inf"), [5]):
        with pytest.raises(ParameterError, match="A budget must be a number of alerts, such as 100, or a share"):
            budget_of(wrong, 200)


def test_budgets_on_rows_take_the_highest_scores():
    positive, scores = rows()
    best = np.argsort(-scores)
    spent = budgets_on_rows([1, 25, "10%", 400, 9999], positive, scores)
    for (_, operating), count in zip(spent, (1, 25, 40, 400, 400), strict=True):
        assert operating.alerts == count
        assert operating.counts.tp == positive[best[:count]].sum()
        assert operating.log_odds < scores[best[:count]].min()
    (share,) = budgets_on_rows([0.07], positive, scores)
    assert share[1].log_odds == threshold_at_count(scores, 28)
    figures = budget_dict(*share)
    assert figures["recall_low"] < figures["recall"] < figures["recall_high"]
    assert (figures["budget"], figures["alerts"], figures["rows"]) == ("7%", 28, 400)


def test_records_of_one_score_are_all_alerts_or_none():
    scores = np.array([3.0, 2.0, 2.0, 2.0, 1.0])
    positive = np.array([True, False, True, False, False])
    assert [one.alerts for _, one in budgets_on_rows([1, 2, 3, 4, 5], positive, scores)] == [1, 1, 1, 4, 5]


def test_budgets_on_a_curve_are_those_of_its_rows():
    positive, scores = rows()
    curve, decision = HeldOutCurve.of(positive, scores), Decision((0, 1), priors=np.array([0.8, 0.2]))
    asked = [1, 25, "10%", "100%"]
    found = decision.budgets(asked, curve)
    assert found == budgets_on_rows(asked, positive, scores)
    shifted = decision.at_priors(0.05)
    for (_, plain), (_, moved) in zip(found, shifted.budgets(asked, curve), strict=True):
        assert moved.log_odds == plain.log_odds + shifted.shift.of_log_odds
        assert moved.counts == plain.counts
        assert moved.precision.value < plain.precision.value or plain.counts.fp == 0


def test_counts_are_exact_where_thresholds_were_left_out():
    positive, scores = rows(20_000, 3)
    curve = HeldOutCurve.of(positive, scores)
    for budget, operating in Decision((0, 1)).budgets([50, "1%", "30%"], curve):
        assert operating.counts == Counts(**counts_at(positive, scores, operating.log_odds))
        assert operating.alerts <= budget_of(budget, 20_000)[1]


def test_draws_per_row_of_the_fit_widen_intervals():
    positive, scores = rows()
    curve = HeldOutCurve.of(positive, scores)
    few = Decision((0, 1), operating=OperatingSummary("likeliest", None, 0.0, draws_per_row=0.25))
    (narrow,), (wide,) = (one.budgets([40], curve) for one in (Decision((0, 1)), few))
    assert wide[1].precision.low < narrow[1].precision.low


def test_what_has_no_curve_or_no_two_classes_is_refused():
    with pytest.raises(DataError, match="no curve"):
        Decision((0, 1)).budgets([1], None)
    with pytest.raises(ModelError, match="cut of 3 classes"):
        Decision((0, 1, 2)).budgets([1], None)
    with pytest.raises(DataError, match="no rows"):
        budgets_on_rows([1], np.zeros(0, dtype=bool), np.zeros(0))
