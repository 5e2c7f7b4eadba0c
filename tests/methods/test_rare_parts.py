"""The parts of a rare-event fit against slower ways to the same numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from qmedoid.geometry.overlap import SwapTest, compact_swap_test
from qmedoid.geometry.scaling import signed_log
from qmedoid.methods.rare.fit import fit_logistic, make_metric
from qmedoid.methods.rare.geometry import LineKernel, distances_beside, measured_beside

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=40)
@given(seed=seeds, n=st.integers(2, 30), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_nearness_on_a_line_is_a_sum_over_all_rows(seed, n, scale):
    rng = np.random.default_rng(seed)
    # Few distinct values, so that rows and queries coincide often.
    rows = np.round(rng.normal(size=(n, 3)), 1) * scale
    groups = np.arange(n) % 2
    queries = np.concatenate([rows, rng.normal(size=(5, 3)) * 3 * scale])
    found = LineKernel(rows, groups, 0.4).nearness(queries)
    for group in (0, 1):
        away = np.abs(queries[:, None, :] - rows[None, groups == group, :])
        np.testing.assert_allclose(found[group], np.exp(-away / 0.4).mean(axis=1), rtol=1e-10, atol=1e-300)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_a_row_left_out_of_the_line_is_as_if_it_were_not_there(seed):
    rng = np.random.default_rng(seed)
    rows, groups = rng.normal(size=(12, 2)), np.arange(12) % 2
    kernel = LineKernel(rows, groups, 0.4)
    for place in (0, 5):
        rest = LineKernel(np.delete(rows, place, axis=0), np.delete(groups, place), 0.4)
        here = kernel.nearness(rows[[place]], np.array([groups[place]]))
        np.testing.assert_allclose(here, rest.nearness(rows[[place]]), rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(seed=seeds, k=st.integers(1, 12), scale=st.sampled_from([1e-100, 1.0, 1e100]))
def test_one_distance_on_a_line_gives_all_others(seed, k, scale):
    rng = np.random.default_rng(seed)
    # Few distinct values, so that some are equal and records coincide with them.
    values, x = (np.round(rng.normal(size=n), 1) * scale for n in (k, 15))
    values = np.sort(values)
    asked = []

    def swap_test(rows, others):
        asked.extend((row, other) for row in rows[:, 0] for other in others[:, 0])
        return compact_swap_test(rows, others)

    found, wanted = distances_beside(values, measured_beside(swap_test, x, values), values), np.abs(x[:, None] - values)
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14 * scale)
    assert sorted(row for row, _ in asked) == sorted(x)
    for row, other in asked:
        assert abs(row - other) <= np.abs(row - values).min() + 1e-14 * scale


@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
def test_a_measured_distance_on_a_line_stays_between_the_values_beside_it(overlap):
    values, x = np.array([-1.0, 0.5, 2.0]), np.array([-3.0, -0.9, 0.4, 1.0, 1.9, 2.0, 5.0])

    def swap_test(rows, others):
        said = np.full((len(rows), len(others)), overlap)
        return SwapTest(said, said, said)

    place, below, above = measured_beside(swap_test, x, values)
    np.testing.assert_array_equal(place, [0, 1, 1, 2, 2, 3, 3])
    inside = (place > 0) & (place < 3)
    np.testing.assert_allclose((below + above)[inside], 1.5)
    assert min(below.min(), above.min()) >= 0.0
    measured = np.hypot(x, [-1.0, -1.0, 0.5, 0.5, 2.0, 2.0, 2.0]) * np.sqrt(2 * overlap)
    np.testing.assert_allclose(above[0], measured[0])
    np.testing.assert_allclose(below[[5, 6]], measured[[5, 6]])
    np.testing.assert_allclose(np.where([1, 0, 1, 0], below[inside], above[inside]), np.minimum(measured[inside], 1.5))


@settings(deadline=None, max_examples=40)
@given(seed=seeds, levels=st.sampled_from([2, 5, 1000]))
def test_contrast_counts_pairs(seed, levels):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, size=(30, 2)).astype(float)
    is_rare = np.arange(30) < 7
    difference = np.sign(values[is_rare][:, None, :] - values[~is_rare][None, :, :])
    expected = np.abs(difference.mean(axis=(0, 1)))
    for mapped in (values, np.exp(-values / levels)):
        found = make_metric("contrast", mapped, is_rare, rng)
        np.testing.assert_allclose(found, expected if expected.any() else 1.0, atol=1e-12)


def test_the_signed_log_is_odd_rises_and_keeps_small_values():
    z = np.linspace(-50, 50, 1001)
    np.testing.assert_array_equal(signed_log(-z), -signed_log(z))
    assert (np.diff(signed_log(z)) > 0).all()
    assert signed_log(np.array([1e-9]))[0] == pytest.approx(1e-9)


def problem(seed=0, n=300, f=6):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, f))
    target = rng.random(n) < 1 / (1 + np.exp(3 - Z @ np.arange(f) / 2))
    return Z, target


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_logistic_minimum_is_the_one_that_others_find(C):
    Z, target = problem()
    intercept, weights = fit_logistic(Z, target, np.full(6, C))
    other = LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(Z, target)
    np.testing.assert_allclose(weights, other.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(other.intercept_[0], abs=1e-4)


def test_no_strength_is_no_weight():
    Z, target = problem()
    _, found = fit_logistic(Z, target, np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    _, without = fit_logistic(Z[:, [0, 2, 3, 5]], target, np.ones(4))
    assert found[1] == found[4] == 0.0
    np.testing.assert_allclose(found[[0, 2, 3, 5]], without, atol=1e-12)
