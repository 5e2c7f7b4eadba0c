"""Trees of comparisons: what boosting learnt, said by pairs of real rows."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from qmedoid.exceptions import DataError
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.geometry.row_groups import group_folds
from qmedoid.kernels.ties import order_by_content
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.methods.comparisons.part import midpoints

SETTINGS = BoostingSettings(n_iterations=12, n_folds=3, n_deals=2)


def ranks(X):
    """The columns in the order of their content, as ranks: what trees are grown on."""
    ordered = X[:, order_by_content(X)]
    return np.column_stack([np.unique(column, return_inverse=True)[1] for column in ordered.T]).astype(float)


def made_rows(n=240, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), 1000 + rng.exponential(size=n)])
    codes = ((X[:, 0] > 0.3).astype(int) + (X[:, 1] > 2)) % n_classes
    return X, np.where(rng.random(n) < 0.1, rng.integers(n_classes, size=n), codes).astype(np.intp)


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, codes = made_rows(n_classes=request.param)
    found = fit_comparisons(X, codes, request.param, SETTINGS, 0, lambda _: None)
    assert found is not None
    return X, codes, found


def test_scores_are_those_of_the_boosted_trees(fitted):
    X, codes, found = fitted
    settings = {"max_depth": 4, "max_leaf_nodes": 16, "min_samples_leaf": 10, "max_features": 0.5}
    grown = [
        HistGradientBoostingClassifier(
            max_iter=max(1, round(1.1 * found.n_iterations)), early_stopping=False,
            l2_regularization=SETTINGS.for_table(len(X), found.model.n_classes, 1.0).l2,
            random_state=6 + seed, **settings,
        ).fit(ranks(X), codes).decision_function(ranks(X))
        for seed in range(2)
    ]  # fmt: skip
    wanted = np.mean(grown, axis=0).reshape(len(X), -1)
    np.testing.assert_allclose(found.model.score(X).scores, found.model.class_scores(wanted), atol=1e-12)


def test_thresholds_lie_between_the_values_of_two_training_rows(fitted):
    X, codes, found = fitted
    model = found.model
    nodes = model.node_columns >= 0
    for values, places in ((model.near_values, model.near), (model.far_values, model.far)):
        np.testing.assert_array_equal(values[nodes], X[model.row_numbers[places[nodes]], model.node_columns[nodes]])
    thresholds = model.trees.thresholds[nodes]
    assert (model.near_values[nodes] <= thresholds).all()
    assert (thresholds < model.far_values[nodes]).all()
    np.testing.assert_array_equal(model.row_classes, codes[model.row_numbers])


def test_values_of_several_rows_are_those_of_the_most_central_one():
    X, codes = made_rows()
    found = fit_comparisons(X, codes, 2, SETTINGS, 0, lambda _: None)
    assert found is not None
    model = found.model
    far_off = (((X - X.mean(axis=0)) / X.std(axis=0)) ** 2).sum(axis=1)
    nodes = model.node_columns == 1  # has five values
    assert nodes.any()
    for values, places in ((model.near_values, model.near), (model.far_values, model.far)):
        for value, row in zip(values[nodes], model.row_numbers[places[nodes]], strict=True):
            assert far_off[row] == far_off[X[:, 1] == value].min()


def test_large_tables_have_fewer_folds_and_seeds_and_more_classes_a_smaller_penalty():
    usual = BoostingSettings()
    between = replace(usual, n_folds=3, n_deals=2, longer=1.5, symmetric=True)
    large = replace(between, n_deals=1, n_seeds=1)
    assert usual.for_table(12_499, 2, 1.0) == usual
    assert usual.for_table(12_500, 2, 1.0) == usual.for_table(49_999, 2, 1.0) == between
    assert usual.for_table(19_999, 5, 1.0) == replace(between, l2=pytest.approx(0.64))
    assert usual.for_table(50_000, 2, 1.0) == large
    assert usual.for_table(1000, 9, 1.0).n_seeds == 2
    assert usual.for_table(1000, 10, 1.0) == replace(usual, n_seeds=1, l2=pytest.approx(0.36))
    assert usual.for_table(1000, 2, 0.5) == replace(usual, l2=2.0, least_rows=20)
    assert usual.for_table(10_000, 10, 1.0) == replace(
        large, longer=usual.longer, symmetric=False, l2=pytest.approx(0.36)
    )


def test_contributions_add_up_along_the_paths(fitted):
    X, _, found = fitted
    model = found.model
    for row in X[:10]:
        scores = model.score(row[None]).scores[0]
        for winner, other in ((0, 1), (1, 0)):
            parts = model.contributions(row[None], winner, other)
            total = parts.columns.sum() + sum(parts.terms.values())
            assert total == pytest.approx(scores[other] - scores[winner], abs=1e-12)
            assert sum(group.contribution for group in parts.groups) == pytest.approx(parts.columns.sum(), abs=1e-12)
            for group in parts.groups:
                assert sum(one.contribution for one in group.records) == pytest.approx(group.contribution, abs=1e-12)


def test_comparisons_of_measured_distances_are_those_of_thresholds(fitted):
    X, _, found = fitted
    new = X[:40] + 0.01
    np.testing.assert_allclose(
        found.model.score_measured(new, compact_swap_test).scores, found.model.score(new).scores, atol=1e-12
    )


def test_no_test_is_needed_for_records_that_lie_between_no_two_rows(fitted):
    X, _, found = fitted

    def refused(*rows):
        raise AssertionError(f"{rows} were measured")

    # Training rows are on one side of every pair, and so are records far out.
    far_out = np.array([[-1e6, -1e6, -1e6], [1e6, 1e6, 1e6]])
    for rows in (X, far_out):
        np.testing.assert_allclose(
            found.model.score_measured(rows, refused).scores, found.model.score(rows).scores, atol=1e-12
        )


def test_records_between_two_rows_go_where_the_measured_distances_say(fitted):
    model = fitted[2].model
    tree = int(np.flatnonzero(model.node_columns[:, 0] == 0)[0])
    alone = replace(
        model, node_columns=np.where(np.arange(15) == 0, model.node_columns, -1)[[tree]], outputs=model.outputs[[tree]],
        **{name: getattr(model, name)[[tree]] for name in ("near", "far", "near_values", "far_values", "values")},
    )  # fmt: skip
    near, far = alone.near_values[0, 0], alone.far_values[0, 0]
    asked = []

    def swapped(rows, others):
        asked.append((len(rows), len(others)))
        test = compact_swap_test(rows, others)
        return test._replace(overlap=test.overlap[:, ::-1])

    rows = np.tile([0.0, 2.0, 1001.0], (4, 1))
    rows[:, 0] = near + (far - near) * np.array([0.0, 0.1, 0.9, 1.0])
    exact, by_swapped = alone.score(rows).scores, alone.score_measured(rows, swapped).scores
    np.testing.assert_allclose(alone.score_measured(rows, compact_swap_test).scores, exact, atol=1e-12)
    np.testing.assert_allclose(by_swapped, exact[[0, 2, 1, 3]], atol=1e-12)
    assert asked == [(1, 2), (1, 2)]
    assert not np.allclose(exact[1], exact[2])


def test_a_bad_value_is_not_compared(fitted):
    X, _, found = fitted
    rows = X[:300].copy()
    rows[7, 1] = np.nan
    with pytest.raises(DataError, match="Row 7 holds nan in column 1"):
        found.model.score_measured(rows, compact_swap_test)


def test_comparisons_keep_training_rows_where_they_were_under_rising_maps(fitted):
    X, codes, found = fitted
    mapped = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, np.log(X[:, 2])])
    again = fit_comparisons(mapped, codes, found.model.n_classes, SETTINGS, 0, lambda _: None)
    assert again is not None
    np.testing.assert_allclose(again.model.score(mapped).scores, found.model.score(X).scores, atol=1e-12)


def test_out_of_fold_rows_have_the_mean_of_two_deals_after_the_mean_of_the_best_iterations(fitted):
    X, codes, found = fitted
    n_classes, X = found.model.n_classes, ranks(X)
    rng = np.random.default_rng(0)
    deals = [group_folds(np.arange(len(X)), codes, 3, rng) for _ in range(2)]
    assert (deals[0] != deals[1]).any()
    best, scores = [], np.zeros((12, len(X), n_classes))
    for seed, (folds, fold) in enumerate(itertools.product(deals, range(3))):
        held = folds == fold
        grown = HistGradientBoostingClassifier(
            max_iter=12, max_depth=4, max_leaf_nodes=16, min_samples_leaf=10, max_features=0.5, early_stopping=False,
            l2_regularization=4 * (n_classes - 1) / n_classes**2, random_state=seed,
        ).fit(X[~held], codes[~held])  # fmt: skip
        losses = [log_loss(codes[held], p) for p in grown.staged_predict_proba(X[held])]
        best.append(np.argmin(losses) + 1)
        for number, outputs in enumerate(grown.staged_decision_function(X[held])):
            scores[number, held] += found.model.class_scores(outputs.reshape(held.sum(), -1)) / 2
    assert found.n_iterations == round(np.mean(best))
    np.testing.assert_allclose(found.out_of_fold, scores[found.n_iterations - 1], atol=1e-12)


def test_rows_of_one_group_share_a_fold():
    X, codes = made_rows(120)
    doubled, groups = np.vstack([X, X]), np.tile(np.arange(120), 2)
    noise = np.tile(np.random.default_rng(1).permutation(codes), 2)
    found = fit_comparisons(doubled, noise, 2, SETTINGS, 0, lambda _: None, groups)
    assert found is not None
    assert np.mean(found.out_of_fold.argmin(axis=1) == noise) < 0.65
    np.testing.assert_allclose(found.out_of_fold[:120], found.out_of_fold[120:], atol=1e-12)


def test_too_few_rows_have_no_comparisons():
    X, codes = made_rows(5)
    assert fit_comparisons(X, codes, 2, SETTINGS, 0, lambda _: None) is None


def test_record_halfway_between_two_rows_goes_to_the_first_whatever_rounding_says(fitted):
    model = fitted[2].model
    gaps, sizes = np.abs(model.far_values - model.near_values), np.abs(model.near_values) + np.abs(model.far_values)
    nodes = (model.node_columns >= 0) & (gaps > 1e-5 * sizes)
    assert nodes.any()
    halfway = ((model.near_values + model.far_values) / 2)[nodes]
    for nudged in (np.nextafter(halfway, -np.inf), halfway, np.nextafter(halfway, np.inf)):
        assert (nudged <= model.trees.thresholds[nodes]).all()


def test_midpoints_are_below_the_larger_value_even_between_adjacent_numbers():
    near = np.array([1.0, 0.0, -5e-324, 1e150])
    far = np.array([np.nextafter(1.0, 2.0), 5e-324, 5e-324, np.nextafter(1e150, 2e150)])
    middle = midpoints(near, far)
    assert (near <= middle).all()
    assert (middle < far).all()
