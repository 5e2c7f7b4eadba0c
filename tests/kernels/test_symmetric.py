"""Boosting of symmetric trees: the compiled kernel against its twin, and what its trees say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.kernels import trees as boosting
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.trees import grow_symmetric


def binned(rng, n, n_bins, n_classes):
    bins = np.array([rng.integers(0, count, n) for count in n_bins], dtype=np.uint8)
    signal = bins[0] > n_bins[0] // 2
    codes = np.where(rng.random(n) < 0.5, signal % n_classes, rng.integers(n_classes, size=n))
    return bins, codes.astype(np.intp)


def growth(rng, n_bins, n_classes, n_iterations=12, n_candidates=None, **changes):
    drawn = np.array(
        [
            [np.sort(rng.choice(len(n_bins), n_candidates or len(n_bins), replace=False)) for _ in range(4)]
            for _ in range(n_iterations)
        ],
        dtype=np.int32,
    ).reshape(n_iterations, 4, -1)
    start = rng.normal(scale=0.3, size=1 if n_classes == 2 else n_classes)
    usual = {"candidates": drawn, "n_bins": np.array(n_bins, dtype=np.int32), "start": start}
    return usual | {"rate": 0.3, "l2": 1.0, "patience": 5, "least_gain": 0.0} | changes


def mean_loss(outputs, codes):
    scores = np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs
    return row_losses(scores, codes).mean()


def twin(monkeypatch, rows, how, held=None):
    with monkeypatch.context() as patch:
        patch.setattr(boosting, "compiled", lambda _: None)
        return grow_symmetric(rows, held, **how)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 90), st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(2, 4), st.integers(0, 30),
)  # fmt: skip
def test_kernel_grows_the_trees_of_its_twin(seed, n, n_bins, n_classes, n_held):
    rng = np.random.default_rng(seed)
    rows = binned(rng, n, n_bins, n_classes)
    held = binned(rng, n_held, n_bins, n_classes) if n_held else None
    how = growth(rng, n_bins, n_classes, n_candidates=int(rng.integers(1, len(n_bins) + 1)))
    found = grow_symmetric(rows, held, **how)
    with pytest.MonkeyPatch.context() as patch:
        wanted = twin(patch, rows, how, held)
    for name in ("columns", "cuts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name in ("leaves", "losses"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_first_tree_is_the_best_of_all(n_classes):
    """The definition, by trying every comparison at every level."""
    rng = np.random.default_rng(0)
    rows, how = binned(rng, 60, [3, 4], n_classes), growth(rng, [3, 4], n_classes, 1)
    found = grow_symmetric(rows, **how)
    outputs = np.tile(how["start"], (60, 1))
    scores = np.hstack([np.zeros_like(outputs), outputs]) if n_classes == 2 else outputs
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    first, second = p - np.eye(n_classes)[rows[1]], p * (1 - p)
    if n_classes == 2:
        first, second = first[:, 1:], second[:, 1:]
    node = np.zeros(60, dtype=int)
    for level in range(4):
        best = (-1.0, 0, 0)
        for column, cut in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]:
            child = 2 * node + (rows[0][column] > cut)
            gain = sum(
                (first[child == one].sum(axis=0) ** 2 / (second[child == one].sum(axis=0) + how["l2"])).sum()
                for one in range(2 ** (level + 1))
            )
            best = max(best, (gain, -column, -cut), key=lambda one: (round(one[0], 9), one[1], one[2]))
        assert (found.columns[0, level], found.cuts[0, level]) == (-best[1], -best[2])
        node = 2 * node + (rows[0][-best[1]] > -best[2])
    for leaf in np.unique(node):
        own = node == leaf
        step = -how["rate"] * first[own].sum(axis=0) / (second[own].sum(axis=0) + how["l2"])
        np.testing.assert_allclose(found.leaves[0, leaf], step, rtol=1e-12)


def test_losses_are_those_of_the_held_out_rows_and_end_growth():
    rng = np.random.default_rng(2)
    rows, held = binned(rng, 200, [20, 20], 2), binned(rng, 300, [20, 20], 2)
    found = grow_symmetric(rows, held, **growth(rng, [20, 20], 2, 400))
    assert 5 < len(found.leaves) < 400
    for count in (0, 1, len(found.leaves)):
        assert found.losses[count] == pytest.approx(mean_loss(found.outputs(held[0], count), held[1]), rel=1e-12)
    assert not (found.losses[-5:] < found.losses[-6]).any()
    assert all((found.losses[end - 4 : end + 1] < found.losses[end - 5]).any() for end in range(5, len(found.leaves)))


def test_twin_ends_growth_where_the_kernel_does(monkeypatch):
    rng = np.random.default_rng(2)
    rows, held, how = binned(rng, 200, [20, 20], 2), binned(rng, 300, [20, 20], 2), growth(rng, [20, 20], 2, 60)
    found = grow_symmetric(rows, held, **how)
    assert len(found.leaves) < 60
    np.testing.assert_allclose(twin(monkeypatch, rows, how, held).losses, found.losses, rtol=1e-10)


def test_equal_columns_and_cuts_that_part_nothing_go_to_the_first():
    rng = np.random.default_rng(4)
    bins = rng.integers(0, 6, 300).astype(np.uint8)
    bins[bins == 3] = 2  # cuts 2 and 3 are one
    codes = (bins > 2).astype(np.intp)
    codes[:40] = 1 - codes[:40]
    mirrored = 5 - bins
    how = growth(rng, [6, 6, 6], 2, 1)
    found = grow_symmetric((np.array([bins, mirrored, bins]), codes), **how)
    assert (found.columns[0, 0], found.cuts[0, 0]) == (0, 2)
