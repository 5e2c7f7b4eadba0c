"""Rows of a fit of a `MedoidClassifier`: how raw tables are read and encoded, and the model of them."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.encoding import Encoded, fit_encodings
from qmedoid.estimators.folds import Splits, TrainingTable, validation_order
from qmedoid.estimators.inputs import (
    WeightedRows,
    check_finite,
    check_target,
    check_weights,
    class_codes,
    column_names,
    dense,
    known_codes,
    least_rows,
    weighted_rows,
)
from qmedoid.estimators.recipes import Fit
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, given_groups, part_of, row_groups, row_order
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.part import medoid_part
from qmedoid.model.contract import Contract, Encoding
from qmedoid.model.decision import Decision
from qmedoid.model.importance import training_importances
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.operating_point import asked_rule
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.schema import renumbered
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table, plain_records
from qmedoid.tables.dataset import Dataset, DatasetSettings, check_roles
from qmedoid.tables.difference import Issues, compare_columns
from qmedoid.tables.encode import encode_batch, remember_rows, training_summary
from qmedoid.tables.kinds import IDENTIFIERS, alike_levels
from qmedoid.tables.leaks import find_leaks
from qmedoid.tables.roles import check_missing
from qmedoid.tables.targets import Target, choose_positive, seldom_note, target_notes

if TYPE_CHECKING:
    from qmedoid.estimators.medoid import MedoidClassifier

_FACTORS = (
    "weights of rows are factors of the losses, as they are no whole numbers or too many for copies: such a fit has no "
    "neighbors, symmetric trees or circuit, and its cut cannot be changed afterwards but by a probability"
)
_WAY_OUT = "Change the table accordingly, or fit on tables like this one."
# Columns that a warning names.
_NAMED = 5


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> pa.Table:
    """X as an Arrow table under the names of the fit.

    Columns of arrays go by their place; so do those of a named table where the fit was on an array.
    """
    X = dense(X, name)
    if not (isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")):
        array = validate_data(
            estimator, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=least_rows(reset, name)
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
    if table.num_rows < least_rows(reset, name):
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
    names, ignore = table.column_names, estimator.ignore
    if isinstance(ignore, str):
        raise ParameterError(f"The 'ignore' parameter must be a list of names. Got {ignore!r}: wrap it in [].")
    ignored = list(ignore or ())
    unknown = [column for column in ignored if column not in names]
    if unknown:
        raise ParameterError(
            f"'ignore' names {unknown[0]!r}, which is not a column.{did_you_mean(unknown[0], names)} The columns are "
            f"{names[:20]}."
        )
    check_roles(("The 'roles' parameter", estimator.roles), names=names, target=name)
    settings = DatasetSettings(
        target=name,
        roles=check_roles(("'roles'", estimator.roles), ("'ignore'", dict.fromkeys(ignored, "ignore"))),
        decimal=estimator.decimal,
        date_order=estimator.date_order,
        missing=check_missing("The 'missing' parameter", estimator.missing, names=names, target=name),
    )
    target = Target(name, classes, codes)
    data = Dataset.of(table, target, settings, groups=together, weights=weights, rows=rows, n_source=n_rows)
    for one in data.repeats:
        _note([], one.message(python=True))
    return data


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


def left_out_note(name: str, why: str) -> str:
    """Why a column was left out, and how to keep it."""
    hint = f"; roles={{{name!r}: 'keep'}} keeps it" if why in IDENTIFIERS else ""
    return f"column {name!r} was left out: {why}{hint}"


class RawRows(NamedTuple):
    """The rows of a fit: as numbers, with validation rows behind them; their split; and training rows as a dataset.

    The numbers are in an order of their own, the tables as they were given; the classes are in their own order, and in
    `data` in that of their codes. `places` are the columns of an array that are encoded as they are, if all are.
    """

    data: TrainingTable
    splits: Splits | None
    contract: Contract
    encodings: tuple[Encoding, ...]
    matrix: Array
    given: Dataset
    tables: list[pa.Table]
    classes: npt.NDArray[Any]
    notes: list[str]
    places: Codes | None

    def model(self, fit: Fit, decision: Decision, curve: HeldOutCurve | None, **about: Any) -> Model:
        """The model of these rows, with the row numbers of the source; and notes on what the fit limited."""
        fitted, data, given = fit.fitted, self.data, self.given
        part = medoid_part(fitted.parts)
        assert part is not None, "a recipe fits medoids"
        assert data.row_numbers is not None, "rows of a table have numbers"
        known = given.table.select([column.name for column in self.contract.columns])
        medoids = data.row_numbers[part.rows.numbers]
        order = np.argsort(given.rows, kind="stable")
        model = Model(
            contract=self.contract, encodings=self.encodings, decision=decision, parts=fitted.parts,
            weights=fitted.weights, biases=fitted.biases, calibration=fit.calibration, refinement=fit.refinement,
            records=tuple(plain_records(known, order[np.searchsorted(given.rows[order], medoids)])),
            novelty=fit_novelty(self.matrix, self.encodings, part, None if data.totals is None else data.weights),
            training=training_summary(given.table, self.contract, self.encodings, curve),
            **about,
        )  # fmt: skip
        model = replace(model, importances=training_importances(model, data.X, fit.held_out))
        for note in fitted.notes:
            _note(self.notes, note, warned=not given.is_part)
        if data.totals is None:  # of a sample the cut is chosen later
            _note(self.notes, None if data.weights is None else _FACTORS, warned=not given.is_part)
            expected = decision.operating
            if expected is not None and expected.rule == "likeliest" and expected.counts is not None:
                _note(self.notes, seldom_note(list(decision.classes), expected.counts))
        return renumbered(replace(model, seen=remember_rows(model, self.tables)), data.row_numbers)


def read_rows(
    owner: "MedoidClassifier", X: Any, y: Any, X_val: Any, y_val: Any, groups: Any, sample_weight: Any
) -> RawRows:
    """Choose the classes, find contract and encodings by the parameters of a classifier, and encode the rows."""
    given = dataset_of(owner, X, y, groups, sample_weight)
    validation = None if X_val is None else held_out_rows(owner, X_val, y_val)
    if validation is not None and (given.weights is not None or owner.class_weight is not None):
        raise ParameterError(
            "Weights of rows and classes do not go with X_val: leave it out, and cross-validation evaluates "
            "by weighted rows."
        )
    if given.weights is not None and not given.weights.all():
        given = given.take(np.flatnonzero(given.weights))
    notes = list[str]()
    notes += [] if isinstance(X, Dataset) else [one.message(python=True) for one in given.repeats]
    labels, target = _chosen_classes(owner, given, notes)
    weighted = weighted_rows(given.weights, owner.class_weight, target.codes, target.classes)
    asked_rule(owner.operating_point, target.classes.tolist())
    encoded, together, order, cells = _fit_columns(owner, given, target, weighted, notes)
    contract = Contract(encoded.columns, target.name, given.own_kinds.left_out)
    numbers, statistics, codes = encoded.matrix, encoded.statistics, target.codes[weighted.rows[order]]
    factors = None if weighted.factors is None else weighted.factors[order]
    row_numbers, n_given, splits, tables = given.rows[weighted.rows[order]], given.n_source, None, [given.table]
    if validation is not None:
        tables.append(validation[0])
        val_codes = known_codes(validation[1], target.classes)
        val_matrix = encoded_rows(tables[1], contract, encoded.encodings)
        n_train = len(codes)
        val_order = validation_order(val_matrix, val_codes)
        val_matrix, val_rows = val_matrix[val_order], given.n_source + val_order
        row_numbers, n_given = np.append(row_numbers, val_rows), n_given + len(val_matrix)
        numbers = np.concatenate([numbers, val_matrix])
        codes = np.concatenate([codes, val_codes[val_order]])
        # Validation rows are held out as they are, but equal ones are one draw.
        before = np.arange(n_train) if together is None else together
        together = part_of(np.append(before, n_train + equal_rows(val_matrix)), np.arange(len(codes)))
        splits = [(given.rows, np.sort(val_rows))]
    names = contract.encoded_names(encoded.encodings)
    same = np.flatnonzero(np.ptp(encoded.matrix, axis=0) == 0)
    # How frequent levels are, and the like, is no column that a user knows.
    known = [names[column] for column in same if names[column] in contract.names]
    constant = [f"{name!r} is the same in all rows once encoded" for name in known]
    notes += constant
    _warn_of_columns(given, constant)
    check_finite(numbers, names, row_numbers=row_numbers)
    numbers = np.ascontiguousarray(with_equal_cells(numbers))
    data = TrainingTable(
        numbers, codes, target.classes, together, names, is_checked=True,
        fold_rows=None if statistics is None else functools.partial(statistics.fold, numbers),
        row_numbers=row_numbers, n_given=n_given, weights=factors, cells=cells, totals=target.totals,
    )  # fmt: skip
    is_plain = all(column.kind == "number" and not column.missing_values for column in contract.columns)
    places = None
    if is_plain and len(names) == len(contract.columns):
        places = np.flatnonzero(np.isin(column_names(owner), contract.names))
    return RawRows(data, splits, contract, encoded.encodings, encoded.matrix, given, tables, labels, notes, places)


def _chosen_classes(owner: "MedoidClassifier", data: Dataset, notes: list[str]) -> tuple[npt.NDArray[Any], Target]:
    """The classes in their own order, and in that of their codes: of two the class of interest is the second."""
    target = data.target
    labels, counts = target.classes.tolist(), target.counts.tolist()
    if len(labels) < 2:
        raise DataError(
            f"The rows of the fit are of one class only, {labels[0]!r}: a classifier needs records of at least 2."
        )
    for code, message in target_notes(labels, counts):
        # What numbers are is seen in all rows, not in a part of them.
        if not (data.is_part and code in ("target_quantity", "target_codes")):
            _note(notes, message)
    point, place = owner.operating_point, None
    if owner.positive is not None:
        place = target.place_of(owner.positive)
    elif point is not None and len(labels) == 2:
        asked = next(iter(point)).replace("_", " ") if isinstance(point, Mapping) else "operating point"
        place, why, is_plain = choose_positive(labels, counts, asked)
        _note(notes, why, warned=not is_plain)
    if place is not None and len(labels) > 2:
        target, positive = target.against_rest(place), str(labels[place])
        place = target.classes.tolist().index(positive)
    return target.classes, target.reversed() if place == 0 else target


def _note(notes: list[str], note: str | None, *, warned: bool = True) -> None:
    """Keep a note and, unless it is said elsewhere or nobody is surprised, warn."""
    if note is not None:
        notes.append(note)
        if warned:
            warn(f"{note[0].upper()}{note[1:].removesuffix('.')}.")


def _warn_of_columns(data: Dataset, messages: Sequence[str]) -> None:
    """One warning of what is noted of columns; that of a part of a table was said of the whole."""
    if messages and not data.is_part:
        more = f"; and {len(messages) - _NAMED:,} more: see notes_" if len(messages) > _NAMED else ""
        said = "; ".join(message.removesuffix(".") for message in messages[:_NAMED])
        warn(f"{said[0].upper()}{said[1:]}{more}.")


def _fit_columns(
    owner: "MedoidClassifier", data: Dataset, target: Target, weighted: WeightedRows, notes: list[str]
) -> tuple[Encoded, Codes | None, Codes, tuple[Codes, list[bool]]]:
    """Fit contract and encodings, with notes, to weighted rows in an order of their own.

    Returns, in that order, the rows as numbers, the group of each, its place among them, and the cells that it is
    ordered by.
    """
    rng = np.random.default_rng(check_random_state(owner.random_state).randint(2**31, size=4))
    kinds, rows, roles = data.own_kinds, weighted.rows, data.settings.all_roles
    left_out = {name: left_out_note(name, why) for name, why in kinds.left_out.items()}
    read = [*kinds.notes.values(), *(one.message(name) for name, one in kinds.sentinels.items())]
    levels = [column.name for column in kinds.columns if column.kind == "category"]
    read += filter(None, (alike_levels(name, data.table.column(name)) for name in levels))
    notes += [*read, *left_out.values()]
    # That cells hold a value that the user named as missing surprises nobody.
    _warn_of_columns(data, [note for note in read if not note.endswith(", read as missing")])
    _warn_of_columns(data, [left_out[name] for name in left_out if roles.get(name) != "ignore"])
    groups = next((one.groups for one in data.repeats if one.is_sure), data.groups)
    labels = target.classes.tolist()
    leaks = find_leaks(data.table, kinds.columns, target.codes, labels, groups=groups, is_quick=True)
    kept = {name for name, role in roles.items() if role == "keep"}
    given_away = [one.message for one in leaks if one.is_problem and kept.isdisjoint(one.columns)]
    notes += given_away
    _warn_of_columns(data, given_away)
    place_of = {column.name: place for place, column in enumerate(data.kinds.columns)}
    places = data.cells[:, [place_of[column.name] for column in kinds.columns]]
    is_level = [column.kind == "category" for column in kinds.columns]
    together = None if data.groups is None else given_groups(data.groups, len(data.rows))
    codes = target.codes
    order = row_order(places[rows], codes[rows], part_of(together, rows), weighted.factors, is_level=is_level)
    rows = rows[order]
    together, codes = part_of(together, rows), codes[rows]
    if data.groups is None and data.near is not None:
        together = part_of(data.near, rows)
    elif data.groups is None:
        together = row_groups(places[rows], codes)
        equal = None if together is None or weighted.has_copies else equal_rows_note(together)
        _note(notes, equal, warned=not data.is_part)
    factors, classes = None if weighted.factors is None else weighted.factors[order], target.classes.tolist()
    encoded = fit_encodings(
        data.table, kinds.columns, codes, classes, rng, together, factors, rows=rows,
        max_one_hot=owner.max_one_hot, max_levels=owner.max_levels,
    )  # fmt: skip
    return encoded, together, order, (places[rows], is_level)


def encoded_rows(table: pa.Table, contract: Contract, encodings: Sequence[Encoding]) -> Array:
    """Rows as numbers, (n, M); a table that breaks the contract is refused, new levels are warned of."""
    difference = compare_columns(contract, table.schema)
    if difference.breaks:
        difference.raise_or_warn("error", way_out=_WAY_OUT)
    issues = Issues()
    columns = encode_batch(table, contract, encodings, issues=issues)
    replace(difference, issues=issues, tolerate_unseen=True).raise_or_warn("error", way_out=_WAY_OUT)
    return np.column_stack(columns)
