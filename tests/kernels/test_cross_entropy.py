"""The cross-entropy kernel and its NumPy twin: each against the other, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import DataError
from qmedoid.kernels.backend import compiled
from qmedoid.kernels.cross_entropy import cross_entropy, log_softmax, numpy_cross_entropy

kernel = compiled("cross_entropy")
needs_kernel = pytest.mark.skipif(kernel is None, reason="the compiled kernels were not built")


def random_rows(seed, rows, classes, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=spread, size=(rows, classes)), rng.integers(classes, size=rows), rng.uniform(0.1, 2, rows)


@needs_kernel
@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 6), st.floats(0, 300))
@settings(max_examples=40, deadline=None)
def test_kernel_and_twin_agree(seed, rows, classes, spread):
    case = random_rows(seed, rows, classes, spread)
    found, expected = np.full((rows, classes), np.nan), np.full((rows, classes), np.nan)
    loss = kernel.cross_entropy(*case, found)
    assert loss == pytest.approx(numpy_cross_entropy(*case, expected), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert kernel.cross_entropy(*case) == loss
    assert numpy_cross_entropy(*case) == numpy_cross_entropy(*case, expected)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_loss_and_gradient_are_those_of_the_softmax(classes):
    scores, codes, weights = random_rows(0, 30, classes)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gradient = np.empty(scores.shape)
    loss = cross_entropy(scores, codes, weights, gradient)
    assert loss == pytest.approx(-weights @ np.log(p[np.arange(30), codes]), rel=1e-13)
    assert cross_entropy(scores, codes, weights) == loss
    np.testing.assert_allclose(gradient, weights[:, None] * (p - np.eye(classes)[codes]), rtol=0, atol=1e-14)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_far_apart_stay_finite(classes):
    scores = np.zeros((2, classes))
    scores[:, 0], scores[:, 1] = 1e5, -1e5
    gradient = np.empty(scores.shape)
    loss = cross_entropy(scores, np.array([0, 1]), np.ones(2), gradient)
    assert loss == 2e5
    np.testing.assert_array_equal(gradient[:, :2], [[0.0, 0.0], [1.0, -1.0]])


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own", [0, 1])
def test_two_classes_keep_the_small_losses_of_certain_rows(own):
    """Where p is 1 up to rounding, 1 − p is not 0."""
    scores = np.array([[50.0, -50.0]])[:, [own, 1 - own]]
    gradient = np.empty(scores.shape)
    loss = cross_entropy(scores, np.array([own]), np.ones(1), gradient)
    assert loss == pytest.approx(np.exp(-100.0), rel=1e-13)
    np.testing.assert_allclose(np.abs(gradient), np.exp(-100.0), rtol=1e-13)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("classes", [2, 3])
def test_a_score_that_is_not_a_number_is_not_hidden(classes):
    scores, codes, weights = random_rows(4, 5, classes)
    scores[3, 1] = np.nan
    assert np.isnan(cross_entropy(scores, codes, weights))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("which", [0, 1, 2])
def test_arrays_that_do_not_go_together_are_refused(which):
    case = list(random_rows(3, 5, 2))
    case[which] = case[which][:4]
    with pytest.raises(DataError, match="a code and a weight for every row"):
        cross_entropy(*case)


SCORES = arrays(float, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.floats(-30, 30))


@given(SCORES, st.floats(-1000, 1000))
@settings(max_examples=30, deadline=None)
def test_probabilities_add_up_to_one_whatever_is_added_to_the_scores_of_a_row(scores, shift):
    p = np.exp(log_softmax(scores))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.exp(log_softmax(scores + shift)), p, rtol=0, atol=1e-12)


def test_scores_out_of_range_stay_finite_and_the_input_as_it_was():
    scores = np.array([[1e300, -1e300], [800.0, -800.0]])
    given_scores = scores.copy()
    np.testing.assert_array_equal(np.exp(log_softmax(scores)), [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(scores, given_scores)
