"""Decisions about Dask collections: lazy, partition by partition, with the same bits as about each partition alone."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import is_collection
from qmedoid.exceptions import ParameterError, require_dask
from qmedoid.tables.results import ScoreSettings

Method = TypeVar("Method", bound=Callable[..., Any])


def takes_collections(method: Method) -> Method:
    """Let a method that returns an array about rows take Dask collections, of which it returns a lazy one.

    An array gives an array. A data frame gives a series or, where there is a column for every class, a data frame with
    the classes as names, and keeps its index. Nothing is computed, and the model is in the graph once.
    """

    @functools.wraps(method)
    def taking(self: Any, data: Any, *args: Any, **how: Any) -> Any:
        if not is_collection(data):
            return method(self, data, *args, **how)
        require_dask("Scoring a Dask collection")
        from qmedoid.large.collections import lazy_values, nothing_of

        # Columns that differ are refused now, and so is a model without this method; estimators want rows.
        if hasattr(self, "contract") or not hasattr(self, "classes_"):
            method(self, nothing_of(data), *args, **how)
        names, nothing = _result(self, method.__name__)
        return lazy_values(data, self, method.__name__, how, names, nothing)

    return taking  # type: ignore[return-value]


def _result(owner: Any, method: str) -> tuple[str | list[Any], npt.NDArray[Any]]:
    """The name or the names of what a method returns, and what it returns of no rows."""
    classes = owner.classes_
    if method == "predict":
        return "prediction", classes[:0]
    if method == "decided_by":
        method = owner.model.method if hasattr(owner, "model") else owner.method_
        return "decided_by", np.array(["circuit", method])[:0]
    if method == "predict_proba" or (len(classes) > 2 and method == "decision_function"):
        return classes.tolist(), np.zeros((0, len(classes)))
    return {"decision_function": "margin"}.get(method, method), np.zeros(0)


def lazy_table(saved: Any, data: Any, settings: ScoreSettings) -> Any:
    """The results of `SavedModel.score_table` about a Dask collection, as a lazy data frame with its index."""
    require_dask("Scoring a Dask collection")
    if "row" in settings.add:
        raise ParameterError(
            "'row' cannot be added to the results of a Dask collection, whose rows have no numbers before they are "
            "computed: use its index, or carry a column through."
        )
    from qmedoid.large.collections import lazy_frame

    width = data.shape[1] if len(data.shape) == 2 else 0
    names = saved.contract.names if width == len(saved.contract.names) else [f"x{place}" for place in range(width)]
    return lazy_frame(data, saved, _scored_frame, names, settings=settings)


def _scored_frame(saved: Any, frame: Any, *, settings: ScoreSettings) -> Any:
    """Results about a data frame as another one, which has its index."""
    is_skipping, is_flagging = (settings.on_bad_row == how for how in ("skip", "flag"))
    # Rows that are left out are flagged first, so that the others keep their places in the index.
    how = {name: getattr(settings, name) for name in ("columns", "add", "n_reasons", "on_mismatch", "on_bad_row")}
    table = saved.score_table(frame, **(how | ({"on_bad_row": "flag"} if is_skipping else {})))
    results = table.select(table.column_names[len(settings.columns) :])
    names = [str(name) for name in frame.columns]
    carried = frame.iloc[:, [names.index(name) for name in settings.columns]]
    if is_skipping:
        kept = results.column("flag").is_null()
        results, carried = results.filter(kept).drop_columns("flag"), carried[kept.to_numpy()]
    made = results.to_pandas(integer_object_nulls=True)
    if is_flagging:  # columns may have no value in some rows, whichever rows a partition has
        whole = {field.name: "Int64" for field in results.schema if pa.types.is_integer(field.type)}
        truth = {field.name: "boolean" for field in results.schema if pa.types.is_boolean(field.type)}
        made = made.astype(whole | truth)
    made = made.set_axis(carried.index)
    return carried.assign(**{name: made[name] for name in made.columns}) if settings.columns else made
