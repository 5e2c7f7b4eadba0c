"""Operating points: the best of all cuts by brute force in exact fractions, and laws."""

import time
import warnings
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.classification import evaluate
from qmedoid.metrics.thresholds import (
    OperatingPoint,
    at_alert_rate,
    at_cost,
    at_f_beta,
    at_precision,
    at_recall,
    at_threshold,
    best_threshold,
    most_precise,
    threshold_at_rate,
)

# Every rule with a parameter that can be met on any rows: alerts for all have the prevalence as their precision.
RULES = {
    "alert rate": lambda positive, scores: at_alert_rate(positive, scores, 0.4),
    "precision": lambda positive, scores: at_precision(positive, scores, positive.mean()),
    "recall": lambda positive, scores: at_recall(positive, scores, 0.6),
    "cost": lambda positive, scores: at_cost(positive, scores, 3.0),
    "F-beta": lambda positive, scores: at_f_beta(positive, scores, 2.0),
}
EVERY = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def rows(of_score):
    """Labels of both kinds and as many scores."""
    pairs = st.lists(st.tuples(st.booleans(), of_score), min_size=2, max_size=30)
    return pairs.filter(lambda drawn: len({label for label, _ in drawn}) == 2).map(
        lambda drawn: (np.array([label for label, _ in drawn]), np.array([float(score) for _, score in drawn]))
    )


tied = rows(st.integers(-4, 4))
# The floats bring neighbors, denormals, both zeros and huge values.
wild = rows(st.one_of(st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False)))
shares = st.one_of(st.floats(0, 1), st.integers(0, 20).map(lambda k: k / 20))
# Sums of their multiples and squares are exact, so that equal cuts are equal in fractions and in floats.
weights = st.sampled_from([0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0])


def decisions(positive, scores):
    """Counts (tp, fp, fn, tn) of every set of alerts that a threshold can make, the largest set first."""
    for level in [*np.unique(scores), np.inf]:
        alerts = scores >= level
        kinds = [alerts & positive, alerts & ~positive, ~alerts & positive, ~alerts & ~positive]
        yield tuple(int(kind.sum()) for kind in kinds)


def counts(point):
    return astuple(point)[1:]


class TestBruteForce:
    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_precision(self, drawn, floor):
        positive, scores = drawn
        allowed = [c for c in decisions(*drawn) if c[0] + c[1] and c[0] / (c[0] + c[1]) >= floor]
        if not allowed:
            with pytest.raises(DataError, match="No threshold has a precision"):
                at_precision(positive, scores, floor)
            return
        best = max(allowed, key=lambda c: (c[0], Fraction(c[0], c[0] + c[1])))
        assert counts(at_precision(positive, scores, floor)) == best

    @given(tied)
    @settings(max_examples=40, deadline=None)
    def test_most_precise(self, drawn):
        best = max((c for c in decisions(*drawn) if c[0] + c[1]), key=lambda c: (Fraction(c[0], c[0] + c[1]), c[0]))
        assert counts(most_precise(*drawn)) == best

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_recall(self, drawn, floor):
        allowed = [c for c in decisions(*drawn) if c[0] / (c[0] + c[2]) >= floor]
        assert counts(at_recall(*drawn, floor)) == min(allowed, key=lambda c: c[0] + c[1])

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_alert_rate(self, drawn, rate):
        allowed = [c for c in decisions(*drawn) if c[0] + c[1] <= rate * len(drawn[0]) + 1e-9]
        assert counts(at_alert_rate(*drawn, rate)) == max(allowed, key=lambda c: c[0] + c[1])

    @given(tied, weights)
    @settings(max_examples=40, deadline=None)
    def test_cost(self, drawn, ratio):
        found = min(decisions(*drawn), key=lambda c: (Fraction(ratio) * c[2] + c[1], -c[0] - c[1]))
        assert counts(at_cost(*drawn, ratio)) == found

    @given(tied, weights)
    @settings(max_examples=40, deadline=None)
    def test_f_beta(self, drawn, beta):
        square = Fraction(beta) ** 2

        def f_beta(c):
            return (1 + square) * c[0] / ((1 + square) * c[0] + square * c[2] + c[1])

        assert counts(at_f_beta(*drawn, beta)) == max(decisions(*drawn), key=lambda c: (f_beta(c), c[0] + c[1]))


class TestEveryRule:
    @EVERY
    @given(drawn=wild)
    @settings(max_examples=30, deadline=None)
    def test_threshold_makes_the_counts(self, rule, drawn):
        point = rule(*drawn)
        assert at_threshold(*drawn, point.threshold) == point

    @EVERY
    @given(drawn=wild, seed=st.integers(0, 99))
    @settings(max_examples=40, deadline=None)
    def test_order_of_rows_does_not_matter(self, rule, drawn, seed):
        order = np.random.default_rng(seed).permutation(len(drawn[0]))
        assert rule(*(values[order] for values in drawn)) == rule(*drawn)

    @EVERY
    @pytest.mark.parametrize("rising", [lambda s: 8 * s - 100, lambda s: s**3, np.exp], ids=["linear", "cube", "exp"])
    @given(drawn=tied)
    @settings(max_examples=30, deadline=None)
    def test_ranking_is_all_that_counts(self, rule, rising, drawn):
        positive, scores = drawn
        before, after = rule(positive, scores), rule(positive, rising(scores))
        np.testing.assert_array_equal(scores > before.threshold, rising(scores) > after.threshold)

    @pytest.mark.parametrize("name", ["precision", "recall", "cost", "F-beta"])
    @given(drawn=tied)
    @settings(max_examples=30, deadline=None)
    def test_rows_that_come_twice_are_decided_as_before(self, name, drawn):
        # Not so an alert rate: twice the budget of one row may hold a pair of equal scores.
        once, twice = RULES[name](*drawn), RULES[name](*(np.tile(values, 2) for values in drawn))
        assert twice == OperatingPoint(once.threshold, *(2 * count for count in counts(once)))

    @EVERY
    def test_thresholds_lie_halfway_between_scores(self, rule):
        positive = np.array([False, False, False, True, True])
        assert rule(positive, np.array([0.0, 1.0, 2.0, 5.0, 9.0])).threshold in (3.5, 7.0)

    @EVERY
    def test_whole_and_single_numbers_are_scores_too(self, rule):
        positive, scores = np.array([False, True, False, True]), np.array([1, 2, 3, 4])
        points = {rule(positive, scores.astype(kind)) for kind in (np.int64, np.uint8, np.float32, np.float64)}
        assert len(points) == 1


class TestAlertRate:
    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_never_above_the_budget_and_the_threshold_of_that_name(self, drawn, rate):
        point = at_alert_rate(*drawn, rate)
        assert point.tp + point.fp <= rate * point.n + 1e-9
        assert point.threshold == threshold_at_rate(drawn[1], rate)

    @given(tied)
    @settings(max_examples=40, deadline=None)
    def test_all_and_none(self, drawn):
        assert at_alert_rate(*drawn, 1).alert_rate == 1
        assert at_alert_rate(*drawn, 0).alert_rate == 0


class TestFloors:
    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_recall_floor_holds(self, drawn, floor):
        assert at_recall(*drawn, floor).recall >= floor

    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_precision_floor_holds(self, drawn, share):
        # From the prevalence, which alerts for all have, up to the best there is.
        best = max(c[0] / (c[0] + c[1]) for c in decisions(*drawn) if c[0] + c[1])
        floor = min(best, drawn[0].mean() + share * (best - drawn[0].mean()))
        assert at_precision(*drawn, floor).precision >= floor

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_each_floor_answers_the_other(self, drawn, floor):
        """The precision bought with a recall buys that recall back, and the other way round."""
        by_recall = at_recall(*drawn, floor)
        if by_recall.tp:
            assert at_precision(*drawn, by_recall.precision).recall >= by_recall.recall
        by_precision = at_precision(*drawn, drawn[0].mean())
        assert at_recall(*drawn, by_precision.recall) == by_precision

    @given(tied, shares, shares)
    @settings(max_examples=40, deadline=None)
    def test_higher_recall_floor_has_no_higher_threshold(self, drawn, first, second):
        low, high = sorted([first, second])
        assert at_recall(*drawn, high).threshold <= at_recall(*drawn, low).threshold

    def test_floor_means_what_it_says_in_decimals(self):
        positive = np.arange(100) % 10 == 0
        scores = -np.arange(100.0)
        for k in range(1, 11):
            assert at_recall(positive, scores, k / 10).tp == k

    def test_what_can_be_reached_is_said_and_can_be_asked_for(self):
        positive = np.array([False] * 6 + [True] * 6)
        scores = np.array([9, 1, 1, 1, 0, 0, 9, 9, 1, 0, 0, 0])
        with pytest.raises(DataError) as caught:
            at_precision(positive, scores, 0.9)
        assert "No threshold has a precision of 0.9 or more on these 12 rows" in str(caught.value)
        assert "The best is 0.6666 (2 of 3 alerts are positive), at recall 0.3333" in str(caught.value)
        assert "a floor of at most 0.6666, or" in str(caught.value)
        assert counts(at_precision(positive, scores, 0.6666)) == (2, 1, 4, 5)


class TestCostAndFBeta:
    @given(wild)
    @settings(max_examples=40, deadline=None)
    def test_they_are_the_best_thresholds_of_the_metrics_they_equal(self, drawn):
        positive, scores = drawn
        codes = positive.astype(np.intp)
        assert at_cost(positive, scores, 1.0).threshold == best_threshold(codes, scores, "accuracy")
        assert at_f_beta(positive, scores).threshold == best_threshold(codes, scores, "f1")
        assert at_f_beta(positive, scores, 2.0).threshold == best_threshold(codes, scores, "f2")

    @pytest.mark.parametrize("large", [1e3, 1e9, 1e160, 1.7e308])
    @given(drawn=wild)
    @settings(max_examples=30, deadline=None)
    def test_where_misses_are_dear_none_is_missed_with_the_fewest_alerts(self, large, drawn):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no overflow is heard of
            assert at_cost(*drawn, large) == at_f_beta(*drawn, large) == at_recall(*drawn, 1.0)
        assert at_f_beta(*drawn, large).recall == 1

    @pytest.mark.parametrize("small", [1e-3, 1e-9, 1e-200, 5e-324])
    @given(drawn=wild)
    @settings(max_examples=30, deadline=None)
    def test_where_misses_are_cheap_precision_is_all(self, small, drawn):
        best = max(c[0] / (c[0] + c[1]) for c in decisions(*drawn) if c[0] + c[1])
        # Precisions of 30 rows lie further apart than a β of 1e-3 can make up for; of equal ones the highest recall.
        assert at_f_beta(*drawn, small) == at_precision(*drawn, best)
        by_cost = at_cost(*drawn, small)
        assert by_cost.fp == 0
        assert by_cost.tp == max(c[0] for c in decisions(*drawn) if c[1] == 0)

    @given(tied, weights, weights)
    @settings(max_examples=40, deadline=None)
    def test_dearer_misses_are_not_missed_more_often(self, drawn, first, second):
        low, high = sorted([first, second])
        assert at_cost(*drawn, high).fn <= at_cost(*drawn, low).fn
        assert at_f_beta(*drawn, high).fn <= at_f_beta(*drawn, low).fn

    @pytest.mark.parametrize("parts", [3, 7, 10, 49])
    def test_ratio_means_what_it_says_in_decimals(self, parts):
        """As many misses as make up one false alert cost the same, though n · (1/n) may not be 1: the more alerts."""
        positive = np.array([True] * parts + [False, True])
        scores = np.array([0.0] * (parts + 1) + [1.0])
        assert at_cost(positive, scores, 1 / parts).alert_rate == 1
        assert at_cost(positive, scores, 0.999 / parts).fp == 0


class TestFigures:
    @given(wild, st.integers(-3, 3))
    @settings(max_examples=40, deadline=None)
    def test_they_are_those_of_the_confusion_matrix(self, drawn, threshold):
        positive, scores = drawn
        point = at_threshold(positive, scores, threshold)
        reference = evaluate(positive.astype(np.intp), (scores > threshold).astype(np.intp), 2)
        np.testing.assert_array_equal([[point.tn, point.fp], [point.fn, point.tp]], reference.confusion)
        assert point.n == len(positive)
        assert point.prevalence == positive.mean()
        assert point.alert_rate == (scores > threshold).mean()
        assert point.precision == reference.precision[1]
        assert point.recall == reference.recall[1]
        assert point.accuracy == reference.accuracy
        assert point.f1 == pytest.approx(reference.f1[1], rel=1e-14)
        assert point.macro_f1 == pytest.approx(reference.macro_f1, rel=1e-14)

    def test_without_alerts_nothing_is_divided_by_nothing(self):
        silent = at_threshold(np.array([True, False]), np.array([0.0, 1.0]), np.inf)
        assert (silent.precision, silent.recall, silent.f1, silent.alert_rate) == (0, 0, 0, 0)
        assert silent.macro_f1 == pytest.approx(1 / 3)

    def test_it_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            at_threshold(np.array([True, False]), np.array([0.0, 1.0]), 0.5).threshold = 1.0


LABELS, SCORES = np.array([True, False, True]), np.array([0.1, 0.2, 0.3])


class TestRefused:
    @pytest.mark.parametrize("rule", [*RULES.values(), lambda p, s: at_threshold(p, s, 0.0)], ids=[*RULES, "threshold"])
    @pytest.mark.parametrize(
        ("positive", "scores", "message"),
        [
            (np.array([], dtype=bool), np.array([]), "no rows"),
            (LABELS, SCORES[:2], r"\(3,\) and \(2,\)"),
            (LABELS[:, None], SCORES[:, None], r"\(3, 1\) and \(3, 1\)"),
            (LABELS.astype(int), SCORES, "array of bool. Got int64"),
            (LABELS, np.array(["a", "b", "c"]), "array of numbers. Got <U1"),
            (LABELS & False, SCORES, "Got 0 positive of 3 rows"),
            (LABELS | True, SCORES, "Got 3 positive of 3 rows"),
            (LABELS, np.array([0.1, np.nan, np.nan]), "Got 2 of 3 that are NaN or infinite"),
            (LABELS, np.array([0.1, 0.2, -np.inf]), "Got 1 of 3 that are NaN or infinite"),
        ],
    )
    def test_rows_that_cannot_be_cut(self, rule, positive, scores, message):
        # The prevalence of no rows is a warning of NumPy's, and that of a column is no number: any floor will do.
        if rule is RULES["precision"]:
            with pytest.raises(DataError, match=message):
                at_precision(positive, scores, 0.1)
        else:
            with pytest.raises(DataError, match=message):
                rule(positive, scores)

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None])
    @pytest.mark.parametrize(("rule", "name"), [(at_alert_rate, "rate"), (at_precision, "floor"), (at_recall, "floor")])
    def test_shares_beyond_0_and_1(self, rule, name, value):
        with pytest.raises(ParameterError, match=f"The '{name}' must be a number from 0 to 1. Got {value!r} instead"):
            rule(LABELS, SCORES, value)

    @pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
    def test_weights_that_are_not_above_0(self, value):
        message = f"must be a finite number above 0. Got {value!r} instead"
        for name, call in [
            ("ratio", lambda: at_cost(LABELS, SCORES, value)),
            ("beta", lambda: at_f_beta(LABELS, SCORES, value)),
        ]:
            with pytest.raises(ParameterError, match=f"The '{name}' {message}"):
                call()

    @pytest.mark.parametrize("value", [float("nan"), "0.5", None, False])
    def test_threshold_that_is_no_number(self, value):
        with pytest.raises(ParameterError, match="The 'threshold' must be a number"):
            at_threshold(LABELS, SCORES, value)


@EVERY
def test_million_rows_take_no_loop(rule):
    rng = np.random.default_rng(0)
    positive = rng.random(1_000_000) < 0.002
    scores = rng.normal(size=1_000_000) + 2 * positive
    times = []
    for _ in range(3):
        began = time.process_time()
        rule(positive, scores)
        times.append(time.process_time() - began)
    assert min(times) < 0.5
