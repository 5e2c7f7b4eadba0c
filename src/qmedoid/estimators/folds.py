"""The rows of a fit, and folds and samples of them, also where some classes are tiny."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.inputs import WeightedRows
from qmedoid.estimators.number_columns import number_columns
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.geometry.near_rows import rows_together
from qmedoid.geometry.row_groups import (
    equal_rows_note,
    first_rows,
    given_groups,
    group_classes,
    group_folds,
    part_of,
    ranks,
    row_order,
)
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.schema import renumbered

Split = tuple[Codes, Codes]
Splits = list[Split]
FoldRows = Callable[[Codes, Codes], tuple[Array, Array]]
"""The rows of a table that train and those that are held out, both as numbers."""
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The rows of a fit: as numbers, shape (n, M), their class codes, and the labels of the classes by their codes.

    `groups` are held out together; None where every row is a group. `names` of the columns are for messages;
    `is_checked` where constant columns were noted already. `fold_rows` makes numbers of rows that train, and of rows
    that are held out without their labels; None where no number is made with labels. `row_numbers` are those of the
    table that was given, which has `n_given` rows, the same for all copies of a row. `weights` of rows in a loss have
    the mean 1. `cells` are what rows are ordered by where it is not X, and which of their columns have levels. `totals`
    are the rows of every class in the whole table, where these are a sample.
    """

    X: Array
    codes: Codes
    classes: npt.NDArray[Any]
    groups: Codes | None = None
    names: Any = None
    is_checked: bool = False
    fold_rows: FoldRows | None = None
    row_numbers: Codes | None = None
    n_given: int | None = None
    weights: Array | None = None
    cells: tuple[Codes, list[bool]] | None = None
    totals: Codes | None = None

    def part(self, rows: Codes) -> "TrainingTable":
        """Some of the rows."""
        of_all = self.fold_rows
        of_part = None if of_all is None else lambda train, held: of_all(rows[train], rows[held])
        groups = part_of(self.groups, rows)
        part = replace(self, X=self.X[rows], codes=self.codes[rows], groups=groups, fold_rows=of_part)
        weights = None if self.weights is None else self.weights[rows] / self.weights[rows].mean()
        return replace(part, row_numbers=None, n_given=None, weights=weights, cells=None)

    def in_own_order(self, rows: Codes) -> Codes:
        """Some of the rows in the order that they have where they are all."""
        weights = None if self.weights is None else self.weights[rows]
        cells, is_level = (self.X, None) if self.cells is None else self.cells
        groups = part_of(self.groups, rows)
        return rows[row_order(ranks(cells[rows]), self.codes[rows], groups, weights, is_level=is_level)]

    def as_given(self, model: Kind) -> Kind:
        """A model of these rows, or a part of one, with the row numbers of the table that was given."""
        return model if self.row_numbers is None else renumbered(model, self.row_numbers)

    def splits(self, estimator: Any, rng: np.random.Generator) -> Splits:
        """Training and held-out rows of the folds of an estimator's `cv`.

        Raise if there is no fold, if one has no training row of some class or no held-out row at all, or if there are
        several and the training rows of a single one are to be kept.
        """
        codes, classes = self.codes, self.classes
        cv, n_given = estimator.cv, self.n_given
        if self.row_numbers is not None and not isinstance(cv, int | np.integer):
            cv = splits_of_part(cv, np.unique(self.row_numbers), len(codes) if n_given is None else n_given)
        splits = stratified_splits(cv, self.X, codes, classes, rng, self.groups, self.row_numbers)
        if not splits:
            name = type(estimator).__name__
            raise ParameterError(f"The 'cv' parameter of {name} holds no split: give at least one.")
        for number, (train, val) in enumerate(splits):
            missing = np.flatnonzero(np.bincount(codes[train], minlength=len(classes)) == 0)
            if len(missing):
                raise DataError(
                    f"Split {number} of 'cv' has no training row of class {classes[missing].tolist()[0]!r}. "
                    "Use stratified splits (an int, or sklearn.model_selection.StratifiedKFold)."
                )
            if len(val) == 0:
                raise DataError(f"Split {number} of 'cv' has no validation rows.")
        if not getattr(estimator, "refit", True) and len(splits) > 1:
            raise ParameterError(
                f"refit=False keeps the training rows of a single split, but cv made {len(splits)}. "
                "Pass refit=True, or a cv with one split."
            )
        return splits


def stratified_splits(
    cv: Any,
    X: Array,
    codes: Codes,
    classes: npt.NDArray[Any],
    rng: np.random.Generator,
    groups: Codes | None = None,
    row_numbers: Codes | None = None,
) -> Splits:
    """Training and validation rows of every fold.

    A number makes shuffled stratified folds, fewer where the smallest class is smaller; a class of one row, or of one
    group, is in the training part of every fold. Groups are in one fold; a splitter splits groups instead of rows. Rows
    of given splits are numbered in the order in which they were given.
    """
    if not isinstance(cv, int | np.integer):
        return _given_splits(cv, X, codes, groups, row_numbers)
    # Rows of every class, or groups that have any.
    draws = codes if groups is None else np.unique(groups * len(classes) + codes) % len(classes)
    counts = np.bincount(draws, minlength=len(classes))
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


def _given_splits(cv: Any, X: Array, codes: Codes, groups: Codes | None, row_numbers: Codes | None = None) -> Splits:
    """Splits of a splitter, which splits groups where rows belong together, or of an iterable."""
    if row_numbers is not None:
        _, place, of_row = np.unique(row_numbers, return_index=True, return_inverse=True)
        given = _given_splits(cv, X[place], codes[place], part_of(groups, place))
        if len(place) == len(row_numbers):
            return [(np.sort(place[train]), np.sort(place[val])) for train, val in given]
        parts = [[np.flatnonzero(np.isin(of_row, part)) for part in split] for split in given]
        return [(train, val) for train, val in parts]
    if groups is not None and hasattr(cv, "split"):
        splits = _given_splits(cv, X[first_rows(groups)], group_classes(groups, codes), None)
        parts = [[np.flatnonzero(np.isin(groups, part)) for part in split] for split in splits]
        return [(train, val) for train, val in parts]
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
    for number, (train, val) in enumerate(splits):
        # Rows that it trains on judge it, or rows of a group that has some on both sides.
        shared = np.intersect1d(train, val)
        cut = len(shared) if groups is None else int(np.isin(groups[val], groups[train]).sum())
        if cut:
            of_group = "rows that belong to the same group as " if len(shared) < cut else ""
            equal = ", or are equal to them" if len(shared) < cut else ""
            warn(
                f"Split {number} of 'cv' trains on {of_group}{cut} of its {len(val)} validation rows{equal}: what is "
                "chosen by such rows looks better than it is."
            )
            break
    return splits


def splits_of_part(cv: Any, rows: Codes, n_rows: int) -> Any:
    """`cv` for a part of a table: splits that name rows of the table name them by their place in the part."""
    if isinstance(cv, int | np.integer) or hasattr(cv, "split") or len(rows) == n_rows:
        return cv
    place = np.full(n_rows, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    numbered = [[place[_row_numbers(part, n_rows, number)] for part in split] for number, split in enumerate(cv)]
    return [(train[train >= 0], val[val >= 0]) for train, val in numbered]


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


def ordered_table(
    estimator: Any, X: Array, codes: Codes, classes: npt.NDArray[Any], groups: Any, weighted: WeightedRows
) -> TrainingTable:
    """Rows, classes and groups of a fit in an order of their own, with the row numbers that they were given with.

    X is what `fit_numbers` has made for the estimator. `codes` are those of the weighted rows, all else is of the table
    that was given. Rows are ordered by its cells.
    """
    columns = number_columns(estimator)
    assert columns is not None, "the estimator was fitted to numbers"
    names = getattr(estimator, "feature_names_in_", None)
    names = names if columns.is_plain else columns.contract.encoded_names(columns.encodings)
    cells = columns.cells(X) if columns.n_missing.any() else None
    given = None if groups is None else given_groups(groups, len(X))
    rows, factors = weighted.rows, weighted.factors
    given = given if given is None else given[rows]
    places = ranks((X if cells is None else cells)[rows])
    order = row_order(places, codes, given, factors)
    X, codes = np.ascontiguousarray(X[rows[order]]), codes[order]
    together, is_near = (part_of(given, order), False) if groups is not None else rows_together(X, codes)
    note = None if groups is not None or together is None else equal_rows_note(together, is_near=is_near)
    if note is not None and not weighted.has_copies:
        warn(f"{note}.")
    return TrainingTable(
        X, codes, classes, together, names, row_numbers=rows[order], n_given=weighted.n_given,
        weights=None if factors is None else factors[order],
        cells=None if cells is None else (places[order], [False] * places.shape[1]),
    )  # fmt: skip


def validation_order(X: Array, codes: Codes) -> Codes:
    """The order of validation rows."""
    return row_order(ranks(with_equal_cells(X)), codes)
