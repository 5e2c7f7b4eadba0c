"""Anchor features: each kind equals its formula, and obeys the laws that tell the kinds apart (algorithms 2, 3, 2b)."""

import math

import numpy as np
import pytest

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


def test_sum_of_zero_counts_as_positive():
    rows = np.array([[1.0, -1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(
        anchor_feature(rows, (0, 1), np.ones(2), signed=True), [math.sqrt(2), 0.0]
    )  # fmt: skip


def test_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"one of \['signed', .*'multiplicative'\]\. Got 'norm' instead"):
        subset_weights(R, (0,), "norm")  # type: ignore[arg-type]
