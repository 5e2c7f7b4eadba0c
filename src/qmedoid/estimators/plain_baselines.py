"""Tables as plain classifiers take them, with NaN for missing cells, and the classifiers that are fitted to them."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import MissingExtraError
from qmedoid.model.contract import Column
from qmedoid.tables import cells

# Numbers beyond this are no measurements; our methods take them as missing, too.
_LARGEST = 1e150
# Levels of a category that have a column, or a bin, of their own; the others are one.
_MOST_LEVELS = 254


class Outcome(NamedTuple):
    """A method on the judged rows of one fold: its probabilities, shape (m, C), and how long its fit took."""

    probabilities: Array
    seconds: float


class PlainRows(NamedTuple):
    """Rows to fit, (n, M), and rows to judge by, (m, M), with the columns that are categories, (M,).

    Codes of a category go by frequency among the rows to fit, the most frequent level first. What is missing, cannot
    be read or, among the rows to judge by, is a level that no row to fit has, is NaN.
    """

    fit: Array
    judged: Array
    is_category: Flags


def plain_rows(columns: Sequence[Column], fit: pa.Table, judged: pa.Table) -> PlainRows:
    """Both tables in the kinds of a contract's columns; a column that one of them lacks is missing in every row."""
    pairs = [_both(column, _cells(fit, column), _cells(judged, column)) for column in columns]
    made = [np.column_stack(side) for side in zip(*pairs, strict=True)]
    return PlainRows(made[0], made[1], np.array([column.kind == "category" for column in columns]))


def _cells(table: pa.Table, column: Column) -> pa.Array:
    if column.name not in table.column_names:
        return pa.nulls(len(table), pa.string())
    return cells.one_chunk(cells.without_missing_values(table.column(column.name), column))


def _both(column: Column, fit: pa.Array, judged: pa.Array) -> tuple[Array, Array]:
    if column.kind == "category":
        levels = _levels(fit)
        return _codes(fit, levels), _codes(judged, levels)
    return _numbers(fit, column), _numbers(judged, column)


def _levels(array: pa.Array) -> tuple[str, ...]:
    """Levels, the most frequent first; those that are equally frequent by name."""
    import pyarrow.compute as pc

    counts = pc.utf8_trim_whitespace(cells.texts(array).drop_null()).value_counts()
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    return tuple(level for level, _ in sorted(pairs, key=lambda pair: (-pair[1], pair[0])) if level)


def _codes(array: pa.Array, levels: tuple[str, ...]) -> Array:
    codes = cells.level_codes(array, levels)[0].astype(np.float64)
    return np.where(codes < len(levels), codes, np.nan)


def _numbers(array: pa.Array, column: Column) -> Array:
    values = cells.read(array, column.kind, column.spelling).values
    if values.dtype.kind == "M":
        whole = values.astype("M8[us]")
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 86_400e6)
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(numbers) < _LARGEST, numbers, np.nan)


Predict = Callable[[Array], Any]
"""From rows to probabilities, shape (n, C)."""
Fit = Callable[[Array, Codes], Predict]
"""From rows and their class codes to what predicts others."""


def _logistic(seed: int, is_category: Flags) -> Fit:
    """Logistic regression on standardized numbers, with a flag for missing ones, and on a column for each level."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_LEVELS)
    columns = ColumnTransformer([("numbers", numbers, ~is_category), ("levels", levels, is_category)])
    model = make_pipeline(columns, LogisticRegression(max_iter=2000, random_state=seed))
    return lambda X, codes: model.fit(X, codes).predict_proba


def _boosted(seed: int, is_category: Flags) -> Fit:
    """Boosted trees of scikit-learn, which take no more levels than they have bins: the rarer ones are one."""
    model = HistGradientBoostingClassifier(random_state=seed, categorical_features=is_category)

    def merged(X: Array) -> Array:
        return np.where(is_category, np.minimum(X, _MOST_LEVELS), X)

    def fit(X: Array, codes: Codes) -> Predict:
        fitted = model.fit(merged(X), codes)
        return lambda new: fitted.predict_proba(merged(new))

    return fit


def _lightgbm(seed: int, is_category: Flags) -> Fit:
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise MissingExtraError("LightGBM is not installed. Get it with: pip install 'qmedoid[baselines]'") from error
    # One thread, so that its bits do not depend on the number of threads.
    model: Any = LGBMClassifier(random_state=seed, n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1)
    columns = np.flatnonzero(is_category).tolist()
    return lambda X, codes: model.fit(X, codes, categorical_feature=columns or "auto").predict_proba


BASELINES: dict[str, Callable[[int, Flags], Fit]] = {
    "logistic regression": _logistic,
    "scikit-learn boosted trees": _boosted,
    "LightGBM": _lightgbm,
}
"""Plain classifiers with the settings of their libraries, given a seed and which columns are categories."""


def run_baselines(
    rows: PlainRows, codes: Codes, seed: int, may_begin: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, Outcome | str]]:
    """Fit the baselines to the rows with these class codes, one by one: each with what it says of the judged rows.

    A baseline that is not installed, or fails, comes with a sentence that says so; one that may not begin does not
    come at all.
    """
    for name, make in BASELINES.items():
        if not may_begin(name):
            continue
        try:
            fit = make(seed, rows.is_category)
            began = time.perf_counter()
            predict = fit(rows.fit, codes)
            seconds = time.perf_counter() - began
            found = np.asarray(predict(rows.judged), dtype=np.float64)
        except MissingExtraError as error:
            yield name, str(error)
        except Exception as error:  # whatever a library raises is no reason to lose our own fit
            yield name, f"it failed with {type(error).__name__}: {error}"
        else:
            yield name, Outcome(found, seconds)
