"""What goes to a sampler, and the counts that come back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
from qiskit.primitives import BackendSamplerV2, BitArray, PrimitiveJob, StatevectorSampler

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError, ParameterError, warn
from qmedoid.quantum.circuits.compact_swap import OUTCOME
from qmedoid.quantum.devices.packs import Pack

MOST_IN_ONE_STATE = 12
"""Qubits side by side for simulators that hold all of them in one state."""
ENDS = "errored", "cancelled"
# What the noise of a simulated device is made of, as far as its target says; reading has two errors on some.
_RATES = "error", "duration", "prob_meas1_prep0", "prob_meas0_prep1"


def is_of(thing: Any, *packages: str) -> bool:
    """Whether an object, or a class that its own derives from, comes from a package."""
    return any(kind.__module__.startswith(packages) for kind in type(thing).__mro__)


def is_simulated_here(backend: Any) -> bool:
    """Whether a backend is simulated here by its noise: a fake device, a generic one, or a simulator of Aer."""
    return is_of(backend, "qiskit_aer", "qiskit_ibm_runtime.fake_provider", "qiskit.providers.fake_provider")


def noise_digest(backend: Any) -> str:
    """Hash of the noise of a simulated backend: of its noise model, or of the rates and times of its target."""
    model: Any = getattr(getattr(backend, "options", None), "noise_model", None)
    if model is not None:
        # The names of errors are drawn anew for every object, and their order differs from process to process.
        known = [{key: one for key, one in error.items() if key != "id"} for error in model.to_dict()["errors"]]
    else:
        target = backend.target
        known = [
            {name: qubits, "rates": [getattr(one, rate, None) for rate in _RATES]}
            for name in target.operation_names
            for qubits, one in (target[name] or {}).items()
        ]
        times = enumerate(target.qubit_properties or ())
        known += [{"qubit": qubit, "times": None if one is None else [one.t1, one.t2]} for qubit, one in times]
    lines = sorted(
        json.dumps(
            one,
            sort_keys=True,
            default=lambda value: value.tobytes().hex() if isinstance(value, np.ndarray) else str(value),
        )
        for one in known
    )
    return sha256("\n".join(lines).encode()).hexdigest()


def why_no_sampler(thing: Any) -> str | None:
    """Why an object is no sampler of the second version; None if it may be one."""
    names = {kind.__name__ for kind in type(thing).__mro__}
    if isinstance(thing, type):
        return f"is a class: make an object of it first, {thing.__name__}()"
    if names & {"BaseEstimatorV1", "BaseEstimatorV2"}:
        return "is an estimator, which gives expectation values and no single shots"
    if "BaseSamplerV1" in names:
        return "is a sampler of the first version, which gives no single shots"
    return None if callable(getattr(thing, "run", None)) else "has no method 'run'"


def check_sampler(sampler: Any) -> None:
    """Refuse what is no sampler of the second version, before anything is sent to it."""
    why = why_no_sampler(sampler)
    if why is not None:
        raise ParameterError(
            f"The 'sampler' parameter must be a sampler of the second version (SamplerV2), such as "
            f"qiskit.primitives.StatevectorSampler(). Got {sampler!r} instead, which {why}."
        )


def check_seed(sampler: Any) -> None:
    """Refuse a sampler that draws the same shots for every circuit, and warn of one that does so in every job.

    Its shot noise would not average out, and stated errors would be wrong.
    """
    options: Any = getattr(sampler, "options", None)
    if isinstance(sampler, StatevectorSampler) or is_of(sampler, "qiskit_aer"):
        seed = getattr(sampler, "seed", None)
    else:
        of = options if isinstance(sampler, BackendSamplerV2) else getattr(options, "simulator", None)
        seed = getattr(of, "seed_simulator", None)
    if not isinstance(seed, int):
        return
    if isinstance(sampler, StatevectorSampler):
        raise ParameterError(
            f"StatevectorSampler(seed={seed}) draws the same shots for every circuit, so that errors do not average "
            f"out. Give it a generator, which goes on: StatevectorSampler(seed=numpy.random.default_rng({seed}))."
        )
    warn(
        f"The sampler has the fixed seed {seed}, and draws the same shots in every job: errors of tests at the same "
        "place of different jobs do not average out. Leave the seed out, or pass the backend itself with a seed, which "
        "gives every job its own."
    )


def runs_here(job: Any) -> bool:
    """Whether a job runs in a thread of this process: it draws from its sampler's generator when its turn comes."""
    return isinstance(job, PrimitiveJob)


def has_failed(job: Any) -> bool:
    """Whether a service says that a job ended without a result, so that fetching it again would be in vain."""
    try:
        return any(callable(ask) and bool(ask()) for ask in (getattr(job, name, None) for name in ENDS))
    except Exception:  # any provider's: a service that does not answer has not said so
        return False


Counts = npt.NDArray[np.int64]
"""How often copies read 1, (circuits, copies), or each basis state of several bits, (circuits, copies, 2**n_bits)."""


@dataclass(frozen=True, eq=False)
class CircuitBatch:
    """Circuits of one pack that run with the same number of shots, and what each of their copies tests."""

    pack: Pack
    angles: Array  # copy by copy, (circuits, n_copies * n_angles)
    shots: int
    shape: int = 0  # position of the pack among those of a plan
    tests: Codes = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.intp)
    )  # number of each copy's test, (circuits, n_copies), or −1
    known: Array | None = None  # exact overlaps of known pairs, (circuits * n_copies,), or what K observables are

    def can_have(self, counts: Counts) -> bool:
        """Whether counts are those that the circuits can have."""
        copies, n_bits = (len(self.angles), self.pack.n_copies), self.pack.n_bits
        if counts.shape != (copies if n_bits == 1 else (*copies, 2**n_bits)):
            return False
        if counts.min(initial=0) < 0 or counts.max(initial=0) > self.shots:
            return False
        return n_bits == 1 or bool(np.all(counts.sum(axis=-1) == self.shots))

    @property
    def pub(self) -> tuple[Any, Array, int]:
        """As a sampler of the second version takes it."""
        return self.pack.circuit, self.angles[:, self.pack.order], self.shots


def counts_of(results: Any, batches: Sequence[CircuitBatch]) -> list[Counts]:
    """How often each copy read 1, or of several bits each basis state, from the result of a job."""
    n_results = len(results) if hasattr(results, "__len__") else type(results).__name__
    if n_results != len(batches):
        raise ModelError(
            f"The job returned {n_results} as results of {len(batches)} batches of circuits: use a sampler of the "
            "second version."
        )
    counts = []
    for batch, result in zip(batches, results, strict=True):
        outcome: Any = getattr(getattr(result, "data", None), OUTCOME, None)
        expected = (len(batch.angles),), batch.pack.n_copies * batch.pack.n_bits, batch.shots
        got: Any = type(outcome).__name__
        if isinstance(outcome, BitArray):
            got = tuple(outcome.shape), outcome.num_bits, outcome.num_shots
        if got != expected:
            raise ModelError(
                f"The job returned {got} as {OUTCOME!r} and was asked for (circuits, bits, shots) {expected}: use a "
                "sampler of the second version that returns single shots, as many as it is asked for."
            )
        counts.append(counted(outcome, batch.pack.n_bits))
    return counts


def counted(outcome: BitArray, n_bits: int) -> Counts:
    """How often each part of so many bits read each basis state, (circuits, parts, 2**n_bits); of one bit, a 1."""
    n_parts, found = outcome.num_bits // n_bits, []
    for shots in outcome.array:
        # The most significant bit comes first, and those that fill the first byte up come before it.
        bits = np.unpackbits(shots, axis=-1)[:, ::-1][:, : outcome.num_bits]
        if n_bits == 1:
            found.append(bits.sum(axis=0, dtype=np.int64))
            continue
        states = (bits.reshape(-1, n_parts, n_bits).astype(np.int64) << np.arange(n_bits)).sum(axis=-1)
        place = states + np.arange(n_parts) * 2**n_bits
        found.append(np.bincount(place.ravel(), minlength=n_parts * 2**n_bits).reshape(n_parts, -1))
    return np.array(found)


def state_counts(counts: Counts, shots: int) -> Counts:
    """Counts of every basis state, shape (circuits, n_copies, 2**n_bits), also where ones alone were counted."""
    return counts if counts.ndim == 3 else np.stack([shots - counts, counts], axis=-1)
