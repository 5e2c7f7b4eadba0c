"""Thresholds by a rule: the best of all cuts by brute force in exact fractions, and laws."""

import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import QMedoidWarning
from qmedoid.metrics.thresholds import chosen_threshold, counts_at

# Rules that can be met on any rows: alerts for all have the prevalence as their precision.
EVERY = pytest.mark.parametrize(("rule", "asked"), [("min_precision", None), ("min_recall", 0.6), ("cost", 3.0)])


def chosen(rule, asked, positive, scores):
    return chosen_threshold(rule, positive.mean() if asked is None else asked, positive, scores)


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


def made(rule, asked, drawn):
    """Counts (tp, fp, fn, tn) at the threshold that a rule chooses."""
    return tuple(counts_at(*drawn, chosen_threshold(rule, asked, *drawn)).values())


class TestBruteForce:
    @given(tied, shares)
    @example((np.array([True, False]), np.array([0.5, 0.5])), 0.5)  # just at the floor
    @settings(max_examples=40, deadline=None)
    def test_precision(self, drawn, floor):
        kinds = [c for c in decisions(*drawn) if c[0] + c[1]]
        allowed = [c for c in kinds if c[0] / (c[0] + c[1]) >= floor]
        if allowed:
            best = max(allowed, key=lambda c: (c[0], Fraction(c[0], c[0] + c[1])))
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # the floor itself is reached
                assert made("min_precision", floor, drawn) == best
            return
        with pytest.warns(QMedoidWarning, match="No threshold has a precision"):
            found = made("min_precision", floor, drawn)
        assert found == max(kinds, key=lambda c: (Fraction(c[0], c[0] + c[1]), c[0]))

    @given(tied, shares)
    @settings(max_examples=40, deadline=None)
    def test_recall(self, drawn, floor):
        allowed = [c for c in decisions(*drawn) if c[0] / (c[0] + c[2]) >= floor]
        assert made("min_recall", floor, drawn) == min(allowed, key=lambda c: c[0] + c[1])

    @given(wild, shares)
    @settings(max_examples=40, deadline=None)
    def test_alert_rate(self, drawn, rate):
        allowed = [c for c in decisions(*drawn) if c[0] + c[1] <= rate * len(drawn[0]) + 1e-9]
        assert made("alert_rate", rate, drawn) == max(allowed, key=lambda c: c[0] + c[1])

    @given(tied, weights)
    @settings(max_examples=40, deadline=None)
    def test_cost(self, drawn, ratio):
        found = min(decisions(*drawn), key=lambda c: (Fraction(ratio) * c[2] + c[1], -c[0] - c[1]))
        assert made("cost", ratio, drawn) == found


class TestEveryRule:
    @EVERY
    def test_thresholds_lie_halfway_between_scores(self, rule, asked):
        positive = np.array([False, False, False, True, True])
        assert chosen(rule, asked, positive, np.array([0.0, 1.0, 2.0, 5.0, 9.0])) in (3.5, 7.0)


class TestFloors:
    def test_floors_and_rates_mean_what_they_say_in_decimals(self):
        drawn = np.arange(100) % 10 == 0, -np.arange(100.0)
        assert [made("min_recall", k / 10, drawn)[0] for k in range(1, 11)] == list(range(1, 11))
        assert [sum(made("alert_rate", k / 100, drawn)[:2]) for k in range(101)] == list(range(101))

    def test_what_can_be_reached_is_said_and_can_be_requested(self):
        drawn = np.array([False] * 6 + [True] * 6), np.array([9.0, 1, 1, 1, 0, 0, 9, 9, 1, 0, 0, 0])
        with pytest.warns(QMedoidWarning) as caught:
            found = made("min_precision", 0.9, drawn)
        message = str(caught[0].message)
        assert "No threshold has a precision of 0.9 or more on these 12 rows" in message
        assert "The best is 0.6666 (2 of 3 alerts are positive), at recall 0.3333" in message
        assert "a floor of at most 0.6666, or" in message
        assert found == made("min_precision", 0.6666, drawn) == (2, 1, 4, 5)


class TestCost:
    @pytest.mark.parametrize("large", [1e3, 1e9, 1e160, 1.7e308])
    @given(drawn=wild)
    @settings(max_examples=30, deadline=None)
    def test_where_misses_are_dear_none_is_missed_with_the_fewest_alerts(self, large, drawn):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no overflow is heard of
            assert chosen_threshold("cost", large, *drawn) == chosen_threshold("min_recall", 1.0, *drawn)

    @pytest.mark.parametrize("parts", [3, 7, 10, 49])
    def test_ratio_means_what_it_says_in_decimals(self, parts):
        """As many misses as make up one false alert cost the same, though n · (1/n) may not be 1: the more alerts."""
        drawn = np.array([True] * parts + [False, True]), np.array([0.0] * (parts + 1) + [1.0])
        assert made("cost", 1 / parts, drawn)[2:] == (0, 0)
        assert made("cost", 0.999 / parts, drawn)[1] == 0


@EVERY
def test_million_rows_take_no_loop(rule, asked):
    rng = np.random.default_rng(0)
    positive = rng.random(1_000_000) < 0.002
    scores = rng.normal(size=1_000_000) + 2 * positive
    times = []
    for _ in range(3):
        began = time.process_time()
        chosen(rule, asked, positive, scores)
        times.append(time.process_time() - began)
    assert min(times) < 0.5
