"""The files of a run: its packed circuits, the counts of finished jobs, and the names of those that a service runs.

A file of counts is an archive of NumPy arrays, which `numpy.load` opens: ``ones_0``, ``ones_1``, … say how often each
copy of each circuit read 1, batch by batch, out of ``shots``; copies of several bits, how often each basis
state. It carries the key of its job and a hash of all of it.

Circuits are kept as well. Error rates of a device change from day to day, and with them the choice of its qubits:
circuits that were made anew would be other circuits, and what was run before would be lost.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import OutputError, warn
from qmedoid.model.storage.atomic import atomic_file, cannot_write, remove_all_leftovers
from qmedoid.quantum.devices.device import Device, PackKey
from qmedoid.quantum.devices.packs import Pack, pack_from_bytes, pack_to_bytes
from qmedoid.quantum.devices.sampling import Counts
from qmedoid.quantum.measurement.packing import Job

FORMAT = "1"
"""Number of the file format; a file of another number is not read."""
SET_ASIDE = "set-aside"
"""Folder of files that were not what they should be."""
# Counts of a job take kilobytes to megabytes; anything near this is none.
_LARGEST = 2**30
_ANSWERS = "ones_{}"
_INPUTS = "trained.inputs"
# Angles that differ by less are the same, rounded otherwise.
_ROUNDING = 1e-9


class KeptCircuits(dict[PackKey, Pack]):
    """The circuits of a device, in memory and in a folder.

    A circuit that is in the folder is taken from there. New ones are written by `save`. A file is named by the device
    and its settings as well as by the circuit.

    Parameters
    ----------
    folder : Path
    device : Device
    """

    def __init__(self, folder: Path, device: Device) -> None:
        super().__init__()
        self.folder = folder
        limits = None if device.quality is None else vars(device.quality.limits)
        settings = (device.seed, device.optimization_level, device.n_attempts)
        self._device = [device.name, device.n_qubits, *settings, limits]

    def __missing__(self, key: PackKey) -> Pack:
        file = self._file(key)
        content = _content(file)
        if content is None:
            raise KeyError(key)
        try:
            found = self[key] = pack_from_bytes(_unsealed(file, content))
        except (ValueError, KeyError, TypeError) as error:
            warn(
                f"The circuit in {file.name} cannot be used ({error}): the file was moved to {_set_aside(file)}, and "
                "the circuit is made again."
            )
            raise KeyError(key) from error
        return found

    def save(self) -> None:
        """Write the circuits that are not in the folder yet."""
        for key, pack in self.items():
            file = self._file(key)
            if not file.exists():
                try:
                    self.folder.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise cannot_write(self.folder, error) from error
                with atomic_file(file) as out:
                    out.write(_sealed(file, pack_to_bytes(pack)))

    def _file(self, key: PackKey) -> Path:
        form, n_features, n_copies = key
        digest = hashlib.sha256(json.dumps([self._device, key], sort_keys=True).encode()).hexdigest()
        return self.folder / f"{form}-{n_features}x{n_copies}-{digest[:16]}.circuit"


class JobFiles:
    """A folder with two small files for every job: what it was called at the service, and its counts.

    It is a `qmedoid.quantum.measurement.plan.CountStore`. Files are written atomically, and named by the key of the
    job: what runs, with which angles, where, and how often. So counts are never taken for those of another job.

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
            remove_all_leftovers(path)
        except OSError as error:
            raise OutputError(f"The folder {str(path)!r} cannot be used: {error.strerror}.") from error

    def key(self, job: Job) -> str:
        """What is run, and where, as a hash."""
        known = self._keys.get(job.number)
        if known is None or known[0] is not job:
            known = self._keys[job.number] = (job, job.key(self.device))
        return known[1]

    def counts(self, job: Job) -> list[Counts] | None:
        """The counts of a job that has finished, or None; a file that is damaged or of another job is set aside."""
        file = self._file(job, ".npz")
        content = _content(file)
        if content is None:
            return None
        try:
            return _read(content, self.key(job), job)
        except Exception as error:  # whatever bytes make NumPy raise
            moved = _set_aside(file)
            warn(
                f"The counts of job {job.number} in {file.name} cannot be used ({error}): the file was moved to "
                f"{moved}, and the job is fetched from its service, or run again."
            )
            return None

    def keep(self, job: Job, counts: Sequence[Counts]) -> None:
        """Keep the counts of a job."""
        with atomic_file(self._file(job, ".npz")) as file:
            file.write(_written(self.key(job), job, counts))

    def submitted(self, job: Job) -> str | None:
        """The name under which a service runs a job already, or None; empty where only that it was about to be sent."""
        file = self._file(job, ".sent.json")
        content = _content(file)
        if content is None:
            return None
        try:
            said = json.loads(content)
            if said["key"] != self.key(job) or not isinstance(said["job_id"], str):
                raise ValueError("it belongs to another job")
            if said["sha256"] != _name_digest(said["key"], said["job_id"]):
                raise ValueError("its contents do not match its hash")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            moved = _set_aside(file)
            warn(
                f"The name of job {job.number} at its service, in {file.name}, cannot be used ({error}): the file was "
                f"moved to {moved}, and the service is asked for the job by its key."
            )
            return ""
        return str(said["job_id"])

    def keep_submitted(self, job: Job, job_id: str) -> None:
        """Keep the name under which a service runs a job; an empty one before it is sent."""
        with atomic_file(self._file(job, ".sent.json")) as file:
            said = {"key": self.key(job), "job_id": job_id, "sha256": _name_digest(self.key(job), job_id)}
            file.write(json.dumps(said).encode())

    def forget_submitted(self, job: Job) -> None:
        """Forget the name of a job that failed at the service."""
        file = self._file(job, ".sent.json")
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(file, error) from error

    def inputs(self, inputs: Array) -> Array:
        """Inputs of the trained circuit as an earlier process had them, or these, which are kept.

        They follow from the counts of distances, to the last bits of a computation that another processor or version
        may round otherwise. A job is found by all bits of its angles: so the next process takes the inputs of the
        first, if they are the same up to rounding.
        """
        file = self.path / _INPUTS
        content = _content(file)
        if content is not None:
            try:
                before = np.load(io.BytesIO(_unsealed(file, content)), allow_pickle=False)
            except ValueError:  # damaged
                before = np.empty(0)
            if before.shape == inputs.shape and np.all(np.abs(before - inputs) < _ROUNDING):
                return np.asarray(before, dtype=np.float64)
        out = io.BytesIO()
        np.save(out, np.ascontiguousarray(inputs, dtype="<f8"), allow_pickle=False)
        with atomic_file(file) as written:
            written.write(_sealed(file, out.getvalue()))
        return inputs

    def n_finished(self, jobs: Sequence[Job]) -> int:
        """How many of these jobs have a file of counts, which may yet turn out to be damaged."""
        return sum(self._file(job, ".npz").exists() for job in jobs)

    def _file(self, job: Job, ending: str) -> Path:
        return self.path / f"{job.number:05d}-{self.key(job)[:16]}{ending}"


def _content(file: Path) -> bytes | None:
    """The bytes of a file; None where it is not there."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{str(file)!r} cannot be read: {error.strerror}. Make it readable, or remove it.") from error


def _set_aside(file: Path) -> str:
    """Move a file that is not what it should be; where it is now."""
    folder, number = file.parent / SET_ASIDE, 1
    try:
        folder.mkdir(exist_ok=True)
        while (target := folder / f"{number}-{file.name}").exists():
            number += 1
        file.replace(target)
    except OSError as error:
        raise cannot_write(file, error) from error
    return f"{SET_ASIDE}/{target.name}"


def _sealed(file: Path, content: bytes) -> bytes:
    """Content with a hash of it and of the name of its file: one in the place of another is noticed."""
    return hashlib.sha256(file.name.encode() + b"\n" + content).digest() + content


def _unsealed(file: Path, content: bytes) -> bytes:
    body = content[hashlib.sha256().digest_size :]
    if _sealed(file, body) != content:
        raise ValueError("its contents do not match its hash, which is of its name as well")
    return body


def _written(key: str, job: Job, counts: Sequence[Counts]) -> bytes:
    arrays: dict[str, npt.NDArray[Any]] = {
        "format": np.array(FORMAT),
        "key": np.array(key),
        "shots": np.array([part.batch.shots for part in job.parts], dtype="<i8"),
    }
    arrays |= {_ANSWERS.format(place): np.asarray(ones, dtype="<i8") for place, ones in enumerate(counts)}
    out = io.BytesIO()
    np.savez_compressed(out, sha256=np.array(_digest(arrays)), **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _read(content: bytes, key: str, job: Job) -> list[Counts]:
    """Counts from the bytes of a file; an exception says what is odd about them."""
    if len(content) > _LARGEST:
        raise ValueError(f"it has {len(content):,} bytes")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    said = str(arrays.pop("sha256"))
    if str(arrays["format"]) != FORMAT:
        raise ValueError(f"it has format {arrays['format']}, and this version reads {FORMAT}")
    if _digest(arrays) != said:
        raise ValueError("its contents do not match its hash")
    if str(arrays["key"]) != key:
        raise ValueError("it belongs to another job")
    found = [arrays[_ANSWERS.format(place)].astype(np.int64) for place in range(len(job.parts))]
    for ones, part in zip(found, job.parts, strict=True):
        if not part.batch.can_have(ones):
            raise ValueError("its counts are not those of the circuits of its job")
    return found


def _name_digest(key: str, job_id: str) -> str:
    """Hash of the name of a job: the name of another one would be fetched, and its counts taken for this one's."""
    return hashlib.sha256(f"{key}\n{job_id}".encode()).hexdigest()


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        one = arrays[name]
        content = str(one).encode() if one.dtype.kind == "U" else np.ascontiguousarray(one, dtype="<i8").tobytes()
        digest.update(f"{name} {one.dtype.kind} {one.shape} {len(content)}\n".encode() + content)
    return digest.hexdigest()
