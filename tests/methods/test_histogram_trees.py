"""Histogram boosting: the trees of our kernel are those of scikit-learn, to the last bit."""

import platform
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmedoid.kernels.backend import compiled
from qmedoid.methods.comparisons import growing
from qmedoid.methods.comparisons.growing import BoostingSettings, by_histograms

# Where a compiler fuses multiplications and additions, as on other processors, last digits are others.
exactly = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="last digits differ from x86-64")
pytestmark = pytest.mark.skipif(
    compiled("histogram") is None, reason="the kernel is not built: scikit-learn grows all trees"
)
SETTINGS = BoostingSettings()


def ranks_and_codes(rng, n, n_values, n_classes, signal):
    X = np.column_stack([rng.integers(0, count, n) for count in n_values]).astype(np.float64)
    codes = np.where(rng.random(n) < signal, X[:, 0] > np.median(X[:, 0]), rng.integers(n_classes, size=n))
    codes[:n_classes] = np.arange(n_classes)
    return X, codes.astype(np.intp)


def both(X, codes, asked, seed, n_iterations, held_out=None):
    """The fits of our kernel and of scikit-learn."""
    args = asked, seed, n_iterations, None if held_out is None else (*held_out, None)
    with pytest.MonkeyPatch.context() as patch:
        ours = by_histograms((X, codes, None), *args)
        patch.setattr(growing, "compiled", lambda _: None)
        return ours, by_histograms((X, codes, None), *args)


def assert_same(ours, theirs, X, known):
    np.testing.assert_array_equal(ours.start, theirs.start)
    for found, wanted in zip(ours.full_trees(known), theirs.full_trees(known), strict=True):
        np.testing.assert_array_equal(found, wanted)
    for n_iterations in (None, 1):
        np.testing.assert_array_equal(ours.outputs(X, n_iterations), theirs.outputs(X, n_iterations))


@exactly
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(24, 400),
    st.lists(st.sampled_from([1, 2, 3, 8, 40, 5000]), min_size=1, max_size=6),
    st.integers(2, 4), st.floats(0, 1), st.integers(1, 12), st.sampled_from([0.01, 1.0]), st.booleans(),
)  # fmt: skip
@example(1, 400, [2] * 30, 2, 1.0, 1, 0.01, True)  # many equal gains: nodes are looked at in the same order
@example(2, 12_000, [5000] * 7, 2, 0.7, 10, 1.0, True)  # more values than bins
@example(3, 4000, [300] * 9 + [2] * 9, 3, 0.5, 10, 1.0, True)  # columns in several packs
def test_kernel_grows_the_trees_of_scikit_learn(seed, n, n_values, n_classes, signal, least_rows, l2, has_held_out):
    rng = np.random.default_rng(seed)
    X, codes = ranks_and_codes(rng, n, n_values, n_classes, signal)
    train = slice(2 * n // 3 if has_held_out else n)
    held_out = (X[train.stop :], codes[train.stop :]) if has_held_out else None
    asked = replace(SETTINGS, least_rows=least_rows, l2=l2, patience=5)
    ours, theirs = both(X[train], codes[train], asked, seed % 1000, 12, held_out)
    assert_same(ours, theirs, X, [np.arange(5000.0)] * len(n_values))
    if has_held_out:
        np.testing.assert_array_equal(ours.losses, theirs.losses)


@exactly
@pytest.mark.parametrize("n_classes", [2, 3])
def test_growth_ends_where_scikit_learn_ends_it(n_classes):
    rng = np.random.default_rng(5)
    X, codes = ranks_and_codes(rng, 900, [30, 30, 4], n_classes, 0.6)
    args = X[:600], codes[:600], replace(SETTINGS, patience=4), 0, 300, (X[600:], codes[600:])
    ours, theirs = both(*args)
    assert 5 < len(ours.losses) < 301
    assert_same(ours, theirs, X, [np.arange(30.0)] * 3)


@exactly
def test_outputs_far_from_0_are_those_of_scikit_learn():
    """Where the loss takes other formulas: of classes that lie apart."""
    X = np.repeat([[0.0], [1.0]], 300, axis=0)
    codes = np.repeat([0, 1], 300)
    fast = replace(SETTINGS, learning_rate=1.0, l2=1e-6, least_rows=1, patience=100, least_gain=0.0)
    ours, theirs = both(X, codes, fast, 0, 60, (X, 1 - codes))
    assert_same(ours, theirs, X, [np.arange(2.0)])
    np.testing.assert_array_equal(ours.losses, theirs.losses)


@exactly
def test_quantiles_of_very_many_rows_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, codes = ranks_and_codes(rng, 200_500, [200_500, 600], 2, 0.5)
    ours, theirs = both(X, codes, SETTINGS, 3, 2)
    assert_same(ours, theirs, X[:500], [np.arange(200_500.0)] * 2)


def test_rows_with_weights_count_by_them():
    rng = np.random.default_rng(0)
    X, codes = ranks_and_codes(rng, 200, [20, 20], 2, 0.5)
    weighted = by_histograms((X, codes, 1.0 + 2.0 * codes), SETTINGS, 0, 3)
    share = 3.0 * codes.mean() / (1.0 + 2.0 * codes.mean())
    assert weighted.start == pytest.approx(np.log(share / (1.0 - share)))


def test_first_comparison_is_the_best_of_all():
    """The definition: of all comparisons the largest gain, by the derivatives at the start."""
    rng = np.random.default_rng(1)
    X, codes = ranks_and_codes(rng, 300, [9], 2, 0.7)
    grown = by_histograms((X, codes, None), SETTINGS, 0, 1)
    p = codes.mean()
    g, h = p - codes, np.full(300, p * (1 - p))

    def gain(rows):
        return g[rows].sum() ** 2 / (h[rows].sum() + 1.0)

    gains = [gain(X[:, 0] <= cut) + gain(X[:, 0] > cut) for cut in range(8)]
    assert grown.full_trees([np.arange(9.0)])[1][0, 0] == np.argmax(gains)


def test_means_of_nodes_are_those_of_their_rows():
    rng = np.random.default_rng(2)
    X, codes = ranks_and_codes(rng, 500, [30, 5], 2, 0.6)
    grown = by_histograms((X, codes, None), SETTINGS, 0, 4)
    added = grown.outputs(X, 1)[:, 0] - grown.start
    columns, thresholds, values, _ = grown.full_trees([np.arange(30.0), np.arange(5.0)])
    assert values[0, 0] == pytest.approx(added.mean(), abs=1e-12)
    for right in (0, 1):
        own = (X[:, columns[0, 0]] > thresholds[0, 0]) == right
        assert values[0, 1 + right] == pytest.approx(added[own].mean(), abs=1e-12)
