"""Intervals of shares against their definition by binomial tails, and how often a change is reported by mistake."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from qmedoid.metrics.intervals import share_change, share_interval

counts = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
@settings(max_examples=30, deadline=None)
def test_bounds_are_where_the_tails_have_their_share(drawn):
    hits, n = drawn
    share, low, high = share_interval(hits, n)
    assert 0 <= low <= share == hits / n <= high <= 1
    if hits:
        assert stats.binom.sf(hits - 1, n, low) == pytest.approx(0.025, rel=1e-6)
    if hits < n:
        assert stats.binom.cdf(hits, n, high) == pytest.approx(0.025, rel=1e-6)


def test_no_hit_and_no_miss_have_intervals_of_one_side():
    assert share_interval(0, 30)[:2] == (0.0, 0.0)
    assert share_interval(0, 30).high == pytest.approx(1 - 0.025 ** (1 / 30), rel=1e-12)
    assert share_interval(30, 30).high == 1.0
    assert share_interval(0, 0) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("n", [5, 60, 400])
def test_true_share_is_covered_at_least_as_often_as_stated(n, share):
    covered = [share_interval(hits, n).low <= share <= share_interval(hits, n).high for hits in range(n + 1)]
    assert np.dot(stats.binom.pmf(np.arange(n + 1), n, share), covered) >= 0.95


def test_huge_counts_are_fast_and_right():
    low, high = share_interval(172, 30_000_000)[1:]
    assert (low, high) == pytest.approx(
        (stats.beta.ppf(0.025, 172, 29_999_829), stats.beta.ppf(0.975, 173, 29_999_828)), rel=1e-6
    )


@pytest.mark.parametrize("share", [0.001, 0.0131, 0.1, 0.5])
@pytest.mark.parametrize(("n", "held_out"), [(1, 600), (20, 600), (500, 500), (100_000, 600), (5_000, 200_000)])
def test_change_is_hardly_ever_seen_where_there_is_none(share, n, held_out):
    rng = np.random.default_rng(0)
    new, old = rng.binomial(n, share, 2000), rng.binomial(held_out, share, 2000)
    changes = [share_change(a, n, b, held_out, width=3.0) for a, b in zip(new, old, strict=True)]
    # One in 370 by the normal law; counts of a few are skewed, and single ones are no small steps.
    assert np.mean([abs(change.standard_errors) > 3 for change in changes]) < 0.012
    for count, change in zip(new, changes, strict=True):
        # The interval says the same as the standard errors.
        assert (change.low - 1e-12 <= count / n <= change.high + 1e-12) == (abs(change.standard_errors) <= 3) or (
            abs(abs(change.standard_errors) - 3) < 1e-9
        )


def test_doubled_rate_is_seen_and_has_its_sign():
    up, down = share_change(400, 10_000, 200, 10_000, width=3.0), share_change(200, 10_000, 400, 10_000, width=3.0)
    assert up.standard_errors == pytest.approx(-down.standard_errors)
    assert up.standard_errors > 7
    assert up.high < 0.04
    # The normal law of two shares says nearly the same of many hits.
    pooled = 0.02 / np.sqrt(0.03 * 0.97 * 2 / 10_000)
    assert up.standard_errors == pytest.approx(pooled, rel=0.05)
