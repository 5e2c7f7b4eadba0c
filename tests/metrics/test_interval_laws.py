"""Intervals and quantiles hold what they say, whichever class comes last."""

import numpy as np
import pytest

from qmedoid.metrics.classification import calibration_error
from qmedoid.metrics.prevalence import estimate_priors


def test_one_error_in_twenty_lies_above_what_chance_shows_once_in_twenty():
    rng = np.random.default_rng(1)
    probabilities = np.sort(rng.beta(1.0, 2.0, size=300))
    drawn = rng.random((4000, 300)) < probabilities
    by_bin = np.abs((drawn - probabilities).reshape(4000, 15, 20).sum(axis=2)).sum(axis=1) / 300
    found = calibration_error(drawn[0], probabilities, rng=np.random.default_rng(2))
    # Its own 500 draws leave the share unsure by one in a hundred.
    assert np.mean(by_bin > found["by_chance_high"]) == pytest.approx(0.05, abs=0.03)
    assert found["by_chance"] == pytest.approx(by_bin.mean(), rel=0.03)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_intervals_go_with_their_classes_in_any_order(n_classes):
    rng = np.random.default_rng(n_classes)
    priors = rng.dirichlet(np.full(n_classes, 3.0))
    codes = rng.choice(n_classes, size=1500, p=rng.dirichlet(np.full(n_classes, 3.0)))
    # Neighboring classes lie nearer to each other, so that their intervals are of different width.
    distance = np.abs(np.arange(n_classes) - (codes + rng.normal(scale=0.7, size=1500))[:, None])
    log_p = -(distance**2) + np.log(priors)
    found = estimate_priors(log_p, priors)
    assert np.ptp(found.high - found.low) > 0.005
    for last in range(n_classes):
        order = np.roll(np.arange(n_classes), last)
        turned = estimate_priors(log_p[:, order], priors[order])
        for side in ("priors", "low", "high"):
            np.testing.assert_allclose(getattr(turned, side), getattr(found, side)[order], atol=2e-4)
