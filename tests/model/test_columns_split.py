"""A term over several columns is shared among them: exactly, in any order, by what makes it differ from usual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from qmedoid.geometry.scaling import Scaling
from qmedoid.methods.evidence.design import fit_rank_scaling
from qmedoid.methods.evidence.part import DISTANCE, NEAR, SQUARE, EvidencePart, Group, Terms

CHANNELS = {
    SQUARE: lambda square, _: square,
    DISTANCE: lambda square, _: np.sqrt(square),
    NEAR: lambda square, length: np.exp(-np.sqrt(square) / length),
}
COLUMNS = st.lists(st.tuples(*[st.floats(-4, 4)] * 2, st.floats(0.1, 5)), min_size=1, max_size=6)


def split(channel, columns, length, center):
    """What the columns of a term of weight 1 add for a record, where (x, v, u) are its cell, the medoid's, and u."""
    x, v, u = np.array(columns, dtype=float).T
    g, one = len(x), np.ones(1)
    at = np.zeros(1, dtype=np.intp)
    terms = Terms(at, at, at + channel, length * one, center * one, np.ones((1, 1)))
    scaling, groups = Scaling(np.zeros(g), np.ones(g)), (Group(tuple(range(g)), u, False),)
    model = EvidencePart(
        fit_rank_scaling(np.vstack([v, v + 1.0])), scaling, np.vstack([v, v]), np.arange(2), np.arange(2), np.ones(g),
        groups, terms, np.zeros(1), 2,
    )  # fmt: skip
    found = model.contributions(x[None], 1, 0)
    scores = model.score(x[None]).scores[0]
    assert found.columns.sum() + found.terms["intercept"] == pytest.approx(scores[0] - scores[1], rel=1e-9, abs=1e-9)
    return found.columns, found.terms["intercept"]


def distance_where_usual(channel, length, center):
    """The squared distance at which the channel is at its center."""
    return {SQUARE: center, DISTANCE: center**2, NEAR: (length * np.log(center)) ** 2}[channel]


@settings(max_examples=30, deadline=None)
@given(COLUMNS, st.sampled_from(list(CHANNELS)), st.floats(0.2, 4.0), st.floats(0.01, 0.99))
def test_columns_add_up_to_the_channel_beyond_its_center_in_any_order(columns, channel, length, center):
    found, beyond = split(channel, columns, length, center)
    assert beyond == pytest.approx(0.0, abs=1e-12)
    square = sum(u * (x - v) ** 2 for x, v, u in columns)
    assert found.sum() == pytest.approx(CHANNELS[channel](square, length) - center, rel=1e-9, abs=1e-9)
    backwards, _ = split(channel, columns[::-1], length, center)
    np.testing.assert_allclose(backwards[::-1], found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_column_is_given_what_it_adds_on_the_straight_way_from_the_usual_record(channel):
    columns, length, center = np.array([[1.0, 0.5, 1.2], [0.2, 1.6, 1.0], [-1.0, 0.2, 0.5]]), 1.3, 0.4
    found, _ = split(channel, columns, length, center)
    x, v, u = columns.T
    squares, usual = u * (x - v) ** 2, u * (1.0 + v**2)
    start = distance_where_usual(channel, length, center) * usual / usual.sum()
    slope = {
        SQUARE: lambda _: 1.0,
        DISTANCE: lambda s: 0.5 / np.sqrt(s),
        NEAR: lambda s: -np.exp(-np.sqrt(s) / length) / (2 * length * np.sqrt(s)),
    }[channel]
    way = squares.sum() - start.sum()
    mean_slope = quad(lambda t: slope(start.sum() + t * way), 0, 1)[0]
    np.testing.assert_allclose(found, mean_slope * (squares - start), rtol=1e-8)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_column_that_differs_as_usual_is_given_nothing_and_near_the_reference_the_split_is_smooth(channel):
    length, center = 1.3, 0.4
    as_usual = np.sqrt(distance_where_usual(channel, length, center) / 2.0)
    found, _ = split(channel, [(as_usual, 0.0, 1.0), (3.0, 0.0, 1.0)], length, center)
    assert found[0] == pytest.approx(0.0, abs=1e-12)
    assert found[1] != 0
    exactly, beside = (
        split(channel, [(np.sqrt(2.0) * as_usual * far, 0.0, 1.0), (0.0, 0.0, 1.0)], length, center)[0]
        for far in (1.0, 1 + 1e-12)
    )
    np.testing.assert_allclose(beside, exactly, rtol=1e-9, atol=1e-12)
    assert exactly[0] == pytest.approx(-exactly[1])
    assert abs(exactly[0]) > 0.01


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_record_that_is_a_medoid_that_everybody_is_has_nothing_to_share(channel):
    found, _ = split(channel, [(1.0, 1.0, 1.0), (2.0, 2.0, 1.0)], 1.0, 1.0 if channel == NEAR else 0.0)
    np.testing.assert_array_equal(found, 0.0)


def test_a_center_that_no_nearness_has_is_left_to_the_intercept():
    found, beyond = split(NEAR, [(1.0, 0.0, 1.0), (np.sqrt(2.0), 0.0, 1.0)], 1.0, -3.0)
    assert beyond == pytest.approx(3.0)
    assert found.sum() == pytest.approx(np.exp(-np.sqrt(3.0)) + 3.0 - beyond)
