"""Scaling of columns: what it brings them to, and that it undoes units."""

import numpy as np
import pytest

from qmedoid.exceptions import ParameterError
from qmedoid.geometry.scaling import SCALING_KINDS, fit_scaling, fit_standard, is_constant

EACH_KIND = pytest.mark.parametrize("kind", SCALING_KINDS)


def table(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1) + 5


def test_standard_gives_mean_zero_and_deviation_one():
    X = table()
    scaled = fit_scaling(X, "standard").apply(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-13)


def test_minmax_gives_zero_to_one():
    X = table()
    scaled = fit_scaling(X, "minmax").apply(X)
    np.testing.assert_array_equal(scaled.min(axis=0), 0)
    np.testing.assert_allclose(scaled.max(axis=0), 1, rtol=1e-15)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 + 0.1, -1e150])
@EACH_KIND
def test_constant_column_is_not_blown_up(kind, value):
    X = table()
    X[:, 2] = value
    scaling = fit_scaling(X, kind)
    assert scaling.scale[2] == 1
    if kind != "none":
        assert np.abs(scaling.apply(X)[:, 2]).max() <= abs(value) * 1e-13


def test_small_deviation_beside_a_large_mean_is_still_a_deviation():
    X = 1e8 + np.random.default_rng(1).normal(size=(1000, 1))
    np.testing.assert_allclose(fit_standard(X).scale, X.std(axis=0), rtol=1e-6)
    assert fit_standard(X).scale[0] != 1


def test_rounding_of_sums_is_not_a_deviation():
    assert is_constant(np.array([1e8, 1e8]), np.array([1e-16, 1.0]), 1000).tolist() == [True, False]
    assert not is_constant(np.array([0.0]), np.array([1e-30]), 1000).any()


def test_weight_of_k_is_k_copies_of_the_row():
    X, repeats = table(), np.random.default_rng(2).integers(0, 4, 200)
    weighted, copied = fit_standard(X, weights=repeats.astype(float)), fit_standard(np.repeat(X, repeats, axis=0))
    np.testing.assert_allclose(weighted.center, copied.center, rtol=1e-13)
    np.testing.assert_allclose(weighted.scale, copied.scale, rtol=1e-13)


def test_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"\['standard', 'minmax', 'none'\]\. Got 'robust' instead"):
        fit_scaling(table(), "robust")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("slope", [1e-100, 0.01, 3.0, 1e100])
def test_units_do_not_matter(kind, slope):
    X = table()
    moved = slope * (X + 2)
    np.testing.assert_allclose(
        fit_scaling(moved, kind).apply(moved), fit_scaling(X, kind).apply(X), rtol=1e-10, atol=1e-12
    )
