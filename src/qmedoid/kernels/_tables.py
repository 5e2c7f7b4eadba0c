"""Tables as kernels read them, where they lie: checked, cut into chunks of rows, and shared between threads."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.exceptions import DataError
from qmedoid.kernels._backend import thread_count

Number = TypeVar("Number", np.float64, np.intp)

# Numbers per chunk of a table that has to be converted, or that a twin works on.
_CHUNK_NUMBERS = 2**19


class NearestMedoids(NamedTuple):
    """Distance and angle to the nearest medoid of each class, and its index, each of shape (n, C)."""

    distance: Array
    angle: Array
    medoid: Codes


def row_count(table: Table, n_columns: int) -> int:
    """Number of rows of a table; raise where it has other columns than a plan of this many."""
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise DataError(f"The table has shape {table.shape}: pass rows as a 2-D array, shape (n, {n_columns}).")
        found, lengths = table.shape[1], {len(table)}
    else:
        found, lengths = len(table), {len(column) for column in table}
    if found != n_columns:
        raise DataError(
            f"The table has {found} columns; the model was fitted on {n_columns}. "
            "Pass the same columns in the same order (an array of rows, or a sequence of columns)."
        )
    if len(lengths) > 1:
        raise DataError(f"The columns have between {min(lengths)} and {max(lengths)} rows: all need the same number.")
    return lengths.pop()


def row_part(table: Table, rows: slice | Codes) -> Table:
    """Some rows of a table of either kind."""
    return table[rows] if isinstance(table, np.ndarray) else [column[rows] for column in table]


def result_part(whole: NDArray[Number] | None, rows: slice) -> NDArray[Number] | None:
    """Some rows of a result; None where it is not wanted."""
    return None if whole is None else whole[rows]


def is_readable(table: Table) -> bool:
    """Whether a compiled kernel can read the memory as it is."""
    arrays = [table] if isinstance(table, np.ndarray) else table
    return all(a.dtype in (np.float64, np.float32) and a.dtype.isnative and a.flags.aligned for a in arrays)


def converted(table: Table) -> Table:
    """A copy that a compiled kernel can read."""
    if isinstance(table, np.ndarray):
        return np.require(table, np.float64, ["C", "ALIGNED"])
    return [np.require(column, np.float64, ["C", "ALIGNED"]) for column in table]


def in_chunks(
    judge: Callable[[Table, slice], None],
    table: Table,
    *,
    compiled: bool,
    chunk_rows: int,
    rows_worth_a_thread: int,
    threads: int | None,
) -> None:
    """Hand a table chunk by chunk to what judges it, on several threads where that pays.

    Parameters
    ----------
    judge : callable of rows and of their place in the table
    compiled : bool
        Whether a compiled kernel judges: rows that it cannot read are converted for it.
    chunk_rows : int
        Rows of a chunk: few enough to share between threads and to convert other types a piece at a time.
    rows_worth_a_thread : int
        Below this many a second thread costs more than it brings.
    """
    n, n_columns = (len(table), table.shape[1]) if isinstance(table, np.ndarray) else (len(table[0]), len(table))
    readable = compiled and is_readable(table)
    size = chunk_rows if readable else max(64, min(chunk_rows, _CHUNK_NUMBERS // n_columns))

    def judge_chunk(rows: slice) -> None:
        part = row_part(table, rows)
        judge(converted(part) if compiled and not readable else part, rows)

    workers = 1 if n < rows_worth_a_thread else min(thread_count(threads), -(-n // size))
    if workers == 1:
        for rows in row_slices(n, size) if n else ():
            judge_chunk(rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(judge_chunk, row_slices(n, size)):
            pass
