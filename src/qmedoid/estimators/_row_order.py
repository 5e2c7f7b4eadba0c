"""Rows of a fit in an order of their own, which does not depend on the order in which they were given."""

from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import TrainingTable
from qmedoid.estimators._inputs import groups_of_fit
from qmedoid.estimators._weights import WeightedRows
from qmedoid.geometry.row_groups import given_groups, part_of
from qmedoid.geometry.row_order import ranks, row_order
from qmedoid.kernels.ties import with_equal_cells


def ordered_table(
    X: Array,
    codes: Codes,
    classes: npt.NDArray[Any],
    groups: Any,
    names: Any,
    weighted: WeightedRows,
    cells: Array | None = None,
) -> TrainingTable:
    """Rows, classes and groups of a fit in an order of their own, with the row numbers that they were given with.

    `codes` are those of the weighted rows, all else is of the table that was given. Rows are ordered by their `cells`,
    where X is not these but made of them.
    """
    given = None if groups is None else given_groups(groups, len(X))
    rows, factors = weighted.rows, weighted.factors
    given = given if given is None else given[rows]
    places = ranks((X if cells is None else cells)[rows])
    order = row_order(places, codes, given, factors)
    X, codes = np.ascontiguousarray(X[rows[order]]), codes[order]
    together = part_of(given, order) if groups is not None else groups_of_fit(X, codes, quiet=weighted.has_copies)
    return TrainingTable(
        X, codes, classes, together, names, row_numbers=rows[order], n_given=weighted.n_given,
        weights=None if factors is None else factors[order],
        cells=None if cells is None else (places[order], [False] * places.shape[1]),
    )  # fmt: skip


def in_own_order(data: TrainingTable, rows: Codes) -> Codes:
    """Some of the rows in the order that they have where they are all."""
    weights = None if data.weights is None else data.weights[rows]
    cells, is_level = (data.X, None) if data.cells is None else data.cells
    groups = part_of(data.groups, rows)
    return rows[row_order(ranks(cells[rows]), data.codes[rows], groups, weights, is_level=is_level)]


def validation_order(X: Array, codes: Codes) -> Codes:
    """The order of validation rows."""
    return row_order(ranks(with_equal_cells(X)), codes)
