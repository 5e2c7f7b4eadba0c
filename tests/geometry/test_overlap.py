"""Laws of the compact SWAP test in closed form, its shots, and the two-register formulas. No Qiskit here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.overlap import ANGLE_KINDS, compact_swap_test, from_overlap, row_norms, sample_overlap

# Multiples of 1/64: differences of such numbers are exact, so a law is not blurred by the inputs' own rounding.
numbers = st.integers(-(10**5), 10**5).map(lambda k: k / 64)
scales = st.sampled_from([1.0, 1e-150, 1e-6, 3.7, 1e9, 1e150])
# Rounding of sums of up to 6 squares and of one square root: a few units of 2**-52, with room to spare.
ROUNDING = 1e-14


@st.composite
def tables(draw, *, count=2, rows=4):
    """Some tables of vectors with the same number of columns, zero rows among them."""
    d = draw(st.integers(1, 6))
    return tuple(draw(arrays(np.float64, (draw(st.integers(1, rows)), d), elements=numbers)) for _ in range(count))


def root_z(X, Y):
    return np.hypot(row_norms(X)[:, None], row_norms(Y)[None, :])


@given(tables(), scales)
def test_distance_is_the_norm_of_the_difference(XY, scale):
    X, Y = XY
    want = np.linalg.norm(X[:, None, :] - Y[None, :, :], axis=2) * scale
    np.testing.assert_allclose(compact_swap_test(X * scale, Y * scale).distance, want, rtol=0, atol=1e-13 * want.max())
    np.testing.assert_allclose(compact_swap_test(X, Y).distance, want / scale, rtol=1e-13)


@given(tables())
def test_overlap_is_the_squared_distance_over_2z_and_stays_within_0_and_1(XY):
    X, Y = XY
    result = compact_swap_test(X, Y)
    assert result.overlap.min() >= 0
    assert result.overlap.max() <= 1
    np.testing.assert_allclose(result.overlap * 2 * root_z(X, Y) ** 2, result.distance**2, rtol=1e-13)


@given(tables())
def test_cosine_of_the_true_angle_is_the_normalized_inner_product(XY):
    X, Y = XY
    both = (row_norms(X) > 0)[:, None] & (row_norms(Y) > 0)[None, :]
    with np.errstate(invalid="ignore"):
        want = X @ Y.T / (row_norms(X)[:, None] * row_norms(Y)[None, :])
    np.testing.assert_allclose(np.cos(compact_swap_test(X, Y).angle)[both], want[both], rtol=0, atol=ROUNDING)


@given(tables(), st.integers(0, 2**32 - 1), st.sampled_from(ANGLE_KINDS))
def test_order_of_rows_and_columns_does_not_matter(XY, seed, angle):
    X, Y = XY
    rng = np.random.default_rng(seed)
    rows, others, columns = (rng.permutation(n) for n in (len(X), len(Y), X.shape[1]))
    plain = compact_swap_test(X, Y, angle=angle)
    moved = compact_swap_test(X[rows][:, columns], Y[others][:, columns], angle=angle)
    if angle == "printed":
        # arccos √s is steep near s = 1, where a rounding of s reaches the angle as its square root.
        plain, moved = (test._replace(angle=np.cos(test.angle)) for test in (plain, moved))
    for got, want in zip(moved, plain, strict=True):
        np.testing.assert_allclose(got, want[np.ix_(rows, others)], rtol=1e-13, atol=1e-13)


@given(tables(count=1), st.sampled_from(ANGLE_KINDS))
def test_vector_does_not_differ_from_itself(table, angle):
    (X,) = table
    result = compact_swap_test(X, X, angle=angle)
    zero = ~X.any(axis=1)
    assert np.all(np.diag(result.overlap) == 0)
    assert np.all(np.diag(result.distance) == 0)
    upright = np.where(zero, 0.0, np.pi / 2) if angle == "printed" else 0.0
    np.testing.assert_array_equal(np.diag(result.angle), upright * np.ones(len(X)))


@given(tables())
def test_printed_angle_falls_as_the_overlap_grows(XY):
    X, Y = XY
    X, Y = X[X.any(axis=1)], Y[Y.any(axis=1)]
    result = compact_swap_test(X, Y, angle="printed")
    order = np.argsort(result.overlap, axis=None)
    assert np.all(np.diff(result.angle.ravel()[order]) <= 0)
    np.testing.assert_allclose(np.cos(result.angle) ** 2, result.overlap, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("angle", "one_zero"), [("true", np.pi / 2), ("printed", 0.0)])
@pytest.mark.parametrize("shots", [None, 50])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-150, 1.0, 1e150, 1e300])
def test_zero_vectors(angle, one_zero, shots, scale):
    X = np.array([[0.0, 0.0], [3.0, -4.0]]) * scale
    result = compact_swap_test(X, [[0.0, -0.0]], angle=angle, shots=shots, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(result.overlap, [[0.0], [0.5]])
    np.testing.assert_allclose(result.distance, [[0.0], [5.0 * scale]], rtol=1e-3 if scale < 1e-300 else 1e-15)
    np.testing.assert_array_equal(result.angle, [[0.0], [one_zero]])


def test_angle_keeps_its_digits_for_nearly_parallel_vectors():
    tilt = np.array([1e-12, 1e-9, 1e-6])
    Y = np.column_stack([np.cos(tilt), np.sin(tilt)])
    np.testing.assert_allclose(compact_swap_test([1.0, 0.0], Y).angle[0], tilt, rtol=1e-12)
    np.testing.assert_allclose(np.pi - compact_swap_test([-1.0, 0.0], Y).angle[0], tilt, rtol=0, atol=1e-15)


@given(tables(rows=2))
def test_from_overlap_inverts_the_overlap(XY):
    X, Y = XY
    X, Y = X[X.any(axis=1)], Y[Y.any(axis=1)]
    exact = compact_swap_test(X, Y)
    again = from_overlap(exact.overlap, row_norms(X), row_norms(Y))
    np.testing.assert_allclose(again.distance, exact.distance, rtol=1e-13)
    # An error of s, here a rounding, reaches the cosine multiplied by Z/(‖x‖·‖y‖).
    amplified = root_z(X, Y) ** 2 / (row_norms(X)[:, None] * row_norms(Y)[None, :])
    assert np.all(np.abs(np.cos(again.angle) - np.cos(exact.angle)) <= 1e-15 * amplified + 1e-15)


def test_from_overlap_knows_a_right_angle_however_unequal_the_norms():
    overlap = np.array([[0.5, 0.4, 0.6]])
    with np.errstate(all="raise"):
        angle = from_overlap(overlap, np.array([1e-160]), np.array([1e150, 1e150, 1e150])).angle
    np.testing.assert_array_equal(angle, [[np.pi / 2, 0.0, np.pi]])


def probability_of_zero(state, swaps):
    """H, controlled swaps and H on the ancilla, as matrices on a state whose last factor is the ancilla."""
    size = 2 * len(state)
    hadamard = np.kron(np.eye(len(state)), np.array([[1, 1], [1, -1]]) / np.sqrt(2))
    controlled = np.zeros((size, size))
    for index in range(size):
        target = index
        for a, b in swaps:
            if index & 1 and (index >> a & 1) != (index >> b & 1):
                target ^= 1 << a | 1 << b
        controlled[target, index] = 1.0
    final = hadamard @ controlled @ hadamard @ np.kron(state, [1.0, 0.0])
    return np.sum(final[0::2] ** 2)


def padded(vector):
    out = np.zeros(2 ** max(1, (len(vector) - 1).bit_length()))
    out[: len(vector)] = vector
    return out


@pytest.mark.parametrize("d", range(1, 9))
def test_compact_overlap_is_that_of_the_dense_matrices(d):
    rng = np.random.default_rng(d)
    for x, y in rng.normal(size=(4, 2, d)) * 10.0 ** rng.uniform(-3, 3, size=(4, 2, 1)):
        nx, ny = np.linalg.norm(x), np.linalg.norm(y)
        phi = np.array([nx, -ny]) / np.hypot(nx, ny)
        psi = padded(np.column_stack([x / nx, y / ny]).ravel() / np.sqrt(2))
        p0 = probability_of_zero(np.kron(psi, phi), [(1, 2)])
        assert compact_swap_test(x, y).overlap.item() == pytest.approx(2 * p0 - 1, rel=0, abs=1e-14)


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_draws_are_binomial(s):
    shots, draws = 20, 20_000
    drawn = sample_overlap(np.full(draws, s), shots, np.random.default_rng(11))
    zeros = np.arange(shots + 1)
    chances = stats.binom.pmf(zeros, shots, (1 + s) / 2)
    values, counts = np.unique(2 * zeros / shots - 1, return_inverse=True)
    expected = np.bincount(counts, chances) * draws
    observed = np.array([np.sum(drawn == value) for value in values])
    assert observed.sum() == draws
    common = expected > 5
    assert np.sum(observed[~common]) <= expected[~common].sum() + 6 * np.sqrt(expected[~common].sum()) + 1
    if common.sum() > 1:
        statistic = np.sum((observed[common] - expected[common]) ** 2 / expected[common])
        assert statistic < stats.chi2.ppf(1 - 1e-5, common.sum())
    else:
        assert observed[common] == draws


def test_distance_and_angle_follow_from_the_drawn_overlap():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    for angle in ANGLE_KINDS:
        drawn = compact_swap_test(X, Y, angle=angle, shots=200, rng=np.random.default_rng(1))
        np.testing.assert_allclose(drawn.distance, root_z(X, Y) * np.sqrt(2 * drawn.overlap), rtol=1e-14)
        for got, want in zip(drawn, from_overlap(drawn.overlap, row_norms(X), row_norms(Y), angle=angle), strict=True):
            np.testing.assert_array_equal(got, want)
        assert not np.array_equal(drawn.overlap, compact_swap_test(X, Y).overlap)
        assert np.all(np.abs(drawn.overlap * 200 / 2 - np.round(drawn.overlap * 200 / 2)) < 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: compact_swap_test(np.ones((4, 3)), np.ones((4, 2))),
            "X has 3 columns and Y has 2: both need",
        ),
        (lambda: compact_swap_test([1.0, 2.0], [[1.0, np.nan]]), "Y holds nan at position 0, 1: pass finite numbers"),
        (lambda: compact_swap_test([1.0], [2.0], shots=1.5), r"must be None or an int >= 1\. Got 1\.5 instead"),
        (lambda: compact_swap_test([1.0], [2.0], shots=10), r"pass rng=numpy.random.default_rng\(seed\)"),
        (lambda: compact_swap_test([1.0], [2.0], angle="cosine"), "must be 'true' or 'printed'. Got 'cosine' instead"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises((DataError, ParameterError), match=message):
        call()
