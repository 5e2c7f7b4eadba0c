"""Medoids of rows and of classes: the laws they obey and the errors they raise (algorithms 4 and 5)."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.medoids import class_samples, k_medoids, medoid_index, sampled_class_medoids

SIZES = pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 2), (25, 1), (60, 2), (80, 30), (1500, 6)])


def gaussian(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def class_medoids(F, codes, n_classes, *, n_medoids=1, max_rows=None, seed=0):
    """Medoids of the classes among the rows drawn for each."""
    samples = class_samples(np.asarray(codes), n_classes, max_rows=max_rows, rng=np.random.default_rng(seed))
    return sampled_class_medoids(F, samples, n_medoids=n_medoids)


def objective(X, medoids):
    return np.sqrt(((X[:, None] - X[medoids]) ** 2).sum(axis=2)).min(axis=1).sum()


@SIZES
def test_permuting_rows_permutes_the_medoid(n, d):
    X = gaussian(n, d)
    order = np.random.default_rng(1).permutation(n)
    # Two rows tie, and an even number of points on a line has two medoids: compare the rows' totals.
    a, b = medoid_index(X), order[medoid_index(X[order])]
    assert objective(X, [a]) == pytest.approx(objective(X, [b]), rel=1e-12)
    assert a == b or d == 1 or n == 2


@SIZES
def test_moving_scaling_and_rotating_keep_the_medoid(n, d):
    X = gaussian(n, d)
    rotation = np.linalg.qr(gaussian(d, d, 1))[0]
    expected = medoid_index(X)
    assert medoid_index(X + 1e3) == expected
    assert medoid_index(X * -7.3) == expected
    assert medoid_index(X @ rotation) == expected


@given(arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.integers(-3, 3).map(float)))
@settings(max_examples=50, deadline=None)
def test_lowest_index_of_equal_totals_wins(X):
    totals = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2)).sum(axis=1)
    assert medoid_index(X) == np.flatnonzero(np.isclose(totals, totals.min(), rtol=1e-12, atol=0))[0]


@given(
    X=arrays(float, (7, 2), elements=st.floats(-10, 10)),
    weights=arrays(int, 7, elements=st.integers(0, 4)).filter(np.any),
)
@settings(max_examples=50, deadline=None)
def test_weight_counts_as_that_many_rows(X, weights):
    repeated = np.repeat(np.arange(7), weights)
    assert medoid_index(X, weights=weights) == repeated[medoid_index(X[repeated])]


def test_class_samples_are_the_rows_of_a_draw_in_ascending_order():
    codes = np.repeat([1, 0], [200, 5])
    drawn = np.sort(np.random.default_rng(5).choice(200, 20, replace=False))
    few, many = class_samples(codes, 2, max_rows=20, rng=np.random.default_rng(5))
    assert few.tolist() == list(range(200, 205))
    assert many.tolist() == drawn.tolist()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_no_single_swap_improves_k_medoids(k, seed):
    X = gaussian(40, 2, seed)
    medoids = k_medoids(X, k)
    best = objective(X, medoids)
    for out, new in itertools.product(range(k), set(range(40)) - set(medoids)):
        swapped = medoids.copy()
        swapped[out] = new
        assert objective(X, swapped) >= best * (1 - 1e-11)


def test_no_more_medoids_than_distinct_rows():
    X = np.array([[0.0, 1], [-0.0, 1], [2, 2], [0, 1], [3, 3]])
    assert k_medoids(X, 2).tolist() == [0, 2]
    assert k_medoids(X, 3).tolist() == k_medoids(X, 9).tolist() == [0, 2, 4]


def test_k_medoids_count_copies():
    X, copies = gaussian(30, 2), np.random.default_rng(3).integers(1, 4, size=30)
    repeated = np.repeat(np.arange(30), copies)
    for k in (2, 4):
        found = k_medoids(X[repeated], k)
        best = objective(X[repeated], found)
        for out, new in itertools.product(range(k), range(len(repeated))):
            assert objective(X[repeated], np.where(np.arange(k) == out, new, found)) >= best * (1 - 1e-11)


@pytest.mark.parametrize("k", [1, 3])
def test_class_sees_its_own_rows_alone(k):
    F = gaussian(90, 3)
    codes = np.random.default_rng(1).integers(0, 3, size=90)
    rows, classes = class_medoids(F, codes, 3, n_medoids=k)
    assert classes.tolist() == [c for c in range(3) for _ in range(k)]
    for c in range(3):
        members = np.flatnonzero(codes == c)
        assert rows[classes == c].tolist() == members[k_medoids(F[members], k)].tolist()


def test_table_needs_rows_and_columns():
    with pytest.raises(DataError, match=r"X has no rows.*leave out classes without any"):
        medoid_index(np.empty((0, 3)))
    for X in ([1.0, 2.0], [], np.zeros((2, 2, 2))):
        with pytest.raises(DataError, match=r"X has shape \(.*reshape\(-1, 1\)"):
            medoid_index(X)


@pytest.mark.parametrize(
    "choose",
    [
        medoid_index,
        lambda X: medoid_index(X, weights=[0, 1, 1, 1]),
        lambda X: k_medoids(X, 1),
        lambda X: k_medoids(X, 2),
        lambda X: k_medoids(X, 9),
    ],
)
def test_missing_values_are_refused_by_row_and_column(choose):
    with pytest.raises(DataError, match=r"nan in row 2, column 1.*fill or drop"):
        choose([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan], [3.0, 3.0]])


@pytest.mark.parametrize("weights", [[1, -1], [0, 0], [np.nan, 1], [np.inf, 1]])
def test_weights_are_counts(weights):
    with pytest.raises(DataError, match="finite and non-negative"):
        medoid_index([[0.0], [1.0]], weights=weights)


def test_weights_match_rows():
    with pytest.raises(DataError, match=r"weights has shape \(3,\). It must be \(2,\)"):
        medoid_index([[0.0], [1.0]], weights=[1, 1, 1])


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_counts_are_positive_integers(value):
    X, codes = gaussian(4, 2), np.zeros(4, dtype=int)
    with pytest.raises(ParameterError, match="'k' parameter must be an int >= 1"):
        k_medoids(X, value)
    with pytest.raises(ParameterError, match="'max_rows'"):
        class_medoids(X, codes, 1, max_rows=value)
    with pytest.raises(ParameterError, match="'n_medoids'"):
        class_medoids(X, codes, 1, n_medoids=value)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_k_medoids_know_no_scale(scale):
    X = gaussian(40, 2)
    assert k_medoids(X * scale, 3).tolist() == k_medoids(X, 3).tolist()
