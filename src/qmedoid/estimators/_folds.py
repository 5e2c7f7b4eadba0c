"""Folds on which configurations are judged, also when some classes are tiny."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv

from qmedoid.estimators._parameters import Whole
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Split = tuple[Codes, Codes]


def stratified_splits(
    cv: Any, X: Array, codes: Codes, classes: npt.NDArray[Any], rng: np.random.Generator
) -> list[Split]:
    """Training and validation rows of every fold.

    A number makes shuffled stratified folds, fewer where the smallest class is smaller; a class of one row stays in
    the training part of every fold, so it is never judged but always there.
    """
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
        splitter = check_cv(cv, codes, classifier=True)
        return [(np.asarray(train), np.asarray(val)) for train, val in splitter.split(X, codes)]
    if not Whole(2).allows(cv):
        raise ParameterError(
            "The 'cv' parameter of FusionClassifier must be an int >= 2, a splitter or an iterable. "
            f"Got {cv!r} instead."
        )
    counts = np.bincount(codes, minlength=len(classes))
    single = np.flatnonzero(counts[codes] == 1)
    judged = np.flatnonzero(counts[codes] > 1)
    if len(judged) == 0:
        everything = np.arange(len(codes))
        return [(everything, everything)]
    n_folds = int(min(cv, counts[counts > 1].min()))
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    return [
        (np.sort(np.concatenate([judged[train], single])), judged[val])
        for train, val in splitter.split(judged[:, None], codes[judged])
    ]


def check_counts(codes: Codes, classes: npt.NDArray[Any], n_columns: int) -> None:
    """Warn about tables that can be fitted but leave little to learn from."""
    counts = np.bincount(codes, minlength=len(classes))
    for label in classes[counts == 1]:
        warnings.warn(
            f"Class {label!r} has one row: that row is its medoid, and it is never held out to judge the fit.",
            QMedoidWarning,
            stacklevel=3,
        )
    if len(codes) < n_columns:
        warnings.warn(
            f"{len(codes)} rows for {n_columns} columns: correlations between columns are unsure, and so are the "
            "groups built on them. They were built all the same.",
            QMedoidWarning,
            stacklevel=3,
        )


def check_splits(splits: Sequence[Split], codes: Codes, classes: npt.NDArray[Any]) -> None:
    """Raise if a fold has no training row of some class, or no validation row at all."""
    for number, (train, val) in enumerate(splits):
        missing = np.flatnonzero(np.bincount(codes[train], minlength=len(classes)) == 0)
        if len(missing):
            raise DataError(
                f"Split {number} of 'cv' has no training row of class {classes[missing[0]]!r}. "
                "Use stratified splits (an int, or sklearn.model_selection.StratifiedKFold)."
            )
        if len(val) == 0:
            raise DataError(f"Split {number} of 'cv' has no validation rows.")
