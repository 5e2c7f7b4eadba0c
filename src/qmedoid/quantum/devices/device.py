"""A place where circuits run: a simulator, a simulated device, or a device of a service, behind one adapter."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
from qiskit import QuantumCircuit
from qiskit.primitives import BackendSamplerV2, StatevectorSampler
from qiskit_aer.noise import NoiseModel

from qmedoid.arrays import Array
from qmedoid.exceptions import MissingExtraError, ParameterError, check_int, warn
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum.circuits.compact_swap import CircuitForm, shape_of
from qmedoid.quantum.circuits.variational import variational_circuit
from qmedoid.quantum.devices.blocks import MAX_QUBITS
from qmedoid.quantum.devices.packs import LIMITS, Pack, Quality, packed, routed
from qmedoid.quantum.devices.sampling import (
    MOST_IN_ONE_STATE,
    CircuitBatch,
    check_sampler,
    check_seed,
    counts_of,
    has_failed,
    is_of,
    is_simulated_here,
    noise_digest,
    why_no_sampler,
)
from qmedoid.quantum.devices.simulators import BlockSampler
from qmedoid.quantum.documents import CircuitPlace, DeviceDict

PackKey = tuple[str, int, int]
"""What a packed circuit is kept under: its name, entries of the vectors or inputs, and copies that are asked for."""
MOST_QUBITS = 100
"""Qubits that are used at most, where nobody says how many."""
_REP_DELAY = 250e-6
"""Seconds that a device waits between two shots, where it does not say."""


class Device:
    """A backend or a sampler, and how circuits are put on its qubits.

    Parameters
    ----------
    backend : BackendV2 or None
        A provider's device, a fake one, or an Aer simulator with noise. None is an exact simulator.
    sampler : BaseSamplerV2 or None
        Any sampler of the second version, such as that of a session, with its own options. None makes one for the
        backend: that of the service for its devices, and for simulated devices
        :class:`~qmedoid.quantum.BlockSampler`. Samplers of Qiskit and Aer that simulate here hold
        all qubits in one state, so that they get at most twelve side by side.
    n_qubits : int, optional
        Qubits that are used at most. None is 100, and for a sampler that does not say what it runs on 12, with a
        warning. Never more than the backend has.
    seed : int
        Of transpilation and of simulated measurements; no two jobs have the same noise. A sampler that is given
        draws by itself.
    limits : dict, optional
        Error rates beyond which a qubit or a coupler is not used, such as ``{"readout": 0.2}``; see `LIMITS`. For
        backends that report rates.

    Attributes
    ----------
    packs : dict of PackKey to Pack
        Circuits that were made so far. A run that goes on another day puts those of its first day here: the device has
        other error rates by then, by which other qubits would be chosen.

    Examples
    --------
    >>> from qmedoid.quantum import Device
    >>> Device(n_qubits=20, seed=1).name
    'simulator'
    """

    def __init__(
        self,
        backend: Any = None,
        *,
        sampler: Any = None,
        n_qubits: int | None = None,
        seed: int = 0,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        for name, value, least in (("n_qubits", MOST_QUBITS if n_qubits is None else n_qubits, 1), ("seed", seed, 0)):
            check_int(f"{name!r} parameter of Device", value, least)
        given = limits if limits is None or isinstance(limits, Mapping) else {"limits": limits}
        for name, limit in (given or {}).items():
            if name not in LIMITS or not isinstance(limit, int | float) or not 0.0 < limit <= 1.0:
                raise ParameterError(
                    f"The 'limits' parameter of Device must have numbers above 0, at most 1, for "
                    f"{', '.join(map(repr, LIMITS))}. Got {limit!r} for {name!r} instead."
                )
        if sampler is not None:
            check_sampler(sampler)
            check_seed(sampler)
        if backend is None and sampler is not None:
            # The backend that a sampler runs on, where it says; samplers have it as an attribute or as a method.
            backend = getattr(sampler, "backend", None)
            if backend is None and is_of(sampler, "qiskit_aer"):
                backend = getattr(sampler, "_backend", None)
            backend = backend() if callable(backend) else backend
        self.backend, self.sampler = backend, sampler
        if n_qubits is None:
            n_qubits = MOST_QUBITS
            if backend is None and sampler is not None and not self._holds_one_state and not is_of(sampler, "qmedoid"):
                n_qubits = MOST_IN_ONE_STATE
                warn(
                    f"The sampler {type(sampler).__name__} does not say how many qubits it has: {n_qubits} are used at "
                    "most. Say how many there are: n_qubits=..."
                )
        self.n_qubits, self.seed = int(n_qubits), int(seed)
        target: Any = getattr(backend, "target", None)
        # A simulator that names no couplers takes circuits as they are.
        couplers = None if target is None else target.build_coupling_map()
        if couplers is None and limits:
            raise ParameterError(
                f"Limits on error rates were given, and {self.name} reports no rates of qubits and couplers: leave "
                "'limits' out, or pass the backend that has them."
            )
        self.quality = None if couplers is None else Quality(target, {**LIMITS, **(limits or {})})
        self.packs: dict[PackKey, Pack] = {}
        self._routes: dict[tuple[str, int], list[QuantumCircuit]] = {}
        self._durations: dict[str, float] = {}

    @property
    def name(self) -> str:
        """The backend's name."""
        if self.backend is None:
            return "simulator" if self.sampler is None else type(self.sampler).__name__
        name = self.backend.name
        return str(name() if callable(name) else name)

    @property
    def is_simulated(self) -> bool:
        """Whether jobs run here and now, each from its own seed."""
        return self.sampler is None and not _is_remote(self.backend)

    @property
    def place(self) -> CircuitPlace:
        """What circuits run on."""
        if self.is_simulated:
            return "exact simulator" if self.backend is None else "simulated device"
        if self.name.startswith(("fake_", "aer_")):
            return "simulated device"
        return "device of a service" if _is_remote(self.backend) else "sampler"

    @cached_property
    def noise(self) -> str | None:
        """Hash of the noise that is simulated here; None where there is none, and of devices, which drift.

        Simulated devices of one name may differ in it, and counts of one are not those of another.
        """
        return noise_digest(self.backend) if is_simulated_here(self.backend) else None

    def pack(self, form: CircuitForm, n_features: int, n_copies: int) -> Pack:
        """As many copies of a circuit side by side as are asked for or fit; made once for each shape."""
        n_features = 2 ** shape_of(n_features)
        advice = "take register='column' with circuit='interference', which takes one qubit"
        key, what = (form.name, n_features), f"A circuit of {n_features} columns"
        return self._pack(key, form.template(n_features), n_copies, what, advice)

    def trained_pack(self, ansatz: Ansatz, rotations: Array, n_copies: int) -> Pack:
        """The same of a trained circuit: its weights are in place, its inputs are open, and all its qubits are read."""
        content = np.ascontiguousarray(rotations, dtype="<f8").tobytes()
        name = f"variational-{sha256(repr(ansatz).encode() + content).hexdigest()[:16]}"
        template = variational_circuit(ansatz, weights=rotations, measure=True)
        advice = "simulate it with refine='simulated'"
        return self._pack((name, ansatz.n_inputs), template, n_copies, "The trained circuit", advice)

    def _pack(self, of: tuple[str, int], template: QuantumCircuit, n_copies: int, what: str, advice: str) -> Pack:
        n_qubits, quality = template.num_qubits, self.quality
        most = min(self.n_qubits, self._n_qubits_there)
        if n_qubits > most:
            raise ParameterError(
                f"{what} takes {n_qubits} qubits, and "
                + (f"n_qubits={most} are allowed: allow" if most == self.n_qubits else f"{self.name} has {most}: take")
                + f" more, or {advice}."
            )
        if self._by_blocks and n_qubits > MAX_QUBITS:
            raise ParameterError(
                f"{what} takes {n_qubits} qubits, and a simulated device has at most {MAX_QUBITS} in one circuit: "
                f"{advice}, or pass a sampler of Aer."
            )
        if self._holds_one_state:
            most = min(most, MOST_IN_ONE_STATE)
        n_copies = max(1, min(n_copies, most // n_qubits))
        key = *of, n_copies
        with suppress(KeyError):
            return self.packs[key]
        if quality is not None and of not in self._routes:
            self._routes[of] = routed(template, quality, seed=self.seed)
        pack = packed(template, n_copies, quality, self._routes.get(of, []), seed=self.seed)
        if pack is None:
            assert quality is not None, "simulators have a place for every circuit"
            limits = ", ".join(f"{name} {error:g}" for name, error in quality.limits.items())
            raise ParameterError(
                f"The device has no place for {what[0].lower()}{what[1:]}, which takes {n_qubits} coupled qubits: "
                f"{len(quality.qubits)} of its {quality.target.num_qubits} are within the limits on error rates "
                f"({limits}). Allow larger errors, Device(backend, limits={{...}}), take another device, or {advice}."
            )
        self.packs[key] = pack
        return pack

    def submit(self, batches: Sequence[CircuitBatch], *, seed: Sequence[int] = (), key: str | None = None) -> Any:
        """Send circuits as one job; `seed` tells simulated jobs of a run apart, and a service keeps the key."""
        sampler, pubs = self.make_sampler(seed), [batch.pub for batch in batches]
        environment: Any = getattr(getattr(sampler, "options", None), "environment", None)
        if key is None or not hasattr(environment, "job_tags"):
            return sampler.run(pubs)
        asked = environment.job_tags
        environment.job_tags = [*(asked if isinstance(asked, list) else ()), key]
        try:
            return sampler.run(pubs)
        finally:  # the sampler may be the caller's
            environment.job_tags = asked

    def dry_run(self, batches: Sequence[CircuitBatch]) -> float | None:
        """Let the service check a job without running it: seconds that it takes, or None where nobody says."""
        sampler = self.make_sampler()
        if not _is_remote(self.backend) or "dry_run" not in signature(sampler.run).parameters:
            raise ParameterError(
                f"A dry run is what the service of a device offers, by the sampler of qiskit-ibm-runtime, and "
                f"{self.name} has none: leave it out. The plan says by itself about how long the device takes."
            )
        job: Any = sampler.run([batch.pub for batch in batches], dry_run=True)
        counts_of(job.result(), batches)  # they are made up, and of the shape that a run has
        found = (getattr(job, "usage_estimation", None) or {}).get("quantum_seconds")
        return None if found is None else float(found)

    def find(self, job_id: str, key: str) -> Any:
        """The job of an earlier process at the service: by its name, or by its key if it did not fail; else None."""
        service = getattr(self.backend, "service", None)
        if service is None:
            return None
        if job_id:
            return service.job(job_id)
        return next((job for job in service.jobs(job_tags=[key], limit=10) if not has_failed(job)), None)

    def seconds(self, batch: CircuitBatch) -> float:
        """About how long the circuits of a batch take on the device."""
        delay = getattr(self.backend, "default_rep_delay", None)
        pause = _REP_DELAY if delay is None else float(delay)
        return (self._duration(batch.pack) + pause) * batch.shots * len(batch.angles)

    def _duration(self, pack: Pack) -> float:
        """Seconds of a circuit by the device's own times; 0 where it does not say."""
        if pack.sha256 not in self._durations:
            target = getattr(self.backend, "target", None)
            try:
                duration = 0.0 if target is None else float(pack.circuit.estimate_duration(target, unit="s"))
            except Exception:  # Qiskit's: a gate without a time
                duration = 0.0
            self._durations[pack.sha256] = duration
        return self._durations[pack.sha256]

    def describe(self) -> DeviceDict:
        """What is worth keeping of the device beside its counts; plain values."""
        return {
            "name": self.name,
            "qubits_of_the_device": getattr(self.backend, "num_qubits", None),
            "qubits_usable": None if self.quality is None else len(self.quality.qubits),
            "qubits_at_most": self.n_qubits,
            "seed": self.seed,
        }

    @property
    def _holds_one_state(self) -> bool:
        """Whether a sampler simulates here, with all qubits in one state."""
        sampler = self.sampler
        simulates = isinstance(sampler, StatevectorSampler) or is_of(sampler, "qiskit_aer")
        return simulates or (sampler is not None and is_simulated_here(self.backend))

    @property
    def _n_qubits_there(self) -> int:
        """Qubits of the backend; without a limit where it does not say, or is simulated block by block."""
        there = None if self._by_blocks else getattr(self.backend, "num_qubits", None)
        return there if isinstance(there, int) else sys.maxsize

    @property
    def _by_blocks(self) -> bool:
        """Whether circuits are simulated here block by block."""
        return self.is_simulated and (self.backend is None or is_simulated_here(self.backend))

    def make_sampler(self, seed: Sequence[int] = ()) -> Any:
        """The sampler of a job; `seed` tells simulated jobs of a run apart."""
        if self.sampler is not None:
            return self.sampler
        if _is_remote(self.backend):
            return _runtime_sampler(self.backend)
        generator = np.random.default_rng([self.seed, *seed])
        if self._by_blocks:
            return BlockSampler(NoiseModel() if self.backend is None else self.backend, seed=generator)
        return BackendSamplerV2(backend=self.backend, options={"seed_simulator": int(generator.integers(2**31))})


def _is_remote(backend: Any) -> bool:
    """Whether a service runs the jobs of a backend."""
    return getattr(backend, "service", None) is not None


@lru_cache(maxsize=8)
def _runtime_sampler(backend: Any) -> Any:
    try:  # the one that prepares and reads jobs on this machine, where the runtime has it
        home = import_module("qiskit_ibm_runtime.executor_sampler")
    except ImportError:
        home = import_module("qiskit_ibm_runtime")
    return home.Sampler(mode=backend)


SIMULATOR = "simulator"
"""The name of the exact simulator."""


def as_device(backend: Any = None, **settings: Any) -> Device:
    """A device from a backend, a sampler of the second version, a name, or None for the exact simulator.

    Parameters
    ----------
    backend : Device, BackendV2, BaseSamplerV2, str or None
        Names are ``"simulator"``, those of fake devices such as ``"fake_torino"``, and those of the service's devices,
        for which the account that is saved on the machine is used.
    settings
        Of :class:`Device`, where they are not None. A device that is given has its own, and others are refused.
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(backend, Device):
        for name, value in settings.items():
            own = getattr(backend.quality, name, None) if name == "limits" else getattr(backend, name)
            if value != own:
                raise ParameterError(
                    f"{name}={value!r} was given with a Device whose own is {own!r}: leave it out, or make the device "
                    f"with it, Device(..., {name}={value!r})."
                )
        return backend
    if isinstance(backend, str):
        backend = _backend_named(backend)
    if backend is None:
        return Device(**settings)
    why = why_no_sampler(backend)
    if not isinstance(backend, type | ModuleType) and hasattr(backend, "target"):
        return Device(backend, **settings)
    if why is None and not isinstance(backend, ModuleType):
        return Device(sampler=backend, **settings)
    raise ParameterError(
        f"The 'backend' parameter must be a Qiskit backend, a sampler of the second version, or a name such as "
        f"'simulator' or 'fake_torino'. Got {backend!r} instead, which {why or 'is a module'}."
    )


def _backend_named(name: str) -> Any:
    if name == SIMULATOR:
        return None
    try:
        import qiskit_ibm_runtime
        from qiskit_ibm_runtime import fake_provider
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The device {name!r} needs Qiskit's runtime, which is not installed. Install it with: "
            'pip install "qmedoid[ibm]".',
            name=error.name,
        ) from error
    if name.startswith("fake_"):
        # Their classes have their names, and only the one that is asked for is made.
        known = {getattr(one, "backend_name", None): one for one in vars(fake_provider).values()}
        if name not in known:
            names = sorted(one for one in known if one)
            raise ParameterError(f"There is no fake device {name!r}. There are: {', '.join(names)}.")
        return known[name]()
    try:
        return qiskit_ibm_runtime.QiskitRuntimeService().backend(name)
    except Exception as error:  # of the service: no account, no such device, no network
        raise ParameterError(
            f"The device {name!r} was not found: {error} Use 'simulator', a fake device such as 'fake_torino', or save "
            "an account of the service first (QiskitRuntimeService.save_account)."
        ) from error
