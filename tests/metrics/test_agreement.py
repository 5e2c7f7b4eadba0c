"""Agreement of groups and decisions: laws of similarity, and the definitions spelt out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.classification import (
    flip_rates,
    group_agreement,
    mean_and_error,
)

GROUP = st.frozensets(st.integers(0, 7), min_size=1, max_size=5)
GROUPS = st.frozensets(GROUP, max_size=6)


def matches(groups, others):
    return [max((len(group & other) / len(group | other) for other in others), default=0.0) for group in groups]


@given(GROUPS, GROUPS)
@settings(max_examples=60, deadline=None)
def test_agreement_is_the_mean_of_the_best_matches_and_1_for_equal_sets_alone(groups, others):
    value = group_agreement(groups, others)
    found = matches(groups, others) + matches(others, groups)
    assert value == pytest.approx(np.mean(found) if found else 1.0, abs=1e-12)
    assert (value > 1 - 1e-9) == (groups == others)


def test_flip_rates_are_shares_of_votes_and_unknown_without_any():
    votes = np.array([[4, 0, 0], [1, 3, 0], [0, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(flip_rates(votes, np.array([0, 0, 1, 2])), [0, 0.75, np.nan, 0.5])


def test_mean_and_error_are_the_usual_ones():
    assert mean_and_error([0.1, 0.3, 0.2]) == pytest.approx((0.2, 0.1 / np.sqrt(3)))
    assert mean_and_error([0.4]) == (0.4, None)
