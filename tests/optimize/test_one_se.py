"""The one-standard-error rule: simple before good, but never beyond one standard error of the best."""

from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.optimize.descent import one_se_order

LEVELS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
CANDIDATES = st.lists(st.tuples(LEVELS, st.integers(0, 4), LEVELS), min_size=1, max_size=12)


def order(candidates, error):
    scores = [score for score, _, _ in candidates]
    return scores, one_se_order(scores, error, [(columns, distance) for _, columns, distance in candidates])


@given(CANDIDATES, LEVELS)
@settings(max_examples=40, deadline=None)
def test_first_is_within_one_error_and_none_within_is_simpler(candidates, error):
    scores, places = order(candidates, error)
    first = places[0]
    assert scores[first] >= max(scores) - error
    for place, (score, *simplicity) in enumerate(candidates):
        if score >= max(scores) - error and place != first:
            assert list(candidates[first][1:]) <= simplicity


@given(CANDIDATES, LEVELS)
@settings(max_examples=40, deadline=None)
def test_every_candidate_stands_once_and_those_beyond_the_error_come_last_by_their_score(candidates, error):
    scores, places = order(candidates, error)
    assert sorted(places) == list(range(len(candidates)))
    within = [scores[place] >= max(scores) - error for place in places]
    assert within == sorted(within, reverse=True)
    beyond = [scores[place] for place, near in zip(places, within, strict=True) if not near]
    assert beyond == sorted(beyond, reverse=True)


def test_of_equally_simple_ones_the_better_and_then_the_first():
    assert one_se_order([0.8, 0.85, 0.85, 0.9], 0.2, [(1,), (1,), (1,), (2,)]) == [1, 2, 0, 3]
