"""A run in a folder: what was asked for, its circuits, its jobs, and what it showed.

run/
  run.json       what was asked for, versions, circuits, times, what was found
  circuits/      the packed circuits, so that the run goes on with the same ones
  jobs/          counts of finished jobs, and the names of those that a service runs
  records.csv    the decisions with their errors
"""

import contextlib
import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError, OutputError, ParameterError, check_int, some_of, warn
from qmedoid.model.storage.atomic import atomic_file, remove_leftovers
from qmedoid.quantum.devices.device import Device, as_device
from qmedoid.quantum.measurement.jobs import MeasurementSettings
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.result import MeasurementResult
from qmedoid.quantum.runs.files import FORMAT, JobFiles, KeptCircuits
from qmedoid.tables.writing import open_sink

MANIFEST, RECORDS = "run.json", "records.csv"
_PACKAGES = ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime")
_SAID = {
    "model": "the model",
    "records": "the records",
    "rows": "the number of records (--limit)",
    "format": "the format of runs",
    "noise": "the noise of the simulated device",
    "decisions": "the decisions in closed form",
}
_HASHES = ("model", "records", "noise", "decisions")
# Characters of a hash that are shown.
_SHOWN = 12
# Decimals of margins that tell decisions of one model from those of another.
_DECIMALS = 6


def asked_for(
    settings: MeasurementSettings, backend: str, n_qubits: int, n_records: int, **facts: str | None
) -> dict[str, Any]:
    """What a run depends on, in plain values: a run with other ones is another run.

    `backend` is the name of the device. Facts are hashes of the model, of the records, of what it decides about them in
    closed form, and of a simulated device's noise, where they are known.
    """
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings) | {"circuit": settings.form.name}))
    return {"format": FORMAT, **facts, "rows": n_records, "backend": backend, "n_qubits": n_qubits, **plain}


def _digest_of(texts: Sequence[str]) -> str:
    """One hash of several."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder; None where there is none."""
    file = folder / MANIFEST
    try:
        found: Any = json.loads(file.read_bytes())
        if found.pop("sha256", None) != _digest(found):
            raise ValueError("its contents do not match its hash")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{str(file)!r} is no manifest of a run, or is damaged ({error}). Give another folder; or remove the file, "
            "and the same command takes over the counts that are there."
        ) from error
    manifest: dict[str, Any] = found
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest by one atomic replace, with a hash of it: results that were edited are not printed."""
    with atomic_file(folder / MANIFEST) as file:
        document = {**_finite(manifest), "sha256": _digest(manifest)}
        file.write((json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(_finite(manifest), sort_keys=True).encode()).hexdigest()


JOBS, CIRCUITS, LOCK = "jobs", "circuits", ".lock"
_OURS = frozenset((MANIFEST, LOCK, JOBS, CIRCUITS, RECORDS))


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
    >>> from qmedoid.quantum import RunFolder
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
        self._is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = sorted(
                one.name for one in self.path.iterdir() if one.name not in _OURS and not one.name.endswith(".part")
            )
        except OSError as error:
            raise OutputError(f"The folder {str(self.path)!r} cannot be used: {error.strerror}.") from error
        self.manifest = read_manifest(self.path)
        if others and self.manifest is None:
            raise ParameterError(
                f"The folder {str(self.path)!r} holds files that are no run: {some_of(others, 5)}. Give another "
                "folder, or an empty one."
            )
        self._lock = FileLock(self.path / LOCK)
        try:
            self._lock.acquire(blocking=False)
        except Timeout as error:
            raise ParameterError(
                f"Another process is at work in {str(self.path)!r}: wait for its end, stop it, or give another folder."
            ) from error
        except OSError as error:
            raise OutputError(f"The folder {str(self.path)!r} cannot be written to: {error.strerror}.") from error
        # Another process may have written it before this one got the lock.
        self.manifest = read_manifest(self.path)
        remove_leftovers(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder; where nothing began, one that was made for it is removed."""
        unused = self.manifest is None and {one.name for one in self.path.iterdir()} <= {LOCK}
        if unused:
            (self.path / LOCK).unlink(missing_ok=True)
        self._lock.release()
        if unused and self._is_new:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                self.path.rmdir()

    def device(self, backend: Any = None, **settings: Any) -> Device:
        """A device whose circuits are those of this run; see `qmedoid.quantum.as_device`."""
        device = as_device(backend, **settings)
        device.packs = KeptCircuits(self.path / CIRCUITS, device)
        return device

    def refuse_other(self, asked: Mapping[str, Any]) -> None:
        """Refuse what is asked for (see `asked_for`) if another run is in this folder, and say what differs."""
        before, differs = {} if self.manifest is None else self.manifest["asked"], []
        for key in {**before, **asked}:
            there, here = before.get(key), asked.get(key)
            if there is None or here is None or there == here:  # a fact that is not known is no difference
                continue
            shown = [str(one)[:_SHOWN] + "…" if key in _HASHES else str(one) for one in (there, here)]
            differs.append(f"{_SAID.get(key, key)} ({shown[0]} there, {shown[1]} now)")
        if differs:
            raise ParameterError(
                f"The folder {str(self.path)!r} holds another run, which differs in {'; '.join(differs)}. Give another "
                "folder, or the same model, table and options to go on with that run."
            )

    @property
    def is_finished(self) -> bool:
        """Whether the run is over and its results and counts are there; one that was changed since is refused."""
        if self.manifest is None or not self.manifest.get("finished"):
            return False
        kept = {**self.manifest["files"], **self.manifest["counts"]}
        found = {name: _hash(self.path / name) for name in kept}
        changed = [name for name, sha256 in found.items() if sha256 not in (None, kept[name])]
        if changed:
            raise ModelError(
                f"{some_of(changed, 3)} in {str(self.path)!r} changed after the run was finished, so that nothing of "
                "it is shown. Put back what was there, or remove it: the same command writes results again, and "
                "fetches or runs jobs whose counts are gone."
            )
        return None not in found.values()

    def run(
        self,
        plan: MeasurementPlan,
        *,
        repeats: int = 1,
        facts: Mapping[str, str | None] | None = None,
        on_job: Callable[[int, int], None] | None = None,
    ) -> MeasurementResult:
        """Run what has not finished yet, write what was found, and return it.

        Parameters
        ----------
        plan : MeasurementPlan
            Made with the `device` of this folder.
        repeats : int
            How often every job runs; see `MeasurementPlan.run`.
        facts : mapping, optional
            Hashes of ``model`` and ``records``: a run with another one is refused.
        on_job : callable, optional
            Called as ``on_job(done, total)`` after each job.

        Raises
        ------
        ParameterError
            Another run is in this folder.
        ModelError
            The run is finished, and its files were changed.
        JobError
            Jobs failed; what has finished is kept.
        """
        check_int("'repeats' parameter", repeats, 1)
        # A model with another cut or other classes decides otherwise, and runs the same circuits.
        margins = np.round(plan.exact.margins, _DECIMALS) + 0.0  # one zero, not two
        decided = [*map(repr, plan.classes), *map(repr, margins.tolist()), *map(str, plan.exact.codes.tolist())]
        known = {"noise": plan.device.noise, "decisions": _digest_of(decided), "repeats": str(repeats), **(facts or {})}
        asked = asked_for(plan.settings, plan.device.name, plan.device.n_qubits, plan.n_records, **known)
        self.refuse_other(asked)
        was_there = self.is_finished
        store = JobFiles(self.path / JOBS, plan.device)
        keys = [store.key(job) for job in plan.all_jobs]
        self._begin(plan, asked, keys)
        result = plan.run(store, repeats=repeats, on_job=on_job)
        assert self.manifest is not None
        if was_there:
            return result
        columns = {"row": np.arange(len(result.kept)), **result.columns()}
        batch = pa.record_batch([pa.array(values) for values in columns.values()], names=list(columns))
        with open_sink(str(self.path / RECORDS), batch.schema) as write:
            write(batch)
        files = {RECORDS: _hash(self.path / RECORDS)}
        counts = {f"{JOBS}/{file.name}": _hash(file) for file in sorted(store.path.glob("*.npz"))}
        found = {"result": result.summary(), "files": files, "counts": counts}
        self._write({**self.manifest, "finished": _now(), **found})
        return result

    def _begin(self, plan: MeasurementPlan, asked: Mapping[str, Any], keys: list[str]) -> None:
        """Write down what will run, or check that it is what runs already."""
        circuits = {"jobs": len(keys), "sha256": _digest_of(keys)}
        running: dict[str, str | None] = {"qmedoid": __version__, "python": platform.python_version()}
        for name in _PACKAGES:
            with contextlib.suppress(PackageNotFoundError):
                running[name] = None
                running[name] = version(name)
        if isinstance(plan.device.packs, KeptCircuits):
            plan.device.packs.save()
        if self.manifest is None:
            began = {
                "asked": dict(asked),
                "versions": running,
                "circuits": circuits,
                "plan": plan.summary(),
                "where": plan.device.place,
                "started": _now(),
                "finished": None,
                "result": None,
                "files": {},
                "counts": {},
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
        write_manifest(self.path, document)
        self.manifest = read_manifest(self.path)


def _finite(value: Any) -> Any:
    """Plain values, with null for numbers that JSON lacks."""
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _hash(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
