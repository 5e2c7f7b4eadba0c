"""Devices drift: what known pairs of one job say that those of the others do not.

Known pairs run in every job, so that a shift or a shrink of a job of its own shows in their distances from the common
lines. Where it is more than chance it is undone, job by job, and its error is counted.
"""

from dataclasses import dataclass, replace

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.quantum.measurement.calibration import Lines, Readings
from qmedoid.quantum.measurement.chances import chi_square_chance

_SIGNIFICANT = 0.001


@dataclass(frozen=True, eq=False)
class Drift:
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


def fit_drift(readings: Readings, exact: Array, lines: Lines, jobs: Codes, n_jobs: int) -> Drift | None:
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
    if chi_square_chance(2 * (n_jobs - 1), square) >= _SIGNIFICANT:
        return None
    return Drift(shifts, covariances)


def without_drift(readings: Readings, lines: Lines, drift: Drift, jobs: Codes) -> Readings:
    """Readings as they would be without the drift of their jobs, with its error among theirs."""
    slopes = lines.slopes[readings.positions] + drift.shifts[jobs, 1]
    intercepts = lines.intercepts[readings.positions] + drift.shifts[jobs, 0]
    overlaps = (readings.overlaps - intercepts) / slopes
    at = np.stack([np.ones_like(overlaps), overlaps], axis=1)
    more = np.einsum("ni,nij,nj->n", at, drift.covariances[jobs], at)
    change = drift.shifts[jobs, 0] + drift.shifts[jobs, 1] * overlaps
    return replace(readings, overlaps=readings.overlaps - change, more=readings.more + more)
