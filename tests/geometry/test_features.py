"""Anchor features: each kind equals its formula, and obeys the laws that tell the kinds apart (algorithms 2, 3, 2b)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import ParameterError
from qmedoid.geometry.groups import FEATURE_KINDS, anchor_feature, correlation_matrix, feature_matrix, subset_weights

EACH_KIND = pytest.mark.parametrize("kind", FEATURE_KINDS)
CONFIGURATION = ((0, 1, 2), (1,), (3, 0), (2, 4, 0, 1))

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5)) @ (np.eye(5) + rng.normal(size=(5, 5)) * 0.6)
R = correlation_matrix(X)


def plain_feature(row, subset, kind):
    """One feature of one record, written as the paper has it."""
    rho = [R[subset[0], f] for f in subset]
    weighted = math.sqrt(sum((r * row[f]) ** 2 for r, f in zip(rho, subset, strict=True)))
    unweighted = math.sqrt(sum(row[f] ** 2 for f in subset))
    total = sum(r * row[f] for r, f in zip(rho, subset, strict=True))
    return {
        "weighted": weighted,
        "unweighted": unweighted,
        "multiplicative": math.sqrt(sum(r**2 for r in rho)) * unweighted,
        "signed": math.copysign(weighted, total),
    }[kind]


@EACH_KIND
def test_each_kind_equals_its_formula(kind):
    expected = [[plain_feature(row, subset, kind) for subset in CONFIGURATION] for row in X]
    np.testing.assert_allclose(feature_matrix(X, CONFIGURATION, R, kind), expected, rtol=1e-13)


@EACH_KIND
def test_only_the_signed_kind_tells_a_record_from_its_mirror(kind):
    """Fact 5."""
    u, mirrored = (feature_matrix(sign * X, CONFIGURATION, R, kind) for sign in (1, -1))
    np.testing.assert_array_equal(mirrored, -u if kind == "signed" else u)
    assert (u < 0).any() == (kind == "signed")


@EACH_KIND
@given(c=st.floats(-50, 50).filter(lambda c: abs(c) > 1e-3))
@settings(max_examples=20, deadline=None)
def test_scaling_a_record_scales_its_features(kind, c):
    u = feature_matrix(X, CONFIGURATION, R, kind)
    factor = c if kind == "signed" else abs(c)
    np.testing.assert_allclose(feature_matrix(c * X, CONFIGURATION, R, kind), factor * u, rtol=1e-12)


@EACH_KIND
@given(
    arrays(float, (2, 5), elements=st.floats(-10, 10)),
    st.permutations([1, 2, 3, 4]),
    st.integers(0, 4),
)
@settings(max_examples=40, deadline=None)
def test_order_of_a_subset_behind_its_anchor_does_not_matter(kind, rows, others, size):
    subset, shuffled = (0, *sorted(others[:size])), (0, *others[:size])
    a, b = (feature_matrix(rows, (s,), R, kind) for s in (subset, shuffled))
    # A weighted sum that cancels to rounding may take either sign.
    np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-12)
    totals = rows[:, list(subset)] @ R[0, list(subset)]
    clear = np.abs(totals) > 1e-9
    np.testing.assert_array_equal(np.sign(a[clear]), np.sign(b[clear]))


@EACH_KIND
def test_rows_do_not_know_of_each_other(kind):
    u = feature_matrix(X, CONFIGURATION, R, kind)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(feature_matrix(X[order], CONFIGURATION, R, kind), u[order])
    np.testing.assert_array_equal(feature_matrix(X[:1], CONFIGURATION, R, kind), u[:1])


@pytest.mark.parametrize("kind", ["weighted", "unweighted", "multiplicative"])
def test_larger_subset_never_makes_a_norm_smaller(kind):
    smaller, larger = (feature_matrix(X, (s,), R, kind) for s in ((0, 2), (0, 2, 4)))
    assert (larger >= smaller).all()


def test_multiplicative_feature_is_strength_times_norm():
    """g_a · h_a(x), where g_a does not depend on the record."""
    subset = (2, 4, 0)
    strength = np.sqrt((R[2, list(subset)] ** 2).sum())
    h = feature_matrix(X, (subset,), R, "unweighted")
    np.testing.assert_allclose(feature_matrix(X, (subset,), R, "multiplicative"), strength * h, rtol=1e-14)
    assert strength >= 1  # the anchor correlates 1 with itself


def test_anchor_alone_is_its_column():
    np.testing.assert_allclose(feature_matrix(X, ((3,),), R, "signed")[:, 0], X[:, 3], rtol=1e-15)
    for kind in ("weighted", "unweighted", "multiplicative"):
        np.testing.assert_allclose(feature_matrix(X, ((3,),), R, kind)[:, 0], np.abs(X[:, 3]), rtol=1e-15)


def test_sum_of_zero_counts_as_positive():
    rows = np.array([[1.0, -1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(
        anchor_feature(rows, (0, 1), np.ones(2), signed=True), [math.sqrt(2), 0.0]
    )  # fmt: skip


def test_weights_belong_to_the_first_column_of_the_subset():
    np.testing.assert_array_equal(subset_weights(R, (3, 1), "weighted"), [1.0, R[3, 1]])
    np.testing.assert_array_equal(subset_weights(R, (1, 3), "signed"), [1.0, R[1, 3]])
    np.testing.assert_array_equal(subset_weights(R, (1, 3), "unweighted"), [1.0, 1.0])


def test_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"one of \['signed', .*'multiplicative'\]\. Got 'norm' instead"):
        subset_weights(R, (0,), "norm")  # type: ignore[arg-type]
