"""Jobs, run one after the other or by a service; what has finished is never run again."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import JobError, ModelError, ParameterError, QMedoidError
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.sampling import Counts, counts_of, has_failed, runs_here, says_how_it_is
from qmedoid.quantum.measurement.calibration import Estimates, Lines, Readings, estimated, fit_lines
from qmedoid.quantum.measurement.packing import Job, PackedBatch
from qmedoid.quantum.measurement.scatter import Directions, joined_directions

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import CountStore


_AHEAD = 10
"""Jobs that wait at a service at a time."""


def run_jobs(
    jobs: Sequence[Job],
    device: Device,
    store: "CountStore | None" = None,
    *,
    on_job: Callable[[int, int], None] | None = None,
    attempts: int = 3,
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
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise ParameterError(f"The 'attempts' parameter must be an int >= 1. Got {attempts!r} instead.")
    found: dict[int, list[Counts]] = {}
    waiting: deque[tuple[Job, Any]] = deque()
    failures: list[tuple[Job, Exception]] = []

    def finish() -> None:
        job, started = waiting.popleft()
        counts = _finished(job, started, device, store, attempts)
        if isinstance(counts, Exception):
            failures.append((job, counts))
        else:
            found[job.number] = counts
        if on_job is not None:
            on_job(len(found), len(jobs))

    for job in jobs:
        counts = None if store is None else store.counts(job)
        if counts is not None:
            found[job.number] = counts
            if on_job is not None:
                on_job(len(found), len(jobs))
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
        tried = "" if isinstance(why, QMedoidError) else f" {attempts} times"
        kept = "" if store is None else " What has finished is kept: the same command goes on from there."
        raise JobError(
            f"{len(failures)} of {len(jobs)} jobs failed{tried}; job {job.number} with {said}.{kept}"
        ) from why
    return [found[job.number] for job in jobs]


def _finished(
    job: Job, started: Any, device: Device, store: "CountStore | None", attempts: int
) -> list[Counts] | Exception:
    """Counts of a job that was started, or could not be; or the last failure of so many attempts."""
    error = started if isinstance(started, Exception) else None
    handle = None if error is not None else started
    if isinstance(error, QMedoidError):
        return error
    for _ in range(attempts if error is None else attempts - 1):
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
            # One that has not failed is asked again: by its name, which the store knows, or as it is.
            if store is not None or handle is None or has_failed(handle) or not says_how_it_is(handle):
                handle = None
        else:
            if store is not None:
                store.keep(job, counts)
            return counts
    assert error is not None, "a job without counts has failed"
    return error


def _started(job: Job, device: Device, store: "CountStore | None") -> Any:
    """The job of an earlier process at the service, or a new one.

    Before a job is sent to a service the store notes that it will be, and the job carries its key: so that a process
    that dies between the two leaves no job behind that nobody fetches.
    """
    if store is None or device.is_simulated:
        return device.submit(job.batches, seed=[job.number])
    job_id, key = store.submitted(job), job.key(device)
    if job_id is not None:
        handle = device.fetch(job_id) if job_id else device.find(key)
        if handle is not None:
            return handle
    store.keep_submitted(job, "")
    handle = device.submit(job.batches, seed=[job.number], key=key)
    name = getattr(handle, "job_id", None)
    store.keep_submitted(job, str(name()) if callable(name) else "")
    return handle


_SIGNIFICANT = 0.001


@dataclass(frozen=True, eq=False)
class JobDrift:
    """How the lines of jobs differ from the common ones.

    Attributes
    ----------
    shifts : ndarray of shape (jobs, 2)
        Added intercept and slope of each job.
    covariances : ndarray of shape (jobs, 2, 2)
        Of these.
    """

    shifts: Array
    covariances: Array

    @property
    def largest(self) -> float:
        """Largest change of an overlap by it, at 0 or at 1."""
        return float(np.abs([self.shifts[:, 0], self.shifts.sum(axis=1)]).max())


def fit_drift(readings: Readings, exact: Array, lines: Lines, jobs: Codes, n_jobs: int) -> JobDrift | None:
    """The drift of known pairs between jobs; None where it may be chance, or where a job tells no line.

    Parameters
    ----------
    readings : Readings
        Of known pairs.
    exact : ndarray of shape (n,)
        Their overlaps.
    lines : Lines
        Fitted to all of them.
    jobs : ndarray of shape (n,)
        The job of each pair.
    n_jobs : int
    """
    expected = lines.intercepts[readings.positions] + lines.slopes[readings.positions] * exact
    weights = 1.0 / (readings.variances_at(expected) + lines.excess**2)
    residuals = readings.overlaps - expected
    w, ws, wss, wr, wsr = (
        np.bincount(jobs, weights * factor, minlength=n_jobs)
        for factor in (1.0, exact, exact**2, residuals, exact * residuals)
    )
    determinant = w * wss - ws**2
    if n_jobs < 2 or np.any(determinant <= 1e-9 * w**2):
        return None
    shifts = np.stack([wss * wr - ws * wsr, w * wsr - ws * wr], axis=1) / determinant[:, None]
    covariances = np.stack([wss, -ws, -ws, w], axis=1).reshape(-1, 2, 2) / determinant[:, None, None]
    square = float(np.sum(shifts * np.linalg.solve(covariances, shifts[..., None])[..., 0]))
    if chdtrc(2 * (n_jobs - 1), square) >= _SIGNIFICANT:
        return None
    return JobDrift(shifts, covariances)


def without_drift(readings: Readings, lines: Lines, drift: JobDrift, jobs: Codes) -> Readings:
    """Readings as they would be without the drift of their jobs, with its error among theirs."""
    slopes = lines.slopes[readings.positions] + drift.shifts[jobs, 1]
    intercepts = lines.intercepts[readings.positions] + drift.shifts[jobs, 0]
    overlaps = (readings.overlaps - intercepts) / slopes
    at = np.stack([np.ones_like(overlaps), overlaps], axis=1)
    more = np.einsum("ni,nij,nj->n", at, drift.covariances[jobs], at)
    change = drift.shifts[jobs, 0] + drift.shifts[jobs, 1] * overlaps
    return replace(readings, overlaps=readings.overlaps - change, more=readings.more + more)


FitLines = Callable[[Readings, Array, int], Lines]
"""Lines from known readings, what they are known to be, and the number of positions."""


def not_of_this_plan() -> ModelError:
    """The refusal of counts that the jobs of a plan cannot have."""
    return ModelError("The counts are not those of this plan: make a new run.")


def check_counts(jobs: Sequence[Job], counts: Sequence[Sequence[Counts]]) -> None:
    """Raise unless counts are those that jobs can have."""
    fits = [len(job.parts) for job in jobs] == [len(of_job) for of_job in counts] and all(
        batch.can_have(found)
        for job, of_job in zip(jobs, counts, strict=True)
        for batch, found in zip(job.batches, of_job, strict=True)
    )
    if not fits:
        raise not_of_this_plan()


@dataclass(frozen=True, eq=False)
class Read:
    """What tests of one shape read.

    Attributes
    ----------
    estimates : Estimates
        Calibrated, where a calibration is used.
    lines : Lines or None
        The calibration; None where there was none.
    drift : JobDrift or None
        How jobs differ from it; None where they do not.
    raw : ndarray of shape (n,)
        Values as they were read.
    by_shots : ndarray of shape (n,)
        Their variances by shots.
    """

    estimates: Estimates
    lines: Lines | None
    drift: JobDrift | None
    raw: Array
    by_shots: Array


class Collected:
    """Counts of tests and of known pairs of one shape from all jobs.

    Parameters
    ----------
    n_tests : int
    n_positions : int
        Copies side by side.
    directions : Directions or None
        The vectors of the tests; None for those of one column, and where a test is no pair of vectors.
    """

    def __init__(self, n_tests: int, n_positions: int, directions: Directions | None = None) -> None:
        self.n_tests, self.n_positions, self.directions = n_tests, n_positions, directions
        self.measured, self.known = _CopyCounts(), _CopyCounts()

    def add(self, part: PackedBatch, known: Array, ones: Counts, job: int) -> None:
        """Add circuits of a job: what is known of each copy, or NaN, and how often it read 1, (circuits, copies)."""
        self.measured.add(part.tests, ones, part.batch.shots, part.tests >= 0, job)
        self.known.add(known, ones, part.batch.shots, np.isfinite(known), job, part.directions)

    def read(self, at_zero: float, slope: float, fit: FitLines = fit_lines) -> Read:
        """Values at_zero + slope · share of ones, calibrated by the known pairs if there are any."""
        readings, jobs = self._ordered(at_zero, slope)
        readings = replace(readings, directions=self.directions)
        raw, by_shots, lines, drift = readings.overlaps, readings.variances, None, None
        if self.known.n:
            lines, drift = self._calibrated(at_zero, slope, fit)
            if drift is not None:
                readings = without_drift(readings, lines, drift, np.searchsorted(self.known.job_numbers, jobs))
        return Read(estimated(readings, lines), lines, drift, raw, by_shots)

    def _calibrated(self, at_zero: float, slope: float, fit: FitLines) -> tuple[Lines, JobDrift | None]:
        """The lines of known pairs, and the drift of their jobs about them, where there is one."""
        readings, exact = self.known.readings(at_zero, slope), np.concatenate(self.known.what)
        lines = fit(readings, exact, self.n_positions)
        jobs = np.searchsorted(self.known.job_numbers, np.concatenate(self.known.jobs))
        drift = fit_drift(readings, exact, lines, jobs, len(self.known.job_numbers))
        if drift is None:
            return lines, None
        # What the jobs shift looked like scatter about the common lines, and is none.
        expected = np.stack([np.ones_like(exact), exact], axis=1)
        change = np.einsum("ni,ni->n", expected, drift.shifts[jobs])
        return fit(replace(readings, overlaps=readings.overlaps - change), exact, self.n_positions), drift

    def _ordered(self, at_zero: float, slope: float) -> tuple[Readings, Codes]:
        """The readings of the tests in their order, each once, and their jobs."""
        found, tests = self.measured.readings(at_zero, slope), np.concatenate(self.measured.what)
        order = np.argsort(tests, kind="stable")
        if not np.array_equal(tests[order], np.arange(self.n_tests)):
            raise not_of_this_plan()
        ordered = Readings(found.overlaps[order], found.shots[order], found.positions[order], slope, at_zero)
        return ordered, np.concatenate(self.measured.jobs)[order]


class _CopyCounts:
    """Ones of copies, with what each copy tests."""

    def __init__(self) -> None:
        self.n = 0
        self.what: list[npt.NDArray[Any]] = []
        self.ones: list[Counts] = []
        self.shots: list[Counts] = []
        self.positions: list[Codes] = []
        self.jobs: list[Codes] = []
        self.directions: list[Directions | None] = []

    @property
    def job_numbers(self) -> Codes:
        """Jobs that there are counts of, in order."""
        return np.unique(np.concatenate(self.jobs))

    def add(
        self, what: npt.NDArray[Any], ones: Counts, shots: int, used: Flags, job: int, toward: Directions | None = None
    ) -> None:
        circuit, copy = np.nonzero(used)
        self.n += len(copy)
        self.what.append(what[circuit, copy])
        self.ones.append(ones[circuit, copy])
        self.shots.append(np.full(len(copy), shots, dtype=np.int64))
        self.positions.append(copy)
        self.jobs.append(np.full(len(copy), job, dtype=np.intp))
        self.directions.append(toward)

    def readings(self, at_zero: float, slope: float) -> Readings:
        ones, shots = np.concatenate(self.ones), np.concatenate(self.shots).astype(np.float64)
        positions, directions = np.concatenate(self.positions), joined_directions(self.directions)
        return Readings(at_zero + slope * ones / shots, shots, positions, slope, at_zero, directions=directions)
