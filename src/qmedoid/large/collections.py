"""Dask data frames, series and arrays: partitions of rows, lazy results about them, and passes over them.

In lazy results the model is one task of the graph that all others depend on, so that the graph does not grow with
partitions times model.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import cloudpickle
import dask.array as da
import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from dask.delayed import Delayed, delayed

from qmedoid.exceptions import DataError
from qmedoid.large.base import Pass, Summary, table_digest
from qmedoid.large.runner import OnRows, Runner, TableFacts
from qmedoid.large.workers import packed, results_by
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table, is_declared_category, plain_type
from qmedoid.tables.binary_files import MemoryFile
from qmedoid.tables.source import TableSource


def by_rows(data: Any, name: str = "X") -> Any:
    """The collection in partitions of whole rows; arrays must be of two dimensions."""
    if isinstance(data, dd.DataFrame):
        return data
    if isinstance(data, da.Array) and data.ndim == 2:
        if np.isnan(data.shape[1]):
            raise DataError(
                f"Input {name} is a Dask array with an unknown number of columns: compute_chunk_sizes() it."
            )
        return data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
    shape = f" of shape {data.shape}" if isinstance(data, da.Array) else ""
    raise DataError(
        f"Input {name} must be a Dask data frame, or a Dask array with rows and columns. Got a "
        f"{type(data).__name__}{shape} instead."
    )


def nothing_of(data: Any) -> Any:
    """No rows of the collection, with its columns and types; nothing is computed."""
    if isinstance(data, da.Array):
        return np.zeros((0, *data.shape[1:]), dtype=data.dtype)
    return data._meta


def partitions_of(data: Any) -> list[Delayed]:
    """The partitions in order."""
    return list(data.to_delayed().ravel()) if isinstance(data, da.Array) else list(data.to_delayed())


def with_targets(X: Any, y: Any) -> list[tuple[Delayed, ...]]:
    """Partitions of rows and of their targets; refused where there are not as many of both."""
    if not (isinstance(y, dd.Series) or (isinstance(y, da.Array) and y.ndim == 1)):
        raise DataError(
            "With a Dask collection X, y must be a Dask series, a Dask array of one dimension, or the name of a column "
            f"of X. Got a {type(y).__name__} instead."
        )
    if isinstance(X, da.Array) and isinstance(y, da.Array):
        if not np.isnan([X.shape[0], y.shape[0]]).any() and X.shape[0] != y.shape[0]:
            raise DataError(f"X has {X.shape[0]} rows and y has {y.shape[0]}: pass one value for every row.")
        if not np.isnan([*X.chunks[0], *y.chunks[0]]).any():
            y = y.rechunk((X.chunks[0],))
    rows, targets = partitions_of(X), partitions_of(y)
    if len(rows) != len(targets):
        raise DataError(
            f"X has {len(rows)} partitions and y has {len(targets)}, as where Dask reads several small files at once: "
            "give the name of a column of X as y, or persist() the collection that both are taken from."
        )
    return list(zip(rows, targets, strict=True))


def check_same_rows(place: int, x: Any, y: Any) -> None:
    """Refuse a partition of X and one of y that do not hold the same rows in the same order.

    A shuffle may put the rows of a partition in another order every time it is computed, and collections that were
    taken from one are computed apart: their lengths agree, and their rows do not.
    """
    if len(x) != len(y):
        raise DataError(
            f"Partition {place} (from 0) of X has {len(x)} rows, and that of y has {len(y)}: X and y must be split in "
            "the same way."
        )
    if hasattr(x, "index") and hasattr(y, "index") and not x.index.equals(y.index):
        raise DataError(
            f"Partition {place} (from 0) of X has another index than that of y: their rows are not the same, or not in "
            "the same order, as after a shuffle. Give the name of a column of X as y, or persist() the collection "
            "that both are taken from. If rows belong together by their places alone, give y.to_dask_array()."
        )


def lazy_values(
    data: Any, owner: Any, method: str, how: Mapping[str, Any], names: str | Sequence[Any], nothing: npt.NDArray[Any]
) -> Any:
    """What a method returns about every row, in the kind of the data: lazy, with known types.

    An array (n, p) gives an array; a frame gives a series or a frame with its index. `owner` has the method, which
    takes a partition and `how`; `names` are the name of the series or those of the columns, and `nothing`, of shape
    (0,) or (0, C), is what it returns of no rows.
    """
    rows = by_rows(data)
    values = partial(_values, method=method, how=dict(how), nothing=nothing)
    if isinstance(rows, dd.DataFrame):
        return lazy_frame(rows, owner, partial(values, names=names), ())
    # With a column for every class, or without columns.
    shape = {"chunks": (rows.chunks[0], (nothing.shape[1],))} if nothing.ndim > 1 else {"drop_axis": 1}
    return rows.map_blocks(_of_owner, _node(owner), values, {}, meta=nothing, **shape)


def lazy_frame(data: Any, owner: Any, function: Callable[..., Any], names: Sequence[str], **how: Any) -> Any:
    """A frame that a function makes of an owner and a frame: lazy, with the types that it makes of no rows.

    The columns of an array have these names.
    """
    rows = by_rows(data)
    if isinstance(rows, da.Array):
        rows = dd.from_dask_array(rows, columns=list(names))
    empty = function(owner, nothing_of(rows), **how)
    # Partitions are not aligned with what they are given beside them, and results keep their types.
    as_it_is: dict[str, Any] = {"enforce_metadata": False, "align_dataframes": False}
    return rows.map_partitions(_of_owner, _node(owner), function, how, meta=empty, **as_it_is)


def _node(owner: Any) -> Any:
    data, key = packed(owner)
    return delayed(cloudpickle.loads, pure=True)(data, dask_key_name=key)


def _of_owner(part: Any, owner: Any, function: Callable[..., Any], how: Mapping[str, Any]) -> Any:
    return function(owner, part, **how)


def _values(
    owner: Any,
    part: Any,
    method: str,
    how: Mapping[str, Any],
    nothing: npt.NDArray[Any],
    names: str | Sequence[Any] | None = None,
) -> Any:
    """What a method returns about a partition; with names, as a series or a frame with its index."""
    found = getattr(owner, method)(part, **how) if len(part) else nothing
    if names is None:
        return found
    if isinstance(names, str):
        return pa.table({names: pa.array(found)}).to_pandas()[names].set_axis(part.index)
    columns = {str(number): pa.array(np.ascontiguousarray(column)) for number, column in enumerate(found.T)}
    return pa.table(columns).to_pandas().set_axis(list(names), axis=1).set_axis(part.index)


def collection_runner(X: Any, y: Any, client: Any = None, *, on_rows: OnRows | None = None) -> Runner:
    """A runner over the partitions of a Dask data frame or array, on the workers of a client as `results_by` has it.

    The target y is a Dask series, an array in the partitions of X, or the name of a column of X. Every pass computes
    the partitions anew: `persist` a collection that is costly to make, and fits in the memory of the cluster.

    Rows of a collection that was shuffled have no order of their own: Dask may give them in another one whenever it is
    computed. Rows that are in another order for another runner cannot be noticed: results are right then, but of
    another sample. Write such a collection to Parquet first.
    """
    X = by_rows(X)
    known = as_table(nothing_of(X))
    parts: list[tuple[Any, ...]]
    names, schema = tuple(known.column_names), known.schema
    if isinstance(y, str):
        if y not in names:
            raise DataError(f"X has no column {y!r}.{did_you_mean(y, names)}")
        target, parts = y, [(one,) for one in partitions_of(X)]
    else:
        # Its name, if no column is called so; targets in arrays are given one.
        wanted = [y.name] if isinstance(y, dd.Series) and isinstance(y.name, str) else []
        numbered = (f"target_{number}" for number in range(len(names) + 1))
        target = next(name for name in (*wanted, "target", "class", "y", "label", *numbered) if name not in names)
        parts = with_targets(X, y)
        schema = schema.append(as_table({target: nothing_of(y)}).schema.field(0))
    categories = frozenset(one.name for one in schema if is_declared_category(one.type))
    # Python objects, whose type Dask does not know, must be texts.
    objects = frozenset(one.name for one in schema if pa.types.is_null(one.type))
    schema = pa.schema([(one.name, pa.string() if one.name in objects else plain_type(one.type)) for one in schema])
    tasks = [(number, *part) for number, part in enumerate(parts)]
    description = f"a Dask {'data frame' if hasattr(X, 'columns') else 'array'} of {len(parts)} partitions"
    facts = TableFacts(description, schema, categories=categories)
    lengths = [None] * len(tasks)
    more = names, target, schema, objects
    return Runner(facts, tasks, _of_rows, lengths, results_by(client), more, target, on_rows=on_rows)


def _of_rows(shared: tuple[Pass, Any], first_row: int, number: int, x: Any, y: Any = None) -> tuple[Summary, str]:
    summarize, (names, target, schema, objects) = shared
    table = as_table(x, names=names)
    if y is not None:
        check_same_rows(number, x, y)
        table = table.append_column(target, as_table({target: y}).column(0))
    for name in objects:
        kind = plain_type(table.schema.field(name).type)
        if not (pa.types.is_null(kind) or kind == pa.string()):
            raise DataError(
                f"Column {name!r} holds Python objects of type {kind} in partition {number} (from 0), and Dask does "
                "not know their type: give it one with astype."
            )
    source = TableSource([MemoryFile(table, f"partition {number}")], None)
    source.schema = schema
    return summarize(source, first_row), table_digest(table)
