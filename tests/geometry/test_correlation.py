"""Correlation of columns with each other and with classes: equal to textbook formulas, blind to units and order."""

import itertools

import numpy as np
import pytest

from qmedoid.geometry.groups import (
    BLOCK_ROWS,
    constant_columns,
    correlation_matrix,
    correlation_ratio,
)


def table(n, d, seed=0):
    """Columns that are mixtures of each other, so that correlations of every size occur."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ (np.eye(d) + rng.normal(size=(d, d)) * 0.7)


def with_numbers(X, numbers):
    """How much every column correlates with a numeric target."""
    return np.abs(correlation_matrix(np.column_stack([X, numbers]))[:-1, -1])


def plain_eta(column, codes):
    """The correlation ratio, as a textbook has it."""
    mean = column.mean()
    groups = [column[codes == c] for c in np.unique(codes)]
    between = sum(len(g) * (g.mean() - mean) ** 2 for g in groups)
    return np.sqrt(between / ((column - mean) ** 2).sum())


@pytest.mark.parametrize("n", [2, 3, 50, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 7])
def test_equals_numpy_on_any_number_of_blocks(n):
    X = table(n, 5)
    np.testing.assert_allclose(correlation_matrix(X), np.corrcoef(X.T), rtol=0, atol=1e-12)


def test_large_offset_costs_no_more_digits_than_the_data_lost():
    X = 1e8 + table(3 * BLOCK_ROWS, 4)
    codes = np.arange(len(X)) % 3
    np.testing.assert_allclose(correlation_matrix(X), np.corrcoef((X - 1e8).T), rtol=0, atol=1e-12)
    np.testing.assert_allclose(correlation_ratio(X, codes), correlation_ratio(X - 1e8, codes), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e-8, 1e8, 1e160, 1e300, 1.7e308])
def test_neither_huge_nor_tiny_units_change_it(scale):
    X = np.clip(table(200, 4), -1, 1)
    units = np.array([scale, 1.0, scale, 1.0])
    # Subnormal numbers hold few digits: what they hold is what must be correlated.
    stored = X * units
    held = stored / units if scale > 1e-310 else X
    tolerance = 1e-12 if scale > 1e-310 else 1e-3
    np.testing.assert_allclose(correlation_matrix(stored), np.corrcoef(held.T), rtol=0, atol=tolerance)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 + 0.1, -1e300, 5e-324])
@pytest.mark.parametrize("n", [3, 1000, BLOCK_ROWS + 3])
def test_constant_column_correlates_with_nothing(value, n):
    X = table(n, 3)
    X[:, 1] = value
    R = correlation_matrix(X)
    np.testing.assert_array_equal(R[1], [0, 1, 0])
    np.testing.assert_array_equal(R[:, 1], [0, 1, 0])
    assert abs(R[0, 2]) > 0
    np.testing.assert_array_equal(constant_columns(X), [False, True, False])


@pytest.mark.parametrize("n", [6, 100, BLOCK_ROWS + 9])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_eta_is_the_textbook_ratio(n, n_classes):
    X, codes = table(n, 4), np.arange(n) % n_classes
    X[:, 2] += 3 * codes
    expected = [plain_eta(column, codes) for column in X.T]
    np.testing.assert_allclose(correlation_ratio(X, codes), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [(0, 1), (-7, 40)])
def test_for_two_classes_eta_is_the_absolute_correlation(labels):
    X, codes = table(120, 5) + 1e4, (table(120, 5)[:, 0] > 0.3).astype(int)
    numbers = np.where(codes, labels[1], labels[0]).astype(float)
    np.testing.assert_allclose(
        correlation_ratio(X, codes), with_numbers(X, numbers), rtol=0, atol=1e-10
    )  # fmt: skip


def test_eta_is_blind_to_the_numbering_of_classes_and_label_codes_are_not():
    """Fact 8."""
    X, codes = table(90, 3), np.arange(90) % 3
    X[:, 0] += 2 * codes
    etas, label_correlations = [], []
    for numbering in itertools.permutations(range(3)):
        renumbered = np.array(numbering)[codes]
        etas.append(correlation_ratio(X, renumbered))
        label_correlations.append(with_numbers(X, renumbered.astype(float)))
    np.testing.assert_allclose(etas, np.broadcast_to(etas[0], (6, 3)), rtol=0, atol=1e-14)
    assert np.ptp(np.array(label_correlations)[:, 0]) > 0.3
