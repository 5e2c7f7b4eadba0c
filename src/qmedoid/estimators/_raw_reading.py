"""Raw tables as a fit reads them: names, roles of columns, the positive class, and notes on what is left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qmedoid.estimators._inputs import column_names, dense
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table
from qmedoid.tables.roles import IDENTIFIERS, Role, check_roles

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


def asked_roles(roles: Any, ignore: Any, columns: Sequence[str], target: str | None) -> dict[str, Role]:
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


def place_of(positive: Any, labels: npt.NDArray[Any]) -> int:
    """The place of the positive class, given by its label or by how that is written."""
    for alike in (labels == positive, np.array([str(label) for label in labels.tolist()]) == str(positive)):
        if np.any(alike):
            return int(np.flatnonzero(alike)[0])
    raise ParameterError(
        f"The 'positive' parameter must be one of the classes, {labels.tolist()[:10]}. Got {positive!r} instead."
        f"{did_you_mean(positive, labels.tolist())}"
    )


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
