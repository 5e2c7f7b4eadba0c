"""Columns of numbers with missing cells, encoded as those of a `MedoidClassifier` are.

The median is filled in, and a column that had missing cells in the fit gets a second number that says so.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.encoding import fit_number_block
from qmedoid.estimators.inputs import check_table, column_names
from qmedoid.exceptions import DataError, some_of, warn
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.model import Record
from qmedoid.tables.difference import Difference, Issues
from qmedoid.tables.encode import encode_column
from qmedoid.tables.kinds import EMPTY


class NumberColumns(NamedTuple):
    """The columns of an estimator of numbers that have cells: encodings, places in the table, and missing cells."""

    contract: Contract
    encodings: tuple[Numbers, ...]
    places: Codes
    n_missing: Codes

    @classmethod
    def of(cls, table: Array, names: Sequence[str]) -> "NumberColumns":
        """Fit the encodings of a table in which cells may be NaN; columns without a cell are left out and warned of."""
        absent = np.isnan(table).sum(axis=0)
        places = np.flatnonzero(absent < len(table))
        kept = places.tolist()
        empty = [names[place] for place in np.flatnonzero(absent == len(table)).tolist()]
        if not len(places):
            raise DataError("No column is left to learn from: every cell of X is NaN.")
        if empty:
            columns = f"column {empty[0]!r} was" if len(empty) == 1 else f"{len(empty)} columns were"
            some = "" if len(empty) == 1 else f" ({some_of([repr(name) for name in empty], 5)})"
            warn(f"{columns[0].upper()}{columns[1:]} left out{some}: {EMPTY}.")
        contract = Contract(
            tuple(Column(names[place], "number", missing=bool(absent[place])) for place in kept),
            left_out=dict.fromkeys(empty, EMPTY),
        )
        encodings = fit_number_block(table[:, places], absent[places] > 0)
        return cls(contract, encodings, places, absent[places].astype(np.intp))

    @classmethod
    def unfilled(cls, names: Sequence[str]) -> "NumberColumns":
        """Columns of numbers where missing cells are refused."""
        contract = Contract(tuple(Column(name, "number") for name in names))
        places = np.arange(len(names))
        return cls(contract, (Numbers(fill=np.nan),) * len(names), places, np.zeros_like(places))

    @property
    def is_plain(self) -> bool:
        """Whether a table without missing cells is encoded as itself."""
        return not self.n_missing.any() and not self.contract.left_out

    def encode(self, table: Array) -> Array:
        """The table as encoded columns; missing cells in columns that had none are filled in, with a warning."""
        if self.is_plain and not np.isnan(table.max(initial=0.0)):
            return table
        issues, outputs = Issues(rows=len(table)), list[Array]()
        for place, column, encoding in zip(self.places, self.contract.columns, self.encodings, strict=True):
            outputs += encode_column(pa.array(np.ascontiguousarray(table[:, place])), column, encoding, issues)
        Difference(self.contract, issues=issues).raise_or_warn("error")
        return np.column_stack(outputs)

    def cells(self, encoded: Array) -> Array:
        """The table that was encoded, with NaN where a cell is missing, shape (n, columns)."""
        first = np.cumsum([0, *(len(encoding.outputs) for encoding in self.encodings)])[:-1]
        cells = encoded[:, first]
        for number, encoding in enumerate(self.encodings):
            if encoding.indicator:
                cells[encoded[:, first[number] + 1] > 0, number] = np.nan
        return cells

    def records(self, rows: Array) -> tuple[Record, ...]:
        """Encoded rows as records of the table, with None for missing cells."""
        cells = self.cells(rows)
        filled = cells.astype(object)
        filled[np.isnan(cells)] = None
        return tuple(dict(zip(self.contract.names, row, strict=True)) for row in filled.tolist())


def fit_numbers(estimator: BaseEstimator, X: Any) -> Array:
    """The encoded columns of the table of a fit, row by row in memory; the estimator keeps how they are encoded."""
    table = check_table(estimator, X, reset=True, allow_nan=True)
    columns = NumberColumns.of(table, column_names(estimator))
    vars(estimator)["_number_columns"] = columns
    # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
    return np.ascontiguousarray(with_equal_cells(columns.encode(table)))


def read_numbers(estimator: BaseEstimator, X: Any, *, name: str = "X") -> Array:
    """The encoded columns of a table for a fitted estimator; one that was fitted on encoded columns takes these."""
    columns = number_columns(estimator)
    table = check_table(estimator, X, reset=False, name=name, allow_nan=columns is not None)
    return table if columns is None else columns.encode(table)


def number_columns(estimator: Any) -> NumberColumns | None:
    """How the columns of an estimator are encoded; None where it was fitted on encoded columns."""
    found: NumberColumns | None = getattr(estimator, "_number_columns", None)
    return found
