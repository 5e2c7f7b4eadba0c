"""Rows of a fit in an order of their own, which does not depend on the order in which they were given."""

from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import TrainingTable
from qmedoid.estimators._inputs import groups_of_fit
from qmedoid.geometry.row_groups import given_groups, numbered, part_of
from qmedoid.geometry.row_order import ranks, row_order
from qmedoid.kernels.ties import with_equal_cells


def ordered_table(
    X: Array, codes: Codes, classes: npt.NDArray[Any], groups: Any = None, names: Any = None
) -> TrainingTable:
    """Rows, classes and groups of a fit in an order of their own, with the row numbers that they were given with."""
    given = None if groups is None else given_groups(groups, len(X))
    order = row_order(ranks(X), codes, given)
    X, codes = np.ascontiguousarray(X[order]), codes[order]
    together = in_order(given, order) if groups is not None else groups_of_fit(X, codes)
    return TrainingTable(X, codes, classes, together, names, row_numbers=order)


def in_own_order(data: TrainingTable, rows: Codes) -> Codes:
    """Some of the rows in the order that they have where they are all."""
    return rows[row_order(ranks(data.X[rows]), data.codes[rows], part_of(data.groups, rows))]


def in_order(groups: Codes | None, order: Codes) -> Codes | None:
    """Groups of rows in another order, numbered as they first occur there."""
    return None if groups is None else numbered(groups[order])


def validation_order(X: Array, codes: Codes) -> Codes:
    """The order of validation rows."""
    return row_order(ranks(with_equal_cells(X)), codes)
