"""A term over several columns is shared among them: exactly, in any order, by what makes it differ from usual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from qmedoid.methods.evidence.contributions import split_channel
from qmedoid.methods.evidence.part import DISTANCE, NEAR, SQUARE

CHANNELS = {
    SQUARE: lambda square, _: square,
    DISTANCE: lambda square, _: np.sqrt(square),
    NEAR: lambda square, length: np.exp(-np.sqrt(square) / length),
}
SQUARES = st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 20)), min_size=1, max_size=6)


def split(channel, squares, usual, length, center):
    arrays = (np.array([values], dtype=float) for values in (squares, usual))
    columns, reference = split_channel(*arrays, channel, np.array([length]), np.array([center]))
    return columns[0], float(reference[0])


@settings(max_examples=30, deadline=None)
@given(SQUARES, st.sampled_from(list(CHANNELS)), st.floats(0.2, 4.0), st.floats(0.01, 0.99))
def test_columns_add_up_to_the_channel_beyond_its_center_in_any_order(pairs, channel, length, center):
    squares, usual = map(list, zip(*pairs, strict=True))
    columns, reference = split(channel, squares, usual, length, center)
    assert reference == center
    beyond = CHANNELS[channel](sum(squares), length) - center
    assert columns.sum() == pytest.approx(beyond, rel=1e-9, abs=1e-12)
    backwards, _ = split(channel, squares[::-1], usual[::-1], length, center)
    np.testing.assert_allclose(backwards[::-1], columns, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_column_is_given_what_it_adds_on_the_straight_way_from_the_usual_record(channel):
    squares, usual, length, center = np.array([0.3, 2.0, 0.7]), np.array([1.0, 0.5, 4.0]), 1.3, 0.4
    columns, _ = split(channel, squares, usual, length, center)
    total = {SQUARE: center, DISTANCE: center**2, NEAR: (length * np.log(center)) ** 2}[channel]
    start = total * usual / usual.sum()
    slope = {
        SQUARE: lambda _: 1.0,
        DISTANCE: lambda s: 0.5 / np.sqrt(s),
        NEAR: lambda s: -np.exp(-np.sqrt(s) / length) / (2 * length * np.sqrt(s)),
    }[channel]
    way = squares.sum() - start.sum()
    mean_slope = quad(lambda t: slope(start.sum() + t * way), 0, 1)[0]
    np.testing.assert_allclose(columns, mean_slope * (squares - start), rtol=1e-8)


@pytest.mark.parametrize("channel", CHANNELS)
def test_columns_that_differ_as_usual_or_never_differ_are_given_nothing(channel):
    length, center = 1.3, 0.4
    total = {SQUARE: center, DISTANCE: center**2, NEAR: (length * np.log(center)) ** 2}[channel]
    usual = np.array([1.0, 3.0, 0.0])
    as_usual = total / 4.0
    columns, _ = split(channel, [as_usual, 5.0, 0.0], usual, length, center)
    assert columns[0] == pytest.approx(0.0, abs=1e-12)
    assert columns[1] != 0
    assert columns[2] == 0


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_record_that_is_a_medoid_that_everybody_is_has_nothing_to_share(channel):
    center = 1.0 if channel == NEAR else 0.0
    columns, _ = split(channel, [0.0, 0.0], [0.0, 0.0], 1.0, center)
    np.testing.assert_array_equal(columns, 0.0)


def test_near_the_reference_the_split_is_smooth():
    usual, length, center = np.array([1.0, 1.0]), 1.0, 0.5
    at = np.log(center) ** 2
    exactly, _ = split(NEAR, [at, 0.0], usual, length, center)
    beside, _ = split(NEAR, [at * (1 + 1e-12), 0.0], usual, length, center)
    np.testing.assert_allclose(beside, exactly, rtol=1e-9, atol=1e-12)
    assert exactly[0] == pytest.approx(-exactly[1])
    assert abs(exactly[0]) > 0.01


def test_a_center_that_no_nearness_has_is_left_to_others():
    columns, reference = split(NEAR, [1.0, 2.0], [1.0, 1.0], 1.0, -3.0)
    assert reference > 0
    assert columns.sum() == pytest.approx(np.exp(-np.sqrt(3.0)) - reference)
