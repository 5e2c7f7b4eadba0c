"""Tests on the copies of packed circuits, circuits into jobs, jobs run, and counts read: nothing is ever run twice.

Every job has pairs of known overlap, or known inputs of a trained circuit, in circuits of their own.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import JobError, ModelError, ParameterError, QMedoidError, check_int
from qmedoid.quantum.circuits.compact_swap import CircuitForm, FormName, form_named
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import ENDS, CircuitBatch, Counts, counts_of, has_failed, runs_here
from qmedoid.quantum.measurement.calibration import (
    Estimates,
    Lines,
    Readings,
    estimated,
    fit_drift,
    fit_lines,
    uncalibrated,
    without_drift,
)
from qmedoid.quantum.measurement.recorder import REGISTERS, Register, Tests

if TYPE_CHECKING:
    from qmedoid.quantum.runs.files import JobFiles

# Calibration circuits that a job has for each shape at least.
_LEAST_KNOWN = 4
# Tests of several columns, and the deviation of their overlaps, from which on they tell a line by themselves.
_ENOUGH, _SPREAD = 32, 0.05
# Jobs that wait at a service at a time, and how often one that fails is tried.
_AHEAD, _ATTEMPTS = 10, 3
# Counts by chance that do not repeat themselves by chance.
_TELLING = 12

Refine = Literal["device", "simulated"]
MOST_SHOTS = 1_000_000
"""Shots of a circuit at most: a job of a simulator has a bit of every shot and qubit in memory."""
_LEAST = {"shots": 1, "calibration_circuits": 6, "circuits_per_job": 1, "draws": 1, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class MeasurementSettings:
    """How a batch of records is measured.

    Parameters
    ----------
    circuit : {"interference", "compact_swap"} or None
        The circuit of a test. None is interference, and for the paper's register the paper's.
    register : {"column", "group", "paper"}
        ``"column"`` is one test for every column, a single qubit, many side by side. ``"group"`` is one test for all
        columns of a group, in a register of several qubits, as many side by side as fit. ``"paper"`` is the compact
        SWAP test of a group, one in each circuit.
    shots : int
        Measurements of each circuit.
    calibrate : bool
        Whether pairs of known overlap run in every job, to undo what noise does to overlaps.
    calibration_circuits : int
        Circuits of known pairs for each shape of circuit, about, at least 6; every job has at least four.
    circuits_per_job : int
        Circuits that are sent at once, without those of known pairs.
    refine : {"device", "simulated"}
        Where the trained circuit of a model runs that refines decisions or is the whole model: on the device as well,
        or in an exact simulation, with measured distances as its input.
    draws : int
        Decisions with overlaps drawn within their errors that errors of margins come from.
    seed : int
        Of these draws and of the choice of known pairs.
    """

    circuit: FormName | None = None
    register: Register = "column"
    shots: int = 4096
    calibrate: bool = True
    calibration_circuits: int = 32
    circuits_per_job: int = 100
    refine: Refine = "device"
    draws: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        form = self.form.name
        if self.circuit not in (None, form):
            raise ParameterError(f"register='paper' has the circuit {form!r}: leave circuit={self.circuit!r} out.")
        allowed = {"register": REGISTERS, "refine": get_args(Refine), "calibrate": (True, False)}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ParameterError(
                    f"The {name!r} parameter must be one of {', '.join(map(repr, values))}. "
                    f"Got {getattr(self, name)!r} instead."
                )
        for name, least in _LEAST.items():
            check_int(f"{name!r} parameter", getattr(self, name), least, MOST_SHOTS if name == "shots" else None)

    @property
    def form(self) -> CircuitForm:
        """The circuit; the paper's register has the paper's."""
        return form_named("compact_swap" if self.register == "paper" else self.circuit or "interference")


Known = tuple[Array, Array]
"""Known pairs for all copies of some circuits: angles (n, n_angles), and what they are known to be."""
Shape = tuple[Pack, Array, Callable[[int, np.random.Generator], Known]]
"""Tests of one packed circuit: the circuit, angles (tests, n_angles), and known pairs for all copies of a number of
circuits."""


@dataclass(frozen=True, eq=False)
class Job:
    """Circuits that are sent at once."""

    number: int  # position in the run
    batches: tuple[CircuitBatch, ...]

    @property
    def n_circuits(self) -> int:
        """Circuits with those of known pairs."""
        return sum(len(batch.angles) for batch in self.batches)

    @property
    def n_tested(self) -> int:
        """Circuits without those of known pairs."""
        return sum(len(batch.angles) for batch in self.batches if batch.known is None)

    def key(self, device: Device) -> str:
        """What is run, and where, as a hash, the same in every process: circuits, angles, shots, device and place.

        The noise of a simulated device counts. That of a device does not: it has another every day.
        """
        digest = sha256(f"{device.name}\n{device.noise}\n{device.seed}\n{self.number}\n".encode())
        for batch in self.batches:
            digest.update(f"{batch.pack.sha256} {batch.shots} {batch.angles.shape}\n".encode())
            digest.update(np.ascontiguousarray(batch.angles, dtype="<f8").tobytes())
        return digest.hexdigest()


def make_jobs(shapes: Sequence[Shape], settings: MeasurementSettings, *, after: int = 0) -> tuple[Job, ...]:
    """Jobs that run all tests, shape by shape in their order; they are numbered from `after` on."""
    circuits = [
        (shape, row)
        for shape, (pack, angles, _) in enumerate(shapes)
        for row in np.pad(np.arange(len(angles)), (0, -len(angles) % pack.n_copies), constant_values=-1).reshape(
            -1, pack.n_copies
        )
    ]
    size = settings.circuits_per_job
    groups = [circuits[start : start + size] for start in range(0, len(circuits), size)]
    present = [sorted({shape for shape, _ in group}) for group in groups]
    jobs = []
    for number, (group, of_group) in enumerate(zip(groups, present, strict=True), start=after):
        rng = np.random.default_rng([settings.seed, number, 1])  # not that of the job's simulated shots
        batches = []
        for shape in of_group:
            pack, angles, _ = shapes[shape]
            tests = np.stack([row for other, row in group if other == shape])
            batches.append(CircuitBatch(pack, tested_angles(tests, angles), settings.shots, shape, tests))
        for shape in of_group if settings.calibrate else ():
            pack, _, known_pairs = shapes[shape]
            n_jobs = sum(shape in one for one in present)
            count = max(_LEAST_KNOWN, -(-settings.calibration_circuits // n_jobs))
            angles, exact = known_pairs(count, rng)
            tests = np.full((count, pack.n_copies), -1, dtype=np.intp)
            batches.append(CircuitBatch(pack, angles.reshape(count, -1), settings.shots, shape, tests, exact))
        jobs.append(Job(number, tuple(batches)))
    return tuple(jobs)


def tested_angles(numbers: Codes, angles: Array) -> Array:
    """Angles of circuits, copy by copy, from those of the tests that are on them; 0 where a copy is not used."""
    return np.where((numbers >= 0)[..., None], angles[numbers], 0.0).reshape(len(numbers), -1)


def known_pairs(tests: Tests, n_copies: int, form: CircuitForm, count: int, rng: np.random.Generator) -> Known:
    """Known pairs: of tests, and half of medoids with themselves and their opposites where tests tell no line.

    The closed form knows the overlap of every pair. Equal and opposite vectors have the overlaps that tell a line best.
    But noise shrinks those of several columns less than other pairs, so that tests alone tell the better line if there
    are many of them, with different overlaps.
    """
    of_test = rng.integers(len(tests), size=count * n_copies)
    angles, overlaps = tests.angles[of_test], tests.overlaps[of_test]
    if tests.directions is None or len(tests) < _ENOUGH or tests.overlaps.std() < _SPREAD:
        turn = in_turn(count, n_copies) % 4
        for kind, sign in ((0, 1.0), (2, -1.0)):
            chosen = turn == kind
            left = tests.known[rng.integers(len(tests.known), size=np.count_nonzero(chosen))]
            angles[chosen], overlaps[chosen] = form.angles(left, sign * left), (1.0 - sign) / 2.0
    return angles, overlaps


def in_turn(count: int, n_copies: int) -> Codes:
    """Numbers of the copies of so many circuits by which every place has all kinds, in turn."""
    size = np.arange(count * n_copies)
    return size // n_copies + size % n_copies


def positions_of(n_tests: int, pack: Pack) -> Codes:
    """The copy of the circuit that runs each test of a shape."""
    return np.arange(n_tests) % pack.n_copies


def known_of(jobs: Sequence[Job], shape: int, slope: float, at_zero: float) -> tuple[Readings, Array] | None:
    """The known pairs of a shape, which are not read yet, and what they are; None for none."""
    batches = [batch for job in jobs for batch in job.batches if batch.shape == shape and batch.known is not None]
    if not batches:
        return None
    exact, first = np.concatenate([batch.known for batch in batches if batch.known is not None]), batches[0]
    positions = positions_of(len(exact), first.pack)
    return Readings(np.zeros(len(exact)), float(first.shots), positions, slope, at_zero), exact


def not_of_this_plan() -> ModelError:
    """The refusal of counts that the jobs of a plan cannot have."""
    return ModelError("The counts are not those of this plan: make a new run.")


def check_counts(jobs: Sequence[Job], counts: Sequence[Sequence[Counts]]) -> None:
    """Raise unless counts are those that jobs can have."""
    fits = [len(job.batches) for job in jobs] == [len(of_job) for of_job in counts] and all(
        batch.can_have(found)
        for job, of_job in zip(jobs, counts, strict=True)
        for batch, found in zip(job.batches, of_job, strict=True)
    )
    if not fits:
        raise not_of_this_plan()


def refuse_equal_repeats(measured: Sequence[Sequence[Sequence[Counts]]], shots: int) -> None:
    """Refuse repeats of which two read the very same shots: a seed was shared, and their scatter would be 0."""
    each = [np.concatenate([one.ravel() for of_job in counts for one in of_job]) for counts in measured]
    uncertain = np.count_nonzero((each[0] > 0) & (each[0] < shots))
    if uncertain >= _TELLING and len({counts.tobytes() for counts in each}) < len(each):
        raise ParameterError(
            "Repeats read the very same counts: the sampler starts from one seed in every job, and their scatter would "
            "be 0 whatever the error is. Leave the seed of the sampler out, or pass its backend with a seed."
        )


Part = tuple[int, CircuitBatch, Counts, Array | None]
"""Circuits of a shape in a job: its number, the circuits, how often each copy read 1, and what known pairs are."""


def read_tests(
    parts: Sequence[Part],
    n_tests: int,
    n_positions: int,
    slope: float,
    at_zero: float,
    guess: Lines,
    *,
    directions: Array | None = None,
) -> Estimates:
    """Values at_zero + slope · share of ones of the tests of a shape, calibrated by known pairs if there are any.

    Without these their bias is taken from lines that are guessed by the error rates of the device.
    """
    readings, tests, jobs = _gathered([part for part in parts if part[3] is None], slope, at_zero)
    if not np.array_equal(tests, np.arange(n_tests)):
        raise not_of_this_plan()
    readings = replace(readings, directions=directions)
    raw, by_shots, largest = readings.overlaps, readings.variances, 0.0
    of_known = [part for part in parts if part[3] is not None]
    if not of_known:
        return uncalibrated(readings, guess)
    known, exact, of_job = _gathered(of_known, slope, at_zero)
    lines, numbers = fit_lines(known, exact, n_positions), np.unique(of_job)
    drift = fit_drift(known, exact, lines, np.searchsorted(numbers, of_job))
    if drift is not None:
        # What the jobs shift looked like scatter about the common lines, and is none.
        shifts, covariances = drift
        of_pair = shifts[np.searchsorted(numbers, of_job)]
        change = of_pair[:, 0] + of_pair[:, 1] * exact
        lines = fit_lines(replace(known, overlaps=known.overlaps - change), exact, n_positions)
        readings = without_drift(readings, lines, shifts, covariances, np.searchsorted(numbers, jobs))
        largest = float(np.abs([shifts[:, 0], shifts.sum(axis=1)]).max())
    return replace(estimated(readings, lines), raw=raw, by_shots=by_shots, drift=largest)


def _gathered(parts: Sequence[Part], slope: float, at_zero: float) -> tuple[Readings, Any, Codes]:
    """Readings of tests or of known pairs, which test it is or what is known of it, and its job."""
    found = []
    for job, batch, ones, known in parts:
        used = batch.tests >= 0 if known is None else np.ones_like(batch.tests, dtype=np.bool_)
        copy, what = np.nonzero(used)[1], batch.tests[used] if known is None else known
        found.append((what, ones[used], copy, np.full(len(copy), job)))
    what, counted, positions, jobs = (np.concatenate(one) for one in zip(*found, strict=True))
    shots = float(parts[0][1].shots)
    return Readings(at_zero + slope * counted / shots, shots, positions, slope, at_zero), what, jobs


def run_jobs(
    jobs: Sequence[Job],
    device: Device,
    store: "JobFiles | None" = None,
    *,
    on_job: Callable[[int, int], None] | None = None,
) -> list[list[Counts]]:
    """Counts of all jobs in order.

    A job whose counts are in the store is not run. One that a service runs already, by the name that the store has
    kept, is fetched. A job that fails is tried again, unless circuits or counts are refused here, and its last failure
    is raised after all others have been waited for.

    Raises
    ------
    JobError
        Jobs failed as often as they may; counts of the others are in the store.
    """
    found: dict[int, list[Counts]] = {}
    waiting: deque[tuple[Job, Any]] = deque()
    failures: list[tuple[Job, Exception]] = []

    def tell() -> None:
        if on_job is not None:
            on_job(len(found), len(jobs))

    def finish() -> None:
        job, started = waiting.popleft()
        counts = _finished(job, started, device, store)
        if isinstance(counts, Exception):
            failures.append((job, counts))
        else:
            found[job.number] = counts
        tell()

    for job in jobs:
        counts = None if store is None else store.counts(job)
        if counts is not None:
            found[job.number] = counts
            tell()
            continue
        try:
            started = _started(job, device, store)
        except Exception as error:  # tried again, and reported, when its turn comes
            started = error
        waiting.append((job, started))
        if device.is_simulated or runs_here(started) or len(waiting) >= _AHEAD:
            finish()
    while waiting:
        finish()
    if failures:
        job, why = failures[0]
        said = f"{type(why).__name__}: {why}".rstrip(".")
        tried = "" if isinstance(why, QMedoidError) else f" {_ATTEMPTS} times"
        kept = "" if store is None else " What has finished is kept: the same command goes on from there."
        raise JobError(
            f"{len(failures)} of {len(jobs)} jobs failed{tried}; job {job.number} with {said}.{kept}"
        ) from why
    return [found[job.number] for job in jobs]


def _finished(job: Job, started: Any, device: Device, store: "JobFiles | None") -> list[Counts] | Exception:
    """Counts of a job that was started, or could not be; or the last failure of so many attempts."""
    error = started if isinstance(started, Exception) else None
    handle = None if error is not None else started
    if isinstance(error, QMedoidError):
        return error
    for _ in range(_ATTEMPTS if error is None else _ATTEMPTS - 1):
        try:
            if handle is None:
                handle = _started(job, device, store)
            counts = counts_of(handle.result(), job.batches)
        except QMedoidError as refused:  # ours: the circuits or what they returned, which is paid for, stay as they are
            # One that was sent, and whose name could not be kept, is found by its key.
            if store is not None and handle is not None:
                store.forget_submitted(job)
            return refused
        except Exception as failed:  # any provider's
            error = failed
            if store is not None and handle is not None and has_failed(handle):
                store.forget_submitted(job)
            # One that has not failed is asked again: by its name, which the store knows, or as it is, if it says so.
            says_so = not runs_here(handle) and any(callable(getattr(handle, name, None)) for name in ENDS)
            if store is not None or has_failed(handle) or not says_so:
                handle = None
        else:
            if store is not None:
                store.keep(job, counts)
            return counts
    assert error is not None, "a job without counts has failed"
    return error


def _started(job: Job, device: Device, store: "JobFiles | None") -> Any:
    """The job of an earlier process at the service, or a new one.

    Before a job is sent to a service the store notes that it will be, and the job carries its key: so that a process
    that dies between the two leaves no job behind that nobody fetches.
    """
    if store is None or device.is_simulated:
        return device.submit(job.batches, seed=[job.number])
    job_id, key = store.submitted(job), job.key(device)
    if job_id is not None:
        handle = device.find(job_id, key)
        if handle is not None:
            return handle
    store.keep_submitted(job, "")
    handle = device.submit(job.batches, seed=[job.number], key=key)
    name = getattr(handle, "job_id", None)
    store.keep_submitted(job, str(name()) if callable(name) else "")
    return handle
