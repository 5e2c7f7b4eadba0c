"""The study of quality: its tables, its splits, and the forms of the rows that classifiers get."""

import numpy as np
import pytest
from benchmarks.quality.ours import as_table
from benchmarks.quality.protocol import LEAST, MAX_TEST, SIZES, make_split, split_rows, takes_part
from benchmarks.quality.tables import LOOKED_AT, NEVER_SEEN, Table, load_table
from quality_tables import make_table


def test_splits_are_disjoint_stratified_capped_and_repeatable():
    y = np.repeat([0, 1], [54_000, 6_000])
    for size in SIZES[:3]:
        fit, test = make_split(y, size, 3)
        assert len(fit) == size
        assert len(test) == MAX_TEST
        assert not set(fit) & set(test)
        assert y[fit].mean() == pytest.approx(0.1)
        assert y[test].mean() == pytest.approx(0.1)
        np.testing.assert_array_equal(fit, make_split(y, size, 3).fit)
        np.testing.assert_array_equal(test, make_split(y, 1_000, 3).test)  # one test for all sizes
    assert set(test) != set(make_split(y, 1_000, 4).test)
    small = make_split(y[::400], 1_000, 3)
    assert sorted(np.concatenate(small)) == list(range(150))


def test_a_table_takes_part_where_it_has_rows_enough():
    for size in SIZES[1:]:
        least = LEAST[size]
        for rows, expected in ((4 * least // 3 + 2, True), (4 * least // 3 - 2, False)):
            table = Table("made up", {}, np.zeros(rows, dtype=int), ("0",), "nowhere")
            assert takes_part(table, size) is expected
    assert takes_part(load_table("iris"), 1_000)


def test_forms_of_the_rows_know_the_fit_rows_alone():
    table = make_table(np.random.default_rng(2))
    before = split_rows(table, 1_000, 0)
    fit, test = make_split(table.y, 1_000, 0)
    assert before.one_hot.fit.shape[1] == 2 + 1 + 4  # number and where it is missing, one of two levels, four levels
    known = table.columns["number"][fit]
    np.testing.assert_array_equal(before.one_hot.fit[:, 0], np.where(np.isnan(known), np.nanmedian(known), known))
    np.testing.assert_array_equal(before.one_hot.fit[:, 1], np.isnan(known))
    np.testing.assert_array_equal(before.one_hot.fit[:, 3:].sum(axis=1), 1)
    np.testing.assert_array_equal(before.is_category, [False, True, True])
    np.testing.assert_array_equal(before.coded.fit[:, 0], known)
    for level in ("x", "y", "z", None):
        of_level = [cell is level or cell == level for cell in table.columns["three"][fit]]
        assert len(np.unique(before.coded.fit[of_level, 2])) == 1
    table.columns["number"][test] = 1e6
    table.columns["three"][test] = "never seen"
    after = split_rows(table, 1_000, 0)
    np.testing.assert_array_equal(after.one_hot.fit, before.one_hot.fit)
    np.testing.assert_array_equal(after.coded.fit, before.coded.fit)
    np.testing.assert_array_equal(after.one_hot.test[:, 3:], 0)
    assert np.isnan(after.coded.test[:, 2]).all()


def test_ours_gets_the_table_as_it_is():
    table = make_table(np.random.default_rng(2))
    arrow = as_table(split_rows(table, 1_000, 0).fit)
    fit = make_split(table.y, 1_000, 0).fit
    assert arrow["number"].null_count == np.isnan(table.columns["number"][fit]).sum() > 0
    assert arrow["three"].null_count == sum(cell is None for cell in table.columns["three"][fit]) > 0
    assert arrow["two"].to_pylist() == table.columns["two"][fit].tolist()


def test_no_table_is_both_looked_at_and_never_seen():
    assert not set(LOOKED_AT) & set(NEVER_SEEN)
    assert len({*LOOKED_AT, *NEVER_SEEN}) == len(LOOKED_AT) + len(NEVER_SEEN)


def test_a_table_changes_its_digest_with_any_cell():
    table, other = (make_table(np.random.default_rng(3)) for _ in range(2))
    assert table.digest == other.digest
    other.columns["two"][17] = "c"
    assert table.digest != other.digest
