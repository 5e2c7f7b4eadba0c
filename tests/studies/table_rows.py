"""Cells of a table by what stands beside and above them."""

import math

import numpy as np
import pytest


def rows_of(table, n_keys):
    """Rows by their first cells; each a dictionary by the labels of the other columns."""
    found = {tuple(row[:n_keys]): dict(zip(table.labels[n_keys:], row[n_keys:], strict=True)) for row in table.rows}
    assert len(found) == len(table.rows)
    return found


def check_mean(row, label, values):
    """A mean and its standard error in the columns of a label."""
    assert row[label] == pytest.approx(np.mean(values)), label
    assert row[f"{label} ±"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values))), label
