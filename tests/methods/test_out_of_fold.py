"""Groups that are left out in closed form, held against refits without them."""

import numpy as np
import pytest

from qmedoid.geometry.row_groups import numbered
from qmedoid.methods.evidence.ridge import RowGroups, fit_ridge


def drawn(n, p, seed=0):
    """Features of mean 0 and groups of 1 to about 6 rows, every other with equal rows."""
    rng = np.random.default_rng(seed)
    groups = numbered(rng.integers(0, n // 3, n))
    features = rng.normal(size=(n, p))
    for group in range(0, groups.max() + 1, 2):
        features[groups == group] = features[groups == group][0]
    features -= features.mean(axis=0)
    return features, groups, np.sign(features[:, :2] + rng.normal(size=(n, 2)))


def refitted(features, targets, penalty, *, intercept):
    columns = np.column_stack([np.ones(len(features)), features]) if intercept else features
    shrinking = np.diag([0.0] * intercept + [penalty] * features.shape[1])
    weights = np.linalg.solve(columns.T @ columns + shrinking, columns.T @ targets)
    return (weights[0], weights[1:]) if intercept else (0.0, weights)


@pytest.mark.parametrize(("n", "p"), [(60, 8), (40, 60)])
@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 1.0])
def test_a_group_is_left_out_as_a_refit_without_it_leaves_it_out(n, p, penalty):
    features, groups, targets = drawn(n, p)
    together = RowGroups(groups, features)
    assert len(together.batches) > 1
    assert (together.sizes > 1).any()
    found = fit_ridge(features, targets, None, np.array([penalty]), together)
    for group in range(groups.max() + 1):
        own = groups == group
        mean, weights = refitted(features[~own], targets[~own], n * penalty, intercept=True)
        np.testing.assert_allclose(found.out_of_fold[own], mean + features[own] @ weights, rtol=1e-5, atol=1e-7)


def test_the_intercept_of_all_rows_is_that_of_a_refit_whose_targets_have_their_mean_taken_off():
    features, groups, targets = drawn(60, 8)
    groups = numbered(np.where(groups % 2 == 0, groups, 1000 + np.arange(60)))  # equal rows and single ones
    together = RowGroups(groups, features)
    found = fit_ridge(features, targets, None, np.array([0.01]), together, same_intercept=True)
    mean = targets.mean(axis=0)
    for group in range(groups.max() + 1):
        own = groups == group
        _, weights = refitted(features[~own], (targets - mean)[~own], 0.6, intercept=False)
        np.testing.assert_allclose(found.out_of_fold[own], mean + features[own] @ weights, rtol=1e-6, atol=1e-8)


def test_errors_of_the_path_are_those_of_groups():
    features, _, targets = drawn(50, 6)
    twice = np.concatenate([features, features])
    together = RowGroups(np.tile(np.arange(50), 2), twice)
    once = fit_ridge(features, targets)
    double = fit_ridge(twice, np.concatenate([targets, targets]), together=together)
    np.testing.assert_allclose(double.path.errors, once.path.errors, rtol=1e-8)
    np.testing.assert_allclose(double.out_of_fold[:50], once.out_of_fold, rtol=1e-6, atol=1e-9)


def test_of_many_large_groups_some_judge_the_penalty_and_all_are_left_out(monkeypatch):
    monkeypatch.setattr("qmedoid.methods.evidence.ridge._MOST_PRODUCTS", 1e4)
    features, groups, targets = drawn(60, 8)
    together = RowGroups(groups, features)
    some, judged = together.judging(8, 19)
    assert judged.any()
    assert not judged.all()
    assert sum(rows.size for rows in some.batches) < sum(rows.size for rows in together.batches)
    limited = fit_ridge(features, targets, None, np.array([0.01]), together)
    monkeypatch.undo()
    full = fit_ridge(features, targets, None, np.array([0.01]), together)
    np.testing.assert_array_equal(limited.out_of_fold, full.out_of_fold)
