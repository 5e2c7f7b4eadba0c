"""Raw tables of a `MedoidClassifier`: read and encoded for a fit, then decisions, prior shift, novelty, saving."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators._inputs import check_finite, check_target, class_codes
from qmedoid.estimators._methods import TrainingTable
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._raw_tables import (
    ClassOrder,
    FittedColumns,
    Names,
    asked_roles,
    encode_rows,
    fit_columns,
    left_out_note,
    read_table,
)
from qmedoid.estimators._refinement import Splits
from qmedoid.estimators._saving import SavingMixin, assembled, measured_error
from qmedoid.exceptions import warn
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, given_groups, part_of
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.contract import Contract, Encoding
from qmedoid.model.decision import asked_priors
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.novelty import Novelty, SeenRows
from qmedoid.model.table import Record, TableModel
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.novelty import record_novelty
from qmedoid.tables.roles import OWN_NUMBER, Role, in_roles
from qmedoid.tables.targets import choose_positive, target_notes
from qmedoid.variational.model import ExpectationFunction, MeasuredVariational


class RawTableClassifier(SavingMixin, CallbackSupportMixin, ProbabilisticClassifier):
    """How a `MedoidClassifier` reads tables, and what it does once fitted; class codes become labels here, once."""

    positive: Any
    ignore: Sequence[str] | None
    roles: Mapping[str, Role] | None
    random_state: Any
    notes_: list[str]
    encoded_names_: list[str]
    model_: HybridModel
    models_: list[HybridModel]
    method_: str
    contract_: Contract
    encodings_: tuple[Encoding, ...]
    held_out_scores_: Array
    _names: Names
    _order: ClassOrder
    _records: tuple[tuple[Record, ...], ...]
    _novelty: Novelty
    _seen: SeenRows | None
    _warned: list[str]
    # How columns are read, where more rows than those of the fit have shown it.
    _settled: Inferred | None = None

    @property
    def _classes_by_code(self) -> npt.NDArray[Any]:
        return self._order.classes

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C), in the order of `classes_`."""
        return super().predict_proba(X)[:, self._order.codes_of_sorted]

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        values = super().decision_function(X)
        # Of more than two classes, `positive` leaves the order as it is.
        return -values if self._order.codes_of_sorted[0] != 0 else values

    def decided_by(self, X: Any) -> npt.NDArray[np.str_]:
        """Who decides each row, the name of the method or ``"circuit"``, shape (n,)."""
        return np.where(self._decide(X)[1], "circuit", self.method_)

    def prior_shift(self, new_prevalence: Any) -> Self:
        """A copy adjusted to new class priors (label shift).

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the class of interest of two is (`positive`, or the second), or every class, by label or in
            the order of `classes_`.

        Notes
        -----
        Scores get log(new/old) added, class by class. Where the likelier class, a given probability or a cost decides,
        the threshold stays the same probability, and other records may be called positive. A threshold that was chosen
        on held-out rows by alert rate, precision, recall or a metric moves along: the same records are called
        positive, and with another prevalence they are so with another precision and at another rate. Shifting the copy
        again starts from the training priors.
        """
        check_is_fitted(self)
        if not isinstance(new_prevalence, Mapping | float | int):
            priors = asked_priors(new_prevalence, self.classes_.tolist())
            new_prevalence = dict(zip(self.classes_.tolist(), priors.tolist(), strict=True))
        return super().prior_shift(new_prevalence)

    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows by EM, with 95 % intervals, in the order of `classes_`."""
        found = super().estimate_prevalence(X)
        order = self._order.codes_of_sorted
        return replace(found, priors=found.priors[order], low=found.low[order], high=found.high[order])

    def novelty(self, X: Any) -> Array:
        """How far every row lies from the training rows, shape (n,); above 1 for rows unlike them.

        The distance to the nearest medoid, where 1 is what 99 % of the training rows stay below; or, where it is more,
        how far a value lies beyond the limits of its column. See `SavedModel.novelty_report` for a table as a whole.
        """
        return record_novelty(self.table_model(), list(self._matrix(X).T))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that are classified rightly."""
        predicted = self.predict(X)
        meant = self._order.meant(check_target(y, len(predicted)))
        return float(np.average(predicted == meant, weights=sample_weight))

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> Self:
        """A copy with distances, the circuit, or both run by circuits instead of by closed form and simulator.

        Parameters
        ----------
        swap_test : callable (X, Y) -> SwapTest, optional
            Measures the overlaps, for example `qmedoid.circuits.SamplerSwapTest`.
        expectations : callable, optional
            Runs the variational circuit, for example `qmedoid.circuits.SamplerExpectations`.
        """
        check_is_fitted(self)
        model = self.model_
        if swap_test is not None:
            model = replace(model, method=model.method.plain.with_swap_test(swap_test))
        if expectations is not None and model.variational is not None:
            circuit = model.variational
            circuit = circuit.model if isinstance(circuit, MeasuredVariational) else circuit
            model = replace(model, variational=MeasuredVariational(circuit, expectations))
        measured = copy.copy(self)
        measured.model_ = model
        return measured

    def table_model(self) -> TableModel:
        """The fitted model with its contract, as it is saved and scored without scikit-learn."""
        check_is_fitted(self)
        model = self.model_
        if model.method is not model.method.plain or isinstance(model.variational, MeasuredVariational):
            raise measured_error()
        metrics = {"held_out_scores": self.held_out_scores_.tolist(), "threshold": float(self.threshold_)}
        return replace(
            assembled(self, tuple(self.models_), decision=self.decision_, records=self._records, metrics=metrics),
            contract=self.contract_,
            encodings=self.encodings_,
            seen=self._seen,
        )

    def _class_order(self, target: npt.NDArray[Any]) -> tuple[ClassOrder, Codes]:
        """The order of the classes and the code of every row; the class of interest is chosen where nobody said."""
        labels, places = class_codes(target)
        counts = np.bincount(places).tolist()
        for note in target_notes(labels.tolist(), counts):
            self._note(note.message)
        point = self.operating_point
        if self.positive is not None or point is None or len(labels) != 2:
            return ClassOrder.of(target, self.positive)
        asked = next(iter(point)).replace("_", " ") if isinstance(point, Mapping) else "operating point"
        choice = choose_positive(labels.tolist(), counts, asked)
        self._note(choice.note, warned=not choice.is_plain)
        return ClassOrder.of(target, None if choice.place == 1 else labels[choice.place])

    def _note(self, note: str | None, *, warned: bool = True) -> None:
        """Keep a note and, where it may change what is done, warn."""
        if note is None:
            return
        self.notes_.append(note)
        if warned:
            self._warned.append(note)
            warn(note[0].upper() + note[1:])

    def _fit_columns(
        self, table: pa.Table, codes: Codes, target: str | None, groups: Any
    ) -> tuple[pa.Table, FittedColumns]:
        """Fit contract and encodings, with notes; the table with its columns in their roles."""
        roles = asked_roles(self.roles, self.ignore, table.column_names, target)
        table = in_roles(table, roles)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        given = None if groups is None else (given_groups(groups, table.num_rows),)
        columns = fit_columns(self, table, codes, self._order.classes.tolist(), target, roles, generator, given)
        self._inferred, self.contract_ = columns.inferred, columns.contract
        self.encodings_, self.encoded_names_ = columns.encoded.encodings, columns.names
        left_out = columns.inferred.left_out
        self._left_out_notes = [left_out_note(name, why) for name, why in left_out.items()]
        self.notes_ += [*columns.inferred.notes.values(), *self._left_out_notes]
        if self._settled is None:
            # The name of the column is half of this reason, and names mislead.
            for name in (name for name, why in left_out.items() if why == OWN_NUMBER):
                warn(left_out_note(name, OWN_NUMBER))
        note = equal_rows_note(columns.groups) if groups is None else None
        self.notes_ += [] if note is None else [note]
        same = np.flatnonzero(np.ptp(columns.encoded.matrix, axis=0) == 0)
        self.notes_ += [f"{self.encoded_names_[place]!r} is the same in all rows once encoded" for place in same]
        return table, columns

    def _training_table(
        self, columns: FittedColumns, codes: Codes, X_val: Any, y_val: Any
    ) -> tuple[TrainingTable, Splits | None, pa.Table | None]:
        """The rows of the fit as numbers; with validation rows behind them, the split, and the table of these."""
        matrix, groups, splits = columns.encoded.matrix, columns.groups, None
        val_table = None
        if X_val is not None:
            val_table = read_table(self, X_val, self._names, "X_val")[1]
            val_labels = check_target(y_val, val_table.num_rows, name="y_val", table="X_val")
            val_matrix = encode_rows(val_table, self.contract_, self.encodings_)
            n_train, matrix = len(codes), np.concatenate([matrix, val_matrix])
            codes = np.concatenate([codes, self._order.codes(val_labels)])
            # Validation rows are held out as they are, but equal ones are one draw.
            before = np.arange(n_train) if groups is None else groups
            groups = part_of(np.append(before, n_train + equal_rows(val_matrix)), np.arange(len(codes)))
            splits = [(np.arange(n_train), np.arange(n_train, len(codes)))]
        check_finite(matrix, self.encoded_names_)
        matrix = np.ascontiguousarray(with_equal_cells(matrix))
        data = TrainingTable(matrix, codes, self._order.classes, groups, self.encoded_names_, is_checked=True)
        return data, splits, val_table

    def _scores(self, X: Any) -> Array:
        return self._decide(X)[0]

    def _decide(self, X: Any) -> tuple[Array, Flags]:
        matrix = self._matrix(X)
        return self.model_.decide(matrix)[:2]

    def _matrix(self, X: Any) -> Array:
        """The rows as numbers, shape (n, M)."""
        check_is_fitted(self)
        return encode_rows(read_table(self, X, self._names)[1], self.contract_, self.encodings_)
