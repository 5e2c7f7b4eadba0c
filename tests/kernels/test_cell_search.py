"""Nearest prototypes in cells: the compiled kernel, its NumPy twin and brute force over the cells agree."""

import numpy as np
import pytest

from qmedoid.kernels import nearest
from qmedoid.kernels.nearest import LEAST_IN_CELL, N_VISITS, CellSearch, cell_centers, cells_of, nearest_squared

pytest.importorskip("qmedoid.kernels._cells", reason="the compiled kernel was not built")

BOTH = pytest.mark.usefixtures("backend")


def points(n, d, seed):
    """Clusters of Gaussians."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, d))[rng.integers(20, size=n)] + 0.3 * rng.normal(size=(n, d))


def search_over(prototypes):
    centers = cell_centers(prototypes, np.random.default_rng(0))
    return CellSearch(prototypes, centers, cells_of(prototypes, centers))


@BOTH
@pytest.mark.parametrize("d", [1, 3, 16, 37])
def test_neighbors_are_the_nearest_of_the_cells_with_the_nearest_centers(d):
    prototypes, rows = points(1500, d, 0), points(60, d, 1)
    centers = cell_centers(prototypes, np.random.default_rng(0))
    members = cells_of(prototypes, centers)
    own = np.where(np.arange(60) % 2, np.arange(60), -1)
    rows[1::4] = prototypes[1:60:4]
    squared, indices = CellSearch(prototypes, centers, members).nearest_squared(rows, k=9, own=own)
    for i, row in enumerate(rows):
        visited = np.argsort(((prototypes[centers] - row) ** 2).sum(axis=1), kind="stable")[:N_VISITS]
        names = np.flatnonzero(np.isin(members, visited) & (np.arange(1500) != own[i]))
        distances = ((prototypes[names] - row) ** 2).sum(axis=1)
        order = np.argsort(distances, kind="stable")[:9]
        np.testing.assert_array_equal(indices[i], names[order])
        np.testing.assert_allclose(squared[i], distances[order], rtol=1e-12, atol=1e-28)


def test_compiled_and_numpy_agree_on_ties(use_twins):
    prototypes, rows = np.round(2 * points(2000, 4, 4)), np.round(2 * points(80, 4, 5))
    search = search_over(prototypes)
    fast = search.nearest_squared(rows, k=16)
    use_twins()
    for one, other in zip(fast, search.nearest_squared(rows, k=16), strict=True):
        np.testing.assert_array_equal(one, other)


def test_results_do_not_depend_on_threads_or_batches(monkeypatch):
    prototypes, rows = points(3000, 20, 6), points(700, 20, 7)
    search = search_over(prototypes)
    whole = search.nearest_squared(rows, k=5, threads=1)
    monkeypatch.setattr(nearest, "_CELL_SIZES", (64, 1))
    several = search.nearest_squared(rows, k=5, threads=3)
    single = [search.nearest_squared(row[None], k=5) for row in rows[:40]]
    for part in range(2):
        np.testing.assert_array_equal(whole[part], several[part])
        np.testing.assert_array_equal(whole[part][:40], np.concatenate([one[part] for one in single]))


@BOTH
def test_what_is_not_finite_finds_nothing():
    search = search_over(points(500, 4, 8))
    squared, indices = search.nearest_squared(np.array([[np.nan, 0, 0, 0], [np.inf, 0, 0, 0]]), k=3)
    assert (squared == np.inf).all()
    assert (indices == -1).all()


@pytest.mark.parametrize(
    "prototypes", [points(3000, 5, 9), np.zeros((300, 2)), np.repeat(points(40, 3, 1), 30, axis=0)]
)
def test_cells_are_not_too_small_and_their_centers_lie_in_them(prototypes):
    centers = cell_centers(prototypes, np.random.default_rng(0))
    members = cells_of(prototypes, centers)
    assert np.bincount(members, minlength=len(centers)).min() >= LEAST_IN_CELL
    np.testing.assert_array_equal(members[centers], np.arange(len(centers)))


def test_most_neighbors_are_found():
    prototypes, rows = points(20_000, 10, 10), points(300, 10, 11)
    _, expected = nearest_squared(rows, prototypes, k=16)
    _, found = search_over(prototypes).nearest_squared(rows, k=16)
    assert np.mean([np.isin(one, other).mean() for one, other in zip(found, expected, strict=True)]) > 0.95
