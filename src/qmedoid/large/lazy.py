"""Results of a method of a model about Dask collections, partition by partition, as lazy collections.

The model is one task of the graph that all others depend on, so the graph does not grow with partitions times model.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from dask.delayed import delayed

from qmedoid.large.collections import by_rows, nothing_of
from qmedoid.large.shared import Shared


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
    node = _node(owner)
    if isinstance(rows, dd.DataFrame):
        empty = _framed(nothing, names, nothing_of(rows))
        return rows.map_partitions(_frame_of, node, method, dict(how), names, nothing, meta=empty, **_AS_IT_IS)
    if nothing.ndim == 1:
        return rows.map_blocks(_array_of, node, method, dict(how), nothing, drop_axis=1, meta=nothing)
    chunks = (rows.chunks[0], (nothing.shape[1],))
    return rows.map_blocks(_array_of, node, method, dict(how), nothing, chunks=chunks, meta=nothing)


def lazy_frame(data: Any, owner: Any, function: Callable[..., Any], names: Sequence[str], **how: Any) -> Any:
    """A frame that a function makes of an owner and a frame: lazy, with the types that it makes of no rows.

    The columns of an array have these names.
    """
    rows = by_rows(data)
    if isinstance(rows, da.Array):
        rows = dd.from_dask_array(rows, columns=list(names))
    empty = function(owner, nothing_of(rows), **how)
    return rows.map_partitions(_with_owner, _node(owner), function, how, meta=empty, **_AS_IT_IS)


# Partitions are not aligned with what they are given beside them, and results keep their types.
_AS_IT_IS: dict[str, Any] = {"enforce_metadata": False, "align_dataframes": False}


def _node(owner: Any) -> Any:
    packed = Shared.of(owner)
    return delayed(Shared, pure=True)(packed.sha256, packed.data, dask_key_name=packed.key)


def _with_owner(part: Any, shared: Shared, function: Callable[..., Any], how: Mapping[str, Any]) -> Any:
    return function(shared.value(), part, **how)


def _array_of(part: Any, shared: Shared, method: str, how: Mapping[str, Any], nothing: npt.NDArray[Any]) -> Any:
    return getattr(shared.value(), method)(part, **how) if len(part) else nothing


def _frame_of(
    part: Any,
    shared: Shared,
    method: str,
    how: Mapping[str, Any],
    names: str | Sequence[Any],
    nothing: npt.NDArray[Any],
) -> Any:
    return _framed(_array_of(part, shared, method, how, nothing), names, part)


def _framed(values: npt.NDArray[Any], names: str | Sequence[Any], part: Any) -> Any:
    """An array as a series or a frame, with the index of a partition."""
    if isinstance(names, str):
        return pa.table({names: pa.array(values)}).to_pandas()[names].set_axis(part.index)
    columns = {str(place): pa.array(np.ascontiguousarray(column)) for place, column in enumerate(values.T)}
    return pa.table(columns).to_pandas().set_axis(list(names), axis=1).set_axis(part.index)
