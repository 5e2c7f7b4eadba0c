"""Dask collections as partitions of rows: data frames, series and arrays."""

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed

from qmedoid.exceptions import DataError


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


def series_name(data: Any) -> str | None:
    """The name of a series; those of arrays are made up by Dask."""
    return data.name if isinstance(data, dd.Series) and isinstance(data.name, str) else None


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
