"""A uniform sample of the rows of a table, drawn in one pass."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array


def sample_rows(
    batches: Iterable[pa.RecordBatch], max_rows: int, rng: "np.random.Generator"
) -> tuple[pa.Table | None, npt.NDArray[np.int64]]:
    """Draw at most so many rows.

    Every row draws a random number, and those with the smallest are kept. So which rows are drawn depends on the
    generator and on how many rows there are, not on how they come in batches. No more than twice the sample is held.

    Returns
    -------
    table : pyarrow.Table or None
        In the order of the rows; None if there are no batches.
    rows : ndarray of int64
        Their places, from 0.
    """
    parts: list[pa.Table] = []
    keys, rows = np.empty(0), np.empty(0, dtype=np.int64)
    bound, seen = np.inf, 0
    for batch in batches:
        drawn = rng.random(batch.num_rows)
        kept = np.flatnonzero(drawn < bound)
        parts.append(pa.table(batch) if len(kept) == len(drawn) else pa.table(batch.take(pa.array(kept))))
        keys, rows = np.concatenate([keys, drawn[kept]]), np.concatenate([rows, kept + seen])
        seen += batch.num_rows
        if len(keys) > 2 * max_rows:
            parts, keys, rows = _smallest(parts, keys, rows, max_rows)
            bound = keys.max()
    if not parts:
        return None, rows
    parts, keys, rows = _smallest(parts, keys, rows, max_rows)
    return pa.concat_tables(parts), rows


def _smallest(
    parts: list[pa.Table], keys: Array, rows: npt.NDArray[np.int64], count: int
) -> tuple[list[pa.Table], Array, npt.NDArray[np.int64]]:
    if len(keys) <= count:
        return parts, keys, rows
    places = np.sort(np.argpartition(keys, count - 1)[:count])
    table = pa.concat_tables(parts).take(pa.array(places)).combine_chunks()
    return [table], keys[places], rows[places]
