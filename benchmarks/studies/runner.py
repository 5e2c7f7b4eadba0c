"""The runner of all studies: cells run one after another or side by side, each result kept as soon as it is there."""

import gzip
import hashlib
import json
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.studies import cells as shared
from benchmarks.studies.cells import Cell, Result, StudyMethod
from qmedoid._version import __version__
from qmedoid.exceptions import QMedoidError
from qmedoid.kernels.backend import compiled
from qmedoid.model.storage.atomic import cannot_write, write_atomic

Report = Callable[[Cell, Result], None]
"""Progress callback; receives each cell that is done with its result."""


class StudyError(QMedoidError, RuntimeError):
    """A cell could not be run; results from before it are kept."""


@dataclass(frozen=True)
class Study:
    """What the runner needs of a study: its methods by part and name, and how data sets are loaded and hashed.

    `load` is a function of a module that keeps what it loaded; `digest` is the SHA-256 of a data set; `share` is the
    time of a data set's cells in units of the `seconds` of their methods; `packages` are those that results depend on
    beside the ones of all studies.
    """

    methods: Mapping[str, Mapping[str, StudyMethod]]
    load: Callable[[str], Any]
    digest: Callable[[str], str]
    share: Callable[[str], float] = lambda _: 1.0
    packages: tuple[str, ...] = ()

    def method(self, cell: Cell) -> StudyMethod:
        """The method of a cell."""
        return self.methods[cell.part][cell.method]

    def seconds(self, cell: Cell) -> float:
        """Rough time of a cell on one core."""
        return self.share(cell.data) * self.method(cell).seconds

    def versions(self) -> dict[str, str]:
        """Versions that results depend on."""
        return versions() | {package: version_of(package) for package in self.packages}

    def key(self, cell: Cell) -> str:
        """SHA-256 of the cell, its settings, its data, the versions of libraries and the numbers of the code.

        The number of the code is ``CODE`` of the module of its function, and that of `benchmarks.studies.cells`.
        """
        method = self.method(cell)
        depends_on = {
            "cell": asdict(cell),
            "settings": dict(method.settings),
            "data": self.digest(cell.data),
            "code": [shared.CODE, sys.modules[method.run.__module__].CODE],
            "versions": {name: number for name, number in self.versions().items() if name != "qmedoid"},
        }
        return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that fit and measure, and which kernels are used."""
    kernels = "numpy" if compiled("search") is None else "compiled"
    found = {"qmedoid": __version__, "kernels": kernels, "python": platform.python_version()}
    found["machine"] = platform.machine()
    packages = ("numpy", "scipy", "scikit-learn", "lightgbm", "imbalanced-learn")
    return found | {package: version_of(package) for package in packages}


def version_of(package: str) -> str:
    """The version of an installed package, or ``"none"``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


class CellStore:
    """A folder, made when absent, with a file for the result of every cell, named by the cell's key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Result | None:
        """The result of a key, or None; a damaged file counts as none."""
        try:
            content = gzip.decompress(self._file(key).read_bytes())
            result: Result = json.loads(content)
        except (OSError, EOFError, ValueError, RecursionError, zlib.error):
            return None
        return result if isinstance(result, dict) else None

    def put(self, key: str, result: Result) -> None:
        """Keep a result."""
        file = self._file(key)
        content = gzip.compress(json.dumps(result).encode(), mtime=0)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, content)
        except OSError as error:
            raise cannot_write(file, error) from error

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json.gz"


def find_done(study: Study, cells: Sequence[Cell], folder: Path) -> dict[Cell, Result]:
    """Results of the cells that a store has already."""
    store = CellStore(folder)
    found = {cell: store.get(study.key(cell)) for cell in cells}
    return {cell: result for cell, result in found.items() if result is not None}


def run_cells(
    study: Study,
    cells: Sequence[Cell],
    folder: Path | None,
    *,
    jobs: int = 1,
    report: Report = lambda _cell, _result: None,
    fresh: bool = False,
) -> dict[Cell, Result]:
    """Run cells, the long ones first, and keep their results in the store of a folder; None keeps nothing.

    One job runs everything in this process, unless each cell is to have a fresh one, so that its peak memory is not
    that of another cell. A cell that fails raises `StudyError`; results from before it are in the store.
    """
    ordered = sorted(cells, key=lambda cell: -study.seconds(cell))
    results: dict[Cell, Result] = {}
    if ordered and (fresh or (jobs > 1 and len(ordered) > 1)):
        runs = _side_by_side(study, ordered, folder, jobs, fresh=fresh)
    else:
        runs = ((cell, _run_and_keep(*_task(study, cell, folder))) for cell in ordered)
    # Closed here and not by the garbage collector: an interrupt within `report` must end the workers, too.
    with closing(runs):
        for cell, result in runs:
            results[cell] = result
            report(cell, result)
    return results


def _task(study: Study, cell: Cell, folder: Path | None) -> tuple[Any, ...]:
    """Arguments of `_run_and_keep`, which another process can be sent.

    The key is made before the run: sources that change meanwhile are not what runs.
    """
    return study.method(cell), study.load, cell, None if folder is None else study.key(cell), folder


def _side_by_side(
    study: Study, cells: Sequence[Cell], folder: Path | None, jobs: int, *, fresh: bool
) -> Generator[tuple[Cell, Result]]:
    """Results as they come from other processes, which all end when this does."""
    before = set(multiprocessing.active_children())
    pool: Executor = ThreadPoolExecutor(jobs) if fresh else _processes(jobs)
    runs: dict[Future[Result], Cell] = {}
    try:
        with _ctrl_c_waits():
            for cell in cells:
                task = _task(study, cell, folder)
                runs[pool.submit(_run_alone, *task) if fresh else pool.submit(_run_and_keep, *task)] = cell
            pool.submit(int)  # a call wakes the watcher of a pool, which then knows the processes of the calls before
        for run in as_completed(runs):
            yield runs[run], run.result()
    except BrokenProcessPool as error:
        raise StudyError(
            "A process that ran cells was killed, perhaps for want of memory. What was done is kept: run the same "
            "command again, with --jobs 1."
        ) from error
    finally:
        if fresh:  # no further cell begins
            pool.shutdown(wait=False, cancel_futures=True)
        while True:
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            if all(run.done() for run in runs):
                break
            time.sleep(0.02)
        pool.shutdown()


def _processes(jobs: int) -> ProcessPoolExecutor:
    # Spawned, not forked: a fork would copy the threads of OpenMP in whatever state they are.
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin_worker)


def _run_alone(*task: Any) -> Result:
    """`_run_and_keep` in a process of its own."""
    with _processes(1) as pool:
        return pool.submit(_run_and_keep, *task).result()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends, where the system can.

    Threads and processes that start meanwhile never hear of it: it reaches the whole group, and a worker that is still
    importing would print where it was.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: killed, it cannot tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_and_keep(
    method: StudyMethod, load: Callable[[str], Any], cell: Cell, key: str | None, folder: Path | None
) -> Result:
    """Run a cell and keep its result under a key."""
    begun = time.perf_counter()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = method.run(load(cell.data), cell, **method.settings)
    except QMedoidError:
        raise
    except Exception as error:  # as text: another process may not be able to build it again
        raise StudyError(f"The cell '{cell}' failed: {error}") from error
    result["seconds"] = round(time.perf_counter() - begun, 3)
    result["peak_mb"] = _peak_megabytes()
    if key is not None and folder is not None:
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
