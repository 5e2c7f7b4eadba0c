"""Cells run one after another or side by side, each kept as soon as it is done."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from qmedoid.exceptions import QMedoidError
from qmedoid.studies.catalog import digest
from qmedoid.studies.reproduction.cells import Cell, Result, cell_key
from qmedoid.studies.reproduction.plan import expected_seconds, load_data, run_cell
from qmedoid.studies.reproduction.store import CellStore

Report = Callable[[Cell, float], None]
"""Told of every cell that is done, with the seconds that it was expected to take."""

# Libraries read these when they are loaded; cells side by side have one thread each.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class CellError(QMedoidError, RuntimeError):
    """A cell could not be run; what was done before it is kept."""


def find_done(cells: Sequence[Cell], folder: Path) -> dict[Cell, Result]:
    """Results of the cells that a store has already."""
    store = CellStore(folder)
    found = {cell: store.get(_key(cell)) for cell in cells}
    return {cell: result for cell, result in found.items() if result is not None}


def run_cells(cells: Sequence[Cell], folder: Path, *, jobs: int, report: Report) -> dict[Cell, Result]:
    """Run cells and keep their results in a store.

    Parameters
    ----------
    cells : sequence of Cell
        Those that are not done yet. Long ones are begun first, so that none is waited for at the end.
    folder : Path
        Of the store.
    jobs : int
        Processes. 1 runs everything in this one.
    report : callable (Cell, float) -> None

    Raises
    ------
    CellError
        A cell failed. Results of those that were done by then are in the store.
    """
    ordered = sorted(cells, key=lambda cell: (-expected_seconds(cell), cell))
    results: dict[Cell, Result] = {}
    runs = _side_by_side(ordered, folder, jobs) if jobs > 1 and len(ordered) > 1 else _in_turn(ordered, folder)
    # Closed here and not when somebody lets go of it: an interrupt within `report` must end the workers, too.
    with closing(runs):
        for cell, result in runs:
            results[cell] = result
            report(cell, expected_seconds(cell))
    return results


def _in_turn(cells: Sequence[Cell], folder: Path) -> Generator[tuple[Cell, Result]]:
    for cell in cells:
        try:
            yield cell, _run_and_keep(cell, _key(cell), folder)
        except QMedoidError:
            raise
        except Exception as error:
            raise CellError(f"The cell '{cell}' failed: {error}") from error


def _side_by_side(cells: Sequence[Cell], folder: Path, jobs: int) -> Generator[tuple[Cell, Result]]:
    # Spawned, not forked: a fork would copy the threads of OpenMP in whatever state they are.
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    with _one_thread_each(), ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_worker) as pool:
        try:
            with _ctrl_c_waits():
                futures = {pool.submit(_run_and_keep, cell, _key(cell), folder): cell for cell in cells}
            for future in as_completed(futures):
                yield futures[future], _outcome(future.result, futures[future])
        except BaseException:
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            # Waits until they are gone. Without waiting, the end of the block would not wait either.
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _outcome(result: Callable[[], Result], cell: Cell) -> Result:
    try:
        return result()
    except QMedoidError:
        raise
    except BrokenProcessPool as error:
        raise CellError(
            "A process that ran cells was killed, perhaps for want of memory. What was done is kept: run the same "
            "command again, with --jobs 1."
        ) from error
    except Exception as error:
        raise CellError(f"The cell '{cell}' failed: {error}") from error


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends, where the system can; processes that start meanwhile never hear of it.

    It reaches the whole group, and a worker that is still importing would print where it was.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker() -> None:
    # The parent ends its workers itself after Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent is gone without a word: killed, it cannot tell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_and_keep(cell: Cell, key: str, folder: Path) -> Result:
    """Run a cell and keep its result under a key.

    The key is made before the run, by the process that asked for it: sources that change meanwhile are not what ran.
    """
    begun = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_cell(cell, load_data(cell.data))
    result["seconds"] = round(time.perf_counter() - begun, 3)
    result["peak_mb"] = _peak_megabytes()
    CellStore(folder).put(key, result)
    return result


def _peak_megabytes() -> float | None:
    """Most memory that this process has had so far; None where the system does not say."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def _key(cell: Cell) -> str:
    return cell_key(cell, _data_digest(cell.data))


@cache
def _data_digest(name: str) -> str:
    return digest(load_data(name))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
