"""The exact medoid: brute force, the compiled kernel and its NumPy twin give the same index on every input."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import DataError
from qmedoid.kernels import _medoid_numpy
from qmedoid.kernels import medoid as dispatcher
from qmedoid.kernels.medoid import TIE_TOLERANCE, _medoid, medoid

_compiled = pytest.importorskip("qmedoid.kernels._medoid", reason="the compiled kernel was not built")

BOTH = pytest.mark.parametrize("primitives", [_compiled, _medoid_numpy], ids=["compiled", "numpy"])


def brute(X, w=None):
    """Sum the distances of every row to every other, one row at a time, in extended precision."""
    X = X.astype(np.longdouble)
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    totals = np.array([(w * np.sqrt(((X - x) ** 2).sum(axis=1))).sum() for x in X])
    totals[w == 0] = np.inf
    return int(np.argmax(totals <= totals.min() * (1 + TIE_TOLERANCE)))


def table(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    match kind:
        case "heavy tails":
            return rng.standard_t(1.5, size=(n, d))
        case "two clusters":
            X[: n // 2, 0] += 50.0
        case "three clusters":
            X += 20.0 * rng.normal(size=(3, d))[rng.integers(3, size=n)]
        case "lattice":
            return rng.integers(-1, 2, size=(n, d)).astype(float)
        case "repeated":
            return X[rng.integers(max(1, n // 10), size=n)]
        case "outlier":
            X[rng.integers(n)] *= 1e6
        case "correlated":
            return X @ (rng.normal(size=(d, d)) * 0.5 ** np.arange(d))
        case "far away":
            return X + 1e8
        case "sphere":
            return X / np.linalg.norm(X, axis=1, keepdims=True)
        case "exponential":
            return rng.exponential(size=(n, d)) ** 2
    return X


KINDS = [
    "gaussian",
    "heavy tails",
    "two clusters",
    "three clusters",
    "lattice",
    "repeated",
    "outlier",
    "correlated",
    "far away",
    "sphere",
    "exponential",
]


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_small_tables_agree_with_brute_force(primitives, kind):
    for seed, (n, d) in enumerate(itertools.product([1, 2, 3, 7, 40, 90], [1, 2, 3, 30])):
        X = table(kind, n, d, np.random.default_rng(seed))
        assert _medoid(primitives, X, np.ones(n)) == brute(X), (n, d)


finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_table_agrees_with_brute_force(data):
    n, d = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 4)))
    elements = data.draw(st.sampled_from([finite, st.integers(-2, 2).map(float)]))
    X = data.draw(arrays(float, (n, d), elements=elements))
    w = data.draw(arrays(float, n, elements=st.sampled_from([1.0, 2.0, 0.5, 7.0])))
    assert _medoid(_compiled, X, w) == _medoid(_medoid_numpy, X, w) == brute(X, w)


@BOTH
@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (40, 3), (700, 2), (70, 40)])
def test_totals_are_sums_of_distances(primitives, shape):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=shape), rng.random(shape[0])
    expected = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2)) @ w
    out = np.empty(len(X))
    primitives.all_totals(X, w, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    rows = rng.permutation(len(X))[: len(X) // 2 + 1]
    primitives.totals(X, w, rows, out[: len(rows)])
    np.testing.assert_allclose(out[: len(rows)], expected[rows], rtol=1e-13)


@BOTH
@pytest.mark.parametrize("scale", [1e-307, 1e-150, 1e150, 1e306])
@pytest.mark.parametrize("n", [30, 600])
def test_no_scale_overflows_or_vanishes(primitives, scale, n):
    X = np.random.default_rng(1).normal(size=(n, 3))
    assert _medoid(primitives, X * scale, np.ones(n)) == brute(X)


@BOTH
def test_a_constant_column_of_any_size_changes_nothing(primitives):
    X = np.random.default_rng(2).normal(size=(30, 3)) * 1e-160
    assert _medoid(primitives, np.insert(X, 1, 1e300, axis=1), np.ones(30)) == brute(X * 1e160)


@BOTH
def test_the_whole_range_of_float64(primitives):
    X = np.array([[1.7e308], [-1.7e308], [1e308], [-1e307], [0.0]])
    assert _medoid(primitives, X, np.ones(5)) == 4


def test_weights_of_any_scale():
    X = np.random.default_rng(3).normal(size=(40, 2))
    w = np.random.default_rng(4).random(40)
    for scale in (1e-300, 1e300):
        assert medoid(X, weights=w * scale) == brute(X, w)


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 5, 2000])
def test_what_is_not_finite_is_named(primitives, bad, n):
    X = np.zeros((n, 3))
    X[n // 2, 1] = bad
    with pytest.raises(DataError, match=rf"{bad} in row {n // 2}, column 1.*fill or drop"):
        _medoid(primitives, X, np.ones(n))


@BOTH
def test_no_columns_means_all_rows_are_equal(primitives):
    assert _medoid(primitives, np.empty((4, 0)), np.ones(4)) == 0


def test_the_twin_can_be_asked_for():
    code = "from qmedoid.kernels import medoid; print(medoid._compiled)"
    for value, expected in (("numpy", "None"), ("", str(dispatcher._compiled))):
        env = {**os.environ, "QMEDOID_KERNELS": value, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected
