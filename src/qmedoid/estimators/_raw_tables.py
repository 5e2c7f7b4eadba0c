"""Raw tables as estimators take them, and rows of them as records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError
from qmedoid.model.table import Record
from qmedoid.tables.arrow import as_table, plain_records


@dataclass(frozen=True)
class Names:
    """Names of the columns of the training table, and whether they are its own or were made up for an array."""

    names: tuple[str, ...]
    given: bool


def read_table(estimator: BaseEstimator, X: Any, fitted: Names | None, name: str = "X") -> tuple[Names, pa.Table]:
    """X as an Arrow table under the names of the fit, and these names.

    Columns of arrays go by their place; so do those of a named table where the fit was on an array.
    """
    if hasattr(X, "collect"):
        raise DataError(f"Input {name} is a {type(X).__name__}, whose rows are not there yet: collect() it first.")
    if not _has_names(X):
        return _read_array(estimator, X, fitted)
    table = as_table(X)
    if fitted is None:
        _check_size(table)
        found = Names(tuple(table.column_names), True)
        vars(estimator).update(n_features_in_=len(found.names), feature_names_in_=np.array(found.names, dtype=object))
        return found, table
    if table.num_rows == 0:
        raise DataError(f"Input {name} has no rows: pass at least one.")
    if fitted.given:
        return fitted, table
    if table.num_columns != len(fitted.names):
        raise DataError(
            f"X has {table.num_columns} features, but {type(estimator).__name__} is expecting {len(fitted.names)} "
            "features as input."
        )
    return fitted, table.rename_columns(list(fitted.names))


def _has_names(X: Any) -> bool:
    if issparse(X):  # some of these are mappings, and all are refused as arrays are checked
        return False
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")


def _read_array(estimator: BaseEstimator, X: Any, fitted: Names | None) -> tuple[Names, pa.Table]:
    is_fit = fitted is None
    array = validate_data(
        estimator, X, reset=is_fit, dtype=None, ensure_all_finite=False, ensure_min_samples=2 if is_fit else 1
    )
    # The names that scikit-learn makes up for columns that have none.
    names = Names(tuple(f"x{place}" for place in range(array.shape[1])), False) if fitted is None else fitted
    return names, as_table(array, names=list(names.names))


def _check_size(table: pa.Table) -> None:
    if table.num_columns == 0:
        raise DataError("Input X has no columns: pass at least one.")
    if table.num_rows < 2:
        raise DataError(f"Input X has {table.num_rows} sample(s) (rows), while a minimum of 2 is required.")


def records_of(table: pa.Table, rows: Codes) -> tuple[Record, ...]:
    """Some rows of a table as records, with values fit for JSON."""
    return tuple(plain_records(table.take(pa.array(rows))))
