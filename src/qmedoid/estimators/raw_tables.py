"""Raw tables of a `MedoidClassifier`: how they are read and encoded for a fit, and what is done with its model."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._fitted import plain_parameters
from qmedoid.estimators._methods import Fit
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators.encoding import Encoded, fit_encodings
from qmedoid.estimators.folds import Splits, TrainingTable, validation_order
from qmedoid.estimators.inputs import (
    check_finite,
    check_target,
    class_codes,
    column_names,
    dense,
)
from qmedoid.estimators.weights import WeightedRows, check_weights, weighted_rows
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.explain.effect import N_BINS, Effect, EffectTally, check_bins
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, given_groups, part_of, row_groups
from qmedoid.geometry.row_order import row_order
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.part import LARGEST, medoid_part
from qmedoid.model.contract import Contract, Encoding
from qmedoid.model.importance import ImportanceTally, by_importance, training_importances
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.operating_point import asked_rule
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table, plain_records
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import encode_batch, training_summary
from qmedoid.tables.issues import Issues
from qmedoid.tables.roles import IDENTIFIERS, Role, check_roles
from qmedoid.tables.row_hashes import remember_rows
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.targets import Target, choose_positive, seldom_note, target_notes

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


class RawRows(NamedTuple):
    """The rows of a fit: as numbers, with validation rows behind them; their split; and training rows as a dataset.

    The numbers are in an order of their own, the tables as they were given.
    """

    data: TrainingTable
    splits: Splits | None
    contract: Contract
    encodings: tuple[Encoding, ...]
    matrix: Array
    given: Dataset
    tables: list[pa.Table]


class RawTableClassifier(ProbabilisticClassifier):
    """How a `MedoidClassifier` reads tables, and what it does once fitted."""

    class_weight: Any
    positive: Any
    ignore: Sequence[str] | None
    roles: Mapping[str, Role] | None
    decimal: str | None
    date_order: str | None
    missing: Mapping[str, Sequence[Any]] | None
    max_one_hot: int
    max_levels: int
    random_state: Any
    held_out_scores_: Array
    # Places of the columns in arrays of plain numbers, which are encoded as they are.
    _number_places: Codes | None = None

    def _read_rows(self, given: Dataset, validation: tuple[pa.Table, Target] | None) -> RawRows:
        """Encode the rows of a fit; classes, contract, encodings and notes are kept."""
        self.notes_ = list[str]()
        if given.weights is not None and not given.weights.all():
            given = given.take(np.flatnonzero(given.weights))
        target = self._chosen_classes(given.target)
        weighted = weighted_rows(given.weights, self.class_weight, target.codes, target.classes)
        asked_rule(self.operating_point, target.classes.tolist())
        encoded, together, order, cells = self._fit_columns(given, target, weighted)
        contract = Contract(encoded.columns, target.name, given.own_kinds.left_out)
        numbers, statistics, codes = encoded.matrix, encoded.statistics, target.codes[weighted.rows[order]]
        factors = None if weighted.factors is None else weighted.factors[order]
        row_numbers, n_given, splits, tables = given.rows[weighted.rows[order]], given.n_source, None, [given.table]
        if validation is not None:
            tables.append(validation[0])
            val_codes = self._known_codes(validation[1])
            val_matrix = _encoded_rows(tables[1], contract, encoded.encodings)
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
        self.notes_ += [f"{names[place]!r} is the same in all rows once encoded" for place in same]
        check_finite(numbers, names, row_numbers=row_numbers)
        numbers = np.ascontiguousarray(with_equal_cells(numbers))
        data = TrainingTable(
            numbers,
            codes,
            target.classes,
            together,
            names,
            True,
            None if statistics is None else functools.partial(statistics.fold, numbers),
            row_numbers,
            n_given,
            factors,
            cells,
            target.totals,
        )
        return RawRows(data, splits, contract, encoded.encodings, encoded.matrix, given, tables)

    def _chosen_classes(self, target: Target) -> Target:
        """The classes in the order of their codes, once the class of interest is chosen: of two it is the second."""
        labels, counts = target.classes.tolist(), target.counts.tolist()
        if len(labels) < 2:
            raise DataError(
                f"The rows of the fit are of one class only, {labels[0]!r}: a classifier needs records of at least 2."
            )
        for _, message in target_notes(labels, counts):
            self._note(message)
        point, place = self.operating_point, None
        if self.positive is not None:
            place = target.place_of(self.positive)
        elif point is not None and len(labels) == 2:
            asked = next(iter(point)).replace("_", " ") if isinstance(point, Mapping) else "operating point"
            place, why, is_plain = choose_positive(labels, counts, asked)
            self._note(why, warned=not is_plain)
        if place is not None and len(labels) > 2:
            target, positive = target.against_rest(place), str(labels[place])
            place = target.classes.tolist().index(positive)
        self.classes_, self._is_reversed = target.classes, place == 0
        ordered = target.reversed() if self._is_reversed else target
        self.positive_ = ordered.classes.tolist()[1] if len(ordered.classes) == 2 else None
        return ordered

    def _known_codes(self, target: Target) -> Codes:
        """Class codes of validation rows; classes that the training rows do not have are refused."""
        codes: Codes = target.codes_in(self._in_order(self.classes_).tolist())
        if (codes < 0).any():
            unknown = target.classes[np.unique(target.codes[codes < 0])].tolist()
            raise DataError(
                f"y_val holds classes that y does not: {unknown[:5]}. Validation rows must belong to the classes "
                f"{self.classes_.tolist()[:5]} of the training rows."
            )
        return codes

    def _note(self, note: str | None, *, warned: bool = True) -> None:
        """Keep a note and, where it may change what is done, warn."""
        if note is None:
            return
        self.notes_.append(note)
        if warned:
            warn(note[0].upper() + note[1:])

    def _fit_columns(
        self, data: Dataset, target: Target, weighted: WeightedRows
    ) -> tuple[Encoded, Codes | None, Codes, tuple[Codes, list[bool]]]:
        """Fit contract and encodings, with notes, to weighted rows in an order of their own.

        Returns, in that order, the rows as numbers, the group of each, its place among them, and the cells that it is
        ordered by.
        """
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        kinds, rows, roles = data.own_kinds, weighted.rows, data.settings.all_roles
        kinds.check_any()
        left_out = {name: (why, left_out_note(name, why)) for name, why in kinds.left_out.items()}
        self.notes_ += [*kinds.all_notes, *(note for _, note in left_out.values())]
        guessed = {name: note for name, (_, note) in left_out.items() if roles.get(name) != "ignore"}
        if guessed and not data.is_part:
            warn(left_out_warning(guessed))
        place_of = {column.name: place for place, column in enumerate(data.kinds.columns)}
        places = data.cells[:, [place_of[column.name] for column in kinds.columns]]
        is_level = [column.kind == "category" for column in kinds.columns]
        together = None if data.groups is None else given_groups(data.groups, len(data.rows))
        codes = target.codes
        order = row_order(places[rows], codes[rows], part_of(together, rows), weighted.factors, is_level=is_level)
        rows = rows[order]
        together, codes = part_of(together, rows), codes[rows]
        if data.groups is None:
            together = row_groups(places[rows], codes)
            equal = None if together is None or weighted.has_copies else equal_rows_note(together)
            self.notes_ += [] if equal is None else [equal]
        limits = {"max_one_hot": self.max_one_hot, "max_levels": self.max_levels}
        factors, classes = None if weighted.factors is None else weighted.factors[order], target.classes.tolist()
        encoded = fit_encodings(data.table, kinds.columns, codes, classes, rng, together, factors, rows=rows, **limits)
        return encoded, together, order, (places[rows], is_level)

    def _keep(self, recipe: Any, fits: Sequence[Fit], scores: Array, rows: RawRows) -> None:
        """Hold the model of the first of the fits."""
        best, fitted, given, data = fits[0], fits[0].fitted, rows.given, rows.data
        self.estimator_, self.held_out_scores_, self.variational_ = recipe, scores, best.circuit
        self.notes_ += fitted.notes
        is_whole = data.totals is None  # of a sample the cut is chosen later
        if data.weights is not None and is_whole:
            self.notes_.append(_FACTORS)
        decision, curve = self._chosen_decision(data.codes, best.held_out, data.groups, data.weights)
        expected = decision.operating
        if is_whole and expected is not None and expected.rule == "likeliest" and expected.counts is not None:
            self._note(seldom_note(list(decision.classes), expected.counts))
        part = medoid_part(fitted.parts)
        assert part is not None, "a recipe fits medoids"
        known = given.table.select(list(rows.contract.names))
        medoids = part.rows.numbers if data.row_numbers is None else data.row_numbers[part.rows.numbers]
        model = Model(
            contract=rows.contract, encodings=rows.encodings, decision=decision, method=recipe.method_name,
            parts=fitted.parts, weights=fitted.weights, biases=fitted.biases, calibration=best.calibration,
            refinement=best.refinement, records=tuple(plain_records(known, given.places(medoids))),
            parameters=plain_parameters(self), metrics={"held_out_scores": scores.tolist()},
            novelty=fit_novelty(rows.matrix, rows.encodings, part, None if is_whole else data.weights),
            training=training_summary(given.table, rows.contract, rows.encodings, curve),
        )  # fmt: skip
        model = replace(model, importances=training_importances(model, data.X, best.held_out))
        model = replace(model, seen=remember_rows(model, rows.tables))
        self.model_ = data.as_given(model)
        columns = rows.contract.columns
        self._number_places = None
        if all(column.kind == "number" and not column.missing_values for column in columns) and len(columns) == len(
            rows.matrix[0]
        ):
            self._number_places = np.array([column_names(self).index(column.name) for column in columns])
        recipe.keep(self.model_, [fit.fitted for fit in fits])
        recipe.classes_, recipe.n_features_in_ = data.classes, data.X.shape[1]

    @property
    def contract_(self) -> Contract:
        """The columns with their kinds, and those that were left out."""
        return self.model_.contract

    @property
    def encodings_(self) -> tuple[Encoding, ...]:
        """How each column becomes numbers."""
        return self.model_.encodings

    @property
    def encoded_names_(self) -> list[str]:
        """Names of these numbers."""
        return self.contract_.encoded_names(self.encodings_)

    @property
    def method_(self) -> str:
        """The name of the method."""
        return self.model_.method

    @property
    def refinement_(self) -> str:
        """Which records the circuit decides: ``"none"``, ``"selective"`` or ``"always"``."""
        return self.model_.policy

    @property
    def margin_(self) -> float:
        """The largest calibrated margin, in log-odds, of records that the circuit decides; −∞ and ∞: none, all."""
        return -np.inf if self.model_.refinement is None else self.model_.refinement.refine_below

    @property
    def medoid_records_(self) -> list[dict[str, Any]]:
        """The medoids as rows of the training table."""
        return [dict(record) for record in self.model_.records or ()]

    def importances(self, X: Any) -> dict[str, float]:
        """Mean absolute contribution of every column to the decisions about these rows, the largest first.

        A contribution is what the column adds to the margin between the decided class and the runner-up, in log-odds:
        those of an explanation, and exact for these rows. `feature_importances_` are the same of training rows.
        """
        check_is_fitted(self)
        tally, columns = ImportanceTally(self.model_), list(self._encoded(X).T)
        tally.add(columns, self.model_.decide(columns))
        return by_importance(self.model_.contract.names, tally.importances)

    def effect(self, X: Any, column: str, *, toward: Any = None, bins: int = N_BINS) -> Effect:
        """What the values of a column contribute to the decisions about these rows; see `SavedModel.effect`."""
        check_is_fitted(self)
        tally = EffectTally(self.model_, column, toward)
        check_bins(bins)
        table = read_table(self, X, reset=False)
        tally.add(table, list(_encoded_rows(table, self.contract_, self.encodings_).T))
        return tally.report(bins)

    def _encoded(self, X: Any) -> Array:
        """The rows as numbers, shape (n, M)."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.size > 0 and self._number_places is not None
        if plain and X.max() <= LARGEST and X.min() >= -LARGEST:
            # Numbers within bounds are encoded as they are; all else goes the long way, which names what is wrong.
            array = validate_data(self, X, reset=False, ensure_all_finite=False)
            return np.ascontiguousarray(array[:, self._number_places])
        return _encoded_rows(read_table(self, X, reset=False), self.contract_, self.encodings_)


def _encoded_rows(table: pa.Table, contract: Contract, encodings: tuple[Encoding, ...]) -> Array:
    """The rows as numbers, (n, M); a table that breaks the contract is refused, new levels are warned of."""
    difference = compare_columns(contract, table.schema)
    if difference.breaks:
        difference.raise_or_warn("error", way_out=_WAY_OUT)
    issues = Issues()
    columns = encode_batch(table, contract, encodings, issues=issues)
    replace(difference, issues=issues, tolerate_unseen=True).raise_or_warn("error", way_out=_WAY_OUT)
    return np.column_stack(columns)
