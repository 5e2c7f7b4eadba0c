"""The sweep of α: every point is asked, and the middle of the widest plateau is taken (algorithm 10)."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.optimize.descent import ALPHA_GRID, alpha_sweep


def iter_of(scores):
    """An objective that gives these scores in turn."""
    left = iter(scores)
    return lambda _: next(left)


def plain_center(scores):
    """All runs of best scores, listed; the longest, the last of those, its (upper) middle."""
    top, runs = max(scores), []
    for i, score in enumerate(scores):
        if score != top:
            continue
        if i and scores[i - 1] == top:
            runs[-1].append(i)
        else:
            runs.append([i])
    length = max(map(len, runs))
    run = [run for run in runs if len(run) == length][-1]
    return run[len(run) // 2]


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=25))
@settings(max_examples=40, deadline=None)
def test_center_of_the_widest_plateau(scores):
    assert alpha_sweep(iter_of(scores), range(len(scores))).best == plain_center(scores)


def test_every_point_of_the_grid_is_asked_once_in_order():
    asked = []

    def objective(alpha):
        asked.append(alpha)
        return -((alpha - 0.3) ** 2)

    sweep = alpha_sweep(objective)
    assert asked == list(ALPHA_GRID)
    assert all(type(alpha) is float for alpha in asked)
    assert sweep.value == 0.3
    assert sweep.score == 0
    np.testing.assert_array_equal(sweep.grid, ALPHA_GRID)
    np.testing.assert_array_equal(sweep.scores, [-((alpha - 0.3) ** 2) for alpha in ALPHA_GRID])
