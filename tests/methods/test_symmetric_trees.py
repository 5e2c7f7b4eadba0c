"""Symmetric trees beside those of scikit-learn: one model of comparisons, weighted out of fold."""

from dataclasses import replace

import numpy as np
import pytest

from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.methods.calibration import fit_sum
from qmedoid.methods.comparisons import fit, growing
from qmedoid.methods.comparisons.fit import comparisons_of, fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings, by_histograms, symmetric

SETTINGS = BoostingSettings(n_iterations=60, n_folds=3, n_seeds=2, symmetric=True)


def made_rows(n=400, n_classes=2, seed=5):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), 1000 + rng.exponential(size=n)])
    codes = np.where(X[:, 0] > 0.3, X[:, 1] > 2, np.where(X[:, 2] > 1000.7, n_classes - 1, X[:, 1] < 1))
    return X, np.where(rng.random(n) < 0.1, rng.integers(n_classes, size=n), codes).astype(np.intp)


def ranks(X):
    known, places = zip(*(np.unique(column, return_inverse=True) for column in X.T), strict=True)
    return list(known), np.column_stack(places).astype(float)


def fitted(X, codes, n_classes=2, **changes):
    found = fit_comparisons(X, codes, n_classes, replace(SETTINGS, **changes), 0, lambda _: None)
    assert found is not None
    return found


def only_of(kind, X, codes, n_classes):
    """The fit with one kind of trees, in the same folds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "by_histograms", kind)
        return fitted(X, codes, n_classes, symmetric=False)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_comparisons_of_symmetric_trees_say_the_same(n_classes):
    X, codes = made_rows(n_classes=n_classes)
    known, places = ranks(X)
    found = symmetric((places, codes, None), SETTINGS, 0, 12)
    trees = found.full_trees(known)
    model = comparisons_of(trees, found.start, X, codes, n_classes)
    np.testing.assert_allclose(model.score(X).scores, model.class_scores(found.outputs(places, None)), atol=1e-12)
    np.testing.assert_allclose(
        model.score_measured(X[:30], compact_swap_test).scores, model.score(X[:30]).scores, atol=1e-12
    )
    # Every level has one comparison, and the root of a tree the mean of what its rows are given.
    for level in range(4):
        nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
        assert (model.node_columns[:, nodes] == model.node_columns[:, nodes][:, :1]).all()
        assert (model.near_values[:, nodes] == model.near_values[:, nodes][:, :1]).all()
    outputs = np.bincount(model.outputs, model.values[:, 0]) + found.start
    np.testing.assert_allclose(outputs, found.outputs(places, None).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_kinds_are_one_sum_with_weights_of_out_of_fold_rows(n_classes, monkeypatch):
    monkeypatch.setattr(fit, "_WORTH_IT", 0.0)
    X, codes = made_rows(n_classes=n_classes)
    both = fitted(X, codes, n_classes)
    parts = [only_of(kind, X, codes, n_classes) for kind in (by_histograms, symmetric)]
    wanted = fit_sum([part.out_of_fold for part in parts], codes)
    assert wanted.weights.all()
    biases = wanted.biases - wanted.biases.mean() if n_classes == 2 else wanted.biases
    for found, of_parts in (
        (both.out_of_fold, [part.out_of_fold for part in parts]),
        (both.model.score(X).scores, [part.model.score(X).scores for part in parts]),
    ):
        mixed = sum(weight * one for weight, one in zip(wanted.weights, of_parts, strict=True)) - biases
        np.testing.assert_allclose(found, mixed, atol=1e-10)
    assert len(both.model.node_columns) == sum(len(part.model.node_columns) for part in parts)
    assert row_losses(-both.out_of_fold, codes).sum() == pytest.approx(wanted.loss)


def test_kind_that_adds_nothing_is_left_out(monkeypatch):
    X, codes = made_rows()
    alone = fitted(X, codes, symmetric=False)
    again = np.random.default_rng(0).permutation(codes)

    def grow(rows, *rest):
        return by_histograms((rows[0], again[: len(rows[1])], rows[2]), *rest)

    monkeypatch.setattr(growing, "symmetric", grow)
    np.testing.assert_array_equal(fitted(X, codes).model.score(X).scores, alone.model.score(X).scores)


def test_symmetric_trees_are_added_where_they_are_clearly_better(monkeypatch):
    X, codes = made_rows()
    alone, both = fitted(X, codes, symmetric=False), fitted(X, codes)
    assert len(both.model.node_columns) != len(alone.model.node_columns)
    losses = [row_losses(-one.out_of_fold, codes) for one in (alone, both)]
    gains = losses[0] - losses[1]
    n_errors = gains.sum() / (np.sqrt(len(gains)) * gains.std())
    monkeypatch.setattr(fit, "_WORTH_IT", n_errors + 0.5)
    np.testing.assert_array_equal(fitted(X, codes).model.score(X).scores, alone.model.score(X).scores)


def test_order_of_columns_does_not_matter():
    X, codes = made_rows()
    order = [2, 0, 1]
    found, other = fitted(X, codes), fitted(X[:, order], codes)
    np.testing.assert_array_equal(other.model.score(X[:, order]).scores, found.model.score(X).scores)
    np.testing.assert_array_equal(other.out_of_fold, found.out_of_fold)


def test_copies_of_rows_grow_the_trees_of_one_copy():
    X, codes = made_rows(700)
    known, places = ranks(X)
    one = symmetric((places, codes, None), SETTINGS, 0, 12)
    twice = np.repeat(places, 2, axis=0), np.repeat(codes, 2), None
    two = symmetric(twice, replace(SETTINGS, l2=2 * SETTINGS.l2), 0, 12)
    assert max(map(len, known)) > 255
    np.testing.assert_array_equal(one.full_trees(known)[1], two.full_trees(known)[1])
    np.testing.assert_allclose(one.outputs(places, None), two.outputs(places, None), atol=1e-10)
