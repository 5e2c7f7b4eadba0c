"""Raw tables of a `MedoidClassifier`: how they are read and encoded for a fit, and what is done with its model."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._encoding import Encoded, fit_encodings
from qmedoid.estimators._fitted import plain_parameters
from qmedoid.estimators._folds import Splits, TrainingTable
from qmedoid.estimators._inputs import (
    check_finite,
    check_target,
    class_codes,
    column_names,
    known_codes,
)
from qmedoid.estimators._methods import Fit
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._raw_reading import asked_roles, left_out_note, left_out_warning, place_of, read_table
from qmedoid.estimators._row_order import validation_order
from qmedoid.estimators._weights import WeightedRows, check_weights, weighted_rows
from qmedoid.exceptions import warn
from qmedoid.explain.effect import N_BINS, Effect, EffectTally, check_bins
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, given_groups, part_of, row_groups
from qmedoid.geometry.row_order import row_order
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.part import LARGEST, medoid_part
from qmedoid.model.contract import Contract
from qmedoid.model.importance import ImportanceTally, by_importance, training_importances
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.operating_point import asked_rule
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import cell_ranks, with_missing_values_out
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import encode_batch, training_summary
from qmedoid.tables.issues import Issues
from qmedoid.tables.kinds import DateOrder, Inferred, infer_alike, infer_columns
from qmedoid.tables.roles import TARGET_NAME, Role, find_units, in_roles
from qmedoid.tables.row_hashes import remember_rows
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.targets import choose_positive, label_codes, rest_label, seldom_note, target_notes

_FACTORS = (
    "weights of rows are factors of the losses, as they are no whole numbers or too many for copies: such a fit has no "
    "neighbors, symmetric trees or circuit, and its cut cannot be changed afterwards but by a probability"
)
_WAY_OUT = "Change the table accordingly, or fit on tables like this one."


class RawRows(NamedTuple):
    """The rows of a fit: as numbers, with validation rows behind them; their split; the tables; and training rows.

    The tables are as they were given, of which rows with a weight are kept; the numbers are in an order of their own.
    """

    data: TrainingTable
    splits: Splits | None
    tables: list[pa.Table]
    matrix: Array
    kept: Codes


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
    # How columns are read, where more rows than those of the fit have shown it.
    _settled: Inferred | None = None
    # The label of more than two that is separated from all others together.
    _against_rest: Any = None
    # Rows of every label in the whole table, by its text, where the rows of a fit are a sample of it.
    _totals: Mapping[str, int] | None = None

    def _read_rows(self, X: Any, y: Any, X_val: Any, y_val: Any, groups: Any, sample_weight: Any) -> RawRows:
        """Read and encode the tables of a fit; classes, contract, encodings and notes are kept."""
        table = read_table(self, X, reset=True)
        self.notes_, self._warned = list[str](), list[str]()
        n_given, weights = table.num_rows, None
        kept, labels, together = np.arange(n_given), y, None if groups is None else given_groups(groups, n_given)
        if sample_weight is not None:
            weights = check_weights(sample_weight, n_given)
            kept = np.flatnonzero(weights)
            labels, weights, together = check_target(y, n_given)[kept], weights[kept], part_of(together, kept)
        codes = self._class_codes(labels, len(kept))
        classes = self._in_order(self.classes_)
        weighted = weighted_rows(weights, self.class_weight, codes, classes)
        self.positive_ = classes.tolist()[1] if len(classes) == 2 else None
        asked_rule(self.operating_point, list(classes))
        target = getattr(y, "name", None)
        table, encoded, together, order, cells = self._fit_columns(
            table, kept, codes, target if isinstance(target, str) else None, groups is not None, together, weighted
        )
        matrix, statistics, codes = encoded.matrix, encoded.statistics, codes[weighted.rows[order]]
        factors = None if weighted.factors is None else weighted.factors[order]
        order = kept[weighted.rows[order]]
        tables, numbers, splits = [table], matrix, None
        if X_val is not None:
            tables.append(read_table(self, X_val, reset=False, name="X_val"))
            val_labels = check_target(y_val, tables[1].num_rows, name="y_val", table="X_val")
            val_matrix, n_train = self._encode(tables[1]), len(codes)
            n_given += len(val_matrix)
            val_codes = known_codes(self._meant(val_labels), self.classes_)
            val_codes = 1 - val_codes if self._is_reversed else val_codes
            val_order = validation_order(val_matrix, val_codes)
            val_matrix, order = val_matrix[val_order], np.append(order, n_train + val_order)
            numbers = np.concatenate([matrix, val_matrix])
            codes = np.concatenate([codes, val_codes[val_order]])
            # Validation rows are held out as they are, but equal ones are one draw.
            before = np.arange(n_train) if together is None else together
            together = part_of(np.append(before, n_train + equal_rows(val_matrix)), np.arange(len(codes)))
            splits = [(np.arange(n_train), np.arange(n_train, len(codes)))]
        check_finite(numbers, self.encoded_names_, row_numbers=order)
        numbers = np.ascontiguousarray(with_equal_cells(numbers))
        fold_rows = None if statistics is None else functools.partial(statistics.fold, numbers)
        names = self.encoded_names_
        data = TrainingTable(numbers, codes, classes, together, names, True, fold_rows, order, n_given, factors, cells)
        return RawRows(data, splits, tables, matrix, kept)

    def _class_codes(self, y: Any, n_rows: int) -> Codes:
        """The class code of every row; the class of interest is chosen where nobody said."""
        labels, codes = class_codes(y, n_rows)
        counts = self._counts_of(labels, np.bincount(codes)).tolist()
        for _, message in target_notes(labels.tolist(), counts):
            self._note(message)
        point, place = self.operating_point, None
        if self.positive is not None:
            place = place_of(self.positive, labels)
        elif point is not None and len(labels) == 2:
            asked = next(iter(point)).replace("_", " ") if isinstance(point, Mapping) else "operating point"
            place, why, is_plain = choose_positive(labels.tolist(), counts, asked)
            self._note(why, warned=not is_plain)
        self._against_rest = None
        if place is not None and len(labels) > 2:
            self._against_rest = labels[place]
            positive = str(labels[place])
            labels, codes = class_codes(self._meant(labels[codes]), n_rows)
            place = labels.tolist().index(positive)
        self.classes_, self._is_reversed = labels, place == 0
        return 1 - codes if self._is_reversed else codes

    def _counts_of(self, classes: npt.NDArray[Any], counts: Codes) -> Codes:
        """Rows of every class: those of the fit, or of the whole table that they are a sample of."""
        if self._totals is None:
            return counts
        codes = label_codes(pa.array(list(self._totals)), tuple(classes.tolist()))
        rows = np.array(list(self._totals.values()))
        return np.bincount(codes[codes >= 0], rows[codes >= 0], len(classes)).astype(np.intp)

    def _meant(self, target: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The class that each label stands for: itself, or, where one stands against the rest, that one or the rest."""
        if self._against_rest is None:
            return target
        # Both as text: one array and one column of a file hold them.
        text = str(self._against_rest)
        meant: npt.NDArray[Any] = np.where(target == self._against_rest, text, rest_label(text)).astype(object)
        return meant

    def _note(self, note: str | None, *, warned: bool = True) -> None:
        """Keep a note and, where it may change what is done, warn."""
        if note is None:
            return
        self.notes_.append(note)
        if warned:
            self._warned.append(note)
            warn(note[0].upper() + note[1:])

    def _fit_columns(
        self,
        given: pa.Table,
        kept: Codes,
        codes: Codes,
        target: str | None,
        is_grouped: bool,
        together: Codes | None,
        weighted: WeightedRows,
    ) -> tuple[pa.Table, Encoded, Codes | None, Codes, tuple[Codes, list[bool]]]:
        """Fit contract and encodings, with notes, to rows in an order of their own.

        Returns the table in its roles; and in that order the weighted rows as numbers, the group of each, its place
        among them, and the cells that it is ordered by. Classes and groups are of the rows that are kept of the table.
        """
        roles = asked_roles(self.roles, self.ignore, given.column_names, target)
        missing = check_missing("The 'missing' parameter", self.missing, names=given.column_names, target=target)
        given = in_roles(given, roles)
        table = given if len(kept) == given.num_rows else given.take(pa.array(kept))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        if self._settled is None:
            skip, dates = set() if target is None else {target}, cast("DateOrder | None", self.date_order)
            if (units := find_units(given, roles)) is not None:
                units.refuse_or_warn("the first row of X")
            inferred = infer_columns(
                table, skip=skip, roles=roles, decimal=self.decimal, date_order=dates, missing=missing
            )
        else:
            inferred = infer_alike(with_missing_values_out(table, self._settled.columns), self._settled)
        given, table = (with_missing_values_out(one, inferred.columns) for one in (given, table))
        inferred.check_any()
        if target is not None and target in given.column_names:
            inferred.left_out.setdefault(target, TARGET_NAME)
        left_out = {name: (why, left_out_note(name, why)) for name, why in inferred.left_out.items()}
        self._inferred, self._left_out_notes = inferred, [note for _, note in left_out.values()]
        self.notes_ += [*inferred.all_notes, *self._left_out_notes]
        guessed = {name: note for name, (_, note) in left_out.items() if roles.get(name) != "ignore"}
        if self._settled is None and guessed:
            warn(left_out_warning(guessed))
        places, is_level = cell_ranks(table, inferred.columns)
        rows = weighted.rows
        order = row_order(places[rows], codes[rows], part_of(together, rows), weighted.factors, is_level=is_level)
        rows = rows[order]
        together, codes = part_of(together, rows), codes[rows]
        if not is_grouped:
            together = row_groups(places[rows], codes)
            equal = None if together is None or weighted.has_copies else equal_rows_note(together)
            self.notes_ += [] if equal is None else [equal]
        limits = {"max_one_hot": self.max_one_hot, "max_levels": self.max_levels}
        classes = self._in_order(self.classes_).tolist()
        factors = None if weighted.factors is None else weighted.factors[order]
        encoded = fit_encodings(table, inferred.columns, codes, classes, rng, together, factors, rows=rows, **limits)
        columns, self.encodings_, matrix, _ = encoded
        self.contract_ = Contract(columns, target, inferred.left_out)
        names, pairs = [column.name for column in columns], zip(columns, self.encodings_, strict=True)
        self.encoded_names_ = [column.name + output for column, encoding in pairs for output in encoding.outputs]
        self._number_places: Codes | None = None
        if all(column.kind == "number" and not column.missing_values for column in columns) and matrix.shape[1] == len(
            columns
        ):
            place_of = {name: place for place, name in enumerate(column_names(self))}
            self._number_places = np.array([place_of[name] for name in names])
        same = np.flatnonzero(np.ptp(matrix, axis=0) == 0)
        self.notes_ += [f"{self.encoded_names_[place]!r} is the same in all rows once encoded" for place in same]
        return given, encoded, together, order, (places[rows], is_level)

    def _keep(self, recipe: Any, fits: Sequence[Fit], scores: Array, rows: RawRows) -> None:
        """Hold the model of the first of the fits."""
        best, fitted, given, data = fits[0], fits[0].fitted, rows.tables[0], rows.data
        table = given if len(rows.kept) == given.num_rows else given.take(pa.array(rows.kept))
        self.estimator_, self.held_out_scores_, self.variational_ = recipe, scores, best.circuit
        self.notes_ += fitted.notes
        is_whole = self._totals is None  # of a sample the cut is chosen later
        if data.weights is not None and is_whole:
            self.notes_.append(_FACTORS)
        decision, curve = self._chosen_decision(data.codes, best.held_out, data.groups, data.weights)
        expected = decision.operating
        if is_whole and expected is not None and expected.rule == "likeliest" and expected.counts is not None:
            self._note(seldom_note(list(decision.classes), expected.counts))
        part = medoid_part(fitted.parts)
        assert part is not None, "a recipe fits medoids"
        known = given.select([column.name for column in self.contract_.columns])
        medoids = part.rows.numbers if data.row_numbers is None else data.row_numbers[part.rows.numbers]
        model = Model(
            contract=self.contract_, encodings=self.encodings_, decision=decision, method=recipe.method_name,
            parts=fitted.parts, weights=fitted.weights, biases=fitted.biases, calibration=best.calibration,
            refinement=best.refinement, records=tuple(plain_records(known, medoids)),
            parameters=plain_parameters(self), metrics={"held_out_scores": scores.tolist()},
            novelty=fit_novelty(rows.matrix, self.encodings_, part, None if is_whole else data.weights),
            training=training_summary(table, self.contract_, self.encodings_, curve),
        )  # fmt: skip
        model = replace(model, importances=training_importances(model, data.X, best.held_out))
        model = replace(model, seen=remember_rows(model, [table, *rows.tables[1:]]))
        self.model_ = data.as_given(model)
        recipe.keep(self.model_, [fit.fitted for fit in fits])
        recipe.classes_, recipe.n_features_in_ = data.classes, data.X.shape[1]

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
        tally.add(table, list(self._encode(table).T))
        return tally.report(bins)

    def _encoded(self, X: Any) -> Array:
        """The rows as numbers, shape (n, M)."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.size > 0 and self._number_places is not None
        if plain and X.max() <= LARGEST and X.min() >= -LARGEST:
            # Numbers within bounds are encoded as they are; all else goes the long way, which names what is wrong.
            array = validate_data(self, X, reset=False, ensure_all_finite=False)
            return np.ascontiguousarray(array[:, self._number_places])
        return self._encode(read_table(self, X, reset=False))

    def _encode(self, table: pa.Table) -> Array:
        """The rows as numbers, (n, M); a table that breaks the contract is refused, new levels are warned of."""
        difference = compare_columns(self.contract_, table.schema)
        if difference.breaks:
            difference.raise_or_warn("error", way_out=_WAY_OUT)
        issues = Issues()
        columns = encode_batch(table, self.contract_, self.encodings_, issues=issues)
        replace(difference, issues=issues, tolerate_unseen=True).raise_or_warn("error", way_out=_WAY_OUT)
        return np.column_stack(columns)
