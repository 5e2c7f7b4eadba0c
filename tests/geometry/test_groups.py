"""Correlation groups: who anchors, who belongs, and in what order (algorithm 1)."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.geometry.groups import build_groups, constant_columns, correlation_matrix, correlation_ratio


def correlated(d=7, n=80, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ (np.eye(d) + rng.normal(size=(d, d)) * 0.8)


@st.composite
def correlations(draw):
    """Symmetric matrices with many ties."""
    d = draw(st.integers(1, 6))
    R = np.eye(d)
    for i, j in itertools.combinations(range(d), 2):
        R[i, j] = R[j, i] = draw(st.sampled_from([-0.9, -0.5, 0.0, 0.5, 0.9]))
    return R


@given(correlations(), st.integers(1, 8))
@settings(max_examples=50, deadline=None)
def test_anchor_first_then_falling_correlation_then_column_order(R, size):
    groups = build_groups(R, group_size=size)
    assert groups.anchors == tuple(range(len(R)))
    for anchor, members in zip(groups.anchors, groups.members, strict=True):
        others = sorted((f for f in range(len(R)) if f != anchor), key=lambda f: (-abs(R[anchor, f]), f))
        assert members == (anchor, *others[: size - 1])


@given(correlations(), st.data())
@settings(max_examples=30, deadline=None)
def test_anchors_come_by_falling_association_then_column_order(R, data):
    d = len(R)
    strength = data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.31, 1.0]), min_size=d, max_size=d))
    groups = build_groups(R, group_size=2, association=np.array(strength))
    assert groups.anchors == tuple(sorted(range(d), key=lambda f: (-strength[f], f)))


def test_copies_of_a_column_tie_and_keep_their_order_whatever_rounding_says():
    X = correlated(d=3)
    copies = np.column_stack([X[:, 1], X[:, 0], X[:, 0] / 3, -7 * X[:, 0], X[:, 2], X[:, 0] * 1e9])
    codes = (X[:, 0] > 0).astype(int)
    R = correlation_matrix(copies)
    groups = build_groups(R, group_size=4, association=correlation_ratio(copies, codes))
    assert groups.anchors[:4] == (1, 2, 3, 5)
    assert dict(zip(groups.anchors, groups.members, strict=True))[3] == (3, 1, 2, 5)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 1000])
def test_group_counts_its_anchor_and_is_clamped_to_the_columns(size):
    """Facts 9 and 10."""
    groups = build_groups(correlation_matrix(correlated()), group_size=size)
    assert {len(members) for members in groups.members} == {min(size, 7)}
    assert all(len(set(members)) == len(members) for members in groups.members)


@pytest.mark.parametrize("n_anchors", [1, 3, 7, 99, None])
def test_fewer_anchors_are_the_first_ones_and_every_column_may_still_be_a_member(n_anchors):
    X = correlated()
    R, strength = correlation_matrix(X), correlation_ratio(X, (X[:, 4] > 0).astype(int))
    every = build_groups(R, group_size=7, association=strength)
    some = build_groups(R, group_size=7, association=strength, n_anchors=n_anchors)
    assert some.anchors == every.anchors[:n_anchors]
    assert some.members == every.members[:n_anchors]
    assert set(some.members[0]) == set(range(7))


def test_columns_that_are_not_usable_appear_nowhere():
    """Fact 10."""
    X = correlated()
    X[:, [2, 5]] = 3.0
    groups = build_groups(
        correlation_matrix(X),
        group_size=7,
        association=correlation_ratio(X, (X[:, 0] > 0).astype(int)),
        usable=~constant_columns(X),
    )
    assert set(groups.anchors) == {0, 1, 3, 4, 6}
    assert all(set(members) == {0, 1, 3, 4, 6} for members in groups.members)


@pytest.mark.parametrize("size", [0, -3])
def test_group_without_its_anchor_is_refused(size):
    with pytest.raises(ParameterError, match=rf"'group_size' parameter must be an int >= 1\. Got {size} instead"):
        build_groups(np.eye(3), group_size=size)
