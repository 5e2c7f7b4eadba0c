"""Targets as estimators take them: one value for every row, none missing, classes numbered."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError


def check_target(y: Any, n_rows: int, *, name: str = "y", table: str = "X") -> npt.NDArray[Any]:
    """One value for every row of a table; missing ones, and strings among other things, are refused."""
    values: npt.NDArray[Any] = column_or_1d(_plain_integers(y), warn=True)
    if len(values) != n_rows:
        raise DataError(f"{table} has {n_rows} rows and {name} has {len(values)}: pass one value for every row.")
    missing = _missing_rows(values)
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


def _plain_integers(y: Any) -> Any:
    """Whole numbers and truth values of pandas' own types, none missing, as NumPy has them; else y as it is."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if getattr(plain, "kind", "") not in ("i", "u", "b") or not hasattr(y, "isna") or y.isna().any():
        return y
    return y.to_numpy(dtype=plain)


def class_codes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Codes]:
    """The classes in order, and the number of the class of every row."""
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y holds one class only, {classes.tolist()[0]!r}: a classifier needs records of at least 2 classes."
        )
    return classes, codes.astype(np.intp)


def known_codes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Codes:
    """The number of the class of every validation row; classes that the training rows do not have are refused."""
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise DataError(
            f"y_val holds classes that y does not: {unknown[:5]}. Validation rows must belong to the classes "
            f"{classes.tolist()[:5]} of the training rows."
        )
    return np.searchsorted(classes, labels).astype(np.intp)


def _missing_rows(values: npt.NDArray[Any]) -> Codes:
    if values.dtype.kind == "f":
        return np.flatnonzero(np.isnan(values))
    return np.flatnonzero([_is_missing(value) for value in values] if values.dtype.kind == "O" else [])


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
