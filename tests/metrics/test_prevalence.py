"""Prevalence of unlabeled records: the maximum of the likelihood by other means, laws, and simulated shifts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from qmedoid.exceptions import DataError
from qmedoid.metrics.prevalence import estimate_priors, joined_histogram, log_odds_histogram, prevalence_of


def estimate_prevalence(log_odds, prior):
    return prevalence_of(log_odds_histogram(log_odds), prior)


def gaussian_log_odds(n, prevalence, prior, seed, apart=2.0):
    """Records of two normal densities, `apart` standard deviations from each other; log-odds where `prior` holds."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < prevalence
    x = rng.normal(size=n) + apart * positive
    return positive, apart * x - apart**2 / 2 + np.log(prior / (1 - prior))


def log_likelihood(prevalence, log_odds, prior):
    p = 1 / (1 + np.exp(-log_odds))
    return np.log(prevalence * p / prior + (1 - prevalence) * (1 - p) / (1 - prior)).sum()


@given(st.floats(0.001, 0.999), st.floats(0.01, 0.99), st.integers(2, 300), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_it_is_the_maximum_of_the_likelihood(prevalence, prior, n, seed):
    _, log_odds = gaussian_log_odds(n, prevalence, prior, seed)
    found = estimate_prevalence(log_odds, prior)
    best = minimize_scalar(
        lambda value: -log_likelihood(value, log_odds, prior), bounds=(0, 1), method="bounded", options={"xatol": 1e-10}
    )
    # The histogram moves a record by less than its width.
    assert log_likelihood(found.prevalence, log_odds, prior) >= -best.fun - 1e-4
    assert found.low[1] <= found.prevalence <= found.high[1]
    for bound in (found.low[1], found.high[1]):
        if 0 < bound < 1:
            assert log_likelihood(bound, log_odds, prior) == pytest.approx(-best.fun - 1.9207, abs=0.01)
    np.testing.assert_allclose(found.priors.sum(), 1)
    np.testing.assert_allclose([1 - found.high[1], 1 - found.low[1]], [found.low[0], found.high[0]])


def test_several_classes_against_scipy():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, size=2000, p=[0.7, 0.25, 0.05])
    x = rng.normal(size=(2000, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[codes]
    priors = np.array([0.2, 0.3, 0.5])
    log_p = np.log(priors) - 0.5 * ((x[:, None] - np.array([[0, 0], [2, 0], [0, 2]])) ** 2).sum(axis=2)
    found = estimate_priors(log_p, priors)
    ratios = np.exp(log_p) / priors

    def loss(free):
        weights = np.exp(np.append(free, 0))
        return -np.log(ratios @ (weights / weights.sum())).mean()

    best = np.exp(np.append(minimize(loss, np.zeros(2), tol=1e-12).x, 0))
    np.testing.assert_allclose(found.priors, best / best.sum(), atol=1e-4)
    assert ((found.low <= found.priors) & (found.priors <= found.high)).all()
    # Neither the order of the classes nor a factor of every record matters.
    turned = estimate_priors(log_p[:, ::-1] + rng.normal(size=(2000, 1)), priors[::-1])
    np.testing.assert_allclose(turned.priors[::-1], found.priors, atol=1e-4)


def test_nothing_of_one_class_is_a_prevalence_of_zero():
    _, log_odds = gaussian_log_odds(500, 0.0, 0.5, 0, apart=6.0)
    found = estimate_prevalence(log_odds, 0.5)
    assert found.prevalence < 1e-4
    assert found.low[1] == 0
    assert 0 < found.high[1] < 0.02


def test_what_says_nothing_leaves_everything_open():
    found = estimate_prevalence(np.full(50, np.log(0.2 / 0.8)), 0.2)
    assert (found.prevalence, found.low[1], found.high[1]) == (pytest.approx(0.2), 0, 1)


def test_sure_records_come_to_an_end():
    log_odds = np.concatenate([np.full(30, 1e6), np.full(70, -1e6)])
    found = estimate_prevalence(log_odds, 0.5)
    assert found.prevalence == pytest.approx(0.3, abs=1e-6)


def test_histogram_is_filled_in_parts():
    _, log_odds = gaussian_log_odds(3000, 0.1, 0.5, 2)
    histogram = joined_histogram(*map(log_odds_histogram, np.array_split(log_odds, 7)))
    assert histogram[1].sum() == 3000
    together = estimate_prevalence(log_odds, 0.5)
    assert prevalence_of(histogram, 0.5).prevalence == pytest.approx(together.prevalence, rel=1e-9)
    exact = estimate_priors(np.column_stack([np.zeros(3000), log_odds]), np.full(2, 0.5))
    assert exact.prevalence == pytest.approx(together.prevalence, rel=1e-4)


def test_no_records_have_no_prevalence():
    with pytest.raises(DataError, match="no rows"):
        estimate_prevalence(np.zeros(0), 0.3)
    with pytest.raises(DataError, match="no rows"):
        estimate_priors(np.zeros((0, 3)), np.full(3, 1 / 3))
