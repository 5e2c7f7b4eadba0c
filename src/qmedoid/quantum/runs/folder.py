"""A run in a folder: what was asked for, its circuits, its jobs, and what it showed.

run/
  run.json       what was asked for, versions, circuits, times, what was found
  circuits/      the packed circuits, so that the run goes on with the same ones
  jobs/          counts of finished jobs, and the names of those that a service runs
  records.csv    the decisions with their errors
  summary.json   what the run showed
  report.html    the same to look at
"""

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qmedoid.exceptions import OutputError, ParameterError, some_of, warn
from qmedoid.model.storage.atomic import remove_all_leftovers
from qmedoid.quantum.devices.device import Device, as_device
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.result import MeasurementResult
from qmedoid.quantum.runs import lock, manifest
from qmedoid.quantum.runs.circuits import KeptCircuits
from qmedoid.quantum.runs.expected import planned, where
from qmedoid.quantum.runs.jobs import JobFiles
from qmedoid.quantum.runs.writing import PAGE, RECORDS, SUMMARY, write_results

JOBS, CIRCUITS = "jobs", "circuits"
_RESULTS = (RECORDS, SUMMARY, PAGE)
_OURS = frozenset((manifest.NAME, lock.NAME, JOBS, CIRCUITS, *_RESULTS))
# Names of other files that are shown.
_SHOWN = 5


class RunFolder:
    """A folder in which one measurement runs, as often as it is stopped; a context manager.

    It is locked while it is open, so that no two processes run the same jobs.

    Parameters
    ----------
    path : str or Path
        Made when it is not there. A folder with other files is refused.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import EvidenceClassifier
    >>> from qmedoid.quantum.runs import RunFolder
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceClassifier(n_medoids=6, n_neighbors=0, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as name, RunFolder(name) as folder:
    ...     plan = model.measurement_plan(X[:5], folder.device("simulator"), shots=64)
    ...     result = folder.run(plan)
    ...     folder.is_finished
    True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        folders = (self.path, *self.path.parents)
        self._made = [one for one in folders if not one.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = sorted(
                one.name for one in self.path.iterdir() if one.name not in _OURS and not one.name.endswith(".part")
            )
        except OSError as error:
            raise OutputError(f"The folder {str(self.path)!r} cannot be used: {error.strerror}.") from error
        self.manifest = manifest.read_manifest(self.path)
        if others and self.manifest is None:
            raise ParameterError(
                f"The folder {str(self.path)!r} holds files that are no run: {some_of(others, _SHOWN)}. Give another "
                "folder, or an empty one."
            )
        self._lock = lock.FolderLock(self.path)
        # Another process may have written it before this one got the lock.
        self.manifest = manifest.read_manifest(self.path)
        remove_all_leftovers(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder; where nothing began, those that were made for it are removed."""
        unused = self.manifest is None and {one.name for one in self.path.iterdir()} <= {lock.NAME}
        self._lock.release(remove=unused)
        if unused:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                for one in self._made:
                    one.rmdir()

    def device(self, backend: Any = None, **settings: Any) -> Device:
        """A device whose circuits are those of this run; see `qmedoid.quantum.devices.as_device`."""
        device = as_device(backend, **settings)
        device.packs = KeptCircuits(self.path / CIRCUITS, device)
        return device

    def refuse_other(self, asked: Mapping[str, Any]) -> None:
        """Refuse what is asked for (see `manifest.asked_for`) if another run is in this folder.

        Raises
        ------
        ParameterError
            The message says what differs.
        """
        if self.manifest is not None:
            manifest.refuse_other(self.path, self.manifest["asked"], asked)

    @property
    def is_finished(self) -> bool:
        """Whether the run is over, and all that it wrote is there as it was written."""
        if self.manifest is None or not self.manifest.get("finished"):
            return False
        files = self.manifest["files"]
        return all(_hash(self.path / name) == files.get(name) for name in _RESULTS)

    def run(
        self,
        plan: MeasurementPlan,
        *,
        facts: Mapping[str, str | None] | None = None,
        names: Mapping[str, str] | None = None,
        on_job: Callable[[int, int], None] | None = None,
        attempts: int = 3,
    ) -> MeasurementResult:
        """Run what has not finished yet, write what was found, and return it.

        Parameters
        ----------
        plan : MeasurementPlan
            Made with the `device` of this folder.
        facts : mapping, optional
            Hashes of ``model`` and ``records``: a run with another one is refused.
        names : mapping, optional
            What model and table are called, for the page.
        on_job : callable, optional
            Called as ``on_job(done, total)`` after each job.
        attempts : int
            How often a job that fails is tried.

        Raises
        ------
        ParameterError
            Another run is in this folder.
        JobError
            Jobs failed; what has finished is kept.
        """
        known = {"noise": plan.device.noise, "decisions": manifest.decisions_digest(plan), **(facts or {})}
        asked = manifest.asked_for(plan.settings, plan.device.name, plan.device.n_qubits, plan.n_records, **known)
        self.refuse_other(asked)
        files = JobFiles(self.path / JOBS, plan.device)
        keys = [files.key(job) for job in plan.all_jobs]
        self._begin(plan, asked, keys, names or {})
        result = plan.run(files, on_job=on_job, attempts=attempts)
        assert self.manifest is not None
        written = {**self.manifest, "finished": manifest.now(), "result": result.summary()}
        write_results(self.path, result, written)
        written["files"] = {name: _hash(self.path / name) for name in _RESULTS}
        self._write(written)
        return result

    def _begin(
        self, plan: MeasurementPlan, asked: Mapping[str, Any], keys: list[str], names: Mapping[str, str]
    ) -> None:
        """Write down what will run, or check that it is what runs already."""
        circuits = {"jobs": len(keys), "sha256": manifest.digest_of(keys)}
        running = manifest.versions()
        if isinstance(plan.device.packs, KeptCircuits):
            plan.device.packs.save()
        if self.manifest is None:
            began = {
                "asked": dict(asked),
                "names": dict(names),
                "versions": running,
                "circuits": circuits,
                "layout": [
                    {"columns": columns, "qubits": pack.qubits, "sha256": pack.sha256} for columns, pack in plan.layout
                ],
                "plan": planned(plan),
                "where": where(plan.device),
                "started": manifest.now(),
                "finished": None,
                "result": None,
                "files": {},
            }
            self._write(began)
            return
        before = self.manifest["versions"]
        other = [f"{name} {before.get(name)} (now {one})" for name, one in running.items() if before.get(name) != one]
        if self.manifest["circuits"] != circuits:
            why = f" The run was begun with {', '.join(other)}: go on with these versions." if other else ""
            raise ParameterError(
                f"The run in {str(self.path)!r} has other circuits than those that were planned now, and what it has "
                f"measured so far would not count.{why} Give another folder to begin anew."
            )
        if other:
            warn(f"The run was begun with {', '.join(other)}; its circuits are the same, and it goes on.")

    def _write(self, document: dict[str, Any]) -> None:
        manifest.write_manifest(self.path, document)
        self.manifest = manifest.read_manifest(self.path)


def _hash(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
