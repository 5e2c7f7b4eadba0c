"""What all classifiers share: they hold a fitted model, `model_`, and answer by it, most with probabilities."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.inputs import WeightedRows, class_codes, classes_of, column_names, weighted_rows
from qmedoid.estimators.number_columns import NumberColumns, fit_numbers, number_columns, read_numbers
from qmedoid.estimators.parameters import Constraint, check_parameters
from qmedoid.exceptions import MajorityAlertWarning, ModelError, warn
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.row_groups import part_of
from qmedoid.large.lazy_scoring import takes_collections
from qmedoid.markup.charts import plain
from qmedoid.markup.page import render
from qmedoid.methods.part import OutOfFold, Part, medoid_part
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.decision import Decision, asked_priors
from qmedoid.model.importance import VIEW, model_view, training_importances
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.operating_point import OperatingSummary, asked_rule, probability
from qmedoid.model.training_summary import HeldOutCurve, TrainingSummary

if TYPE_CHECKING:
    from qmedoid.explain.explanation import Explanation
    from qmedoid.quantum import MeasurementPlan
    from qmedoid.saved import SavedModel

# Longest parameter that is saved value by value.
_LONGEST = 100


class FittedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose fit leaves a model, `model_`, which decides and is saved, and details of how it was found."""

    _constraints: ClassVar[Mapping[str, Constraint]]
    classes_: npt.NDArray[Any]
    model_: Model
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    @property
    def feature_importances_(self) -> Array:
        """Mean absolute contribution of each column to the margins of training rows; 0 for those left out."""
        found = self.model_.importances
        places = np.flatnonzero(np.isin(column_names(self), self.model_.contract.names))
        if found is None or len(places) != len(found):
            raise AttributeError(f"The decisions of this {type(self).__name__} are no sums over its columns.")
        importances = np.zeros(self.n_features_in_)
        importances[places] = found
        return importances

    def _encoded(self, X: Any) -> Array:
        """The rows as encoded columns, shape (n, M)."""
        return read_numbers(self, X)

    def _scores(self, X: Any) -> Array:
        """Class scores at the expected priors, by code, shape (n, C)."""
        check_is_fitted(self)
        return self.model_.shifted_scores(self._encoded(X))

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> Self:
        """A copy with distances, the circuit, or both run by circuits instead of by closed form and simulator.

        Parameters
        ----------
        swap_test : callable (X, Y) -> SwapTest, optional
            Measures the overlaps, for example `qmedoid.quantum.circuits.SamplerSwapTest`.
        expectations : callable, optional
            Runs the variational circuit, for example `qmedoid.quantum.circuits.SamplerExpectations`.
        """
        check_is_fitted(self)
        measured = copy.copy(self)
        measured.model_ = self.model_.measured_by(swap_test, expectations)
        return measured

    def save(self, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
        """Save the fitted classifier for `qmedoid.load`, without code.

        The suffix is ``.qmedoid`` by convention, and a saved model is replaced. With `circuits` they are written as QPY
        and OpenQASM 3, too (extra ``quantum``). Without `raw_rows` medoids are coordinates, and no rows of the training
        table.
        """
        return self.to_saved().save(path, circuits=circuits, raw_rows=raw_rows)

    def to_saved(self) -> "SavedModel":
        """The fitted model as `qmedoid.load` would return it after `save`: it decides without scikit-learn."""
        from qmedoid.saved import SavedModel

        try:
            check_is_fitted(self)
        except ValueError:
            raise ModelError(
                f"This {type(self).__name__} is not fitted: call fit before it is saved or explained."
            ) from None
        return SavedModel(self.model_)

    def explain(self, X: Any, row: int = 0, **settings: Any) -> "Explanation":
        """Why a row of X is decided as it is: contributions that add up; see `SavedModel.explain` for parameters."""
        return self.to_saved().explain(X, row, **settings)

    def report(self, path: str | Path, data: Any = None, **settings: Any) -> Path:
        """Write a page that shows the fitted model; see `SavedModel.report` for the parameters."""
        return self.to_saved().report(path, data, **settings)

    def measurement_plan(self, X: Any, backend: Any = None, **settings: Any) -> "MeasurementPlan":
        """Plan the measurement of records on a quantum device; see `SavedModel.measurement_plan` for the parameters."""
        return self.to_saved().measurement_plan(X, backend, **settings)

    def _html_repr(self) -> str:
        """What a notebook shows, without scripts: parameters that were set and, once fitted, the model."""
        name, given, usual = type(self).__name__, self.get_params(deep=False), type(self)().get_params(deep=False)
        changed = [(one, plain(repr(value), 80)) for one, value in given.items() if repr(value) != repr(usual[one])]
        if not hasattr(self, "model_"):
            return render(VIEW, title=f"{name}, not fitted", facts=changed)
        return model_view(self.model_, f"{name}, fitted", settings=changed)

    def _model_of_numbers(
        self,
        data: TrainingTable,
        parts: tuple[Part, ...],
        decision: Decision,
        *,
        curve: HeldOutCurve | None = None,
        held_out: OutOfFold | None = None,
        **fitted: Any,
    ) -> Model:
        """The model of a table of numbers, with the row numbers of the table that was given."""
        columns = number_columns(self) or NumberColumns.unfilled(column_names(self))
        part = medoid_part(parts)
        model = Model(
            contract=columns.contract,
            encodings=columns.encodings,
            decision=decision,
            parts=parts,
            records=None if part is None else columns.records(data.X[part.rows.numbers]),
            parameters=plain_parameters(self),
            novelty=fit_novelty(data.X, columns.encodings, part),
            training=TrainingSummary(len(data.codes), columns.n_missing, curve),
            **fitted,
        )
        return data.as_given(replace(model, importances=training_importances(model, data.X, held_out)))


class ProbabilisticClassifier(FittedClassifier):
    """A classifier whose class scores have a softmax that is a probability, with an operating point on request."""

    operating_point: Any

    @property
    def expected_(self) -> OperatingSummary | None:
        """The operating point, with what to expect of it."""
        return self.model_.decision.operating

    @property
    def threshold_(self) -> float:
        """Probability of the positive one of two classes above which a record is called so."""
        return probability(self.model_.decision.cut or 0.0)

    @property
    def class_priors_(self) -> Array:
        """Class frequencies that the probabilities are made for, in the order of `classes_`."""
        priors = self.model_.decision.priors
        assert priors is not None, "a fit counts its classes"
        return self._in_order(priors)

    @takes_collections
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C), in the order of `classes_`."""
        scores = self._scores(X)
        return self._in_order(self.model_.decision.probabilities(scores))

    @takes_collections
    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        margins = self.model_.decision.margins(scores)
        return -margins if self._is_reversed else margins

    @takes_collections
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        scores = self._scores(X)
        codes = self.model_.decision.codes(scores)
        predicted: npt.NDArray[Any] = self._in_order(self.classes_)[codes]
        return predicted

    def prior_shift(self, new_prevalence: Any) -> Self:
        """A copy adjusted to new class priors (label shift).

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the class of interest of two is (`positive` of a `MedoidClassifier`, else the second), or every
            class, by label or in the order of `classes_`.

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
            new_prevalence = self._in_order(asked_priors(new_prevalence, self.classes_.tolist()))
        shifted = copy.copy(self)
        shifted.model_ = self.model_.at_priors(new_prevalence)
        return shifted

    def at_operating_point(self, operating_point: Any) -> Self:
        """A copy that cuts elsewhere, chosen on the held-out rows of the fit; two classes only.

        It is what a fit with this operating point gives; of more than 2,048 held-out rows it is chosen among as many
        thresholds.
        """
        check_is_fitted(self)
        moved = copy.copy(self)
        moved.operating_point = operating_point
        moved.model_ = self.model_.at_operating_point(operating_point)
        return moved

    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows, by EM (Saerens et al., 2002), with 95 % intervals.

        Right where the classes look as they did in training and are only more or less frequent. Pass its `priors`, in
        the order of `classes_`, to `prior_shift`.
        """
        check_is_fitted(self)
        found = self.model_.decision.estimated_priors(self._scores(X))
        priors, low, high = (self._in_order(part) for part in (found.priors, found.low, found.high))
        return replace(found, priors=priors, low=low, high=high)

    @property
    def _is_reversed(self) -> bool:
        """Of two classes, whether the first in order is the positive one, whose code is 1."""
        return len(self.classes_) == 2 and bool(self.classes_[0] != self.model_.decision.classes[0])

    def _in_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of the classes (..., C) in the order of `classes_` from that of their codes, or the other way."""
        return values[..., ::-1] if self._is_reversed else values

    def _checked(
        self, X: Any, y: Any, sample_weight: Any = None, class_weight: Any = None
    ) -> tuple[Array, Codes, WeightedRows]:
        """The table of a fit, once parameters and data are found to be in order; its weighted rows, and their classes.

        Rows without weight are left out before classes are counted.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        table = fit_numbers(self, X)
        classes, given = class_codes(y, len(table))
        weighted = weighted_rows(sample_weight, class_weight, given, classes)
        self.classes_, codes = classes_of(classes, given, weighted.rows)
        rule, _ = asked_rule(self.operating_point, self.classes_.tolist())
        share = float((codes == 1).mean())
        if rule == "alert_rate" and share > 0.5:  # few mean the more frequent class
            first, second = self.classes_.tolist()
            warn(
                f"The alert rate is spent on {second!r}, the second class in order, which {100 * share:.3g} % of the "
                f"rows are of. If alerts are to be of {first!r}, pass a y in which it is the second in order, such as "
                f"y == {first!r}, or use a MedoidClassifier, which takes the positive class.",
                MajorityAlertWarning,
            )
        return table, codes, weighted

    def _chosen_decision(
        self, data: TrainingTable, held_out: OutOfFold | None, class_weights: Array | None = None
    ) -> tuple[Decision, HeldOutCurve | None]:
        """The decision at the operating point, which held-out rows turn into log-odds, and their curve.

        Rows of one group count as one draw, and each as much as its weight. Probabilities are for classes that are more
        frequent by `class_weights` than the rows are.
        """
        rows = np.zeros(0, dtype=np.intp) if held_out is None else np.flatnonzero(held_out.fold >= 0)
        scores = np.zeros((0, len(data.classes))) if held_out is None else held_out.scores[rows]
        together = part_of(data.groups, rows) if len(rows) else None
        weights, codes = None if data.weights is None else data.weights[rows], data.codes[rows]
        how = self.operating_point, data.classes.tolist(), scores, codes, together, weights
        decision, curve = Decision.chosen(*how)
        # Priors are those of the rows that made the probabilities what they are, where they have all classes.
        n_classes = len(data.classes)
        made = rows if np.bincount(codes, minlength=n_classes).all() else np.arange(len(data.codes))
        counts = np.bincount(data.codes[made], None if data.weights is None else data.weights[made], n_classes)
        weighted = counts.astype(np.float64) * (1.0 if class_weights is None else class_weights)
        return replace(decision, priors=weighted / weighted.sum()), curve


def plain_parameters(value: Any) -> Any:
    """An estimator, or one of its parameters, as JSON takes it; what has no plain form is named by type or repr."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain_parameters(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        # Folds given as row numbers tell a reader nothing, and may be as long as the table.
        return [plain_parameters(one) for one in value] if len(value) <= _LONGEST else f"{len(value)} values"
    if isinstance(value, FittedClassifier):
        kept = {name: plain_parameters(one) for name, one in value.get_params(deep=False).items()}
        return {"estimator": type(value).__name__} | kept
    is_shown = isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits")
    return repr(value) if is_shown else type(value).__name__
