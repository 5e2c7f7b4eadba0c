"""Nearest prototypes: brute force, the compiled kernel and its NumPy twin give the same answer on every input."""

import numpy as np
import pytest

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels import nearest
from qmedoid.kernels.nearest import nearest_squared

_compiled = pytest.importorskip("qmedoid.kernels._nearest", reason="the compiled kernel was not built")

BOTH = pytest.mark.usefixtures("backend")


def brute(rows, prototypes, k, own=None):
    """Measure every distance in extended precision and sort them."""
    squared = ((rows[:, None].astype(np.longdouble) - prototypes) ** 2).sum(axis=2)
    if own is not None:
        squared[own >= 0, own[own >= 0]] = np.inf
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squared, order, axis=1), order


def points(kind, n, d, rng):
    x = rng.normal(size=(n, d))
    match kind:
        case "lattice":
            return np.round(x)
        case "repeated":
            return np.round(8.0 * x[rng.integers(max(1, n // 5), size=n)]) / 8.0
        case "far away":
            return x + 1e8
        case "of all lengths":
            return x * 10.0 ** rng.integers(-8, 12, size=(n, 1))
        case "tiny":
            return x * 1e-140
        case "huge":
            return x * 1e140
        case "line":
            return np.outer(x[:, 0], np.ones(d))
    return x


KINDS = ["gaussian", "lattice", "repeated", "far away", "of all lengths", "tiny", "huge", "line"]


@BOTH
@pytest.mark.parametrize(("p", "k"), [(40, 3), (400, 8), (400, 16)])
def test_rounding_does_not_choose_among_equal_distances(p, k):
    rng = np.random.default_rng(p + k)
    rows, prototypes = points("lattice", 60, 4, rng), points("lattice", p, 4, rng)
    own = rng.integers(-1, p, size=60)
    _, exact = nearest_squared(rows, prototypes, k=k, own=own)
    for _ in range(5):
        moved = [x * (1.0 + rng.integers(-4, 5, size=x.shape) * 2.0**-53) for x in (rows, prototypes)]
        assert np.array_equal(nearest_squared(*moved, k=k, own=own)[1], exact)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_brute_force_agrees(kind):
    for seed, (n, p, d, k) in enumerate([(30, 400, 30, 8), (9, 130, 3, 16), (50, 97, 1, 5), (7, 700, 101, 1)]):
        rng = np.random.default_rng(seed)
        rows, prototypes = points(kind, n, d, rng), points(kind, p, d, rng)
        for own in (None, rng.integers(-1, p, size=n)):
            squared, indices = nearest_squared(rows, prototypes, k=k, own=own)
            expected, order = brute(rows, prototypes, k, own)
            np.testing.assert_allclose(squared, expected.astype(float), rtol=1e-14 * d)
            if kind in ("lattice", "repeated"):  # distances are exact, so ties are ties
                np.testing.assert_array_equal(indices, order)
            else:
                measured = ((rows[:, None] - prototypes[indices]) ** 2).sum(axis=2)
                np.testing.assert_allclose(measured, squared, rtol=1e-14 * d)
                assert all(len(set(row)) == k for row in indices.tolist())


@BOTH
@pytest.mark.parametrize("p", [0, 1, 3, 5])
def test_too_few_prototypes_are_filled_up(p):
    rng = np.random.default_rng(p)
    rows, prototypes = rng.normal(size=(6, 4)), rng.normal(size=(p, 4))
    own = np.array([-1, 0, -1, -1, -1, -1]) if p else None
    squared, indices = nearest_squared(rows, prototypes, k=5, own=own)
    for row in range(6):
        left = p - (p > 0 and row == 1)
        assert np.isfinite(squared[row]).tolist() == [True] * left + [False] * (5 - left)
        assert sorted(indices[row, :left].tolist()) == list(range(p - left, p))
        assert (indices[row, left:] == -1).all()
        assert (squared[row, left:] == np.inf).all()


@BOTH
def test_a_row_finds_itself_unless_it_is_left_out():
    x = np.random.default_rng(0).normal(size=(150, 7))
    squared, indices = nearest_squared(x, x, k=2)
    np.testing.assert_array_equal(indices[:, 0], np.arange(150))
    assert not squared[:, 0].any()
    without, others = nearest_squared(x, x, k=1, own=np.arange(150))
    np.testing.assert_array_equal(without[:, 0], squared[:, 1])
    np.testing.assert_array_equal(others[:, 0], indices[:, 1])


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_what_is_not_finite_is_not_found(bad):
    rng = np.random.default_rng(1)
    rows, prototypes = rng.normal(size=(20, 5)), rng.normal(size=(300, 5))
    expected = nearest_squared(rows, prototypes, k=3)
    rows[4, 2] = bad
    squared, indices = nearest_squared(rows, prototypes, k=3)
    assert (squared[4] == np.inf).all()
    assert (indices[4] == -1).all()
    kept = np.arange(20) != 4
    np.testing.assert_array_equal(squared[kept], expected[0][kept])
    prototypes[7, 0] = bad
    squared, indices = nearest_squared(rows, prototypes, k=3)
    untouched = kept & ~(expected[1] == 7).any(axis=1)
    np.testing.assert_allclose(squared[untouched], expected[0][untouched], rtol=1e-13)
    assert not (indices == 7).any()


def test_results_do_not_depend_on_threads_batches_or_the_screen(monkeypatch):
    rng = np.random.default_rng(2)
    rows, prototypes = rng.normal(size=(3000, 12)), rng.normal(size=(500, 12))
    own = rng.integers(-1, 500, size=3000)
    whole = nearest_squared(rows, prototypes, k=4, own=own, threads=1)
    monkeypatch.setattr(nearest, "_WORTH_A_THREAD", 1)
    others = [nearest_squared(rows, prototypes, k=4, own=own, threads=3)]
    for size in (1, 7, 500):
        parts = [
            nearest_squared(rows[i : i + size], prototypes, k=4, own=own[i : i + size]) for i in range(0, 1000, size)
        ]
        others.append(tuple(np.concatenate(part) for part in zip(*parts, strict=True)))
    monkeypatch.setattr(nearest, "_PROTOTYPES_WORTH_A_SCREEN", 10**9)
    others.append(nearest_squared(rows, prototypes, k=4, own=own))
    for other in others:
        for ours, theirs in zip(whole, other, strict=True):
            np.testing.assert_array_equal(ours[: len(theirs)], theirs)


@BOTH
@pytest.mark.parametrize("size", [1e-300, 1e-310, 5e-324])
def test_prototypes_that_hardly_differ_are_found(size):
    prototypes = np.full((120, 3), size)
    prototypes[7] = 2.0
    squared, indices = nearest_squared(np.full((9, 3), 2.0), prototypes, k=2)
    np.testing.assert_array_equal(indices, [[7, 0]] * 9)
    np.testing.assert_array_equal(squared, [[0.0, 12.0]] * 9)
    squared, indices = nearest_squared(np.ones((9, 3)), prototypes[:7] * np.arange(7)[:, None], k=2)
    np.testing.assert_array_equal(indices, [[0, 1]] * 9)


def test_bad_arguments_are_named():
    x = np.zeros((3, 2))
    with pytest.raises(ParameterError, match=r"'k' parameter must be an int between 1 and 16\. Got 17"):
        nearest_squared(x, x, k=17)
    with pytest.raises(DataError, match=r"\(3, 2\) and prototypes \(4, 5\)"):
        nearest_squared(x, np.zeros((4, 5)), k=1)
    with pytest.raises(DataError, match=r"'own' has shape \(2,\)"):
        nearest_squared(x, x, k=1, own=np.zeros(2, dtype=np.intp))
    with pytest.raises(DataError, match=r"'own' holds 3, but there are 3 prototypes"):
        nearest_squared(x, x, k=1, own=np.array([0, 3, -1]))


@BOTH
def test_rows_are_left_out_against_themselves_in_every_chunk(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    own = np.where(np.arange(40) % 4, np.arange(40), -1)
    whole = nearest_squared(rows, rows, k=2, own=own)
    np.testing.assert_array_equal(whole[1], brute(rows, rows, 2, own)[1])
    monkeypatch.setattr(nearest, "_CHUNK_ROWS", 7)
    monkeypatch.setattr(nearest, "_BLOCK_NUMBERS", 7 * 40)
    for one, other in zip(whole, nearest_squared(rows, rows, k=2, own=own), strict=True):
        np.testing.assert_array_equal(one, other)
