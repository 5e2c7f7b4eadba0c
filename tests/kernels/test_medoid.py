"""The exact medoid: brute force, and the search with and without the kernel, give the same index on every input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import DataError
from qmedoid.kernels import medoid as search
from qmedoid.kernels.medoid import TIE_TOLERANCE, medoid

_compiled = pytest.importorskip("qmedoid.kernels._medoid", reason="the compiled kernel was not built")


def without_kernel(X, w):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "compiled", lambda _: None)
        return medoid(X, weights=w)


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


KINDS = ["gaussian", "heavy tails", "two clusters", "three clusters", "lattice", "repeated", "outlier", "correlated"]
KINDS += ["far away", "sphere", "exponential"]


finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_any_table_agrees_with_brute_force(data):
    n, d = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 4)))
    elements = data.draw(st.sampled_from([finite, st.integers(-2, 2).map(float)]))
    X = data.draw(arrays(float, (n, d), elements=elements))
    w = data.draw(arrays(float, n, elements=st.sampled_from([1.0, 2.0, 0.5, 7.0])))
    assert medoid(X, weights=w) == without_kernel(X, w) == brute(X, w)


@pytest.fixture
def eager(monkeypatch):
    """Search small tables too, and split until nothing is left to split."""
    monkeypatch.setattr(search, "ALL_PAIRS_BELOW", 0)
    monkeypatch.setattr(search, "CALLS", 0)
    monkeypatch.setattr(search, "PASSES_TO_SPLIT", 1)
    monkeypatch.setattr(search, "BUDGET", 1e3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("eager")
def test_the_search_agrees_with_brute_force(kind):
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(5, 150)), int(rng.choice([1, 2, 3, 5, 30]))
        X = table(kind, n, d, rng)
        w = np.ones(n) if seed % 2 else rng.exponential(size=n) ** 3 + 1e-9
        assert medoid(X, weights=w) == brute(X, w), (seed, n, d)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(9000, 1), (7000, 2), (5000, 6), (2500, 30)])
def test_large_tables_agree_with_all_pairs(kind, n, d):
    X, totals = table(kind, n, d, np.random.default_rng(n)), np.empty(n)
    _compiled.all_totals(X, np.ones(n), totals)
    assert medoid(X) == np.argmax(totals <= totals.min() * (1 + TIE_TOLERANCE))


@pytest.mark.parametrize("n", [2501, 9001])
def test_mirror_images_tie_and_the_lower_index_wins(n):
    half = np.random.default_rng(n).normal(size=(n // 2, 8))
    X = np.r_[half, -half]
    first = medoid(X)
    assert first < n // 2
    assert medoid(X[::-1].copy()) == n // 2 - 1 - first


@pytest.mark.parametrize(
    ("kind", "n", "d", "most"),
    [("gaussian", 5000, 30, 40), ("heavy tails", 5000, 30, 40), ("gaussian", 9000, 2, 200), ("repeated", 9000, 3, 40)],
)
def test_few_rows_survive_where_there_is_one_centre(kind, n, d, most):
    X = table(kind, n, d, np.random.default_rng(0))
    assert len(search.candidates(_compiled, X, np.ones(n))) <= most


def shell(kind, d, seed):
    """Return the rows around a pivot, their norms, weights and the candidates of a shell, as the search has them."""
    rng = np.random.default_rng(seed)
    Z, w = table(kind, 300, d, rng), rng.random(300) + 0.1
    norms = np.linalg.norm(Z, axis=1)
    low, high = np.sort(rng.choice(norms, 2, replace=False))
    high += 0.01
    rows = np.flatnonzero((norms >= low) & (norms <= high))
    return Z, norms, w, rows, low, high, 0.5 * (low**2 + high**2)


@pytest.mark.parametrize("kind", ["gaussian", "heavy tails", "two clusters", "lattice", "sphere"])
@pytest.mark.parametrize("d", [1, 2, 3, 9, 30])
def test_bounds_lie_below_the_totals(kind, d):
    for seed in range(5):
        Z, norms, w, rows, low, high, r0 = shell(kind, d, seed)
        moments, lower, totals = np.empty(3 + 2 * d + d * d), np.empty(len(rows)), np.empty(len(rows))
        _compiled.moments(Z, norms, w, low, high, r0, moments)
        _compiled.bounds(Z, norms, rows, moments, r0, lower)
        _compiled.totals(Z, w, rows, totals)
        assert (lower <= totals * (1 + 1e-12)).all()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("scale", [1e-307, 1e-150, 1e150, 1e306])
@pytest.mark.parametrize("n", [30, 3500])
def test_no_scale_overflows_or_vanishes(scale, n):
    X = np.random.default_rng(1).normal(size=(n, 3))
    expected = medoid(X)
    assert medoid(X * scale) == expected


@pytest.mark.usefixtures("backend")
def test_a_constant_column_of_any_size_changes_nothing():
    X = np.random.default_rng(2).normal(size=(30, 3)) * 1e-160
    assert medoid(np.insert(X, 1, 1e300, axis=1)) == brute(X * 1e160)


def test_weights_of_any_scale():
    X = np.random.default_rng(3).normal(size=(40, 2))
    w = np.random.default_rng(4).random(40)
    for scale in (1e-300, 1.7e308):
        assert medoid(X, weights=w * scale) == brute(X, w)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 5, 2000])
def test_what_is_not_finite_is_named(bad, n):
    X = np.zeros((n, 3))
    X[n // 2, 1] = bad
    with pytest.raises(DataError, match=rf"{bad} in row {n // 2}, column 1.*fill or drop"):
        medoid(X)


@pytest.mark.usefixtures("backend")
def test_no_columns_means_all_rows_are_equal():
    assert medoid(np.empty((4, 0))) == 0
