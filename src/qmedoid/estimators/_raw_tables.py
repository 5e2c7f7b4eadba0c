"""Raw tables and their classes as a `MedoidClassifier` takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._encoding import Encoded, EncodingSettings, fit_encodings
from qmedoid.estimators._inputs import class_codes, known_codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.row_groups import row_groups
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.model.contract import Contract, Encoding
from qmedoid.model.table import Record
from qmedoid.tables.arrow import as_table, plain_records
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import Issues, encode_batch
from qmedoid.tables.kinds import DateOrder, Inferred, infer_alike, infer_columns
from qmedoid.tables.roles import IDENTIFIERS, Role, check_roles
from qmedoid.tables.targets import rest_label

_WAY_OUT = "Make it so, or fit on tables like this one."


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """How labels become codes.

    Attributes
    ----------
    labels : ndarray
        The labels of the target in rising order.
    classes : ndarray of shape (C,)
        The classes by their codes: the labels, or ``"not …"`` and the label of interest.
    places : ndarray
        The code of each label.
    """

    labels: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    places: Codes

    @classmethod
    def of(cls, target: npt.NDArray[Any], positive: Any) -> tuple["ClassOrder", Codes]:
        """The order of the classes of a target, and the code of every row.

        A positive class may be given by its label or by how that is written.
        """
        labels, codes = class_codes(target)
        if positive is None:
            order = cls(labels, labels, np.arange(len(labels)))
        else:
            place = _find(labels, positive)
            if len(labels) == 2:
                order = cls(labels, labels[[1 - place, place]], (np.arange(2) == place).astype(np.intp))
            else:
                # Both as text: one array and one column of a file hold them.
                text = str(labels[place])
                against = np.array([rest_label(text), text], dtype=object)
                order = cls(labels, against, (np.arange(len(labels)) == place).astype(np.intp))
        return order, order.places[codes]

    def codes(self, target: npt.NDArray[Any]) -> Codes:
        """The code of every validation row; labels that the training rows did not have are refused."""
        if len(self.classes) < len(self.labels):
            return self._is_positive(target)
        return self.places[known_codes(target, self.labels)]

    @property
    def codes_of_sorted(self) -> Codes:
        """The code of each class, the classes in rising order, as scikit-learn has them."""
        return np.argsort(self.classes, kind="stable")

    def meant(self, target: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The class that each label stands for; a label that is new stands for itself."""
        if len(self.classes) == len(self.labels):
            return target
        meant: npt.NDArray[Any] = self.classes[self._is_positive(target)]
        return meant

    def _is_positive(self, target: npt.NDArray[Any]) -> Codes:
        return np.asarray(target == self.labels[self.places == 1][0]).astype(np.intp)


def _find(labels: npt.NDArray[Any], positive: Any) -> int:
    for alike in (labels == positive, np.array([str(label) for label in labels.tolist()]) == str(positive)):
        if np.any(alike):
            return int(np.flatnonzero(alike)[0])
    raise ParameterError(
        f"The 'positive' parameter must be one of the classes, {labels.tolist()[:10]}. Got {positive!r} instead."
    )


@dataclass(frozen=True)
class Names:
    """Names of the columns of the training table, and whether they are its own or were made up for an array."""

    names: tuple[str, ...]
    given: bool


def read_table(estimator: BaseEstimator, X: Any, fitted: Names | None, name: str = "X") -> tuple[Names, pa.Table]:
    """X as an Arrow table under the names of the fit, and these names.

    Columns of arrays go by their place; so do those of a named table where the fit was on an array.
    """
    if hasattr(X, "collect"):
        raise DataError(f"Input {name} is a {type(X).__name__}, whose rows are not there yet: collect() it first.")
    if not _has_names(X):
        return _read_array(estimator, X, fitted)
    table = as_table(X)
    if fitted is None:
        _check_size(table)
        found = Names(tuple(table.column_names), True)
        vars(estimator).update(n_features_in_=len(found.names), feature_names_in_=np.array(found.names, dtype=object))
        return found, table
    if table.num_rows == 0:
        raise DataError(f"Input {name} has no rows: pass at least one.")
    if fitted.given:
        return fitted, table
    if table.num_columns != len(fitted.names):
        raise DataError(
            f"X has {table.num_columns} features, but {type(estimator).__name__} is expecting {len(fitted.names)} "
            "features as input."
        )
    return fitted, table.rename_columns(list(fitted.names))


def _has_names(X: Any) -> bool:
    if issparse(X):  # some of these are mappings, and all are refused as arrays are checked
        return False
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")


def _read_array(estimator: BaseEstimator, X: Any, fitted: Names | None) -> tuple[Names, pa.Table]:
    is_fit = fitted is None
    array = validate_data(
        estimator, X, reset=is_fit, dtype=None, ensure_all_finite=False, ensure_min_samples=2 if is_fit else 1
    )
    # The names that scikit-learn makes up for columns that have none.
    names = Names(tuple(f"x{place}" for place in range(array.shape[1])), False) if fitted is None else fitted
    return names, as_table(array, names=list(names.names))


def _check_size(table: pa.Table) -> None:
    if table.num_columns == 0:
        raise DataError("Input X has no columns: pass at least one.")
    if table.num_rows < 2:
        raise DataError(f"Input X has {table.num_rows} sample(s) (rows), while a minimum of 2 is required.")


def records_of(table: pa.Table, rows: Codes) -> tuple[Record, ...]:
    """Some rows of a table as records, with values fit for JSON."""
    return tuple(plain_records(table.take(pa.array(rows))))


def asked_roles(roles: Any, ignore: Any, columns: Sequence[str], target: str | None) -> dict[str, Role]:
    """The roles of columns, those to be ignored among them; names and contradictions are checked."""
    if isinstance(ignore, str):
        raise ParameterError(f"The 'ignore' parameter must be a list of names. Got {ignore!r}: wrap it in [].")
    ignored = list(ignore or ())
    unknown = [name for name in ignored if name not in columns]
    if unknown:
        raise ParameterError(
            f"'ignore' names {unknown[0]!r}, which is not a column. The columns are {list(columns)[:20]}."
        )
    check_roles(("The 'roles' parameter", roles), names=columns, target=target)
    return check_roles(("'roles'", roles), ("'ignore'", dict.fromkeys(ignored, "ignore")))


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """The columns of a training table: how they were read, their encodings, and the rows as numbers.

    Attributes
    ----------
    inferred : Inferred
    contract : Contract
    encoded : Encoded
    groups : ndarray of shape (n,) or None
        Group of every row.
    """

    inferred: Inferred
    contract: Contract
    encoded: Encoded
    groups: Codes | None

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        pairs = zip(self.encoded.encodings, self.contract.names, strict=True)
        return [output for encoding, name in pairs for output in encoding.output_names(name)]


def fit_columns(
    estimator: Any,
    table: pa.Table,
    codes: Codes,
    classes: Sequence[Any],
    target: str | None,
    roles: Mapping[str, Role],
    rng: np.random.Generator,
    groups: tuple[Codes | None] | None,
) -> FittedColumns:
    """Fit contract and encodings by the parameters of a `MedoidClassifier`.

    Parameters
    ----------
    groups : tuple of the groups of the rows, or None
        None takes rows as groups that are equal in all columns of the contract.
    """
    if estimator._settled is None:
        inferred = infer_columns(
            table, skip=set() if target is None else {target}, roles=roles, decimal=estimator.decimal,
            date_order=cast("DateOrder | None", estimator.date_order),
        )  # fmt: skip
    else:
        inferred = infer_alike(table, estimator._settled)
    inferred.check_any()
    names = [column.name for column in inferred.columns]
    together = row_groups(cell_codes(_with_equal_numbers(table), names), codes) if groups is None else groups[0]
    settings = EncodingSettings(estimator.max_one_hot, estimator.max_levels)
    encoded = fit_encodings(table, inferred.columns, codes, classes, settings, rng, together)
    return FittedColumns(inferred, Contract(encoded.columns, target, inferred.left_out), encoded, together)


def _with_equal_numbers(table: pa.Table) -> pa.Table:
    """The table with numbers of a column that differ in their last digits alone made equal."""
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table.column(place).to_numpy().astype(np.float64)
            known = ~np.isnan(values)
            values[known] = with_equal_cells(values[known, None])[:, 0]
            table = table.set_column(place, field.name, pa.array(values))
    return table


def encode_rows(table: pa.Table, contract: Contract, encodings: Sequence[Encoding]) -> Array:
    """The rows as numbers, (n, M); a table that breaks the contract is refused, new levels are warned of."""
    difference = compare_columns(contract, table.schema)
    if difference.breaks:
        difference.raise_or_warn("error", way_out=_WAY_OUT)
    issues = Issues()
    columns = encode_batch(table, contract, tuple(encodings), issues=issues)
    replace(difference, issues=issues, tolerate_unseen=True).raise_or_warn("error", way_out=_WAY_OUT)
    return np.column_stack(columns)


def left_out_note(name: str, why: str) -> str:
    """Why a column was left out, and how to keep it."""
    hint = f"; roles={{{name!r}: 'keep'}} keeps it" if why in IDENTIFIERS else ""
    return f"column {name!r} was left out: {why}{hint}"
