"""From fusion scores to probabilities: the likeliest slope and biases, and what they keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.part import Calibration


def drawn(n, slope, biases, seed=0):
    """Scores, and classes drawn with the probabilities that slope and biases give them."""
    rng = np.random.default_rng(seed)
    fused = rng.dirichlet(np.full(len(biases), 20.0), size=n)
    p = np.exp(log_softmax(np.asarray(biases) - slope * fused))
    return fused, (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)


def penalised(fused, codes, prior_biases, unit):
    """Minus the log-likelihood with the pull of one row: to a slope of 0 and to the priors."""

    def loss(parameters):
        slope, shifts = parameters[0], np.concatenate([parameters[1:], [0.0]])
        scores = prior_biases + shifts - slope / unit * fused
        return -log_softmax(scores)[np.arange(len(codes)), codes].sum() + 0.5 * parameters @ parameters

    return loss


def test_a_calibrated_score_is_bias_minus_slope_times_score():
    np.testing.assert_allclose(
        Calibration(2.0, np.array([0.5, 0.0])).apply(np.array([[0.1, 0.9], [0.5, 0.5]])), [[0.3, -1.8], [-0.5, -1.0]]
    )


@pytest.mark.parametrize("biases", [[0.0, 1.0], [0.4, -0.6, 0.0]], ids=["two", "three"])
def test_no_other_slope_and_biases_are_likelier(biases):
    fused, codes = drawn(200, 12.0, biases)
    found = fit_calibration(fused, codes, "logistic")
    counts = np.bincount(codes)
    priors = (counts + 0.5) / (len(codes) + 0.5 * len(counts))
    prior_biases = np.log(priors / priors.max())
    unit = np.median(fused.max(axis=1) - fused.min(axis=1))
    shifts = found.biases - prior_biases
    assert shifts[-1] == 0
    loss = penalised(fused, codes, prior_biases, unit)
    at = np.concatenate([[found.slope * unit], shifts[:-1]])
    steps = 1e-5 * np.eye(len(at))
    gradient = [(loss(at + step) - loss(at - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, 0, atol=0.02)
    other = minimize(loss, np.full(len(at), 0.3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose(at, other.x, atol=2e-3)


@pytest.mark.parametrize("biases", [[0.0, 1.0], [0.4, -0.6, 0.0]], ids=["two", "three"])
def test_more_rows_recover_the_slope_and_the_biases(biases):
    errors = []
    for n in (300, 60_000):
        found = fit_calibration(*drawn(n, 12.0, biases), "logistic")
        differences = found.biases - found.biases[-1] - (np.array(biases) - biases[-1])
        errors.append(max(abs(found.slope / 12 - 1), np.abs(differences).max()))
    assert errors[1] < 0.06
    assert errors[1] < errors[0]
    slope = fit_calibration(*drawn(60_000, 12.0, np.zeros(len(biases))), "temperature").slope
    assert slope == pytest.approx(12.0, rel=0.05)


def test_classes_told_apart_perfectly_have_a_finite_slope_that_grows_with_the_rows():
    slopes = []
    for n in (20, 200, 2000):
        codes = np.arange(n) % 2
        fused = np.column_stack([0.5 + 0.1 * (2 * codes - 1), 0.5 - 0.1 * (2 * codes - 1)])
        slopes.append(fit_calibration(fused, codes, "logistic").slope)
    assert np.isfinite(slopes).all()
    assert slopes == sorted(slopes)
    assert slopes[0] * 0.2 > 1  # log-odds of a record


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_slope_alone_keeps_every_decision_even_where_held_out_rows_speak_against_it(n_classes, seed):
    rng = np.random.default_rng(seed)
    fused = rng.dirichlet(np.ones(n_classes), size=40)
    for codes in (fused.argmin(axis=1), fused.argmax(axis=1), rng.integers(n_classes, size=40)):
        found = fit_calibration(fused, codes, "temperature")
        assert found.slope > 0
        np.testing.assert_array_equal(found.biases, 0)
        np.testing.assert_array_equal(found.apply(fused).argmax(axis=1), fused.argmin(axis=1))
        probabilities = np.exp(log_softmax(found.apply(fused)))
        np.testing.assert_array_equal(probabilities.argmax(axis=1), fused.argmin(axis=1))


def test_scores_that_say_nothing_leave_the_priors():
    rng = np.random.default_rng(0)
    fused, codes = rng.dirichlet(np.full(3, 50.0), size=3000), rng.choice(3, size=3000, p=[0.6, 0.3, 0.1])
    p = np.exp(log_softmax(fit_calibration(fused, codes, "logistic").apply(fused)))
    np.testing.assert_allclose(p.mean(axis=0), [0.6, 0.3, 0.1], atol=0.03)
    assert p.std(axis=0).max() < 0.02


def test_the_unit_of_the_scores_does_not_matter():
    fused, codes = drawn(300, 12.0, [0.0, 1.0])
    found, scaled = (fit_calibration(scores, codes, "logistic") for scores in (fused, 1000 * fused))
    assert scaled.slope == pytest.approx(found.slope / 1000, rel=1e-9)
    np.testing.assert_allclose(scaled.biases, found.biases, rtol=1e-9)


def test_equal_scores_and_a_class_without_rows_are_no_trouble():
    found = fit_calibration(np.full((10, 3), 1 / 3), np.repeat([0, 1], [7, 3]), "logistic")
    assert np.isfinite(found.slope)
    assert np.isfinite(found.biases).all()
    p = np.exp(log_softmax(found.apply(np.full((1, 3), 1 / 3))))[0]
    assert p[0] > p[1] > p[2] > 0


@pytest.mark.parametrize("kind", ["logistic", "temperature"])
def test_classes_with_one_medoid_leave_the_slope_to_the_others(kind):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 600)
    # The first two classes always have the same score, and it is the smallest for most rows.
    third = 0.15 + 0.05 * rng.normal(size=600) - 0.05 * (codes == 2)
    fused = np.column_stack([np.full(600, 0.1), np.full(600, 0.1), third])
    found = fit_calibration(fused, codes, kind)
    likelihood = log_softmax(found.apply(fused))[np.arange(600), codes].mean()
    assert likelihood > -np.log(3)


def test_rows_without_a_difference_leave_the_slope_to_the_others():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 300)
    shift = np.where(np.arange(300) % 3 == 0, 0.1 * rng.normal(size=300) - 0.1 * (2 * codes - 1), 0.0)
    fused = np.column_stack([0.5 - shift / 2, 0.5 + shift / 2])
    found = fit_calibration(fused, codes, "logistic")
    likelihood = log_softmax(found.apply(fused))[np.arange(300), codes].mean()
    assert likelihood > -np.log(2)
