"""Thresholds by a rule: the best of all cuts by brute force in exact fractions, and laws."""

import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.thresholds import (
    best_threshold,
    counts_at,
    most_precise_threshold,
    threshold_at_cost,
    threshold_at_precision,
    threshold_at_rate,
    threshold_at_recall,
)

# Every rule with a parameter that can be met on any rows: alerts for all have the prevalence as their precision.
RULES = {
    "precision": lambda positive, scores: threshold_at_precision(positive, scores, positive.mean()),
    "recall": lambda positive, scores: threshold_at_recall(positive, scores, 0.6),
    "cost": lambda positive, scores: threshold_at_cost(positive, scores, 3.0),
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


def made(rule, drawn, *asked):
    """Counts (tp, fp, fn, tn) at the threshold that a rule chooses."""
    return tuple(counts_at(*drawn, rule(*drawn, *asked)).values())


def precision(counts):
    return counts[0] / (counts[0] + counts[1]) if counts[0] else 0.0


def recall(counts):
    return counts[0] / (counts[0] + counts[2])


class TestBruteForce:
    @given(tied, shares)
    @example((np.array([True, False]), np.array([0.5, 0.5])), 0.5)  # just at the floor
    @settings(max_examples=40, deadline=None)
    def test_precision(self, drawn, floor):
        positive, scores = drawn
        allowed = [c for c in decisions(*drawn) if c[0] + c[1] and c[0] / (c[0] + c[1]) >= floor]
        if not allowed:
            with pytest.raises(DataError, match="No threshold has a precision"):
                threshold_at_precision(positive, scores, floor)
            return
        best = max(allowed, key=lambda c: (c[0], Fraction(c[0], c[0] + c[1])))
        assert made(threshold_at_precision, drawn, floor) == best

    @given(tied)
    @settings(max_examples=40, deadline=None)
    def test_most_precise(self, drawn):
        best = max((c for c in decisions(*drawn) if c[0] + c[1]), key=lambda c: (Fraction(c[0], c[0] + c[1]), c[0]))
        assert made(most_precise_threshold, drawn) == best

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_recall(self, drawn, floor):
        allowed = [c for c in decisions(*drawn) if c[0] / (c[0] + c[2]) >= floor]
        assert made(threshold_at_recall, drawn, floor) == min(allowed, key=lambda c: c[0] + c[1])

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_alert_rate(self, drawn, rate):
        allowed = [c for c in decisions(*drawn) if c[0] + c[1] <= rate * len(drawn[0]) + 1e-9]
        assert tuple(counts_at(*drawn, threshold_at_rate(drawn[1], rate)).values()) == max(
            allowed, key=lambda c: c[0] + c[1]
        )

    @given(tied, weights)
    @settings(max_examples=40, deadline=None)
    def test_cost(self, drawn, ratio):
        found = min(decisions(*drawn), key=lambda c: (Fraction(ratio) * c[2] + c[1], -c[0] - c[1]))
        assert made(threshold_at_cost, drawn, ratio) == found


class TestEveryRule:
    @EVERY
    @pytest.mark.parametrize("rising", [lambda s: 8 * s - 100, lambda s: s**3, np.exp], ids=["linear", "cube", "exp"])
    @given(drawn=tied)
    @settings(max_examples=30, deadline=None)
    def test_ranking_is_all_that_counts(self, rule, rising, drawn):
        positive, scores = drawn
        before, after = rule(positive, scores), rule(positive, rising(scores))
        np.testing.assert_array_equal(scores > before, rising(scores) > after)

    @EVERY
    def test_thresholds_lie_halfway_between_scores(self, rule):
        positive = np.array([False, False, False, True, True])
        assert rule(positive, np.array([0.0, 1.0, 2.0, 5.0, 9.0])) in (3.5, 7.0)

    @EVERY
    def test_whole_and_single_numbers_are_scores_too(self, rule):
        positive, scores = np.array([False, True, False, True]), np.array([1, 2, 3, 4])
        points = {rule(positive, scores.astype(kind)) for kind in (np.int64, np.uint8, np.float32, np.float64)}
        assert len(points) == 1


class TestFloors:
    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_recall_floor_holds(self, drawn, floor):
        assert recall(made(threshold_at_recall, drawn, floor)) >= floor

    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_precision_floor_holds(self, drawn, share):
        # From the prevalence, which alerts for all have, up to the best there is.
        best = max(c[0] / (c[0] + c[1]) for c in decisions(*drawn) if c[0] + c[1])
        floor = min(best, drawn[0].mean() + share * (best - drawn[0].mean()))
        assert precision(made(threshold_at_precision, drawn, floor)) >= floor

    def test_floor_means_what_it_says_in_decimals(self):
        positive = np.arange(100) % 10 == 0
        scores = -np.arange(100.0)
        for k in range(1, 11):
            assert made(threshold_at_recall, (positive, scores), k / 10)[0] == k

    def test_what_can_be_reached_is_said_and_can_be_asked_for(self):
        positive = np.array([False] * 6 + [True] * 6)
        scores = np.array([9, 1, 1, 1, 0, 0, 9, 9, 1, 0, 0, 0])
        with pytest.raises(DataError) as caught:
            threshold_at_precision(positive, scores, 0.9)
        assert "No threshold has a precision of 0.9 or more on these 12 rows" in str(caught.value)
        assert "The best is 0.6666 (2 of 3 alerts are positive), at recall 0.3333" in str(caught.value)
        assert "a floor of at most 0.6666, or" in str(caught.value)
        assert made(threshold_at_precision, (positive, scores), 0.6666) == (2, 1, 4, 5)


class TestCost:
    @given(wild)
    @settings(max_examples=40, deadline=None)
    def test_equal_costs_are_the_best_accuracy(self, drawn):
        positive, scores = drawn
        assert threshold_at_cost(*drawn, 1.0) == best_threshold(positive.astype(np.intp), scores, "accuracy")

    @pytest.mark.parametrize("large", [1e3, 1e9, 1e160, 1.7e308])
    @given(drawn=wild)
    @settings(max_examples=30, deadline=None)
    def test_where_misses_are_dear_none_is_missed_with_the_fewest_alerts(self, large, drawn):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no overflow is heard of
            assert threshold_at_cost(*drawn, large) == threshold_at_recall(*drawn, 1.0)

    @pytest.mark.parametrize("parts", [3, 7, 10, 49])
    def test_ratio_means_what_it_says_in_decimals(self, parts):
        """As many misses as make up one false alert cost the same, though n · (1/n) may not be 1: the more alerts."""
        positive = np.array([True] * parts + [False, True])
        scores = np.array([0.0] * (parts + 1) + [1.0])
        assert made(threshold_at_cost, (positive, scores), 1 / parts)[2:] == (0, 0)
        assert made(threshold_at_cost, (positive, scores), 0.999 / parts)[1] == 0


LABELS, SCORES = np.array([True, False, True]), np.array([0.1, 0.2, 0.3])


class TestRefused:
    @pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
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
                threshold_at_precision(positive, scores, 0.1)
        else:
            with pytest.raises(DataError, match=message):
                rule(positive, scores)

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None])
    @pytest.mark.parametrize("rule", [threshold_at_precision, threshold_at_recall])
    def test_shares_beyond_0_and_1(self, rule, value):
        with pytest.raises(ParameterError, match=f"The 'floor' must be a number from 0 to 1. Got {value!r} instead"):
            rule(LABELS, SCORES, value)

    @pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
    def test_weights_that_are_not_above_0(self, value):
        with pytest.raises(ParameterError, match=f"The 'ratio' must be a finite number above 0. Got {value!r} instead"):
            threshold_at_cost(LABELS, SCORES, value)


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
