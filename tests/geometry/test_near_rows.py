"""Rows that are nearly equal: found by hashes in any order of rows and columns, and not where chance makes them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.geometry.near_rows import class_agreement, near_groups, rows_together
from qmedoid.geometry.row_groups import numbered, row_groups

SEEDS = st.integers(0, 2**32 - 1)


def people(seed, n=100, rows=4, columns=6):
    """Person, class and cells of each row; all rows of a person are equal so far."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), rows)
    return rng, person, rng.permutation(n)[person] % 2, rng.normal(size=(n, columns))[person]


def one_cell_changed(seed, columns=6):
    """The first row of each person is as it is, and one cell of each other row is another."""
    rng, person, y, X = people(seed, columns=columns)
    changed = np.flatnonzero(np.arange(len(y)) % 4)
    X[changed, rng.integers(0, columns, len(changed))] = rng.normal(size=len(changed))
    return person, y, X


def same(one, other):
    return np.array_equal(numbered(one), numbered(other))


@given(SEEDS, st.integers(2, 30), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_agreement_is_that_of_all_pairs_beyond_chance(seed, n_groups, n_classes):
    rng = np.random.default_rng(seed)
    groups, codes = rng.integers(0, n_groups, 80), rng.integers(0, n_classes, 80)
    excess, n_groups_found, n_pure, n_others = class_agreement(groups, codes)
    agreed, weights, shares, pure = [], [], [], []
    for group in range(n_groups):
        of_group = codes[groups == group]
        if len(of_group) > 1:
            pairs = of_group[:, None] == of_group
            agreed.append((pairs.sum() - len(of_group)) / (len(of_group) * (len(of_group) - 1)))
            weights.append(min(len(of_group) - 1, 10))
            shares.append(np.bincount(of_group, minlength=n_classes) / len(of_group))
            pure += [of_group[0]] if len(set(of_group.tolist())) == 1 else []
    chance = (np.average(shares, axis=0, weights=weights) ** 2).sum()
    np.testing.assert_allclose(excess, (np.average(agreed, weights=weights) - chance) / (1 - chance), atol=1e-12)
    assert n_groups_found == len(agreed)
    assert n_pure == len(pure)
    assert n_others == len(pure) - np.bincount(pure, minlength=1).max(initial=0)


def test_agreement_is_one_for_classes_of_groups_and_chance_for_shuffled_ones():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), 5)
    codes = (rng.random(400) < 0.1).astype(int)[groups]
    assert class_agreement(groups, codes)[0] == pytest.approx(1.0)
    assert abs(class_agreement(groups, rng.permutation(codes))[0]) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_differ_in_one_cell_are_found(seed):
    person, y, X = one_cell_changed(seed)
    assert row_groups(X, y) is None
    assert same(near_groups(list(X.T), y), person)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_change_one_cell_after_the_other_are_one_group(seed):
    """The first and the last differ in five cells of eight, and are linked by those between them."""
    rng, person, y, X = people(seed, rows=6, columns=8)
    for first in range(0, len(y), 6):
        for step, column in enumerate(rng.permutation(8)[:5], 1):
            X[first + step : first + 6, column] += 1.0
    rows = rng.permutation(len(y))
    assert same(near_groups(list(X[rows].T), y[rows]), person[rows])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rows_that_differ_by_a_millionth_are_found(scale):
    rng, person, y, X = people(3)
    X = scale * (1000.0 + X) * (1.0 + 1e-9 * rng.normal(size=X.shape))
    assert same(near_groups(list(X.T), y), person)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_groups_do_not_depend_on_the_order_of_rows_or_columns(seed):
    _, y, X = one_cell_changed(seed % 100)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    groups = near_groups(list(X.T), y)
    assert same(groups[rows], near_groups(list(X[rows][:, columns].T), y[rows]))


def test_a_wide_table_is_looked_at_in_part_and_found_as_a_whole():
    person, y, X = one_cell_changed(5, columns=900)
    assert same(near_groups(list(X.T), y), person)


def test_nearly_equal_rows_of_other_classes_are_no_copies():
    _, y, X = one_cell_changed(6)
    assert near_groups(list(X.T), np.random.default_rng(0).permutation(y)) is None


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("levels", [2, 4, 8])
def test_a_coarse_grid_has_no_copies(n, levels):
    """Its rows differ in one cell by chance, and share the class, which some columns decide."""
    for seed in range(3):
        cells = np.random.default_rng(seed).integers(0, levels, (n, 5))
        assert near_groups(list(cells.T), (cells[:, 0] >= levels // 2).astype(int)) is None


def test_a_coarse_grid_of_columns_that_depend_on_each_other_has_no_copies():
    """Many rows differ in one cell, and more in two."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(2000, 3))
    cells = np.round(2.0 * hidden @ rng.normal(size=(3, 9)) + 0.35 * rng.normal(size=(2000, 9))).astype(int)
    cells -= cells.min(axis=0)
    assert near_groups(list(cells.T), (hidden[:, 0] > 0).astype(int)) is None


def test_a_curve_that_is_sampled_densely_has_no_copies():
    """Neighbors on it are closer than the finest step, and a wider one finds more."""
    time = np.random.default_rng(2).random(20_000)
    X = np.column_stack([np.sin(3 * time), np.cos(2 * time), time**2])
    assert near_groups(list(X.T), (time > 0.5).astype(int)) is None


@pytest.mark.parametrize(("n", "rows"), [(12, 6), (48, 2)])
def test_few_people_are_found(n, rows):
    rng, person, y, X = people(3, n, rows)
    assert same(near_groups(list((X + 1e-7 * rng.normal(size=X.shape)).T), y), person)


def test_few_rows_and_equal_rows_are_left_to_others():
    _, y, X = one_cell_changed(7)
    assert near_groups(list(X[:40].T), y[:40]) is None
    assert near_groups(list(X[:, :2].T), y) is None
    rng, _, y, X = people(3, 11, 6)
    assert near_groups(list((X + 1e-7 * rng.normal(size=X.shape)).T), y) is None
    copies = np.repeat(np.random.default_rng(0).normal(size=(100, 4)), 3, axis=0)
    assert near_groups(list(copies.T), np.repeat(np.arange(100) % 2, 3)) is None


def test_rows_of_numbers_are_nearly_equal_else_equal():
    person, y, X = one_cell_changed(8)
    groups, is_near = rows_together(X, y)
    assert is_near
    assert same(groups, person)
    equal = np.concatenate([X[::4], X[:40:4]])
    groups, is_near = rows_together(equal, np.append(y[::4], y[:40:4]))
    assert not is_near
    assert groups.max() + 1 == 100
