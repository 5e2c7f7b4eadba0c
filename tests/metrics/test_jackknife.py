"""Errors by leaving out: those of means are the usual ones, those of macro-F1 are those of rows listed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.classification import confusion_matrix, evaluate
from qmedoid.metrics.intervals import jackknife_error, macro_f1_error

NUMBERS = st.lists(st.floats(-10, 10), min_size=2, max_size=30)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=40)


@given(NUMBERS)
@settings(max_examples=50, deadline=None)
def test_of_a_mean_it_is_the_usual_standard_error(numbers):
    values = np.array(numbers)
    without = [np.delete(values, place).mean() for place in range(len(values))]
    expected = values.std(ddof=1) / np.sqrt(len(values))
    assert jackknife_error(without) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.floats(-10, 10), st.integers(1, 5)), min_size=1, max_size=10))
@settings(max_examples=50, deadline=None)
def test_counts_stand_for_so_many_units(pairs):
    values, counts = np.array(pairs).T
    expected = jackknife_error(np.repeat(values, counts.astype(int)))
    assert jackknife_error(values, counts) == pytest.approx(expected, abs=1e-9)


@given(ROWS)
@settings(max_examples=50, deadline=None)
def test_over_rows_it_is_that_of_every_row_left_out_in_turn(rows):
    true, said = np.array(rows, dtype=np.intp).T
    without = [
        evaluate(np.delete(true, place), np.delete(said, place), 3).macro_f1 for place in range(len(true))
    ]  # fmt: skip
    assert macro_f1_error([confusion_matrix(true, said, 3)]) == pytest.approx(jackknife_error(without), abs=1e-9)


@given(st.lists(ROWS, min_size=2, max_size=6))
@settings(max_examples=50, deadline=None)
def test_over_folds_it_is_that_of_every_fold_left_out_in_turn(folds):
    parts = [np.array(fold, dtype=np.intp) for fold in folds]
    without = []
    for place in range(len(parts)):
        others = np.concatenate(parts[:place] + parts[place + 1 :])
        without.append(evaluate(*others.T, 3).macro_f1)
    confusions = [confusion_matrix(*part.T, 3) for part in parts]
    assert macro_f1_error(confusions) == pytest.approx(jackknife_error(without), abs=1e-9)
