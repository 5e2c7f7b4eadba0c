"""Rows that belong together: who they are, and how they are kept together."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError
from qmedoid.geometry.row_groups import (
    draws_per_row,
    equal_rows,
    equal_rows_note,
    first_rows,
    given_groups,
    group_classes,
    group_folds,
    numbered,
    part_of,
    row_groups,
)

SMALL = st.integers(0, 2**32 - 1)


@given(SMALL, st.integers(1, 40), st.integers(1, 4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_rows_are_of_one_group_where_all_cells_are_equal(seed, n, columns, whole):
    table = np.random.default_rng(seed).integers(0, 3, (n, columns))
    table = table if whole else table * -0.25
    groups = equal_rows(table)
    np.testing.assert_array_equal(groups[:, None] == groups, (table[:, None] == table).all(axis=2))
    np.testing.assert_array_equal(groups[first_rows(groups)], np.arange(groups.max() + 1))
    assert (np.diff(first_rows(groups)) > 0).all()


def test_whole_numbers_that_differ_in_their_last_bit_are_two_rows_and_both_zeros_are_one():
    assert equal_rows(np.array([[2**53], [2**53 + 1]])).tolist() == [0, 1]
    assert equal_rows(np.array([[0.0], [-0.0], [np.nan], [np.nan]])).tolist() == [0, 0, 1, 1]


def test_a_long_table_takes_a_second():
    table = np.random.default_rng(0).normal(size=(100_000, 30))
    began = time.perf_counter()
    groups = row_groups(np.concatenate([table, table[:1000]]), np.zeros(101_000, dtype=np.intp))
    assert time.perf_counter() - began < 5.0  # about 0.1 s on a quiet machine
    assert groups.max() == 99_999


def test_equal_rows_are_a_group_whatever_their_labels():
    table = np.random.default_rng(0).normal(size=(20, 3))
    groups = row_groups(np.concatenate([table, table[:5]]), np.repeat([0, 1], [20, 5]))
    assert (groups[20:] == np.arange(5)).all()
    assert row_groups(table, np.zeros(20, dtype=np.intp)) is None


def test_in_a_coarse_table_copies_of_the_whole_table_alone_are_groups():
    """Two thousand rows of three columns of three values are no copies, and new rows will be equal to them, too."""
    rng = np.random.default_rng(0)
    table, codes = rng.integers(0, 3, (2000, 3)), rng.integers(0, 2, 2000)
    assert row_groups(table, codes) is None
    for n_copies in (2, 3):
        groups = row_groups(np.tile(table, (n_copies, 1)), np.tile(codes, n_copies))
        assert (np.bincount(groups) == n_copies).all()
        rows = np.column_stack([np.tile(table, (n_copies, 1)), np.tile(codes, n_copies)])
        assert (rows == rows[first_rows(groups)[groups]]).all()


def test_rows_that_were_copied_to_balance_the_classes_are_groups():
    rng = np.random.default_rng(1)
    table, codes = rng.normal(size=(1100, 4)), np.repeat([0, 1], [1000, 100])
    rows = np.concatenate([np.arange(1000), np.repeat(np.arange(1000, 1100), 30)])
    np.testing.assert_array_equal(row_groups(table[rows], codes[rows]), numbered(rows))


@given(SMALL, st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_folds_keep_groups_together_and_share_out_the_classes(seed, n_folds):
    rng = np.random.default_rng(seed)
    groups, codes = rng.integers(0, 60, 200), rng.integers(0, 3, 200)
    groups = numbered(groups)
    fold = group_folds(groups, codes, n_folds, rng)
    assert all(len(set(fold[groups == group])) == 1 for group in range(groups.max() + 1))
    of_group, classes = fold[first_rows(groups)], group_classes(groups, codes)
    for code in np.unique(classes):
        counts = np.bincount(of_group[classes == code], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


def test_a_group_counts_as_its_rarest_class():
    assert group_classes(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])).tolist() == [1, 0]


def test_given_groups_may_be_of_any_kind():
    assert given_groups(["b", "a", "b"], 3).tolist() == [0, 1, 0]
    assert given_groups(np.array([7, 7, 2]), 3).tolist() == [0, 0, 1]
    assert given_groups([1, 2, 3], 3) is None
    assert draws_per_row(given_groups([1, 1, 2, 2], 4)) == 0.5
    assert part_of(np.array([0, 0, 1]), np.array([0, 2])) is None


@pytest.mark.parametrize(
    ("labels", "words"),
    [([1, 2], "3 rows"), ([1.0, np.nan, 2.0], "missing"), (["a", None, "b"], "missing"), ([4, 4, 4], "one group only")],
)
def test_groups_that_say_nothing_are_refused(labels, words):
    with pytest.raises(DataError, match=words):
        given_groups(labels, 3)


def test_a_note_says_how_many_rows_are_equal_where_there_are_some():
    assert equal_rows_note(np.append(np.arange(999), 0)) is None
    assert "10 of 500 rows" in equal_rows_note(np.append(np.arange(490), np.arange(10)))
