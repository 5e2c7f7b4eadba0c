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
from qmedoid.large.runner import OnRows, Results, Runner, TableFacts
from qmedoid.large.workers import packed, results_by
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table, common_type, is_declared_category, plain_type
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
    """Refuse a partition of X and one of y that do not hold the same rows in the same order, as far as they tell.

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

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
    owner : object
        The one with the method, which takes a partition and returns an array.
    method : str
    how : mapping
        Further arguments of the method.
    names : str or sequence
        Name of the series, or of the columns, of a frame.
    nothing : ndarray of shape (0,) or (0, C)
        What the method returns of no rows.

    Returns
    -------
    dask.array.Array, dask.dataframe.Series or dask.dataframe.DataFrame
        An array for an array; for a frame a series or a frame with its index.
    """
    rows = by_rows(data)
    values = partial(_values, method=method, how=dict(how), nothing=nothing)
    if isinstance(rows, dd.DataFrame):
        return lazy_frame(rows, owner, partial(_framed_values, values=values, names=names), ())
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
    return rows.map_partitions(_of_owner, _node(owner), function, how, meta=empty, **_AS_IT_IS)


# Partitions are not aligned with what they are given beside them, and results keep their types.
_AS_IT_IS: dict[str, Any] = {"enforce_metadata": False, "align_dataframes": False}


def _node(owner: Any) -> Any:
    data, key = packed(owner)
    return delayed(cloudpickle.loads, pure=True)(data, dask_key_name=key)


def _of_owner(part: Any, owner: Any, function: Callable[..., Any], how: Mapping[str, Any]) -> Any:
    return function(owner, part, **how)


def _values(owner: Any, part: Any, method: str, how: Mapping[str, Any], nothing: npt.NDArray[Any]) -> Any:
    return getattr(owner, method)(part, **how) if len(part) else nothing


def _framed_values(owner: Any, part: Any, values: Callable[..., Any], names: str | Sequence[Any]) -> Any:
    """Values as a series or a frame, with the index of a partition."""
    found = values(owner, part)
    if isinstance(names, str):
        return pa.table({names: pa.array(found)}).to_pandas()[names].set_axis(part.index)
    columns = {str(place): pa.array(np.ascontiguousarray(column)) for place, column in enumerate(found.T)}
    return pa.table(columns).to_pandas().set_axis(list(names), axis=1).set_axis(part.index)


# Names of the target, where it has none that is free.
_TARGETS = ("target", "class", "y", "label")


def _table(names: Sequence[str], target: str, place: int, x: Any, y: Any = None) -> pa.Table:
    """A partition of X with its targets, if these are apart, as one table."""
    table = as_table(x, names=names)
    if y is None:
        return table
    check_same_rows(place, x, y)
    return table.append_column(target, as_table({target: y}).column(0))


def collection_runner(X: Any, y: Any, client: Any = None, *, on_rows: OnRows | None = None) -> Runner:
    """A runner over the partitions of a Dask data frame or array.

    Every pass computes the partitions anew: `persist` a collection that is costly to make, and fits in the memory of
    the cluster. Types of columns are those that the collection says; of columns of Python objects they are found by one
    more pass.

    Rows of a collection that was shuffled have no order of their own: Dask may give them in another one whenever it is
    computed. Rows that are in another order for another runner cannot be noticed: results are right then, but of
    another sample. Write such a collection to Parquet first.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
    y : dask.dataframe.Series, dask.array.Array of shape (n,) or str
        Targets in the partitions of X, or the name of a column of X.
    client : distributed.Client or None
        None takes the client in force; without a cluster, partitions are read on threads of this process.
    on_rows : callable or None
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
        target, parts = _free_name(y, names), with_targets(X, y)
        schema = schema.append(as_table({target: nothing_of(y)}).schema.field(0))
    categories = frozenset(one.name for one in schema if is_declared_category(one.type))
    schema = pa.schema([(one.name, plain_type(one.type)) for one in schema])
    results, tasks = results_by(client), [(place, *part) for place, part in enumerate(parts)]
    schema = _types(names, target, schema, results, tasks)
    description = f"a Dask {'data frame' if hasattr(X, 'columns') else 'array'} of {len(parts)} partitions"
    facts = TableFacts(description, schema, categories=categories)
    lengths = [None] * len(tasks)
    return Runner(facts, tasks, _of_rows, lengths, results, (names, target, schema), target, on_rows=on_rows)


def _of_rows(shared: tuple[Pass, Any], first_row: int, place: int, x: Any, y: Any = None) -> tuple[Summary, str]:
    one, (names, target, schema) = shared
    table = _table(names, target, place, x, y)
    source = TableSource([MemoryFile(table, f"partition {place}")], None)
    source.schema = schema
    return one(source, first_row), table_digest(table)


def _free_name(y: Any, names: Sequence[str]) -> str:
    """The name of a target: its own, if it is a series and no column is called so; those of arrays are made up."""
    wanted = [y.name] if isinstance(y, dd.Series) and isinstance(y.name, str) else []
    numbered = (f"target_{number}" for number in range(len(names) + 1))
    return next(name for name in [*wanted, *_TARGETS, *numbered] if name not in names)


def _types(
    names: Sequence[str], target: str, schema: pa.Schema, results: Results, tasks: Sequence[tuple[Any, ...]]
) -> pa.Schema:
    """Types of all columns; those of Python objects are the ones that all partitions have in common."""
    unknown = [one.name for one in schema if pa.types.is_null(one.type)]
    if not unknown:
        return schema
    found = [types for _, types in results("types", _types_of, (names, target, unknown), tasks)]
    for number, name in enumerate(unknown):
        kinds = [types[number] for types in found if not pa.types.is_null(types[number])]
        kind = common_type(sorted(kinds, key=str)) if kinds else pa.string()
        schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    return schema


def _types_of(shared: tuple[Any, str, list[str]], place: int, x: Any, y: Any = None) -> list[pa.DataType]:
    names, target, unknown = shared
    schema = _table(names, target, place, x, y).schema
    return [plain_type(schema.field(name).type) for name in unknown]
