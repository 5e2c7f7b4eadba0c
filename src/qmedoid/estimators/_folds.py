"""Folds on which configurations are judged, also when some classes are tiny."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.geometry.row_groups import first_rows, group_classes, group_folds

Split = tuple[Codes, Codes]


def stratified_splits(
    cv: Any,
    X: Array,
    codes: Codes,
    classes: npt.NDArray[Any],
    rng: np.random.Generator,
    groups: Codes | None = None,
) -> list[Split]:
    """Training and validation rows of every fold.

    A number makes shuffled stratified folds, fewer where the smallest class is smaller; a class of one row stays in
    the training part of every fold, so it is never judged but always there. Rows of one group are in one fold, and
    a class of one group is as one of one row. A splitter splits groups instead of rows.
    """
    if not isinstance(cv, int | np.integer):
        return _given_splits(cv, X, codes, groups)
    counts = _draws(codes, groups, len(classes))
    alone = counts[codes] == 1
    if groups is not None:
        alone = np.bincount(groups, weights=alone)[groups] > 0
    single, judged = np.flatnonzero(alone), np.flatnonzero(~alone)
    if len(judged) == 0:
        everything = np.arange(len(codes))
        return [(everything, everything)]
    n_folds = int(min(cv, counts[counts > 1].min()))
    if n_folds < cv:
        smallest = classes[counts == n_folds].tolist()[0]
        warn(f"cv={cv} folds need {cv} rows of every class, and class {smallest!r} has {n_folds}: {n_folds} were used.")
    if groups is not None:
        fold = group_folds(groups[judged], codes[judged], n_folds, rng)
        parts = [(judged[fold != number], judged[fold == number]) for number in range(n_folds)]
        return [(np.sort(np.concatenate([train, single])), val) for train, val in parts]
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    return [
        (np.sort(np.concatenate([judged[train], single])), judged[val])
        for train, val in splitter.split(judged[:, None], codes[judged])
    ]


def _given_splits(cv: Any, X: Array, codes: Codes, groups: Codes | None) -> list[Split]:
    """Splits of a splitter, which splits groups where rows belong together, or of an iterable."""
    if groups is not None and hasattr(cv, "split"):
        splits = _given_splits(cv, X[first_rows(groups)], group_classes(groups, codes), None)
        return [(_rows_of(groups, train), _rows_of(groups, val)) for train, val in splits]
    splitter = check_cv(cv, codes, classifier=True)
    try:
        found = list(splitter.split(X, codes))
    except ValueError as error:
        raise DataError(
            f"The 'cv' splitter could not split the rows: {error} Pass an int as 'cv' (classes of one row then "
            "stay in the training part), or X_val and y_val."
        ) from error
    splits = [
        (_row_numbers(train, len(X), number), _row_numbers(val, len(X), number))
        for number, (train, val) in enumerate(found)
    ]
    _warn_overlap(splits)
    if groups is not None:
        _warn_cut_groups(splits, groups)
    return splits


def _rows_of(groups: Codes, some: Codes) -> Codes:
    return np.flatnonzero(np.isin(groups, some))


def _draws(codes: Codes, groups: Codes | None, n_classes: int) -> Codes:
    """Rows of every class, or groups that have any."""
    if groups is not None:
        codes = np.unique(groups * n_classes + codes) % n_classes
    return np.bincount(codes, minlength=n_classes)


def splits_of_part(cv: Any, rows: Codes, n_rows: int) -> Any:
    """`cv` for a part of a table: splits that name rows of the table name them by their place in the part."""
    if isinstance(cv, int | np.integer) or hasattr(cv, "split") or len(rows) == n_rows:
        return cv
    place = np.full(n_rows, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    numbered = [[place[_row_numbers(part, n_rows, number)] for part in split] for number, split in enumerate(cv)]
    return [(train[train >= 0], val[val >= 0]) for train, val in numbered]


def check_counts(codes: Codes, classes: npt.NDArray[Any], n_columns: int) -> None:
    """Warn about tables that can be fitted but leave little to learn from."""
    counts = np.bincount(codes, minlength=len(classes))
    if (counts == 1).all():
        warn("Every class has one row: those rows are the medoids, and there are no others to judge the fit by.")
    else:
        for label in classes[counts == 1].tolist():
            warn(f"Class {label!r} has one row: that row is its medoid, and it is never held out to judge the fit.")
    if len(codes) < n_columns:
        warn(
            f"{len(codes)} rows for {n_columns} columns: correlations between columns are unsure, and so are the "
            "groups built on them. They were built all the same."
        )


def check_splits(estimator: str, splits: Sequence[Split], codes: Codes, classes: npt.NDArray[Any]) -> None:
    """Raise if there is no fold, or if one has no training row of some class, or no validation row at all."""
    if not splits:
        raise ParameterError(f"The 'cv' parameter of {estimator} holds no split: give at least one.")
    for number, (train, val) in enumerate(splits):
        missing = np.flatnonzero(np.bincount(codes[train], minlength=len(classes)) == 0)
        if len(missing):
            raise DataError(
                f"Split {number} of 'cv' has no training row of class {classes[missing].tolist()[0]!r}. "
                "Use stratified splits (an int, or sklearn.model_selection.StratifiedKFold)."
            )
        if len(val) == 0:
            raise DataError(f"Split {number} of 'cv' has no validation rows.")


def _warn_overlap(splits: Sequence[Split]) -> None:
    """Warn of the first split that judges rows it trains on."""
    for number, (train, val) in enumerate(splits):
        shared = np.intersect1d(train, val)
        if len(shared):
            warn(
                f"Split {number} of 'cv' trains on {len(shared)} of its {len(val)} validation rows: what is chosen by "
                "such rows looks better than it is."
            )
            return


def _warn_cut_groups(splits: Sequence[Split], groups: Codes) -> None:
    """Warn of the first split that has rows of a group on both sides."""
    for number, (train, val) in enumerate(splits):
        cut = np.isin(groups[val], groups[train])
        if cut.any():
            warn(
                f"Split {number} of 'cv' trains on rows that belong to the same group as {int(cut.sum())} of its "
                f"{len(val)} validation rows, or are equal to them: what is chosen by such rows looks better than it "
                "is."
            )
            return


def _row_numbers(rows: Any, n_rows: int, number: int) -> Codes:
    """Rows of a split as numbers from 0 up, however the splitter gave them (a mask, or counted from the end)."""
    try:
        chosen: Codes = np.arange(n_rows)[np.asarray(rows, dtype=None if len(rows) else np.intp)]
    except IndexError as error:
        raise DataError(
            f"Split {number} of 'cv' does not fit the {n_rows} rows of X: {error}. Splits hold row numbers below "
            f"{n_rows}."
        ) from error
    return chosen
