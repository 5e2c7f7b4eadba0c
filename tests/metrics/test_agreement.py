"""Agreement of groups, decisions and medoids: laws of similarity, and the definitions spelt out."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.agreement import (
    best_matches,
    flip_rates,
    group_agreement,
    mean_and_error,
    pair_frequencies,
    rates_by_margin,
    typical_distance,
)

GROUP = st.frozensets(st.integers(0, 7), min_size=1, max_size=5)
GROUPS = st.frozensets(GROUP, max_size=6)


def plain_match(group, others):
    return max((len(group & other) / len(group | other) for other in others), default=0.0)


@given(GROUPS, GROUPS)
@settings(max_examples=40, deadline=None)
def test_best_matches_are_the_largest_jaccard_indices(groups, others):
    expected = [plain_match(group, others) for group in groups]
    np.testing.assert_allclose(best_matches(groups, others), expected, atol=1e-12)


@given(GROUPS, GROUPS)
@settings(max_examples=40, deadline=None)
def test_agreement_is_symmetric_within_0_and_1_and_1_for_equal_sets_alone(groups, others):
    value = group_agreement(groups, others)
    assert value == pytest.approx(group_agreement(others, groups), abs=1e-12)
    assert 0 <= value <= 1 + 1e-12
    assert (value > 1 - 1e-9) == (groups == others)
    if groups and others and not frozenset().union(*groups) & frozenset().union(*others):
        assert value == 0


@given(st.lists(GROUPS, min_size=1, max_size=5), st.permutations(range(8)))
@settings(max_examples=50, deadline=None)
def test_numbers_of_columns_do_not_count(group_sets, new):
    renamed = [frozenset(frozenset(new[column] for column in group) for group in groups) for groups in group_sets]
    assert group_agreement(renamed[0], renamed[-1]) == pytest.approx(group_agreement(group_sets[0], group_sets[-1]))
    before, after = pair_frequencies(group_sets), pair_frequencies(renamed)
    assert after == {tuple(sorted((new[a], new[b]))): share for (a, b), share in before.items()}


@given(st.lists(GROUPS, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_pairs_are_counted_once_in_every_set(group_sets):
    found = pair_frequencies(group_sets)
    for pair in itertools.combinations(range(8), 2):
        share = np.mean([any(set(pair) <= group for group in groups) for groups in group_sets])
        assert found.get(pair, 0.0) == share
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_flip_rates_are_shares_of_votes_and_unknown_without_any():
    votes = np.array([[4, 0, 0], [1, 3, 0], [0, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(flip_rates(votes, np.array([0, 0, 1, 2])), [0, 0.75, np.nan, 0.5])


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]), st.sampled_from([0.0, 0.5, np.nan])), max_size=40)
)
@settings(max_examples=40, deadline=None)
def test_parts_by_margin_hold_every_known_row_once_in_rising_order(rows):
    margins, rates = np.array(rows).reshape(-1, 2).T
    parts = rates_by_margin(margins, rates)
    known = np.isfinite(rates)
    assert sum(part["n_rows"] for part in parts) == known.sum()
    assert all(before["high"] < after["low"] for before, after in itertools.pairwise(parts))
    for part in parts:
        own = known & (margins >= part["low"]) & (margins <= part["high"])
        assert part["n_rows"] == own.sum()
        assert part["flip_rate"] == pytest.approx(rates[own].mean())


def test_margins_that_are_all_different_are_parted_evenly():
    parts = rates_by_margin(np.arange(100.0), np.repeat([0.5, 0.0], 50))
    assert [part["n_rows"] for part in parts] == [20] * 5
    assert [part["flip_rate"] for part in parts] == [0.5, 0.5, 0.25, 0, 0]


def test_mean_and_error_are_the_usual_ones():
    assert mean_and_error([0.1, 0.3, 0.2]) == pytest.approx((0.2, 0.1 / np.sqrt(3)))
    assert mean_and_error([0.4]) == (0.4, None)


def test_distances():
    rng = np.random.default_rng(0)
    assert typical_distance(np.array([[0.0], [2.0]]), rng) == 2  # a row is never its own partner
    assert typical_distance(np.zeros((1, 2)), rng) == 0
    large = rng.normal(size=(500, 3))
    every = np.sqrt(((large[:, None] - large[None]) ** 2).sum(-1))[np.triu_indices(500, 1)]
    assert typical_distance(large, rng) == pytest.approx(np.median(every), rel=0.05)
    assert typical_distance(5 * large, np.random.default_rng(1)) == pytest.approx(
        5 * typical_distance(large, np.random.default_rng(1))
    )
