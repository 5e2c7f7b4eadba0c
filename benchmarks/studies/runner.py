"""The runner of all studies: cells run one after another or side by side, each result kept as soon as it is there."""

import gzip
import hashlib
import json
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.studies.code import module_digest, version_of, versions
from benchmarks.studies.splits import Cell, Result, StudyMethod
from benchmarks.studies.workers import WorkerKilledError, run_tasks
from qmedoid.exceptions import QMedoidError
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
        """SHA-256 of the cell, its settings, its data, the code that it reaches and the versions of libraries.

        The version of this package is no part of it: its code is. `benchmarks.studies.code` says what counts as code.
        """
        method = self.method(cell)
        depends_on = {
            "cell": asdict(cell),
            "settings": dict(method.settings),
            "data": self.digest(cell.data),
            "code": module_digest(method.run.__module__),
            "versions": {name: number for name, number in self.versions().items() if name != "qmedoid"},
        }
        return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


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
        runs = _in_turn(study, ordered, folder)
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


def _in_turn(study: Study, cells: Sequence[Cell], folder: Path | None) -> Generator[tuple[Cell, Result]]:
    for cell in cells:
        yield cell, _outcome(partial(_run_and_keep, *_task(study, cell, folder)), cell)


def _side_by_side(
    study: Study, cells: Sequence[Cell], folder: Path | None, jobs: int, *, fresh: bool
) -> Generator[tuple[Cell, Result]]:
    tasks = [_task(study, cell, folder) for cell in cells]
    with closing(run_tasks(_run_and_keep, tasks, jobs, fresh=fresh)) as answers:
        for number, answer in answers:
            yield cells[number], _outcome(answer, cells[number])


def _outcome(result: Callable[[], Result], cell: Cell) -> Result:
    try:
        return result()
    except QMedoidError:
        raise
    except WorkerKilledError as error:
        raise StudyError(
            "A process that ran cells was killed, perhaps for want of memory. What was done is kept: run the same "
            "command again, with --jobs 1."
        ) from error
    except Exception as error:
        raise StudyError(f"The cell '{cell}' failed: {error}") from error


def _run_and_keep(
    method: StudyMethod, load: Callable[[str], Any], cell: Cell, key: str | None, folder: Path | None
) -> Result:
    """Run a cell and keep its result under a key."""
    begun = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = method.run(load(cell.data), cell, **method.settings)
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
