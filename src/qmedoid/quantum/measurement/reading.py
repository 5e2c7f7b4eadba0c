"""What circuits read, from the counts of all jobs: raw values, calibration by known pairs, and calibrated values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.quantum.devices.sampling import Counts
from qmedoid.quantum.measurement.calibration import Estimates, Lines, Readings, estimated, fit_lines
from qmedoid.quantum.measurement.drift import Drift, fit_drift, without_drift
from qmedoid.quantum.measurement.packing import Job, PackedBatch
from qmedoid.quantum.measurement.scatter import Directions, joined_directions

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
    drift : Drift or None
        How jobs differ from it; None where they do not.
    raw : ndarray of shape (n,)
        Values as they were read.
    by_shots : ndarray of shape (n,)
        Their variances by shots.
    """

    estimates: Estimates
    lines: Lines | None
    drift: Drift | None
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
        self.measured, self.known = _Counted(), _Counted()

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

    def _calibrated(self, at_zero: float, slope: float, fit: FitLines) -> tuple[Lines, Drift | None]:
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


class _Counted:
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
