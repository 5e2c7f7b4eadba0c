"""The calibration curve: what it keeps, that it is the likeliest, and that it is there only where it helps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import (
    CurveRows,
    curve_knots,
    doubtful_targets,
    fit_calibration,
    fit_class_curve,
    fit_curve,
)
from qmedoid.methods.part import Calibration
from qmedoid.metrics.classification import calibration_error


def knots_of(z, positive):
    """Knots at quantiles where each class has half of the weight."""
    order = np.argsort(z, kind="stable")
    share = positive.mean()
    return curve_knots(z[order], np.where(positive[order], 0.5 / share, 0.5 / (1 - share)) / len(z))


def curved_truth(z):
    """True log-odds that no line gives: flat below, steep above."""
    return np.where(z < 0, 2.5 * z, 0.4 * z) - 1


def drawn(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=n)
    return z, rng.random(n) < 1 / (1 + np.exp(-truth(z)))


def steepening(scores):
    """True scores of classes that no common slope gives: high ones matter more than they seem to."""
    return np.where(scores > 0.5, 2.5 * scores - 0.75, scores)


def drawn_classes(n, seed=0, truth=steepening):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 4)) * 1.5
    chances = np.exp(log_softmax(truth(scores)))
    return scores, (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)


def fused_of(z):
    """Dissimilarities of two classes with these differences."""
    return np.column_stack([z / 2, -z / 2])


@pytest.mark.parametrize("seed", range(4))
def test_curve_finds_a_truth_that_is_no_line(seed):
    z, positive = drawn(4000, curved_truth, seed)
    knots, heights = fit_curve(z - 1, positive)
    found = z - 1 + np.interp(z - 1, knots, heights)
    inner = np.abs(z) < 3
    assert np.abs(found - curved_truth(z))[inner].mean() < 0.45 < np.abs(z - 1 - curved_truth(z))[inner].mean()


def test_curve_is_absent_where_the_truth_is_straight():
    kept = [len(fit_curve(*drawn(1000, lambda z: z, seed))[0]) for seed in range(30)]
    assert np.mean(np.array(kept) == 0) > 0.7


@given(st.integers(2, 80), st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 50.0]))
@settings(max_examples=40, deadline=None)
def test_curve_keeps_the_order_whatever_the_rows(n, seed, scale):
    rng = np.random.default_rng(seed)
    z, positive = np.round(rng.normal(size=n) * scale, 1), rng.random(n) < 0.3
    knots, heights = fit_curve(z, positive)
    grid = np.linspace(-3 * scale, 3 * scale, 500)
    if len(knots):
        assert (np.diff(grid + np.interp(grid, knots, heights)) > 0).all()
    if positive.all() or not positive.any():
        assert len(knots) == 0
        return
    knots = knots_of(z, positive)
    if len(knots) > 1:
        rows = CurveRows(np.column_stack([-z, z]), np.eye(2)[positive.astype(int)], slice(0, 2), knots)
        heights = rows.likeliest(1.0, np.zeros(len(knots)))
        assert (np.diff(heights) > -np.diff(knots)).all()
        assert (np.diff(knots) >= 0.3).all()


def test_curve_of_two_classes_is_the_likeliest():
    z, positive = drawn(400, curved_truth)
    knots, targets = knots_of(z, positive), doubtful_targets(positive.astype(np.intp), 2)[:, 1]
    slopes = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]

    def loss(heights):
        odds = z + np.interp(z, knots, heights)
        fit = (targets * np.logaddexp(0, -odds) + (1 - targets) * np.logaddexp(0, odds)).sum()
        return fit + 8.0 * ((slopes @ heights) ** 2).sum() + 0.005 * heights @ heights

    other = minimize(loss, np.zeros(len(knots)), method="BFGS", options={"gtol": 1e-8}).x
    rows = CurveRows(np.column_stack([0 * z, z]), np.column_stack([1 - targets, targets]), slice(1, 2), knots)
    for start in (np.zeros(len(knots)), other + 0.3):
        np.testing.assert_allclose(rows.likeliest(16.0, start), other, atol=1e-3)


def test_curve_of_classes_is_the_likeliest():
    scores, codes = drawn_classes(400, seed=3)
    knots, targets = np.array([-2.0, -0.5, 0.0, 1.5, 4.0]), np.eye(4)[codes]
    slopes = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]

    def loss(heights):
        fit = -(targets * log_softmax(scores + np.interp(scores, knots, heights))).sum()
        return fit + 2.0 * ((slopes @ heights) ** 2).sum() + 0.005 * heights @ heights

    other = minimize(loss, np.zeros(len(knots)), method="BFGS", options={"gtol": 1e-8}).x
    rows = CurveRows(scores, targets, slice(0, 4), knots)
    np.testing.assert_allclose(rows.interpolated(other), np.interp(scores, knots, other).ravel(), atol=1e-12)
    np.testing.assert_allclose(rows.likeliest(4.0, np.zeros(5)), other, atol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_curve_of_classes_makes_new_rows_likelier(seed):
    scores, codes = drawn_classes(3000, seed)
    new, outcomes = drawn_classes(20_000, seed + 100)
    knots, heights = fit_class_curve(scores, codes)
    rows = np.arange(len(new))
    found, straight, truth = (
        -log_softmax(one)[rows, outcomes].mean() for one in (new + np.interp(new, knots, heights), new, steepening(new))
    )
    assert found - truth < 0.15 * (straight - truth)


@given(st.integers(3, 60), st.integers(3, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 1.0, 50.0]))
@settings(max_examples=25, deadline=None)
def test_curve_keeps_the_likeliest_class_whatever_the_rows(n, n_classes, seed, scale):
    rng = np.random.default_rng(seed)
    fused, codes = np.round(rng.normal(size=(n, n_classes)) * scale, 1), rng.integers(0, n_classes, n)
    curved = fit_calibration(fused, codes, "curve")
    straight = Calibration(curved.slope, curved.biases)
    new = rng.normal(size=(200, n_classes)) * scale * 2
    assert np.isfinite(curved.apply(new)).all()
    np.testing.assert_array_equal(curved.apply(new).argmax(axis=1), straight.apply(new).argmax(axis=1))
    np.testing.assert_allclose(curved.apply(new) - curved.curve_part(new), straight.apply(new))


def test_curve_calibrates_probabilities_where_a_line_does_not():
    z, positive = drawn(5000, curved_truth)
    new, outcome = drawn(20_000, curved_truth, 9)
    ratios = {}
    for kind in ("curve", "logistic"):
        scores = fit_calibration(fused_of(z), positive.astype(np.intp), kind).apply(fused_of(new))
        probabilities = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        ratios[kind] = calibration_error(outcome, probabilities, rng=np.random.default_rng(0))["ratio"]
    assert ratios["curve"] < 2 < ratios["logistic"]


def test_curve_of_two_classes_is_added_by_halves():
    plain = Calibration(2.0, np.array([0.5, 0.0]))
    curved = Calibration(2.0, np.array([0.5, 0.0]), np.array([-1.0, 1.0]), np.array([0.2, -0.4]))
    fused = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.75, 0.5]])
    added = curved.apply(fused) - plain.apply(fused)
    np.testing.assert_allclose(added[:, 0], -added[:, 1])
    odds = plain.apply(fused) @ [-1, 1]
    np.testing.assert_allclose(2 * added[:, 1], np.interp(odds, [-1, 1], [0.2, -0.4]))


def test_curve_is_added_to_the_score_of_every_one_of_several_classes():
    curved = Calibration(2.0, np.array([0.5, 0.0, -1.0]), np.array([-1.0, 1.0]), np.array([0.2, -0.4]))
    plain = Calibration(2.0, np.array([0.5, 0.0, -1.0]))
    fused = np.random.default_rng(0).normal(size=(20, 3))
    straight = plain.apply(fused)
    np.testing.assert_allclose(curved.apply(fused), straight + np.interp(straight, [-1, 1], [0.2, -0.4]))
    np.testing.assert_array_equal(plain.curve_part(fused), 0)


def test_calibration_of_separated_classes_and_of_scores_that_say_nothing():
    codes = np.arange(200) % 2
    apart = fit_calibration(fused_of(np.where(codes == 1, 1.0, -1.0)), codes, "curve")
    scores = apart.apply(fused_of(np.array([1.0])))
    # As sure as a hundred rows of a class can make it.
    assert scores[0, 1] - scores[0, 0] == pytest.approx(np.log(4 * 100 - 1), rel=0.05)
    rng = np.random.default_rng(0)
    three = fit_calibration(rng.random((300, 3)), rng.integers(0, 3, 300), "curve")
    inside = rng.random((50, 3)) * 0.9 + 0.05
    np.testing.assert_array_equal(three.curve_part(inside), 0)
    assert three.slope > 0


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_doubtful_targets_are_probabilities_with_a_quarter_of_a_draw_for_every_class(n_classes):
    codes = np.random.default_rng(0).integers(0, n_classes, 60)
    targets = doubtful_targets(codes, n_classes)
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    missed = 1 - targets[np.arange(60), codes]
    np.testing.assert_allclose(np.bincount(codes, missed), 0.25)
    # Copies of a table are as many draws as the table.
    np.testing.assert_allclose(doubtful_targets(np.tile(codes, 3), n_classes, 1 / 3)[:60], targets)
    assert doubtful_targets(np.array([0]), n_classes)[0, 0] == 0.75


def test_doubt_of_a_rare_class_is_that_of_its_own_rows():
    codes = np.repeat([0, 1], [1980, 20])
    apart = fit_calibration(fused_of(np.where(codes == 1, 1.0, -1.0)), codes, "logistic")
    assert apart.slope > 0
    scores = fit_calibration(fused_of(np.where(codes == 1, 1.0, -1.0)), codes, "curve").apply(fused_of(np.array([1.0])))
    assert 0.002 < np.exp(log_softmax(scores))[0, 0] < 0.03  # 1/(4 · 20), and far from 1/(4 · 2000)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_records_beyond_all_rows_are_hardly_surer_than_the_surest_row_and_keep_their_order(n_classes):
    if n_classes == 2:
        z, positive = drawn(1500, curved_truth)
        fused, codes = fused_of(z), positive.astype(np.intp)
    else:
        scores, codes = drawn_classes(1500)
        fused = -scores
    found = fit_calibration(fused, codes, "curve")
    far = fused.min(axis=0) - np.linspace(0, 500, 40)[:, None] * np.eye(n_classes)[1]
    margins = found.apply(far) @ (np.eye(n_classes)[1] - np.eye(n_classes)[0])
    plain = Calibration(found.slope, found.biases).apply(far) @ (np.eye(n_classes)[1] - np.eye(n_classes)[0])
    assert (np.diff(margins) > 0).all()
    np.testing.assert_allclose(np.diff(margins)[3:], 0.05 * np.diff(plain)[3:], rtol=1e-6)
    # Out-of-fold rows themselves are not touched by the bounds.
    inner = Calibration(found.slope, found.biases, found.knots[1:-1], found.heights[1:-1])
    np.testing.assert_allclose(found.apply(fused), inner.apply(fused), atol=1e-9)
