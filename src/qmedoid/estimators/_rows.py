"""What a fit is given as a dataset: tables, targets, groups and weights; and notes on columns that are left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qmedoid.arrays import Codes
from qmedoid.estimators._inputs import check_target, class_codes, column_names, dense
from qmedoid.estimators._weights import check_weights
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.row_groups import given_groups
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.roles import IDENTIFIERS, Role, check_roles
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.targets import Target

# Columns that a warning names.
_NAMED = 5


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> pa.Table:
    """X as an Arrow table under the names of the fit.

    Columns of arrays go by their place; so do those of a named table where the fit was on an array.
    """
    X = dense(X, name)
    if not (isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")):
        array = validate_data(
            estimator, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=2 if reset else 1
        )
        return as_table(array, names=column_names(estimator))
    table = as_table(X)
    if reset:
        if table.num_columns == 0:
            raise DataError("Input X has no columns: pass at least one.")
        if table.num_rows < 2:
            raise DataError(f"Input X has {table.num_rows} sample(s) (rows), while a minimum of 2 is required.")
        given = np.array(table.column_names, dtype=object)
        vars(estimator).update(n_features_in_=len(given), feature_names_in_=given)
        return table
    if table.num_rows == 0:
        raise DataError(f"Input {name} has no rows: pass at least one.")
    if hasattr(estimator, "feature_names_in_"):
        return table
    names = column_names(estimator)
    if table.num_columns != len(names):
        raise DataError(
            f"X has {table.num_columns} features, but {type(estimator).__name__} is expecting {len(names)} features "
            "as input."
        )
    return table.rename_columns(names)


def dataset_of(estimator: Any, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Dataset:
    """The rows of a fit, as the parameters of an estimator say; it keeps the names of the columns.

    What is a dataset already stays as it is. Rows of weight 0 are left out.
    """
    if isinstance(X, Dataset):
        if not (y is None and groups is None and sample_weight is None):
            raise ParameterError("A Dataset has a target, groups and weights: leave y, groups and sample_weight out.")
        names = np.array([name for name in X.table.column_names if name != X.target.name], dtype=object)
        vars(estimator).update(n_features_in_=len(names), feature_names_in_=names)
        return X
    table = read_table(estimator, X, reset=True)
    n_rows, name = table.num_rows, getattr(y, "name", None)
    name = name if isinstance(name, str) else None
    together = group_codes(groups, n_rows)
    labels = y if sample_weight is None else check_target(y, n_rows)
    weights = None if sample_weight is None else check_weights(sample_weight, n_rows)
    rows = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    if weights is not None:
        table, labels, weights = table.take(pa.array(rows)), labels[rows], weights[rows]
        together = None if together is None else together[rows]
    classes, codes = class_codes(labels, len(rows))
    names = table.column_names
    settings = DatasetSettings(
        target=name,
        roles=given_roles(estimator.roles, estimator.ignore, names, name),
        decimal=estimator.decimal,
        date_order=estimator.date_order,
        missing=check_missing("The 'missing' parameter", estimator.missing, names=names, target=name),
    )
    target = Target(name, classes, codes)
    return Dataset.of(table, target, settings, groups=together, weights=weights, rows=rows, n_source=n_rows)


def group_codes(groups: Any, n_rows: int) -> Codes | None:
    """Groups that were given as numbers; None where none were."""
    if groups is None:
        return None
    found = given_groups(groups, n_rows)
    return np.arange(n_rows) if found is None else found


def held_out_rows(estimator: Any, X: Any, y: Any, name: str = "val") -> tuple[pa.Table, Target]:
    """Rows X_val, or of another name, under the names of the fit, and their classes."""
    if isinstance(X, Dataset):
        return X.table, X.target
    table = read_table(estimator, X, reset=False, name=f"X_{name}")
    labels = check_target(y, table.num_rows, name=f"y_{name}", table=f"X_{name}")
    classes, codes = np.unique(labels, return_inverse=True)
    return table, Target(None, classes, codes.astype(np.intp))


def given_roles(roles: Any, ignore: Any, columns: Sequence[str], target: str | None) -> dict[str, Role]:
    """The roles of columns, those to be ignored among them; names and contradictions are checked."""
    if isinstance(ignore, str):
        raise ParameterError(f"The 'ignore' parameter must be a list of names. Got {ignore!r}: wrap it in [].")
    ignored = list(ignore or ())
    unknown = [name for name in ignored if name not in columns]
    if unknown:
        raise ParameterError(
            f"'ignore' names {unknown[0]!r}, which is not a column.{did_you_mean(unknown[0], columns)} The columns are "
            f"{list(columns)[:20]}."
        )
    check_roles(("The 'roles' parameter", roles), names=columns, target=target)
    return check_roles(("'roles'", roles), ("'ignore'", dict.fromkeys(ignored, "ignore")))


def left_out_note(name: str, why: str) -> str:
    """Why a column was left out, and how to keep it."""
    hint = f"; roles={{{name!r}: 'keep'}} keeps it" if why in IDENTIFIERS else ""
    return f"column {name!r} was left out: {why}{hint}"


def left_out_warning(notes: Mapping[str, str]) -> str:
    """One message about the columns that were left out by a guess, by their notes."""
    if len(notes) == 1:
        note = next(iter(notes.values()))
        return f"{note[0].upper()}{note[1:]}."
    lines = [note.replace(f"column {name!r} was left out", f"- {name!r}", 1) for name, note in notes.items()]
    more = [f"- and {len(lines) - _NAMED:,} more: see notes_"] if len(lines) > _NAMED else []
    return "\n".join([f"{len(lines):,} columns were left out:", *lines[:_NAMED], *more])
