"""Cells run side by side in processes of their own, each kept as soon as it is done."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.quality.cells import Cell, cell_key, run_cell
from threadpoolctl import threadpool_limits

from qmedoid.studies.reproduction.running import (
    CellError,
    _one_thread_each,
    _peak_megabytes,
    _prepare_worker,
)
from qmedoid.studies.reproduction.store import CellStore

Result = dict[str, Any]


def done(cells: Sequence[Cell], folder: Path) -> dict[Cell, Result]:
    """Results of the cells that the store has already."""
    store = CellStore(folder)
    found = {cell: store.get(cell_key(cell)) for cell in cells}
    return {cell: result for cell, result in found.items() if result is not None}


def run_cells(cells: Sequence[Cell], folder: Path, jobs: int, report: Callable[[Cell, Result], None]) -> None:
    """Run cells in the order given and keep their results; what was done before an error or Ctrl-C is kept, too.

    Payments have a process for every cell, so that its peak of memory is its own.
    """
    # Spawned, not forked: a fork would copy the threads of OpenMP in whatever state they are.
    context = multiprocessing.get_context("spawn")
    once = 1 if cells and cells[0].part == "card" else None
    with (
        _one_thread_each(),
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_worker, max_tasks_per_child=once) as pool,
    ):
        futures = {pool.submit(_run_and_keep, cell, cell_key(cell), folder): cell for cell in cells}
        try:
            for future, cell in _as_done(futures):
                report(cell, future.result())
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            if isinstance(error, Exception):
                raise CellError(f"The cell '{cell}' failed: {error}") from error
            raise


def _as_done(futures: dict[Future[Result], Cell]) -> Iterator[tuple[Future[Result], Cell]]:
    for future in as_completed(futures):
        yield future, futures[future]


def _run_and_keep(cell: Cell, key: str, folder: Path) -> Result:
    """Run a cell and keep its result under a key that was made before: sources that change meanwhile are not it."""
    begun = time.perf_counter()
    with threadpool_limits(1):
        result = run_cell(cell)
    result |= {"seconds": time.perf_counter() - begun, "peak_mb": _peak_megabytes()}
    CellStore(folder).put(key, result)
    return result
