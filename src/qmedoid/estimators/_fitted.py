"""What all classifiers share: they hold a fitted model, `model_`, and answer by it."""

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

from qmedoid.arrays import Array
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.inputs import column_names
from qmedoid.estimators.number_columns import NumberColumns, number_columns, read_numbers
from qmedoid.estimators.parameters import Constraint
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.markup.html import plain
from qmedoid.methods.part import Backends, Part, medoid_part
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.model.decision import Decision
from qmedoid.model.importance import training_importances
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.training_summary import HeldOutCurve, TrainingSummary
from qmedoid.model.view import model_view, settings_view

if TYPE_CHECKING:
    from qmedoid.explain.explanation import Explanation
    from qmedoid.quantum import MeasurementPlan
    from qmedoid.saved import SavedModel

# Longest parameter that is saved value by value.
_LONGEST = 100


class FittedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose fit leaves a model, and details of how it was found.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : Model
        Everything that is learnt: it decides, and is saved.
    """

    _constraints: ClassVar[Mapping[str, Constraint]]
    classes_: npt.NDArray[Any]
    model_: Model
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    @property
    def decision_(self) -> Decision:
        """How scores become decisions."""
        return self.model_.decision

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
        measured.model_ = replace(self.model_, backends=Backends(swap_test, expectations))
        return measured

    def save(self, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
        """Save the fitted classifier for `qmedoid.load`, without code and without scikit-learn.

        Parameters
        ----------
        path : str or path
            The file, by convention with the suffix ``.qmedoid``: a new one, or a saved model, which is replaced.
        circuits : bool
            Whether to write the circuits as QPY and OpenQASM 3 too, for other tools (extra ``quantum``).
        raw_rows : bool
            Whether to keep the medoids as rows of the training table; without, only their coordinates are kept.

        Raises
        ------
        ModelError
            The classifier is not fitted, or holds what cannot be stored without running its code on loading.
        """
        return self.to_saved().save(path, circuits=circuits, raw_rows=raw_rows)

    def to_saved(self) -> "SavedModel":
        """The fitted model as `qmedoid.load` would return it after `save`, without a file.

        Returns
        -------
        SavedModel
            It predicts, explains, reports and exports without scikit-learn.

        Raises
        ------
        ModelError
            The classifier is not fitted.
        """
        from qmedoid.saved import SavedModel

        try:
            check_is_fitted(self)
        except ValueError:
            raise ModelError(
                f"This {type(self).__name__} is not fitted: call fit before it is saved or explained."
            ) from None
        return SavedModel(self.model_)

    def explain(self, X: Any, row: int = 0, **settings: Any) -> "Explanation":
        """Why one record is decided as it is: contributions that add up exactly; see `SavedModel.explain`.

        Parameters
        ----------
        X : data frame, Arrow table, dict of columns or array
            Records with the columns of the fit.
        row : int
            The row of `X` to explain; negative ones count from the end.
        **settings
            ``top``, ``fixed``, ``known`` and ``on_mismatch`` of `SavedModel.explain`.

        Returns
        -------
        Explanation
        """
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
            return settings_view(f"{name}, not fitted", changed)
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
            training=TrainingSummary.of_numbers(len(data.codes), columns.n_missing, curve),
            **fitted,
        )
        return data.as_given(replace(model, importances=training_importances(model, data.X, held_out)))


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
        # The folder of checkpoints says where a training was kept, not how the model was made.
        kept = {name: one for name, one in value.get_params(deep=False).items() if name != "checkpoint"}
        return {"estimator": type(value).__name__} | {name: plain_parameters(one) for name, one in kept.items()}
    is_shown = isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits")
    return repr(value) if is_shown else type(value).__name__
