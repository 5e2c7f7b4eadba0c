"""Splits in the proportions of the paper, without overlap and stratified."""

import numpy as np
import pytest

from qmedoid.evaluation.datasets import load_dataset
from qmedoid.evaluation.splits import paper_split

SIZES = {"heart": (516, 172, 230), "breast-cancer": (319, 107, 143), "wine": (99, 34, 45)}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", [0, 7])
def test_sizes_are_those_of_the_paper(name, seed):
    split = paper_split(load_dataset(name).y, seed)
    assert tuple(map(len, split)) == SIZES[name]


@pytest.mark.parametrize("name", SIZES)
def test_every_row_is_in_exactly_one_part(name):
    y = load_dataset(name).y
    split = paper_split(y, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(len(y)))
    np.testing.assert_array_equal(np.sort(split.fit), np.sort(np.concatenate([split.train, split.val])))


@pytest.mark.parametrize("name", SIZES)
def test_every_part_has_its_share_of_every_class(name):
    y = load_dataset(name).y
    for part in paper_split(y, 1):
        # A stratified part is off by less than one row per class, and once more for having been cut twice.
        expected = np.bincount(y) * len(part) / len(y)
        assert np.abs(np.bincount(y[part]) - expected).max() < 2


def test_a_seed_names_a_split():
    y = load_dataset("wine").y
    for a, b in zip(paper_split(y, 5), paper_split(y, 5), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(paper_split(y, 5).test, paper_split(y, 6).test)
