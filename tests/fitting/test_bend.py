"""A bend of log-odds: what it keeps, that it is the likeliest, and that it is there only where rows ask for it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from qmedoid.fitting.bend import _hats, _knots, _likeliest, fit_bend, smoothed_targets
from qmedoid.fitting.calibration import fit_calibration
from qmedoid.metrics.calibration import calibration_error
from qmedoid.models.calibration import Calibration


def bent(z):
    """True log-odds that no line gives: flat below, steep above."""
    return np.where(z < 0, 2.5 * z, 0.4 * z) - 1


def drawn(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=n)
    return z, rng.random(n) < 1 / (1 + np.exp(-truth(z)))


def fused_of(z):
    """Dissimilarities of two classes with these differences."""
    return np.column_stack([z / 2, -z / 2])


@pytest.mark.parametrize("seed", range(4))
def test_a_bent_truth_is_found(seed):
    z, positive = drawn(4000, bent, seed)
    knots, bends = fit_bend(z - 1, positive)
    found = z - 1 + np.interp(z - 1, knots, bends)
    inner = np.abs(z) < 3
    assert np.abs(found - bent(z))[inner].mean() < 0.45 < np.abs(z - 1 - bent(z))[inner].mean()


def test_a_straight_truth_is_left_alone():
    kept = [len(fit_bend(*drawn(1000, lambda z: z, seed))[0]) for seed in range(30)]
    assert np.mean(np.array(kept) == 0) > 0.7


@given(st.integers(2, 80), st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 50.0]))
@settings(max_examples=40, deadline=None)
def test_order_is_kept_whatever_the_rows(n, seed, scale):
    rng = np.random.default_rng(seed)
    z, positive = np.round(rng.normal(size=n) * scale, 1), rng.random(n) < 0.3
    knots, bends = fit_bend(z, positive)
    grid = np.linspace(-3 * scale, 3 * scale, 500)
    if len(knots):
        assert (np.diff(grid + np.interp(grid, knots, bends)) > 0).all()
    knots = _knots(z, positive)
    if len(knots) > 1:
        bends = _likeliest(z, smoothed_targets(positive), _hats(z, knots), knots, 1.0)
        assert (np.diff(bends) > -np.diff(knots)).all()
        assert (np.diff(knots) >= 0.3).all()


def test_no_other_bend_is_likelier():
    z, positive = drawn(400, bent)
    knots = _knots(z, positive)
    basis = _hats(z, knots)
    np.testing.assert_allclose(basis.sum(axis=1), 1)
    slopes = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]
    targets = smoothed_targets(positive)

    def loss(bends):
        odds = z + basis @ bends
        fit = (targets * np.logaddexp(0, -odds) + (1 - targets) * np.logaddexp(0, odds)).sum()
        return fit + 8.0 * ((slopes @ bends) ** 2).sum() + 0.005 * bends @ bends

    other = minimize(loss, np.zeros(len(knots)), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(_likeliest(z, targets, basis, knots, 16.0), other, atol=1e-3)


def test_rows_in_another_order_give_the_same_bend():
    z, positive = drawn(1500, bent)
    order = np.random.default_rng(1).permutation(len(z))
    for one, other in zip(fit_bend(z, positive), fit_bend(z[order], positive[order]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_a_curve_makes_probabilities_right_where_a_line_does_not():
    z, positive = drawn(5000, bent)
    new, outcome = drawn(20_000, bent, 9)
    ratios = {}
    for kind in ("curve", "logistic"):
        scores = fit_calibration(fused_of(z), positive.astype(np.intp), kind).apply(fused_of(new))
        probabilities = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        ratios[kind] = calibration_error(outcome, probabilities, rng=np.random.default_rng(0)).ratio
    assert ratios["curve"] < 2 < ratios["logistic"]


def test_calibrated_scores_are_bent_by_halves():
    plain = Calibration(2.0, np.array([0.5, 0.0]))
    curved = Calibration(2.0, np.array([0.5, 0.0]), np.array([-1.0, 1.0]), np.array([0.2, -0.4]))
    fused = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.75, 0.5]])
    added = curved.apply(fused) - plain.apply(fused)
    np.testing.assert_allclose(added[:, 0], -added[:, 1])
    odds = plain.apply(fused) @ [-1, 1]
    np.testing.assert_allclose(2 * added[:, 1], np.interp(odds, [-1, 1], [0.2, -0.4]))


def test_classes_told_apart_perfectly_and_several_classes():
    codes = np.arange(200) % 2
    apart = fit_calibration(fused_of(np.where(codes == 1, 1.0, -1.0)), codes, "curve")
    scores = apart.apply(fused_of(np.array([1.0])))
    # As sure as a hundred rows of a class can make it.
    assert scores[0, 1] - scores[0, 0] == pytest.approx(np.log(101), rel=0.05)
    rng = np.random.default_rng(0)
    three = fit_calibration(rng.random((300, 3)), rng.integers(0, 3, 300), "curve")
    assert len(three.knots) == 0
    assert three.slope > 0
