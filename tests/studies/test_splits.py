"""Splits in the proportions of the paper: drawn within the classes, by time, and with equal rows kept together."""

import numpy as np
import pytest
from benchmarks.datasets import load_dataset
from benchmarks.studies import cells
from benchmarks.studies.cells import duplicate_groups, grouped_split, paper_split, time_split
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import DataError

SIZES = {"heart": (516, 172, 230), "breast-cancer": (319, 107, 143), "wine": (99, 34, 45)}
VALUES = st.sampled_from([-1.5, -1.0, -0.0, 0.0, 1.0, 2.0, np.nan])
TABLES = st.tuples(st.integers(1, 40), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=VALUES)
)


def sizes(split):
    return tuple(map(len, split))


def repeated(seed, n_rows=600, n_distinct=350):
    """Rows of which many occur several times, with labels that differ within some of the groups."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, n_distinct, n_rows)
    labels = (rows % 7 == 0).astype(int)
    labels[generator.integers(0, n_rows, 5)] ^= 1
    return generator.normal(size=(n_distinct, 4))[rows], labels


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", [0, 7])
def test_sizes_are_those_of_the_paper(name, seed):
    data = load_dataset(name)
    assert sizes(paper_split(data.y, seed)) == SIZES[name]
    assert sizes(time_split(np.arange(len(data.y)))) == SIZES[name]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("kind", ["paper", "time", "grouped"])
def test_every_row_is_in_exactly_one_part(name, kind):
    data = load_dataset(name)
    split = {
        "paper": lambda: paper_split(data.y, 3),
        "time": lambda: time_split(data.X[:, 0]),
        "grouped": lambda: grouped_split(data.X, data.y, 3),
    }[kind]()
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(len(data.y)))
    np.testing.assert_array_equal(np.sort(split.fit), np.sort(np.concatenate([split.train, split.val])))


@pytest.mark.parametrize("name", SIZES)
def test_every_part_has_its_share_of_every_class(name):
    data = load_dataset(name)
    # A stratified part is off by less than one row per class, and once more for having been cut twice.
    for split in (paper_split(data.y, 1), grouped_split(data.X, data.y, 1)):
        for part in split:
            expected = np.bincount(data.y) * len(part) / len(data.y)
            assert np.abs(np.bincount(data.y[part]) - expected).max() < 2


def test_a_seed_names_a_split():
    data = load_dataset("wine")
    for draw in (lambda seed: paper_split(data.y, seed), lambda seed: grouped_split(data.X, data.y, seed)):
        for a, b in zip(draw(5), draw(5), strict=True):
            np.testing.assert_array_equal(a, b)
        assert not np.array_equal(draw(5).test, draw(6).test)


class TestByTime:
    @given(st.lists(st.integers(0, 6), min_size=3, max_size=60))
    def test_no_row_is_later_than_one_of_the_next_part(self, times):
        split = time_split(times)
        times = np.array(times)
        assert sizes(split) == sizes(time_split(np.zeros(len(times))))
        order = np.concatenate(split)
        assert (np.diff(times[order]) >= 0).all()
        ties = np.diff(times[order]) == 0
        assert (np.diff(order)[ties] > 0).all()  # stable

    @given(st.integers(8, 300))
    def test_sizes_are_those_of_the_random_split(self, n):
        y = np.arange(n) % 2
        assert sizes(time_split(np.arange(n))) == sizes(paper_split(y, 0))

    def test_the_order_of_the_rows_does_not_matter(self):
        generator = np.random.default_rng(0)
        times, order = generator.normal(size=50), generator.permutation(50)
        for own, permuted in zip(time_split(times), time_split(times[order]), strict=True):
            np.testing.assert_array_equal(own, order[permuted])

    @pytest.mark.parametrize("times", [[], [1.0, 2.0], [[1.0], [2.0], [3.0]], [1.0, np.nan, 2.0]])
    def test_what_is_no_column_of_times_is_refused(self, times):
        with pytest.raises(DataError, match="one finite time per row"):
            time_split(times)


class TestDuplicates:
    @given(TABLES)
    def test_rows_share_a_group_if_and_only_if_they_are_equal(self, X):
        groups = duplicate_groups(X)
        equal = ((X[:, None] == X[None]) | (np.isnan(X[:, None]) & np.isnan(X[None]))).all(axis=2)
        np.testing.assert_array_equal(groups[:, None] == groups[None], equal)
        assert set(groups.tolist()) == set(range(groups.max() + 1))

    @given(TABLES, st.randoms(use_true_random=False))
    def test_a_group_keeps_its_number_when_rows_move(self, X, random):
        order = random.sample(range(len(X)), len(X))
        np.testing.assert_array_equal(duplicate_groups(X[order]), duplicate_groups(X)[order])

    def test_rows_of_one_hash_are_told_apart(self, monkeypatch):
        X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [-0.0, 5.0], [0.0, 5.0]])
        monkeypatch.setattr(cells, "_mixed", lambda bits: np.zeros(len(bits), dtype=np.uint64))
        groups = duplicate_groups(X)
        np.testing.assert_array_equal(groups[:, None] == groups[None], (X[:, None] == X[None]).all(axis=2))

    @pytest.mark.parametrize("X", [np.empty((0, 3)), np.empty((3, 0)), np.arange(3.0)])
    def test_what_is_no_table_is_refused(self, X):
        with pytest.raises(DataError, match="not empty"):
            duplicate_groups(X)
        with pytest.raises(DataError, match="Got 4 rows and 3 labels"):
            grouped_split(np.zeros((4, 2)), np.zeros(3), 0)


class TestApart:
    @pytest.mark.parametrize("seed", range(4))
    def test_equal_rows_are_in_one_part_in_any_order_and_under_any_names(self, seed):
        X, y = repeated(seed)
        groups, split, random = duplicate_groups(X), grouped_split(X, y, seed), paper_split(y, seed)
        parts = [set(groups[part].tolist()) for part in split]
        assert sum(map(len, parts)) == len(set().union(*parts))
        assert any(len(set(groups[part].tolist())) < len(part) for part in split)
        # The random split does tear them: otherwise this test says nothing.
        torn = [set(groups[part].tolist()) for part in random]
        assert torn[0] & torn[2]
        # Sizes are off by half a group for each class and cut.
        off = np.subtract(sizes(split), sizes(random))
        assert off.sum() == 0
        assert np.abs(off).max() <= len(set(y)) * np.bincount(groups).max()
        order = np.random.default_rng(2).permutation(len(y))
        permuted, named = grouped_split(X[order], y[order], seed), grouped_split(X, np.array(["no", "yes"])[y], seed)
        for own, moved, same in zip(split, permuted, named, strict=True):
            np.testing.assert_array_equal(own, np.sort(order[moved]))
            np.testing.assert_array_equal(own, same)

    @given(st.integers(20, 200), st.integers(0, 100))
    @settings(max_examples=25)
    def test_without_equal_rows_sizes_and_classes_are_those_of_the_random_split(self, n, seed):
        y = np.arange(n) % 3
        for own, random in zip(grouped_split(np.arange(float(n))[:, None], y, seed), paper_split(y, seed), strict=True):
            # Classes are numbered by how rare they are, so which of them gets an odd row may differ.
            assert len(own) == len(random)
            assert np.abs(np.bincount(y[own], minlength=3) - np.bincount(y[random], minlength=3)).max() <= 1
