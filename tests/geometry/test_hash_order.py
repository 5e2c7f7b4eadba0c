"""The order of rows: a function of the rows alone, with their classes and groups."""

import itertools

import numpy as np
import pytest

from qmedoid.geometry.row_groups import numbered, ranks, row_order


def drawn(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, size=(n, 3))])
    return X, rng.integers(0, 3, size=n)


def mixed(*parts, seed=1):
    order = np.random.default_rng(seed).permutation(len(parts[0]))
    return [part[order] for part in parts]


def test_order_depends_on_the_rows_alone():
    X, codes = drawn()
    order = row_order(ranks(X), codes)
    for seed in range(5):
        rows, labels = mixed(X, codes, seed=seed)
        again = row_order(ranks(rows), labels)
        np.testing.assert_array_equal(rows[again], X[order])
        np.testing.assert_array_equal(labels[again], codes[order])


def test_columns_units_and_names_of_classes_play_no_part():
    X, codes = drawn()
    order = row_order(ranks(X), codes)
    np.testing.assert_array_equal(row_order(ranks(X[:, ::-1]), codes), order)
    np.testing.assert_array_equal(row_order(ranks(np.exp(X)), (codes + 1) % 3), order)


def test_names_of_levels_play_no_part():
    X, codes = drawn()
    cells, is_level = ranks(X), [False, False, True, True, True]
    order = row_order(cells, codes, is_level=is_level)
    cells[:, 3] = np.array([2, 0, 1])[cells[:, 3]]
    np.testing.assert_array_equal(row_order(cells, codes, is_level=is_level), order)
    # As numbers they would.
    assert not np.array_equal(row_order(cells, codes), row_order(ranks(X), codes))


@pytest.mark.parametrize("n_columns", [2, 3])
def test_mirror_images_have_an_order(n_columns):
    """All combinations of the same values: columns may be exchanged, and rows with them."""
    X = np.array(list(itertools.product(range(3), repeat=n_columns)), dtype=np.float64)
    codes = (X.sum(axis=1) > 2).astype(np.intp)
    order = row_order(ranks(X), codes)
    for seed in range(5):
        rows, labels = mixed(X, codes, seed=seed)
        np.testing.assert_array_equal(rows[row_order(ranks(rows), labels)], X[order])


def test_copies_of_a_table_lie_side_by_side():
    X, codes = drawn(60)
    order, twice = row_order(ranks(X), codes), row_order(ranks(np.tile(X, (2, 1))), np.tile(codes, 2))
    np.testing.assert_array_equal(twice[::2], order)
    np.testing.assert_array_equal(twice[1::2], order + 60)


def test_equal_rows_of_different_groups_are_ordered_by_what_their_groups_hold():
    X, codes = drawn(120)
    X[60:], codes[60:] = X[:60], codes[:60]
    groups = numbered(np.random.default_rng(3).integers(0, 40, 120))
    order = row_order(ranks(X), codes, groups)
    for seed in range(5):
        rows, labels, names = mixed(X, codes, 39 - groups, seed=seed)
        again = row_order(ranks(rows), labels, names)
        np.testing.assert_array_equal(rows[again], X[order])
        np.testing.assert_array_equal(numbered(names[again]), numbered(groups[order]))
