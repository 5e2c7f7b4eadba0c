"""Tables, targets and weights as estimators take them; errors name the column and the row."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.part import LARGEST
from qmedoid.spelling import did_you_mean
from qmedoid.tables.targets import Target

SMALLEST = 1e-150
"""Columns without a value of at least this size have squares that vanish, unless they are scaled."""
MOST_CELLS = 2**27
"""Cells of a sparse table that is made dense at most: 1 GiB, of which a fit makes a few copies."""
one_blas_thread = threadpool_limits.wrap(limits=1, user_api="blas")
"""Let a fit use one thread for matrix products: on more, the order of their sums depends on how many there are.

The kernels keep their own threads; they are parallel over outputs only.
"""

MOST_COPIES = 10
"""Whole weights are copies of rows up to so many times the rows of a table; beyond, they are factors."""
# Weights that differ by less than this share are equal.
_SAME = 1e-12
# How NumPy, pandas and polars say that a column holds text, categories or dates.
_NOT_NUMBERS = ("could not convert", "could not be promoted", "cannot be converted")


def check_table(
    estimator: BaseEstimator,
    X: Any,
    *,
    reset: bool,
    name: str = "X",
    allow_nan: bool = False,
) -> Array:
    """X as a float matrix with its feature names checked; NaN, infinities, text and huge values are refused.

    With `reset`, for a fit, cells of a column that differ in their last digits alone are one value. With `allow_nan`
    cells may be NaN, and are left as they are.
    """
    X = dense(X, name)
    if hasattr(X, "collect"):
        raise DataError(f"Input {name} is a {type(X).__name__}, whose rows are not there yet: collect() it first.")
    if hasattr(X, "columns") and len(X.columns) == 0:
        raise DataError(f"Input {name} has no columns: pass at least one column of numbers.")
    try:
        table: Array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=least_rows(reset, name),
        )
    except (TypeError, ValueError) as error:
        if "must be in the same order" in str(error):
            raise DataError(f"{error}Put them in that order: X[model.feature_names_in_].") from error
        if not any(words in str(error).lower() for words in _NOT_NUMBERS):
            raise
        raise DataError(_text_message(estimator, X, name)) from error
    check_finite(table, getattr(estimator, "feature_names_in_", None), name, allow_nan=allow_nan)
    return with_equal_cells(table) if reset and not allow_nan else table


def least_rows(reset: bool, name: str) -> int:
    """Rows that a table must have: two in a fit, one where models are chosen by it; of none nothing is predicted."""
    return 2 if reset else int(name != "X")


def dense(X: Any, name: str = "X") -> Any:
    """A sparse matrix or array as a dense one, if it has at most `MOST_CELLS` cells; else X as it is."""
    if not issparse(X):
        return X
    table: Any = X
    n_rows, n_columns = table.shape if table.ndim == 2 else (len(table.data), 1)
    if n_rows * n_columns > MOST_CELLS:
        raise DataError(
            f"Input {name} is sparse, with {n_rows:,} rows x {n_columns:,} columns, and the estimator works on dense "
            f"numbers: they would take {n_rows * n_columns * 8 / 2**30:,.1f} GiB, and at most "
            f"{MOST_CELLS * 8 / 2**30:g} GiB are made of a sparse table. Keep fewer columns, for example with "
            "sklearn.feature_selection.SelectKBest or sklearn.decomposition.TruncatedSVD, or pass fewer rows at a time."
        )
    return table.toarray()


def check_size(table: Array, names: Any = None) -> None:
    """Raise for a column that varies, but so little that the squares of its values vanish."""
    largest = np.abs(table).max(axis=0, initial=0.0)
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if len(tiny):
        raise DataError(
            f"The values in {column_label(int(tiny[0]), names)} are at most {largest[tiny[0]]:g} in size: their "
            "squares vanish. Scale the column to a larger unit, or let input_scaling='standard' do it."
        )


def check_finite(
    table: Array,
    names: Any = None,
    name: str = "X",
    row_numbers: Codes | None = None,
    *,
    allow_nan: bool = False,
) -> None:
    """Raise with the column and first row of the first value that is NaN, infinite or beyond `LARGEST`.

    Rows are numbered as given, or by their places.
    """
    # Good tables, the many, need no temporary of their size: a NaN makes both extremes NaN.
    if table.max(initial=0.0) <= LARGEST and table.min(initial=0.0) >= -LARGEST:
        return
    bad = np.abs(table) > LARGEST if allow_nan else ~(np.abs(table) <= LARGEST)
    if not bad.any():
        return
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    rows = np.flatnonzero(bad[:, column])
    numbers = rows if row_numbers is None else row_numbers[rows]
    row, count = int(numbers.min()), len(rows)
    value = table[rows[numbers.argmin()], column]
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


def column_names(estimator: Any) -> list[str]:
    """Names of the columns of a fit, or x0, x1 and so on where they had none."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"x{number}" for number in range(estimator.n_features_in_)] if given is None else list(given)


def column_label(column: int, names: Any = None) -> str:
    """The column by name where there is one, else by number."""
    return f"column {column}" if names is None else f"column {names[column]!r} (number {column})"


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


def check_target(y: Any, n_rows: int, *, name: str = "y", table: str = "X") -> npt.NDArray[Any]:
    """One value for every row of a table; missing ones, and strings among other things, are refused."""
    if y is None:
        raise ValueError(f"A fit requires {name} to be passed, but the target {name} is None.")
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if getattr(plain, "kind", "") in ("i", "u", "b") and hasattr(y, "isna") and not y.isna().any():
        y = y.to_numpy(dtype=plain)  # whole numbers and truth values of pandas' own types
    values: npt.NDArray[Any] = column_or_1d(y, warn=True)
    if len(values) != n_rows:
        raise DataError(f"{table} has {n_rows} rows and {name} has {len(values)}: pass one value for every row.")
    missing = np.flatnonzero(np.isnan(values)) if values.dtype.kind == "f" else np.zeros(0, dtype=np.intp)
    if values.dtype.kind == "O":
        missing = np.flatnonzero([_is_missing(value) for value in values])
    if len(missing):
        raise DataError(
            f"{name} contains NaN or None, first at row {missing[0]} ({len(missing)} of {n_rows} rows). "
            "Drop the rows without a label."
        )
    kinds = sorted({type(value).__name__ for value in values}) if values.dtype.kind == "O" else []
    if len(kinds) > 1 and "str" in kinds:
        raise DataError(
            f"{name} mixes values of the types {', '.join(kinds)}, which have no common order. "
            "Make all of them strings, or all of them numbers."
        )
    return values


def class_codes(y: Any, n_rows: int) -> tuple[npt.NDArray[Any], Codes]:
    """The classes in order, and the number of the class of every row, once the target is found to be in order."""
    labels = check_target(y, n_rows)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y holds one class only, {classes.tolist()[0]!r}: a classifier needs records of at least 2 classes."
        )
    return classes, codes.astype(np.intp)


def known_codes(target: Target, classes: npt.NDArray[Any]) -> Codes:
    """Class codes of validation rows; classes that the training rows do not have are refused."""
    codes: Codes = target.codes_in(classes.tolist())
    if (codes < 0).any():
        unknown = target.classes[np.unique(target.codes[codes < 0])].tolist()
        raise DataError(
            f"y_val holds classes that y does not: {unknown[:5]}. Validation rows must belong to the classes "
            f"{classes.tolist()[:5]} of the training rows."
        )
    return codes


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def loss_weights(class_weight: Any, codes: Codes, classes: npt.NDArray[Any], weights: Array | None = None) -> Array:
    """Weight of every class in a loss: equal for all rows, the same total for every class, or as given.

    Totals are those of the rows, or of their `weights`; a class without any has the weight 1.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, Mapping):
        return 1.0 / given_weights(class_weight, classes)
    counts = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    return np.where(counts > 0, counts.sum() / ((counts > 0).sum() * np.where(counts > 0, counts, 1.0)), 1.0)


def given_weights(weights: Mapping[Any, float], classes: npt.NDArray[Any], name: str = "class_weight") -> Array:
    """The inverse of the weight of every class, from a dict of some of them; `name` is that of the parameter."""
    unknown = [label for label in weights if label not in classes.tolist()]
    if unknown:
        hint = did_you_mean(unknown[0], classes.tolist())
        raise ParameterError(
            f"{name!r} names {unknown[0]!r}, which is not a class.{hint} The classes are {classes.tolist()[:10]}."
        )
    for label, weight in weights.items():
        if not (isinstance(weight, Real) and 1e-300 < float(weight) < 1e300):
            raise ParameterError(
                f"Every weight in {name!r} must be a number between 1e-300 and 1e300. "
                f"Got {weight!r} for class {label!r} instead."
            )
    return 1.0 / np.array([float(weights.get(label, 1.0)) for label in classes.tolist()])


class WeightedRows(NamedTuple):
    """The rows of a table of `n_given` rows that a fit goes over, copies several times, and what each counts.

    Factors are weights of mean 1; None where every row counts as one.
    """

    rows: Codes
    factors: Array | None
    n_given: int

    @property
    def has_copies(self) -> bool:
        """Whether a row occurs several times."""
        return len(np.unique(self.rows)) < len(self.rows)


def weighted_rows(sample_weight: Any, class_weight: Any, codes: Codes, classes: npt.NDArray[Any]) -> WeightedRows:
    """Rows and factors of a fit, from weights of rows and of classes."""
    n = len(codes)
    if sample_weight is None and class_weight is None:
        return WeightedRows(np.arange(n), None, n)
    weights = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    kept = np.flatnonzero(weights)
    if class_weight is not None:
        weights = weights * loss_weights(class_weight, codes, classes, weights)[codes]
    rows, weights = kept, weights[kept]
    if (weights == np.round(weights)).all() and weights.sum() <= MOST_COPIES * len(rows):
        return WeightedRows(np.repeat(rows, weights.astype(np.intp)), None, n)
    factors = weights / weights.mean()
    return WeightedRows(rows, None if np.ptp(factors) <= _SAME else factors, n)


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights of rows as numbers; raise for the first that is none, below 0 or not finite, and where all are 0."""
    try:
        weights = np.array(column_or_1d(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be one number for every row: {error}") from error
    if len(weights) != n_rows:
        raise DataError(f"X has {n_rows} rows and sample_weight has {len(weights)}: pass one weight for every row.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"sample_weight contains {weights[bad[0]]:g}, first at row {bad[0]} ({len(bad)} of {n_rows} rows). A "
            "weight says how many rows a row stands for: pass numbers from 0 up; rows of weight 0 are left out."
        )
    if not weights.any():
        raise DataError("sample_weight is zero for all rows: at least 2 rows need a weight above 0.")
    return weights


def classes_of(classes: npt.NDArray[Any], codes: Codes, rows: Codes) -> tuple[npt.NDArray[Any], Codes]:
    """Classes of some rows, and the number of the class of each row."""
    found, again = np.unique(codes[rows], return_inverse=True)
    if len(found) < 2:
        raise DataError(
            f"The rows with a weight above 0 are of one class only, {classes.tolist()[found[0]]!r}: a classifier needs "
            "records of at least 2 classes."
        )
    return classes[found], again.astype(np.intp)


def refuse_factors(factors: Array | None, who: str) -> None:
    """Raise where weights are no whole numbers."""
    if factors is not None:
        raise ParameterError(
            f"{who} takes weights that are copies of rows: whole numbers, at most {MOST_COPIES} times as many in all "
            "as there are rows. Round sample_weight and class_weight to such, or use another method."
        )
