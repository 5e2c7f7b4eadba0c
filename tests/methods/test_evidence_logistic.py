"""Logistic refit of the evidence: it ends at the minimum, wherever it begins."""

import numpy as np
import pytest
from scipy.special import expit

from qmedoid.methods.evidence.bag import fit_logistic


def _rows(seed, *, separated):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(150, 12)) * 10.0 ** rng.uniform(-2, 1, size=12)
    noise = 0.0 if separated else 2.0
    return features, (features @ rng.normal(size=12) + noise * rng.normal(size=150) > 0).astype(np.float64)


@pytest.mark.parametrize("separated", [False, True])
@pytest.mark.parametrize("penalty", [1e-4, 0.1, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_vanishes_from_any_start(seed, penalty, separated):
    features, positive = _rows(seed, separated=separated)
    rng = np.random.default_rng(seed + 10)
    ends = [
        fit_logistic(features, positive, penalty, intercept, start)
        for intercept, start in ((0.0, np.zeros(12)), (5.0, 3.0 * rng.normal(size=12)))
    ]
    for fitted in ends:
        missed = positive - expit(fitted.intercept + features @ fitted.coefficients)
        gradient = features.T @ missed - penalty * fitted.coefficients
        assert np.abs(gradient).max() < 1e-5 * np.abs(features).sum(axis=0).max()
        assert np.isfinite(fitted.out_of_fold).all()
    first, second = (intercept_and(one) @ with_ones(features).T for one in ends)
    np.testing.assert_allclose(first, second, atol=1e-6 * (1.0 + np.abs(first).max()))


def intercept_and(fitted):
    return np.concatenate([[fitted.intercept], fitted.coefficients])


def with_ones(features):
    return np.column_stack([np.ones(len(features)), features])
