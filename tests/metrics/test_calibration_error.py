"""The expected calibration error: laws, an independent computation, and what chance shows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.classification import calibration_error, confidence_outcomes


def simulated(n, seed=0, sharpness=2.0):
    """Probabilities, and outcomes that follow them."""
    rng = np.random.default_rng(seed)
    probabilities = 1 / (1 + np.exp(-sharpness * rng.normal(size=n)))
    return rng.random(n) < probabilities, probabilities


def error_of(outcomes, probabilities, seed=0, **settings):
    return calibration_error(outcomes, probabilities, rng=np.random.default_rng(seed), **settings)


def test_bins_of_equal_mass_by_hand():
    outcomes, probabilities = simulated(1500)
    order = np.argsort(probabilities)
    parts = zip(np.split(outcomes[order], 15), np.split(probabilities[order], 15), strict=True)
    expected = np.mean([abs(happened.mean() - promised.mean()) for happened, promised in parts])
    assert error_of(outcomes, probabilities)["error"] == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.1, 0.5, 0.9, 1.0])), min_size=1, max_size=60))
@settings(max_examples=20, deadline=None)
def test_order_of_the_rows_and_which_class_is_asked_for_do_not_matter(rows):
    outcomes, probabilities = (np.array(part) for part in zip(*rows, strict=True))
    found = error_of(outcomes, probabilities, n_bins=1)["error"]
    assert 0 <= found <= 1
    shuffled = np.random.default_rng(1).permutation(len(rows))
    for n_bins in (1, 4):
        one = error_of(outcomes, probabilities, n_bins=n_bins)["error"]
        assert error_of(outcomes[shuffled], probabilities[shuffled], n_bins=n_bins)["error"] == pytest.approx(one)
    assert error_of(~outcomes, 1 - probabilities, n_bins=1)["error"] == pytest.approx(found, abs=1e-12)


def test_equal_probabilities_share_a_bin():
    probabilities = np.repeat([0.2, 0.8], 50)
    outcomes = np.concatenate([np.arange(50) < 10, np.arange(50) < 40])
    assert error_of(outcomes, probabilities)["error"] == pytest.approx(0, abs=1e-12)


def test_true_probabilities_show_what_chance_shows():
    ratios = [error_of(*simulated(2000, seed))["ratio"] for seed in range(30)]
    assert np.mean(ratios) == pytest.approx(1, abs=0.1)
    high = [error_of(*simulated(2000, seed)) for seed in range(40)]
    assert np.mean([found["error"] > found["by_chance_high"] for found in high]) < 0.15


def test_probabilities_that_are_too_sure_stand_out():
    outcomes, probabilities = simulated(4000)
    odds = np.log(probabilities / (1 - probabilities))
    assert error_of(outcomes, 1 / (1 + np.exp(-2 * odds)))["ratio"] > 2


def test_sure_probabilities():
    sure = np.repeat([0.0, 1.0], 5)
    right = error_of(sure == 1, sure)
    assert (right["error"], right["by_chance"], right["ratio"]) == (0, 0, 1)
    assert error_of(sure == 0, sure)["ratio"] == np.inf


def test_of_more_classes_the_likeliest_is_judged():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    right, sure = confidence_outcomes(np.array([0, 1]), probabilities)
    assert right.tolist() == [True, False]
    assert sure.tolist() == [0.5, 0.7]
    second, its_own = confidence_outcomes(np.array([0, 1]), probabilities[:, :2])
    assert second.tolist() == [False, True]
    assert its_own.tolist() == [0.3, 0.2]
