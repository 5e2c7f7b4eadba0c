"""How kernels run: compiled or as NumPy twins, over tables as they lie in memory, in chunks of rows, on threads."""

import importlib
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.exceptions import DataError, ParameterError, warn


class Measured(NamedTuple):
    """Measurements of n rows with C classes; of an undecided row all numbers are NaN and the medoids −1."""

    scores: Array  # (n, C) fusion scores, or (n, K) outputs of evidence
    nearest: Codes  # (n, C): index of the nearest medoid of each class
    distance: Array  # (n, C) to it; empty unless wanted
    angle: Array  # likewise


# Numbers of a table in a chunk at most.
_CHUNK_NUMBERS = 2**19


@cache
def compiled(name: str) -> ModuleType | None:
    """The compiled kernel ``qmedoid.kernels._<name>``, or None where its NumPy twin is to be used.

    ``QMEDOID_KERNELS=numpy`` asks for the twins. The answer is kept from the first call on.
    """
    if os.environ.get("QMEDOID_KERNELS") == "numpy":
        return None
    try:
        return importlib.import_module(f"{__package__}._{name}")
    except ImportError:
        _warn_not_built()
        return None


@cache
def _warn_not_built() -> None:
    """Say once that results are the same but slower, and how to change that."""
    warn(
        "The compiled kernels of qmedoid were not built, so their NumPy twins are used: same results, but slower. "
        "To get them, install a C compiler and reinstall qmedoid. "
        "Set QMEDOID_KERNELS=numpy to use the twins without this warning."
    )


def kernels_in_use() -> str:
    """Which kernels run, in words: ``"compiled"``, or the NumPy twins and why; without the warning."""
    if os.environ.get("QMEDOID_KERNELS") == "numpy":
        return "NumPy, as QMEDOID_KERNELS asks"
    names = sorted(path.stem for path in Path(__file__).parent.glob("_*.pyi"))
    missing = [name.removeprefix("_") for name in names if find_spec(f"{__package__}.{name}") is None]
    if not missing:
        return "compiled"
    which = "NumPy" if len(missing) == len(names) else f"compiled, but NumPy for {', '.join(missing)}"
    return f"{which}: not built, so slower; install a C compiler and reinstall qmedoid"


def thread_count(threads: int | None) -> int:
    """The number of threads requested by the caller, else by ``QMEDOID_THREADS``, else one per core."""
    if threads is not None:
        if threads < 1:
            raise ParameterError(f"The 'threads' parameter must be None or an int >= 1. Got {threads!r} instead.")
        return threads
    wanted = os.environ.get("QMEDOID_THREADS", "")
    if not wanted:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ParameterError(f"The environment variable QMEDOID_THREADS must be an int >= 1. Got {wanted!r} instead.")
    return int(wanted)


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


def row_block(table: Table, rows: slice | Codes) -> Array:
    """Some rows of a table as numbers, shape (n, M), in one layout whatever the table's: so sums round alike."""
    part = table[rows] if isinstance(table, np.ndarray) else np.column_stack([column[rows] for column in table])
    return np.require(part, np.float64, ["C", "ALIGNED"])


def in_chunks(
    kernel: str,
    twin: Callable[..., object],
    table: Table,
    sizes: tuple[int, int],
    threads: int | None,
    arguments: Mapping[str, Any],
    results: Mapping[str, NDArray[Any] | None],
    *,
    n_columns: int | None = None,
    as_rows: bool = False,
) -> None:
    """Call ``fill(rows, **arguments, **results)`` for one chunk of rows after the other.

    Parameters
    ----------
    kernel : str
        What fills: a function of a compiled kernel, such as ``"trees.add_leaves"``; where that is not built, or the
        name is empty, its `twin`. It gets the same rows of the table and of all `results`. Numbers that a kernel cannot
        read in place are converted for it.
    sizes : tuple of int
        Rows of a chunk at most: few enough to share between threads and to convert a piece at a time. And rows that
        are worth a thread.
    threads : int or None
        See `thread_count`.
    n_columns : int or None
        Columns that the table must have.
    as_rows : bool
        Whether the kernel reads rows of doubles alone, one after the other.
    """
    if n_columns is not None:
        row_count(table, n_columns)
    module, _, name = kernel.partition(".")
    built = compiled(module) if module else None
    fill = partial(twin if built is None else getattr(built, name), **arguments)
    arrays = [table] if isinstance(table, np.ndarray) else table
    n, width = table.shape if isinstance(table, np.ndarray) else (len(table[0]), len(table))
    readable = all(a.dtype in (np.float64, np.float32) and a.dtype.isnative and a.flags.aligned for a in arrays)
    if as_rows:
        readable &= isinstance(table, np.ndarray) and table.dtype == np.float64 and table.flags.c_contiguous
    size = min(sizes[0], max(64, _CHUNK_NUMBERS // max(1, width)))
    if readable and threads is None and 0 < n <= size:  # small tables come by the hundred
        fill(table, **results)
        return

    def fill_chunk(rows: slice) -> None:
        if not readable:
            part: Table = row_block(table, rows)
        else:
            part = table[rows] if isinstance(table, np.ndarray) else [column[rows] for column in table]
        fill(part, **{name: None if whole is None else whole[rows] for name, whole in results.items()})

    most = min(-(-n // size), n // max(1, sizes[1]))
    workers = 1 if threads is None and most <= 1 else min(thread_count(threads), most)
    if workers <= 1:
        for rows in row_slices(n, size) if n else ():
            fill_chunk(rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(fill_chunk, row_slices(n, size)):
            pass
