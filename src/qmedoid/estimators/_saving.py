"""Fitted classifiers as models that can be saved."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from qmedoid.calibration.curve import Calibration
from qmedoid.exceptions import ModelError
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import Record, TableModel
from qmedoid.variational.model import VariationalModel

# Says where a training was kept, not how the model was made.
_NOT_KEPT = ("checkpoint",)
_LONGEST = 100


def save(estimator: Any, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
    """Save a fitted classifier to a file that `qmedoid.load` reads.

    Parameters
    ----------
    estimator : NearestMedoidClassifier, GeometricClassifier, VariationalClassifier or TableClassifier
    path : str or path
        The file, by convention with the suffix ``.qmedoid``: a new one, or a saved model, which is replaced.
    circuits : bool
        Whether to write circuits as QPY and OpenQASM 3 as well, for other tools (extra ``quantum``).
    raw_rows : bool
        Whether to keep the medoids as rows of the training table.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelError
        The estimator is not fitted, or holds what cannot be stored without running its code on loading.
    """
    from qmedoid.storage.model_file import save_model

    return save_model(table_model(estimator), path, circuits=circuits, raw_rows=raw_rows)


class SavingMixin:
    """A fitted classifier that can be saved."""

    def save(self, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
        """Write the fitted classifier to a file that `qmedoid.load` reads, without code and without scikit-learn.

        Parameters
        ----------
        path : str or path
            The file, by convention with the suffix ``.qmedoid``: a new one, or a saved model, which is replaced.
        circuits : bool
            Whether to write the circuits as QPY and OpenQASM 3 too, for other tools (extra ``quantum``).
        raw_rows : bool
            Whether to keep the medoids as rows of the training table; without, only their coordinates are kept.
        """
        return save(self, path, circuits=circuits, raw_rows=raw_rows)


def table_model(estimator: Any) -> TableModel:
    """A fitted classifier as a model of tables whose columns are all numbers; see `save` for its parameters.

    Medoids are kept as rows for all models. Missing values are refused, as the classifier itself does.
    """
    from qmedoid.estimators.fusion import NearestMedoidClassifier
    from qmedoid.estimators.geometric import GeometricClassifier
    from qmedoid.estimators.variational import VariationalClassifier

    _check_ours(estimator)
    if hasattr(estimator, "table_model"):
        own: TableModel = estimator.table_model()
        return own
    if isinstance(estimator, NearestMedoidClassifier):
        return _of_fusion(estimator)
    if isinstance(estimator, GeometricClassifier):
        return _of_geometric(estimator)
    if isinstance(estimator, VariationalClassifier):
        return _of_variational(estimator)
    raise _foreign(type(estimator).__name__)


def _of_fusion(estimator: Any) -> TableModel:
    _check_not_measured(isinstance(estimator.model_, NearestModel))
    plain = Calibration(1.0, np.zeros(len(estimator.classes_)))
    return _assembled(
        estimator,
        tuple(HybridModel(model, plain) for model in estimator.models_),
        # Its margin decides, not a probability: of two classes the second where s_0 − s_1 is above 0.
        decision=Decision(
            tuple(estimator.classes_.tolist()), 0.0 if len(estimator.classes_) == 2 else None, probabilistic=False
        ),
        records=_records(estimator, _names(estimator)),
    )


def _of_geometric(estimator: Any) -> TableModel:
    model = estimator.model_
    _check_not_measured(model.method is model.method.plain)
    _check_not_measured(model.variational is None or isinstance(model.variational, VariationalModel))
    metrics = {"held_out_scores": estimator.held_out_scores_.tolist(), "threshold": float(estimator.threshold_)}
    return _assembled(
        estimator,
        tuple(estimator.models_),
        decision=estimator.decision_,
        records=_records(estimator.estimator_, _names(estimator)),
        metrics=metrics,
    )


def _of_variational(estimator: Any) -> TableModel:
    _check_not_measured(isinstance(estimator.model_, VariationalModel))
    if estimator.shots is not None:
        raise ModelError(
            f"This classifier predicts by shots={estimator.shots} random measurements, and a saved model decides "
            "exactly: call set_params(shots=None) first."
        )
    metrics = {"loss": float(estimator.seed_losses_.min()), "threshold": float(estimator.threshold_)}
    return _assembled(estimator, (estimator.model_,), decision=estimator.decision_, records=None, metrics=metrics)


def _assembled(
    estimator: Any,
    models: tuple[HybridModel | VariationalModel, ...],
    *,
    decision: Decision,
    records: tuple[tuple[Record, ...], ...] | None,
    metrics: Mapping[str, Any] | None = None,
) -> TableModel:
    names = _names(estimator)
    return TableModel(
        contract=Contract(tuple(Column(name, "number") for name in names)),
        encodings=tuple(Numbers(fill=math.nan) for _ in names),
        decision=decision,
        models=models,
        records=records,
        parameters={"estimator": type(estimator).__name__, **_parameters(estimator)},
        metrics=metrics or {},
        novelty=getattr(estimator, "_novelty", None),
        training=getattr(estimator, "_training", None),
    )


def _names(estimator: Any) -> tuple[str, ...]:
    """Names of the columns, or x0, x1 and so on where they had none."""
    given = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{number}" for number in range(estimator.n_features_in_)) if given is None else tuple(given.tolist())


def _records(method: Any, names: Sequence[str]) -> tuple[tuple[Record, ...], ...]:
    """The medoids of each model as rows of the training table."""
    return tuple(tuple(dict(zip(names, row, strict=True)) for row in table.tolist()) for table in method._medoid_tables)


def _parameters(estimator: BaseEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: _plain(value) for name, value in parameters.items() if name not in _NOT_KEPT}


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
        return {"estimator": type(value).__name__, **_parameters(value)}
    if isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits"):
        return repr(value)
    return type(value).__name__


def _check_ours(estimator: Any) -> None:
    """Raise for what a model file cannot hold, and for what is not fitted."""
    if isinstance(estimator, Pipeline):
        step, part = next(
            (one for one in estimator.steps if type(one[1]).__module__.partition(".")[0] != "qmedoid"),
            estimator.steps[0],
        )
        raise ModelError(
            f"A model file holds qmedoid models only; step {step!r} ({type(part).__name__}) cannot be stored without "
            "running its code on loading. Fit the classifier on the table itself: it scales its columns, and a "
            "TableClassifier takes categories, dates and missing cells."
        )
    if type(estimator).__module__.partition(".")[0] != "qmedoid" and not hasattr(estimator, "table_model"):
        raise _foreign(type(estimator).__name__)
    try:
        check_is_fitted(estimator)
    except (ValueError, TypeError):  # not fitted, or not an estimator at all
        raise ModelError(f"This {type(estimator).__name__} is not fitted: call fit before it is saved.") from None


def _foreign(name: str) -> ModelError:
    return ModelError(
        f"A model file holds qmedoid models only, and a {name} cannot be stored without running its code on loading: "
        "save a fitted NearestMedoidClassifier, GeometricClassifier, VariationalClassifier or TableClassifier."
    )


def _check_not_measured(is_plain: bool) -> None:
    if not is_plain:
        raise ModelError(
            "This classifier is a copy made by measured_by, and backends are not saved: save the classifier it was "
            "made from, and call measured_by again where it is needed."
        )
