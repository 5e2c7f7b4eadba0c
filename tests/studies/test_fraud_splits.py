"""The whole credit-card table: its counts, and the three splits of it."""

import time

import numpy as np
import pytest
from benchmarks.datasets import load_creditcard
from benchmarks.studies.cells import duplicate_groups, grouped_split, paper_split, time_split
from benchmarks.studies.paper import FRAUD

from qmedoid.datasets import FEATURES, HOW_TO_GET, locate

SIZES = (160_203, 53_402, 71_202)


@pytest.fixture(scope="module")
def data():
    if locate("creditcard") is None:
        pytest.skip(f"needs the whole credit-card table. {HOW_TO_GET}")
    return load_creditcard()


@pytest.fixture(scope="module")
def groups(data):
    return duplicate_groups(data.X)


def test_rows_and_frauds_are_those_of_the_paper(data):
    ours = FRAUD["fraud_matched"]["ours"]
    assert data.X.shape == (ours["rows"], len(FEATURES)) == (284_807, 29)
    assert np.bincount(data.y).tolist() == [ours["FP"] + ours["TN"], ours["TP"] + ours["FN"]] == [284_315, 492]
    assert data.X[:, -1].sum() == pytest.approx(25_162_590.01, abs=0.005)
    assert data.X.flags.c_contiguous
    assert np.isfinite(data.X).all()


def test_the_random_split_tears_equal_rows_and_the_other_does_not(data, groups):
    split = paper_split(data.y, 0)
    assert tuple(map(len, split)) == SIZES
    assert np.isin(groups[split.test], groups[split.fit]).sum() > 1000
    start = time.process_time()
    apart = grouped_split(data.X, data.y, 0)
    assert time.process_time() - start < 4
    assert not np.isin(groups[apart.test], groups[apart.fit]).any()
    assert not np.isin(groups[apart.val], groups[apart.train]).any()
    np.testing.assert_array_equal(np.sort(np.concatenate(apart)), np.arange(len(data.y)))
    for own, random in zip(apart, split, strict=True):
        assert abs(len(own) - len(random)) <= np.bincount(groups).max()
        assert abs(int(data.y[own].sum()) - int(data.y[random].sum())) <= np.bincount(groups[data.y == 1]).max()


def test_the_split_by_time_puts_the_latest_payments_last(data):
    split = time_split(data.times)
    assert tuple(map(len, split)) == SIZES
    assert data.times[split.train].max() <= data.times[split.val].min()
    assert data.times[split.val].max() <= data.times[split.test].min()
    # Frauds are not spread evenly over the two days: that is what makes this split another question.
    assert [int(data.y[rows].sum()) for rows in split] == [356, 42, 94]
