"""Intervals of areas: equal to their definitions, around their value, and as wide as repeated draws scatter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.metrics.classification import pr_auc, roc_auc
from qmedoid.metrics.intervals import (
    macro_f1_error,
    macro_f1_interval,
    mean_interval,
    pr_auc_interval,
    roc_auc_interval,
    share_interval,
)


def draw(rng, n=200, share=0.3, away=1.0):
    positive = np.arange(n) < share * n
    return positive, (rng.normal(size=n) + away * positive).round(1)


def delong_error(positive, scores):
    """The variance of DeLong by pairs."""
    below = (scores[positive][:, None] > scores[~positive]) + 0.5 * (scores[positive][:, None] == scores[~positive])
    each, other = below.mean(axis=1), below.mean(axis=0)
    return np.sqrt(each.var(ddof=1) / len(each) + other.var(ddof=1) / len(other))


def test_roc_interval_has_the_error_of_delong():
    positive, scores = draw(np.random.default_rng(0))
    area, low, high = roc_auc_interval(positive, scores)
    assert area == roc_auc(positive, scores)
    logit = [np.log(one / (1 - one)) for one in (low, area, high)]
    expected = 1.959963984540054 * delong_error(positive, scores) / (area * (1 - area))
    assert np.diff(logit) == pytest.approx([expected, expected])


@pytest.mark.parametrize(("interval", "truth"), [(roc_auc_interval, roc_auc), (pr_auc_interval, pr_auc)])
def test_intervals_hold_the_true_area_about_as_often_as_they_say(interval, truth):
    rng = np.random.default_rng(1)
    true = truth(*draw(rng, 200_000))
    held = [low <= true <= high for _, low, high in (interval(*draw(rng)) for _ in range(300))]
    assert 0.9 <= np.mean(held) <= 1.0


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30))
def test_intervals_are_around_their_value_within_0_and_1(rows):
    positive, scores = np.array([one for one, _ in rows]), np.array([score for _, score in rows], dtype=float)
    for interval in (roc_auc_interval, pr_auc_interval):
        found = interval(positive, scores)
        if found is not None:
            assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert (roc_auc_interval(positive, scores) is None) == (positive.all() or not positive.any())
    assert (pr_auc_interval(positive, scores) is None) == (not positive.any())


def test_perfect_areas_have_the_interval_of_a_share():
    positive, scores = np.array([True] * 5 + [False] * 40), np.array([1.0] * 5 + [0.0] * 40)
    assert roc_auc_interval(positive, scores) == share_interval(5, 5)
    assert roc_auc_interval(~positive, scores) == share_interval(0, 5)
    assert pr_auc_interval(positive, scores) == share_interval(5, 5)


def test_means_have_normal_intervals():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    mean, low, high = mean_interval(values)
    assert mean == 2.5
    assert high - mean == pytest.approx(1.959963984540054 * values.std(ddof=1) / 2)
    assert mean - low == pytest.approx(high - mean)
    assert mean_interval(np.array([2.0])) == (2.0, 2.0, 2.0)
    area, low, high = macro_f1_interval([[98, 2], [0, 1]])
    error = macro_f1_error(np.array([[98, 2], [0, 1]]))
    assert (area, low, high) == (
        pytest.approx((196 / 198 + 0.5) / 2),
        pytest.approx(area - 1.959963984540054 * error),
        1.0,
    )


def test_areas_next_to_1_have_no_interval_from_0():
    positive, scores = np.arange(400) < 49, -np.arange(400.0)
    scores[48] = -49.5  # one negative record is above one positive
    found = pr_auc_interval(positive, scores)
    assert 0.999 < found.value < 1.0
    assert 0.9 < found.low < found.value < found.high <= 1.0
    assert roc_auc_interval(positive, scores).low > 0.99
