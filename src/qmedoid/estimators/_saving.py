"""Fitted classifiers as models that can be saved."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qmedoid.exceptions import ModelError
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import Record, TableModel
from qmedoid.variational.model import VariationalModel

# Says where a training was kept, not how the model was made.
_NOT_KEPT = ("checkpoint",)
_LONGEST = 100


class SavingMixin:
    """A classifier that is saved as its `table_model`."""

    @abstractmethod
    def table_model(self) -> TableModel:
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
        from qmedoid.storage.model_file import save_model

        try:
            check_is_fitted(self)
        except ValueError:
            raise ModelError(f"This {type(self).__name__} is not fitted: call fit before it is saved.") from None
        return save_model(self.table_model(), path, circuits=circuits, raw_rows=raw_rows)


def assembled(
    estimator: Any,
    models: tuple[HybridModel | VariationalModel, ...],
    *,
    decision: Decision,
    records: tuple[tuple[Record, ...], ...] | None,
    metrics: Mapping[str, Any] | None = None,
) -> TableModel:
    """The models of a fitted classifier of numbers, with its decision; missing values are refused, as by itself."""
    names = column_names(estimator)
    return TableModel(
        contract=Contract(tuple(Column(name, "number") for name in names)),
        encodings=tuple(Numbers(fill=math.nan) for _ in names),
        decision=decision,
        models=models,
        records=records,
        parameters={"estimator": type(estimator).__name__, **plain_parameters(estimator)},
        metrics=metrics or {},
        novelty=getattr(estimator, "_novelty", None),
        training=getattr(estimator, "_training", None),
    )


def column_names(estimator: Any) -> tuple[str, ...]:
    """Names of the columns, or x0, x1 and so on where they had none."""
    given = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{number}" for number in range(estimator.n_features_in_)) if given is None else tuple(given.tolist())


def numbered_records(method: Any) -> tuple[tuple[Record, ...], ...]:
    """The medoids of each model as rows of the training table."""
    names = column_names(method)
    return tuple(tuple(dict(zip(names, row, strict=True)) for row in table.tolist()) for table in method._medoid_tables)


def plain_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters of an estimator as JSON takes them."""
    parameters = estimator.get_params(deep=False)
    return {name: _plain(value) for name, value in parameters.items() if name not in _NOT_KEPT}


def measured_error() -> ModelError:
    """The refusal to save a classifier whose distances or circuit a backend measures."""
    return ModelError(
        "This classifier is a copy made by measured_by, and backends are not saved: save the classifier it was made "
        "from, and call measured_by again where it is needed."
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON takes it; what has no plain form is described by its type, or by its repr if that is all."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        # Folds given as row numbers tell a reader nothing, and may be as long as the table.
        return [_plain(one) for one in value] if len(value) <= _LONGEST else f"{len(value)} values"
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return type(value).__name__
    if type(value).__module__.partition(".")[0] == "qmedoid" and isinstance(value, BaseEstimator):
        return {"estimator": type(value).__name__, **plain_parameters(value)}
    if isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits"):
        return repr(value)
    return type(value).__name__
