"""The worth of columns: leave-one-out errors in closed form, against models that are fitted without each row."""

import numpy as np
import pytest

from qmedoid.arrays import Array
from qmedoid.geometry.groups import column_worth, most_worth


def made(n_rows: int, n_columns: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_rows, n_columns))
    return values, (values[:, :1] + rng.standard_normal((n_rows, 1)) > 0) * 2.0 - 1.0


def squared_errors(column: Array, target: Array, degree: int) -> float:
    """By polynomials that were fitted to the other rows."""
    rows, errors = np.arange(len(column)), []
    for row in rows:
        others = rows != row
        fitted = np.polyfit(column[others], target[others], degree)
        errors.append(target[row] - np.polyval(fitted, column[row]))
    return float(np.square(errors).sum())


def test_worth_is_what_lines_and_parabolas_without_a_row_gain_over_the_mean() -> None:
    values, targets = made(30, 4)
    for worth, column in zip(column_worth(values, targets), values.T, strict=True):
        by_mean, by_line, by_both = (squared_errors(column, targets[:, 0], degree) for degree in (0, 1, 2))
        assert worth == pytest.approx(by_mean - min(by_line, by_both), rel=1e-8, abs=1e-8)


def test_worth_adds_up_over_targets_and_doubles_with_copies_of_the_rows() -> None:
    values, targets = made(40, 5)
    both = np.hstack([targets, -targets])
    assert column_worth(values, both) == pytest.approx(2 * column_worth(values, targets))
    copies = column_worth(np.repeat(values, 2, axis=0), np.repeat(targets, 2, axis=0), np.full(80, 2.0))
    assert copies == pytest.approx(2 * column_worth(values, targets))


def test_worth_finds_a_bent_column_and_none_in_a_constant_one_or_in_a_single_different_cell() -> None:
    values, _ = made(200, 3)
    bent = np.where(np.abs(values[:, :1]) > 0.7, 1.0, -1.0)
    values[:, 1] = 5.0
    values[:, 2] = np.arange(200) == 7
    worth = column_worth(values, bent)
    assert worth[0] > 30
    assert worth[1] <= 1e-9
    assert worth[2] < 0.5


def test_most_worth_takes_the_first_of_equal_columns_whatever_the_block() -> None:
    values, targets = made(300, 2)
    wide = np.column_stack([values[:, 1], np.tile(values[:, :1], 2000)])
    assert most_worth(wide, targets, 3).tolist() == [1, 2, 3]
