"""Cross-entropy of class scores and its gradient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.kernels.cross_entropy import cross_entropy, log_softmax

SCORES = arrays(float, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.floats(-30, 30))


def random_rows(seed=0, n=30, c=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, c)), rng.integers(c, size=n), rng.uniform(0.1, 2, n)


@given(SCORES, st.floats(-1000, 1000))
@settings(max_examples=30, deadline=None)
def test_probabilities_add_up_to_one_whatever_is_added_to_the_scores_of_a_row(scores, shift):
    p = np.exp(log_softmax(scores))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.exp(log_softmax(scores + shift)), p, rtol=0, atol=1e-12)


@given(SCORES)
@settings(max_examples=30, deadline=None)
def test_ratios_of_probabilities_are_exponentials_of_differences(scores):
    log_p = log_softmax(scores)
    np.testing.assert_allclose(np.diff(log_p, axis=1), np.diff(scores, axis=1), rtol=0, atol=1e-12)


def test_scores_out_of_range_stay_finite_and_the_input_as_it_was():
    scores = np.array([[1e300, -1e300], [800.0, -800.0]])
    given_scores = scores.copy()
    np.testing.assert_array_equal(np.exp(log_softmax(scores)), [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(scores, given_scores)


def test_loss_is_the_weighted_sum_of_minus_log_p():
    scores, codes, weights = random_rows()
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    want = -sum(w * np.log(row[y]) for row, y, w in zip(p, codes, weights, strict=True))
    assert cross_entropy(scores, codes, weights)[0] == pytest.approx(want, rel=1e-13)


def test_equal_scores_cost_log_c():
    assert cross_entropy(np.zeros((4, 5)), np.arange(4), np.full(4, 0.25))[0] == pytest.approx(np.log(5), rel=1e-14)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_order_of_rows_does_not_matter(seed):
    scores, codes, weights = random_rows(seed)
    order = np.random.default_rng(seed).permutation(len(codes))
    loss, gradient = cross_entropy(scores, codes, weights)
    moved_loss, moved_gradient = cross_entropy(scores[order], codes[order], weights[order])
    assert moved_loss == pytest.approx(loss, rel=1e-13)
    np.testing.assert_array_equal(moved_gradient, gradient[order])


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
@settings(max_examples=30, deadline=None)
def test_weights_scale_the_loss_and_repeat_rows(seed, factor):
    scores, codes, weights = random_rows(seed)
    loss, gradient = cross_entropy(scores, codes, weights)
    scaled_loss, scaled_gradient = cross_entropy(scores, codes, factor * weights)
    assert scaled_loss == pytest.approx(factor * loss, rel=1e-12)
    np.testing.assert_allclose(scaled_gradient, factor * gradient, rtol=1e-12)
    twice = [np.concatenate([values, values[:5]]) for values in (scores, codes, weights)]
    doubled = weights.copy()
    doubled[:5] *= 2
    assert cross_entropy(*twice)[0] == pytest.approx(cross_entropy(scores, codes, doubled)[0], rel=1e-12)


def test_gradient_is_central_differences_and_adds_up_to_zero_over_classes():
    scores, codes, weights = random_rows(1, n=5)
    gradient = cross_entropy(scores, codes, weights)[1]
    for index in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[index] = 1e-5
        high, low = (cross_entropy(scores + sign * step, codes, weights)[0] for sign in (1, -1))
        assert gradient[index] == pytest.approx((high - low) / 2e-5, abs=1e-7)
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-14)
