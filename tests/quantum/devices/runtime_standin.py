"""A stand-in for the service that runs circuits on devices, with its interface and without a network.

`StandinService` keeps its jobs in a folder, so that a second process finds those of a first one that was killed. Its
devices have a target, its sampler has options with tags, its jobs have results, and they fail when they are told to.
Counts follow from the tags of a job: the same job has the same counts whoever asks for it, and whenever.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from qiskit.primitives import BitArray, DataBin, PrimitiveResult, SamplerPub, SamplerPubResult
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit_aer.noise import NoiseModel

from qmedoid.quantum import BlockSampler, Device


class StandinError(RuntimeError):
    """What the service raises: a job that failed, one that it does not know, or no connection."""


class StandinService:
    """Jobs in a folder.

    Attributes
    ----------
    offline : bool
        Whether every call fails, as without a network.
    submissions : list of str
        Keys of the jobs that were sent, one for each time, by all processes together.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.offline = folder, False
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def submissions(self) -> list[str]:
        return [tag for job in reversed(self._all()) for tag in job["tags"]]

    def fail_next(self, number: int) -> None:
        """Let the next jobs end in an error."""
        self._write("failing", str(number))

    def job(self, job_id: str) -> "StandinJob":
        """A job by its name."""
        self.check_connection()
        if not (self.folder / f"{job_id}.json").exists():
            raise StandinError(f"There is no job {job_id}.")
        return StandinJob(self, job_id)

    def jobs(self, *, job_tags: list[str] | None = None, limit: int | None = 10) -> list["StandinJob"]:
        """Jobs that have all of these tags, the newest first."""
        self.check_connection()
        found = [job["id"] for job in self._all() if {*(job_tags or ())} <= {*job["tags"]}]
        return [StandinJob(self, job_id) for job_id in found[:limit]]

    def submit(self, results: list[BitArray], tags: list[str]) -> "StandinJob":
        """Take a job, whose outcomes are known already, and give it a name."""
        self.check_connection()
        number = len(self._all())
        job_id, failing = f"job{number:04d}", self.folder / "failing"
        left = int(failing.read_text()) if failing.exists() else 0
        if left:
            self.fail_next(left - 1)
        arrays = {f"outcome_{place}": one.array for place, one in enumerate(results)}
        np.savez(self.folder / f"{job_id}.npz", **arrays)
        document = {"id": job_id, "number": number, "tags": tags, "status": "ERROR" if left else "DONE",
                    "bits": [one.num_bits for one in results]}  # fmt: skip
        self._write(f"{job_id}.json", json.dumps(document))  # from now on the service has it
        return StandinJob(self, job_id)

    def read(self, job_id: str) -> dict[str, Any]:
        """What is known of a job."""
        found: dict[str, Any] = json.loads((self.folder / f"{job_id}.json").read_text())
        return found

    def cancel(self, job_id: str) -> None:
        """End a job without a result."""
        self._write(f"{job_id}.json", json.dumps({**self.read(job_id), "status": "CANCELLED"}))

    def check_connection(self) -> None:
        """Raise where there is no network."""
        if self.offline:
            raise StandinError("The service cannot be reached.")

    def _write(self, name: str, text: str) -> None:
        """Write a file that is there whole or not at all: the service does not die with its clients."""
        part = self.folder / f"{name}.part"
        part.write_text(text)
        part.replace(self.folder / name)

    def _all(self) -> list[dict[str, Any]]:
        found = [json.loads(file.read_text()) for file in self.folder.glob("job*.json")]
        return sorted(found, key=lambda job: -int(job["number"]))


class StandinJob:
    """A job of the service."""

    def __init__(self, service: StandinService, job_id: str) -> None:
        self.service, self._id = service, job_id

    def job_id(self) -> str:
        return self._id

    def status(self) -> str:
        return str(self.service.read(self._id)["status"])

    def done(self) -> bool:
        return self.status() == "DONE"

    def errored(self) -> bool:
        return self.status() == "ERROR"

    def cancelled(self) -> bool:
        return self.status() == "CANCELLED"

    def result(self) -> Any:
        self.service.check_connection()
        if not self.done():
            raise StandinError(f"{self._id} has no result: its status is {self.status()}.")
        bits = self.service.read(self._id)["bits"]
        with np.load(self.service.folder / f"{self._id}.npz") as arrays:
            outcomes = [BitArray(arrays[f"outcome_{place}"], number) for place, number in enumerate(bits)]
        return PrimitiveResult([SamplerPubResult(DataBin(outcome=one, shape=one.shape)) for one in outcomes])


class StandinBackend:
    """A device of the service, whose error rates are others every day."""

    default_rep_delay = 250e-6

    def __init__(self, service: StandinService, *, num_qubits: int = 6, day: int = 1) -> None:
        self.service, self.num_qubits, self.name = service, num_qubits, "standin"
        line = [pair for q in range(num_qubits - 1) for pair in ((q, q + 1), (q + 1, q))]
        self.target = GenericBackendV2(num_qubits, coupling_map=line, seed=day).target


class StandinSampler:
    """The service's sampler; `on_submitted` is called with every job before its name is given back."""

    def __init__(self, backend: StandinBackend, on_submitted: Callable[[StandinJob], None] | None = None) -> None:
        self._backend, self.on_submitted = backend, on_submitted
        self.options = SimpleNamespace(environment=SimpleNamespace(job_tags=None))

    def backend(self) -> StandinBackend:
        return self._backend

    def run(self, pubs: Any, *, shots: int | None = None) -> StandinJob:
        self._backend.service.check_connection()
        tags = list(self.options.environment.job_tags or ())
        seed = int.from_bytes(hashlib.sha256(" ".join(tags).encode()).digest()[:8], "little")
        inner = BlockSampler(NoiseModel(), seed=seed)
        pubs = [SamplerPub.coerce(pub, shots) for pub in pubs]
        outcomes = [result.data.outcome for result in inner.run(pubs).result()]
        job = self._backend.service.submit(outcomes, tags)
        if self.on_submitted is not None:
            self.on_submitted(job)
        return job


def standin_device(service: StandinService, *, on_submitted: Any = None, day: int = 1, **settings: Any) -> Device:
    """A device of the stand-in, as `qmedoid.quantum.as_device` makes one of the service."""
    backend = StandinBackend(service, day=day)
    return Device(backend, sampler=StandinSampler(backend, on_submitted), **settings)
