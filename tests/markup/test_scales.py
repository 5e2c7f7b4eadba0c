"""Scales and lines of charts."""

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qmedoid.markup.charts import Axis, area_path, axes, label, line_path, percent, picture, round_step, short, spanning

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_axis_puts_values_between_its_ends_in_order(low, high, value):
    assume(high - low > 1e-3)
    axis = Axis(low, high, 10.0, 110.0)
    assert axis.place(low) == pytest.approx(10.0)
    assert axis.place(high) == pytest.approx(110.0)
    assert 10.0 <= axis.place(value) <= 110.0
    assert axis.place(min(value, high)) <= axis.place(max(value, high))


def test_axis_on_a_log_scale_has_equal_steps_for_equal_factors():
    axis = Axis(1e-4, 1.0, 0.0, 400.0, is_log=True)
    assert [axis.place(10.0**power) for power in range(-4, 1)] == pytest.approx([0, 100, 200, 300, 400])
    assert axis.ticks() == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1.0])
    assert Axis(1e-9, 1.0, 0.0, 1.0, is_log=True).ticks(5) == pytest.approx([1e-9, 1e-7, 1e-5, 1e-3, 1e-1])


@given(st.floats(-100, 100), st.floats(1e-3, 1e6), st.integers(2, 10))
def test_ticks_are_round_even_and_within_the_axis(start, width, most):
    low = start * width
    axis = Axis(low, low + width, 0.0, 1.0)
    ticks = axis.ticks(most)
    assert len(ticks) <= most + 1
    assert len({said for _, said in axis.marks(most)}) == len(ticks)
    slack = 1e-6 * width
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in ticks)
    step = round_step(width / most)
    assert all(math.isclose(b - a, step, rel_tol=1e-6, abs_tol=1e-9) for a, b in itertools.pairwise(ticks))


@pytest.mark.parametrize(("width", "step"), [(1.0, 1.0), (1.2, 2.0), (0.03, 0.05), (6.0, 10.0), (0.0, 1.0)])
def test_round_step_is_one_two_or_five_times_a_power_of_ten(width, step):
    assert round_step(width) == pytest.approx(step)


@given(st.lists(NUMBERS, max_size=5))
def test_spanning_has_a_place_for_every_value(values):
    axis = spanning([*values, math.nan], 0.0, 1.0, zero=True)
    assert axis.low < axis.high
    assert all(axis.low <= value <= axis.high for value in [*values, 0.0])


def test_numbers_are_short_and_have_true_minus_signs():
    assert [short(one) for one in (1.0, -0.001, 2.345, 10.5)] == ["1", "0", "2.35", "10.5"]
    assert [label(one) for one in (-0.25, 12345.678, 1e9, 0.0)] == ["−0.25", "12,346", "1e+09", "0"]
    assert percent(0.1234567) == "12.35 %"


def test_marks_have_the_digits_that_tell_them_apart():
    assert [said for _, said in Axis(2020.1, 2020.5, 0.0, 1.0).marks(4)] == [
        "2020.1", "2020.2", "2020.3", "2020.4", "2020.5"
    ]  # fmt: skip
    assert [said for _, said in Axis(-0.5, 1.0, 0.0, 1.0).marks(3)] == ["−0.5", "0.0", "0.5", "1.0"]
    assert [said for _, said in Axis(0.0, 4e8, 0.0, 1.0).marks(4)] == ["0", "1e+08", "2e+08", "3e+08", "4e+08"]


def test_lines_go_through_their_points():
    assert line_path([(1, 2), (3, 4.5)]) == "M1 2 L3 4.5"
    assert area_path([(0, 1), (2, 1)], [(0, 0), (2, 0)]) == "M0 1 L2 1 L2 0 L0 0Z"
    assert line_path([]) == ""


def test_picture_says_in_words_what_it_shows():
    axis = Axis(0.0, 1.0, 0.0, 100.0)
    made = picture(100, 50, 'a "b"', axes(axis, axis, "x", "<y>"))
    assert 'role="img" aria-label="a &#34;b&#34;"' in made
    assert "&lt;y&gt;" in made
    assert axis.text == "0.0 1.0 0 100 0"
