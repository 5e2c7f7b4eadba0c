"""Tables as estimators take them: one validation, with errors that name the column and the row."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.base import LARGEST

SMALLEST = 1e-150
"""Columns without a value of at least this size have squares that vanish, unless they are scaled."""


# How NumPy, pandas and polars say that a column holds text, categories or dates.
_NOT_NUMBERS = ("could not convert", "could not be promoted", "cannot be converted")


def check_table(
    estimator: BaseEstimator, X: Any, *, reset: bool, ensure_min_samples: int = 1, name: str = "X"
) -> Array:
    """X as a float matrix with its feature names checked; NaN, infinities, text and huge values are refused.

    With `reset`, for a fit, cells of a column that differ in their last digits alone are one value.
    """
    if hasattr(X, "collect"):
        raise DataError(f"Input {name} is a {type(X).__name__}, whose rows are not there yet: collect() it first.")
    if hasattr(X, "columns") and len(X.columns) == 0:
        raise DataError(f"Input {name} has no columns: pass at least one column of numbers.")
    try:
        table: Array = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=ensure_min_samples
        )
    except (TypeError, ValueError) as error:
        if "must be in the same order" in str(error):
            raise DataError(f"{error}{_order_difference(estimator, X)}") from error
        if not any(words in str(error).lower() for words in _NOT_NUMBERS):
            raise
        raise DataError(_text_message(estimator, X, name)) from error
    check_finite(table, getattr(estimator, "feature_names_in_", None), name)
    return with_equal_cells(table) if reset else table


def check_size(table: Array, names: Any = None) -> None:
    """Raise for a column that varies, but so little that the squares of its values vanish."""
    largest = np.abs(table).max(axis=0, initial=0.0)
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if len(tiny):
        raise DataError(
            f"The values in {column_label(int(tiny[0]), names)} are at most {largest[tiny[0]]:g} in size: their "
            "squares vanish. Scale the column to a larger unit, or let input_scaling='standard' do it."
        )


def check_finite(table: Array, names: Any = None, name: str = "X") -> None:
    """Raise with the column and first row of the first value that is NaN, infinite or beyond `LARGEST`."""
    # Good tables, the many, need no temporary of their size: a NaN makes both extremes NaN.
    if table.max(initial=0.0) <= LARGEST and table.min(initial=0.0) >= -LARGEST:
        return
    bad = ~(np.abs(table) <= LARGEST)
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    row = int(np.flatnonzero(bad[:, column])[0])
    value, count = table[row, column], int(bad[:, column].sum())
    if np.isnan(value):
        what, remedy = "NaN", "Impute or drop missing values first, for example with sklearn.impute.SimpleImputer."
    elif np.isinf(value):
        what, remedy = "infinity", "Replace infinite values with a finite number or drop the rows."
    else:
        what, remedy = f"{value:g}, beyond ±{LARGEST:g}", "Scale the column to a smaller unit."
    raise DataError(
        f"Input {name} contains {what} in {column_label(column, names)}, first at row {row} "
        f"({count} of {len(table)} rows of that column are unusable). {remedy}"
    )


def column_label(column: int, names: Any = None) -> str:
    """The column by name where there is one, else by number."""
    return f"column {column}" if names is None else f"column {names[column]!r} (number {column})"


def _order_difference(estimator: BaseEstimator, X: Any) -> str:
    """The columns that changed places, a line each, and the way out."""
    fitted, given = list(getattr(estimator, "feature_names_in_", [])), list(getattr(X, "columns", []))
    given = given if all(isinstance(name, str) for name in given) else list(getattr(X, "column_names", []))
    moved = [(i, was, now) for i, (was, now) in enumerate(zip(fitted, given, strict=False)) if was != now]
    lines = [f"- column {i} is {now!r} and was {was!r}\n" for i, was, now in moved[:5]]
    more = f"- and {len(moved) - 5} more\n" if len(moved) > 5 else ""
    return "".join(lines) + more + "Put the columns in the order of the fit: X[model.feature_names_in_]."


def _text_message(estimator: BaseEstimator, X: Any, name: str) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    matrix = np.asarray(X, dtype=object)
    for column in range(matrix.shape[1] if matrix.ndim == 2 else 0):
        for row, value in enumerate(matrix[:, column]):
            try:
                float(value)
            except (TypeError, ValueError):
                return (
                    f"Input {name} holds {value!r} in {column_label(column, names)}, first at row {row}: columns must "
                    "be numbers. Encode categories and dates first, for example with "
                    "sklearn.preprocessing.OneHotEncoder."
                )
    return f"Input {name} could not be converted to numbers. Pass a table of numbers, one row for every record."


def check_weights(sample_weight: Any, table: Array) -> Array | None:
    """Sample weights as non-negative floats, one for each row, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim > 1:
        raise DataError(f"'sample_weight' must be a number or of shape (n,). Got shape {weights.shape} instead.")
    if weights.ndim == 1 and len(weights) != len(table):
        raise DataError(f"X has {len(table)} rows and 'sample_weight' has {len(weights)}: pass one weight per row.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError("'sample_weight' must be finite and not negative.")
    if not (weights > 0).any():
        raise DataError("Every weight in 'sample_weight' is zero: at least one row must count.")
    return np.broadcast_to(weights, len(table))
