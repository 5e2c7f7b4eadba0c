"""Errors of macro-F1 by leaving out: those of rows listed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.classification import confusion_matrix, evaluate
from qmedoid.metrics.intervals import macro_f1_error

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=40)


@given(ROWS)
@settings(max_examples=50, deadline=None)
def test_over_rows_it_is_that_of_every_row_left_out_in_turn(rows):
    true, said = np.array(rows, dtype=np.intp).T
    without = [
        evaluate(np.delete(true, place), np.delete(said, place), 3).macro_f1 for place in range(len(true))
    ]  # fmt: skip
    expected = np.sqrt((len(true) - 1) * np.var(without))
    assert macro_f1_error(confusion_matrix(true, said, 3)) == pytest.approx(expected, abs=1e-9)


def test_a_single_row_has_no_error():
    assert macro_f1_error(np.array([[1, 0], [0, 0]])) == 0


def test_error_over_rows_shrinks_with_the_root_of_their_number():
    one, many = (macro_f1_error(np.array([[8, 2], [1, 9]]) * factor) for factor in (1, 100))
    assert many == pytest.approx(one / 10, rel=0.05)
