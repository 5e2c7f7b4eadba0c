"""The files of a run: its packed circuits, the counts of finished jobs, and the names of those that a service runs.

Every file ends with a hash of its contents and of its own name: one that is damaged, or in the place of another, counts
as not there, with a note. A file of counts is an archive of NumPy arrays, which `numpy.load` opens: ``ones_0`` and so
on say how often each copy of each circuit read 1, batch by batch, out of ``shots``; copies of several bits, how often
each basis state.

Circuits are kept as well. Error rates of a device change from day to day, and with them the choice of its qubits:
circuits that were made anew would be other circuits, and what was run before would be lost.
"""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import OutputError, warn
from qmedoid.model.storage.atomic import atomic_file, cannot_write, remove_leftovers
from qmedoid.quantum.devices.device import Device, PackKey
from qmedoid.quantum.devices.packs import Pack, pack_from_bytes, pack_to_bytes
from qmedoid.quantum.devices.sampling import Counts
from qmedoid.quantum.measurement.jobs import Job

FORMAT = 3
"""Number of the format of runs and their files; a run of another number does not go on."""
_SEAL = hashlib.sha256().digest_size
Content = TypeVar("Content")


class KeptCircuits(dict[PackKey, Pack]):
    """The circuits of a device, in memory and in a folder, where files are named by circuit, device and settings.

    A circuit that is in the folder is taken from there. New ones are written by `save`.
    """

    def __init__(self, folder: Path, device: Device) -> None:
        super().__init__()
        limits = None if device.quality is None else device.quality.limits
        self.folder, self._device = folder, [device.name, device.n_qubits, device.seed, limits]
        self._on_disk: set[PackKey] = set()

    def __missing__(self, key: PackKey) -> Pack:
        pack = _kept(self._file(key), pack_from_bytes, "The circuit", "the circuit is made again")
        if pack is None:
            raise KeyError(key)
        self[key] = pack
        self._on_disk.add(key)
        return pack

    def save(self) -> None:
        """Write the circuits that are not in the folder yet."""
        for key in self.keys() - self._on_disk:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(self.folder, error) from error
            _keep(self._file(key), pack_to_bytes(self[key]))
            self._on_disk.add(key)

    def _file(self, key: PackKey) -> Path:
        form, n_features, n_copies = key
        digest = hashlib.sha256(json.dumps([self._device, key], sort_keys=True).encode()).hexdigest()
        return self.folder / f"{form}-{n_features}x{n_copies}-{digest[:16]}.circuit"


class JobFiles:
    """A folder with two small files for every job: what it was called at the service, and its counts.

    Files are written atomically, and named by the key of the job: what runs, with which angles, where, and how often.
    So counts are never taken for those of another job.

    Parameters
    ----------
    path : Path
        Made when it is not there.
    device : Device
        That runs the jobs.
    """

    def __init__(self, path: Path, device: Device) -> None:
        self.path, self.device = path, device
        self._keys: dict[int, tuple[Job, str]] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path)
        except OSError as error:
            raise OutputError(f"The folder {str(path)!r} cannot be used: {error.strerror}.") from error

    def key(self, job: Job) -> str:
        """What is run, and where, as a hash."""
        known = self._keys.get(job.number)
        if known is None or known[0] is not job:
            known = self._keys[job.number] = (job, job.key(self.device))
        return known[1]

    def counts(self, job: Job) -> list[Counts] | None:
        """The counts of a job that has finished, or None; a file that is damaged or of another job is not used."""

        def read(content: bytes) -> list[Counts]:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                found = [archive[f"ones_{place}"].astype(np.int64) for place in range(len(job.batches))]
            if not all(batch.can_have(ones) for batch, ones in zip(job.batches, found, strict=True)):
                raise ValueError("its counts are not those of the circuits of its job")
            return found

        then = "the job is fetched from its service, or run again"
        return _kept(self._file(job, ".npz"), read, f"The counts of job {job.number}", then)

    def keep(self, job: Job, counts: Sequence[Counts]) -> None:
        """Keep the counts of a job."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "key": np.array(self.key(job)),
            "shots": np.array([batch.shots for batch in job.batches], dtype="<i8"),
            **{f"ones_{place}": np.asarray(ones, dtype="<i8") for place, ones in enumerate(counts)},
        }
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
        _keep(self._file(job, ".npz"), out.getvalue())

    def submitted(self, job: Job) -> str | None:
        """The name under which a service runs a job already, or None; empty where only that it was about to be sent."""
        file, what = self._file(job, ".sent"), f"The name of job {job.number} at its service"
        if not file.exists():
            return None
        return _kept(file, bytes.decode, what, "the service is asked for the job by its key") or ""

    def keep_submitted(self, job: Job, job_id: str) -> None:
        """Keep the name under which a service runs a job; an empty one before it is sent."""
        _keep(self._file(job, ".sent"), job_id.encode())

    def forget_submitted(self, job: Job) -> None:
        """Forget the name of a job that failed at the service."""
        file = self._file(job, ".sent")
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(file, error) from error

    def _file(self, job: Job, ending: str) -> Path:
        return self.path / f"{job.number:05d}-{self.key(job)[:16]}{ending}"


def _keep(file: Path, content: bytes) -> None:
    """Write a file with its hash, atomically."""
    with atomic_file(file) as out:
        out.write(content + _seal(file, content))


def _kept(file: Path, read: Callable[[bytes], Content], what: str, then: str) -> Content | None:
    """What a file holds; None where it is not there, or, with a note, not what it should be."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{str(file)!r} cannot be read: {error.strerror}. Make it readable, or remove it.") from error
    try:
        if content[-_SEAL:] != _seal(file, content[:-_SEAL]):
            raise ValueError("its contents do not match its hash, which is of its name as well")
        return read(content[:-_SEAL])
    except Exception as error:  # whatever bytes make NumPy raise
        warn(f"{what} in {file.name} cannot be used ({error}): {then}, and the file is replaced.")
        return None


def _seal(file: Path, content: bytes) -> bytes:
    """Hash of content and of the name of its file: one in the place of another is noticed."""
    return hashlib.sha256(f"{FORMAT} {file.name}\n".encode() + content).digest()
