"""Fits of Dask collections: as a whole where they fit in memory, else in passes on the workers."""

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.utils import check_random_state

from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.large.base import ROW
from qmedoid.large.fit import Counted, all_rows, count_rows, fit_in_passes
from qmedoid.large.fit_sample import FittedSample, PassSettings, Sampled, with_places
from qmedoid.large.runner import Runner
from qmedoid.large.sizes import DEFAULT_MEMORY, memory_bytes, needed_bytes, width_of
from qmedoid.model.table import TableModel
from qmedoid.tables.roles import Role
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.targets import class_labels


def fit_collection(owner: Any, X: Any, y: Any, memory: Any, refused: dict[str, Any]) -> None:
    """Fit a `MedoidClassifier` to a Dask data frame or array, and set its fitted attributes.

    Parameters
    ----------
    owner : MedoidClassifier
    X, y : Dask collections; y may be the name of a column of X
    memory : int, str or None
        What the fit may use in this process.
    refused : dict
        Other parameters of the fit, by name; they are for tables in memory.
    """
    from qmedoid.extras import require_dask

    require_dask("A fit of Dask collections")
    from qmedoid.large.dask_runner import DaskRunner

    given = next((name for name, value in refused.items() if value is not None), None)
    if given is not None:
        raise ParameterError(f"{given} is for tables in memory, and X is a Dask collection: leave it out.")
    limit = DEFAULT_MEMORY if memory is None else memory_bytes(memory)
    runner = DaskRunner.of_collections(X, y)
    target = runner.target
    assert target is not None, "collections have a target"
    counted = count_rows(runner, target)
    names = None if hasattr(X, "columns") else [name for name in runner.facts.names if name != target]
    fitted = clone(owner)
    if needed_bytes(counted.labels.n_rows, width_of(runner.facts.schema)) <= limit:
        _fit_whole(fitted, runner, counted, target, names)
        if counted.labels.unlabeled:
            fitted._note(f"{counted.labels.unlabeled:,} rows have no class in {target!r} and are left out")
    else:
        _fit_in_passes(fitted, runner, counted, target, names, limit)
    parameters = owner.get_params(deep=False)
    vars(owner).update({name: value for name, value in vars(fitted).items() if name not in parameters})


def _fit_whole(fitted: Any, runner: Runner, counted: Counted, target: str, names: list[str] | None) -> None:
    """Fit all rows, which are brought here: the fit of a table in memory."""
    table = all_rows(runner, counted, target)
    _, labels = class_labels(table.column(target), target)
    fitted.fit(_rows_of(table.drop_columns([target, ROW]), names), np.array(labels.to_pylist()))


def _fit_in_passes(
    fitted: Any, runner: Runner, counted: Counted, target: str, names: list[str] | None, memory: int
) -> None:
    roles: dict[str, Role] = {**dict.fromkeys(fitted.ignore or (), "ignore"), **(fitted.roles or {})}
    seed = int(check_random_state(fitted.random_state).randint(2**31))
    missing = check_missing("The 'missing' parameter", fitted.missing, names=runner.facts.names, target=target)
    settings = PassSettings(target, roles, memory=memory, date_order=fitted.date_order, seed=seed, missing=missing)

    def fit_sample(sampled: Sampled) -> FittedSample:
        fitted._settled, fitted._totals = sampled.inferred, sampled.totals
        rows = _rows_of(sampled.table.drop_columns([target]), names)
        fitted.fit(rows, sampled.labels, sample_weight=sampled.weights)
        return FittedSample(with_places(fitted.table_model(), sampled.rows), [])

    found = fit_in_passes(fitted, runner, counted, settings, fit_sample)
    _adopt(fitted, found.model)
    fitted.notes_ += found.notes
    for note in found.notes:
        warn(f"{note[0].upper()}{note[1:]}.")


def _adopt(fitted: Any, model: TableModel) -> None:
    """Make the calibrated model of all rows that of the classifier that was fitted to a sample."""
    fitted.models_ = list(model.models)
    fitted.model_ = fitted.models_[0]
    fitted.contract_, fitted._training = model.contract, model.training
    fitted._set_decision(model.decision)
    if model.importances is not None:
        before = fitted._importances
        fitted._importances = model.importances
        shares = np.divide(model.importances, before, out=np.ones_like(before), where=before > 0)
        fitted.feature_importances_[fitted.feature_importances_ > 0] *= shares[before > 0]


def _rows_of(table: pa.Table, names: list[str] | None) -> Any:
    """The rows as a fit takes them: a table, or an array where the collection is one."""
    if names is None:
        return table
    return np.column_stack([table.column(name).to_numpy() for name in names])


def score_collection(owner: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Share of the rows of a Dask collection that are classified rightly, counted partition by partition."""
    from qmedoid.extras import require_dask

    require_dask("A score of Dask collections")
    from qmedoid.large.collections import by_rows, partitions_of, with_targets
    from qmedoid.large.workers import Workers

    if sample_weight is not None:
        raise ParameterError("sample_weight is for tables in memory, and X is a Dask collection: leave it out.")
    X = by_rows(X)
    if isinstance(y, str):
        # Taken from each partition: computed apart, the same rows may come in another order.
        if y not in getattr(X, "columns", ()):
            raise DataError(f"X has no column {y!r} with the classes.")
        parts: list[tuple[Any, ...]] = [(one,) for one in partitions_of(X)]
    else:
        parts = with_targets(X, y)
    tasks = [(y if isinstance(y, str) else None, place, *part) for place, part in enumerate(parts)]
    counts = [found.result for found in Workers().results("score", _right_rows, owner, tasks)]
    n_rows = sum(n for _, n in counts)
    if n_rows == 0:
        raise DataError("Input X has no rows: pass at least one.")
    return float(sum(right for right, _ in counts) / n_rows)


def _right_rows(owner: Any, name: str | None, place: int, x: Any, y: Any = None) -> tuple[int, int]:
    """How many rows of a partition are classified rightly, and how many there are."""
    from qmedoid.large.collections import check_same_rows

    labels = y if name is None else x[name]
    check_same_rows(place, x, labels)
    if len(x) == 0:
        return 0, 0
    return round(owner.score(x, labels) * len(x)), len(x)
