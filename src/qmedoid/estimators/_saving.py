"""Saving a fitted classifier as its table model, with its parameters in plain form."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array
from qmedoid.estimators._inputs import column_names
from qmedoid.estimators._number_columns import NumberColumns, number_columns
from qmedoid.exceptions import ModelError
from qmedoid.markup.html import plain
from qmedoid.methods.part import CLOSED_FORM, Backends
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model, Record
from qmedoid.model.view import model_view, settings_view

if TYPE_CHECKING:
    from qmedoid.explain.explanation import Explanation
    from qmedoid.quantum import MeasurementPlan
    from qmedoid.saved import SavedModel

# Longest parameter that is saved value by value.
_LONGEST = 100


class SavingMixin:
    """A classifier that is saved as its `table_model`."""

    # Importances of the columns of the contract; None before they are known, and where there are none.
    _importances: Array | None = None
    # What measures distances and the circuit of a copy made by `measured_by`.
    _backends: Backends = CLOSED_FORM

    @abstractmethod
    def table_model(self) -> Model:
        """The fitted model as it is saved and scored without scikit-learn."""

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
            The classifier is not fitted, or cannot be saved.
        """
        from qmedoid.saved import SavedModel

        try:
            check_is_fitted(self)
        except ValueError:
            raise ModelError(
                f"This {type(self).__name__} is not fitted: call fit before it is saved or explained."
            ) from None
        return SavedModel(self.table_model())

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
        name, given = type(self).__name__, cast(Any, self)
        changed = [(one, plain(repr(value), 80)) for one, value in given.get_params(deep=False).items()
                   if repr(value) != repr(type(given)().get_params(deep=False)[one])]  # fmt: skip
        if not hasattr(self, "classes_"):
            return settings_view(f"{name}, not fitted", changed)
        return model_view(self.table_model(), f"{name}, fitted", settings=changed)

    def _numbers_model(self, models: Any, decision: Decision, **metrics: Any) -> Model:
        """The models of a classifier of numbers; missing values are filled in, as by itself."""
        self._refuse_measured()
        columns = number_columns(self) or NumberColumns.unfilled(column_names(self))
        records: tuple[tuple[Record, ...], ...] | None = None
        if hasattr(self, "_medoid_tables"):
            records = tuple(columns.records(rows) for rows in self._medoid_tables)
        return Model(
            contract=columns.contract,
            encodings=columns.encodings,
            decision=decision,
            models=models,
            records=records,
            parameters=plain_parameters(self),
            metrics=metrics,
            novelty=getattr(self, "_novelty", None),
            training=getattr(self, "_training", None),
            importances=self._importances,
        )

    def _refuse_measured(self) -> None:
        """Refuse to save a classifier whose distances or circuit a backend measures."""
        if self._backends != CLOSED_FORM:
            raise ModelError(
                "This classifier is a copy made by measured_by, and backends are not saved: save the classifier it was "
                "made from, and call measured_by again where it is needed."
            )


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
    if isinstance(value, SavingMixin) and isinstance(value, BaseEstimator):
        # The folder of checkpoints says where a training was kept, not how the model was made.
        kept = {name: one for name, one in value.get_params(deep=False).items() if name != "checkpoint"}
        return {"estimator": type(value).__name__} | {name: plain_parameters(one) for name, one in kept.items()}
    is_shown = isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits")
    return repr(value) if is_shown else type(value).__name__
