"""What a stability report refits: a classifier, its table, and its groups of rows."""

import warnings
from inspect import signature
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, clone

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._inputs import check_table, class_codes
from qmedoid.estimators._raw_reading import read_table
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning
from qmedoid.geometry.row_groups import given_groups, row_groups
from qmedoid.methods.part import Part
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.kinds import Inferred


class Subject:
    """A classifier and a table: what is fitted again and again, and what each fit is asked.

    Attributes
    ----------
    strata : ndarray of shape (n,)
        Codes of the labels, within which samples are drawn.
    columns : list of str
        Names of the columns that groups are made of, of all fits so far: each fit of a `MedoidClassifier` has its own
        encoding.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, groups: Any = None) -> None:
        if not isinstance(estimator, BaseEstimator) or estimator.__sklearn_tags__().estimator_type != "classifier":
            raise ParameterError(
                f"Stability is that of a classifier, such as MedoidClassifier(). Got {estimator!r} instead."
            )
        self._estimator = clone(estimator)
        self._is_raw = isinstance(estimator, MedoidClassifier)
        self._settled: Inferred | None = None
        shell = BaseEstimator()  # takes the names of the columns; a pipeline would not
        self._table: Any = read_table(shell, X, reset=True) if self._is_raw else check_table(shell, X, reset=True)
        self.n_rows = len(self._table)
        classes, self.strata = class_codes(y, self.n_rows)
        self.labels = classes[self.strata]
        found = None if groups is None else given_groups(groups, self.n_rows)
        self._given = np.arange(self.n_rows) if groups is not None and found is None else found
        self._takes_groups = self._given is not None and "groups" in signature(cast("Any", estimator).fit).parameters
        given = [] if self._is_raw else getattr(shell, "feature_names_in_", range(self._table.shape[1]))
        self.columns = [str(name) for name in given]

    def fit(self, rows: Codes, seed: int) -> Any:
        """A clone fitted on some rows; the seed is used where the classifier has none."""
        fresh = clone(self._estimator)
        if fresh.get_params(deep=False).get("random_state", 0) is None:
            fresh.set_params(random_state=seed)
        if self._settled is not None:
            fresh._settled = self._settled
        groups = {"groups": self._given[rows]} if self._takes_groups and self._given is not None else {}
        return fresh.fit(self.part(rows), self.labels[rows], **groups)

    def row_groups(self, full: Any) -> Codes | None:
        """Groups of the rows: those that were given, or rows that are equal in the columns of the fit of all rows."""
        if self._given is not None:
            return self._given
        cells = cell_codes(self._table, full.contract_.names) if self._is_raw else self._table
        return row_groups(cells, self.strata)

    def fix_columns(self, full: Any) -> None:
        """Read the columns of a raw table in all fits to come as the fit of all rows has read them.

        A column of row numbers has no value twice, but some twice in a sample.
        """
        if self._is_raw:
            self._settled = full._inferred
            # Nor may a sample choose another class of interest where two are about as frequent.
            self._estimator.set_params(positive=full.positive_)

    def refit(self, rows: Codes, seed: int, name: str) -> Any:
        """A clone fitted on a sample; an error says which, and an interrupt is not taken for the end of a search."""
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always", QMedoidWarning)
            try:
                fitted = self.fit(rows, seed)
            except ValueError as error:
                raise DataError(f"{name} failed: {error}") from error
            except Exception as error:
                error.add_note(f"{name} failed.")
                raise
        if any(issubclass(one.category, InterruptedWarning) for one in given):
            raise KeyboardInterrupt
        return fitted

    def part(self, rows: Codes) -> Any:
        """Some rows of the table."""
        return self._table.take(pa.array(rows)) if self._is_raw else self._table[rows]

    def classes_of_rows(self, full: Any) -> Codes:
        """Code, in `classes_` of the fit of all rows, of the class that every label stands for."""
        return codes_of(full, full._meant(self.labels) if self._is_raw else self.labels)

    def numbers(self, full: Any) -> Array:
        """The rows as numbers, standardized; columns that are the same everywhere are left out."""
        matrix = full._matrix(self._table) if self._is_raw else self._table
        deviation = matrix.std(axis=0)
        varied = deviation > 0
        numbers: Array = (matrix[:, varied] - matrix[:, varied].mean(axis=0)) / deviation[varied]
        return numbers

    def groups(self, fitted: Any) -> frozenset[frozenset[int]] | None:
        """The groups of more than one and not all columns that a fit has found; None where it knows no groups."""
        part = part_of_medoids(fitted)
        if part is None:
            return None
        places = list(range(len(self.columns)))
        if self._is_raw:
            self.columns = list(dict.fromkeys([*self.columns, *fitted.encoded_names_]))
            places = [self.columns.index(name) for name in fitted.encoded_names_]
        several = (set(group) for group in part.facts["groups"] if 1 < len(set(group)) < len(places))
        return frozenset(frozenset(places[column] for column in group) for group in several)


def part_of_medoids(fitted: Any) -> Part | None:
    """The model of distances to real records inside a fitted classifier; None where it has none."""
    model = getattr(fitted, "model_", None)
    method = getattr(model, "method", model)
    return method if isinstance(method, Part) else None


def codes_of(fitted: Any, labels: npt.NDArray[Any]) -> Codes:
    """Place of labels among the classes of a fit."""
    return np.searchsorted(fitted.classes_, labels).astype(np.intp)


def margins_of(fitted: Any, X: Any) -> Array | None:
    """How far the decision about each row is from another one, shape (n,); None where a classifier does not say."""
    name = next((name for name in ("decision_function", "predict_proba") if hasattr(fitted, name)), None)
    if name is None:
        return None
    values = np.asarray(getattr(fitted, name)(X), dtype=np.float64)
    return np.abs(values) if values.ndim == 1 else np.diff(np.sort(values, axis=1)[:, -2:])[:, 0]
