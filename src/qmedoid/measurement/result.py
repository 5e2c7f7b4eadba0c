"""What a measurement showed: decisions with errors, beside those of the closed form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.devices.sampling import Counts
from qmedoid.exceptions import ModelError
from qmedoid.measurement.asking import Decided
from qmedoid.measurement.calibration import Estimates, Lines, Readings, estimated, fit_lines
from qmedoid.measurement.drift import Drift, fit_drift, without_drift
from qmedoid.measurement.errors import Errors
from qmedoid.measurement.packing import PackedBatch
from qmedoid.measurement.scatter import Directions, joined_directions

if TYPE_CHECKING:
    from qmedoid.measurement.plan import MeasurementPlan


@dataclass(frozen=True, eq=False)
class MeasurementResult:
    """Decisions about measured records, with their errors.

    Attributes
    ----------
    plan : MeasurementPlan
    decided : Decided
        The decisions.
    errors : Errors
        Of margins and probabilities.
    estimates : tuple of Estimates
        Overlaps of the distinct tests with their errors, shape by shape.
    lines : tuple of Lines or None
        The calibration of each shape; None where there was none.
    raw : tuple of ndarray
        Overlaps as they were read, shape by shape.
    drifts : tuple of Drift or None
        How jobs differ from the common calibration of each shape; None where they do not.
    """

    plan: "MeasurementPlan"
    decided: Decided
    errors: Errors
    estimates: tuple[Estimates, ...]
    lines: tuple[Lines | None, ...]
    raw: tuple[Array, ...]
    drifts: tuple[Drift | None, ...] = ()

    @cached_property
    def undecided(self) -> Flags:
        """Records whose margin is less than two errors from the cut."""
        return self.errors.undecided(self.decided)

    @cached_property
    def kept(self) -> Flags:
        """Records that are decided as the closed form decides."""
        return np.asarray(self.decided.codes == self.plan.exact.codes)

    @cached_property
    def overlap_errors(self) -> Array:
        """Measured minus exact overlap of every test."""
        return joined([one.overlaps for one in self.estimates]) - self._exact_overlaps

    @cached_property
    def overlap_scores(self) -> Array:
        """The same in units of the stated errors: their deviation is about 1 where these are honest."""
        return self.overlap_errors / joined([one.errors for one in self.estimates])

    @cached_property
    def margin_errors(self) -> Array:
        """Measured minus exact gap between the two classes that the closed form ranks first, of every record."""
        return _change(self.decided, self.plan.exact)

    def without_calibration(self) -> "MeasurementResult":
        """What the same counts say without calibration: overlaps as they were read, with errors by shots alone."""
        plan, form = self.plan, self.plan.settings.form
        estimates = tuple(
            estimated(Readings(raw, shots.astype(np.float64), one.positions, form.slope, form.at_zero), None)
            for raw, shots, one in zip(self.raw, plan.test_shots, self.estimates, strict=True)
        )
        decided = plan.decided_by(joined(self.raw))
        errors = plan.errors_of(decided, estimates)
        return MeasurementResult(plan, decided, errors, estimates, (None,) * len(estimates), self.raw)

    @property
    def _exact_overlaps(self) -> Array:
        return joined([tests.overlaps for tests in self.plan.tests])

    def columns(self) -> dict[str, Any]:
        """A column for every fact about the records: decision, probability and margin with errors, and closed form."""
        exact = self.plan.exact
        closed = decided_columns(exact, None, self.plan.classes)
        return {
            **decided_columns(self.decided, self.errors, self.plan.classes),
            "agrees": self.kept,
            **{f"{name}_in_closed_form": values for name, values in closed.items()},
        }

    def summary(self) -> dict[str, Any]:
        """What the run showed in plain values."""
        kept, undecided = self.kept, self.undecided
        return {
            "records": len(kept),
            "agreement": float(kept.mean()),
            "undecided": int(undecided.sum()),
            "agreement_of_decided": float(kept[~undecided].mean()) if not undecided.all() else None,
            "overlap_rms_error": _rms(self.overlap_errors),
            "overlap_rms_error_raw": _rms(joined(self.raw) - self._exact_overlaps),
            "overlap_score_deviation": _rms(self.overlap_scores),
            "margin_rms_error": _rms(self.margin_errors),
            "margin_rms_stated": _rms(self.errors.margins),
            "calibration": [
                None if lines is None else _described(lines, tests.n_features)
                for lines, tests in zip(self.lines, self.plan.tests, strict=True)
            ],
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the plan and the calibration, in sentences."""
        found = list(self.plan.notes)
        for lines, tests, pack in zip(self.lines, self.plan.tests, self.plan.packs, strict=True):
            if lines is None and np.any(pack.shrink < 1.0):
                found.append(
                    f"Circuits of {tests.n_features} column(s): noise leaves about {pack.shrink.mean():.2f} of an "
                    "overlap, by the device's error rates. Without calibration it goes into the decisions, and stated "
                    "errors are those of shots alone."
                )
            elif lines is not None and not lines.used:
                found.append(
                    f"Circuits of {tests.n_features} column(s): known pairs read what they should, within their shots, "
                    "so overlaps are taken as they are, without calibration."
                )
            elif lines is not None and np.min(lines.slopes) < 0.2:
                found.append(
                    f"Circuits of {tests.n_features} column(s): noise leaves {np.min(lines.slopes):.2f} of an overlap "
                    "at the worst place; errors are large. Use a narrower register or fewer columns."
                )
        for drift, tests in zip(self.drifts, self.plan.tests, strict=False):
            if drift is not None:
                found.append(
                    f"Circuits of {tests.n_features} column(s): known pairs of different jobs disagree by up to "
                    f"{drift.largest:.3f} of an overlap: the device drifted. It is undone job by job."
                )
        if self.margin_ratio > max(1.25, 1.0 + 4.0 / np.sqrt(2.0 * len(self.kept))):
            found.append(
                f"Margins are off by {self.margin_ratio:.1f} times their stated errors on average: noise has in common "
                "for the tests of a record what errors take as independent. Take them as so much larger, or use "
                "register='column'."
            )
        return tuple(found)

    @property
    def margin_ratio(self) -> float:
        """Actual errors of margins, which the closed form tells, in units of those that are stated; root mean square.

        About 1 where stated errors are honest. For circuits of many columns on a noisy device it may be 2, although
        errors of single overlaps are honest.
        """
        stated = _rms(self.errors.margins)
        return _rms(self.margin_errors) / stated if stated > 0 else 1.0


def decided_columns(decided: Decided, errors: Errors | None, classes: Sequence[Any]) -> dict[str, Any]:
    """Class, its probability if there is one, and margin, with errors and whether they leave the class undecided."""
    found: dict[str, Any] = {"class": np.asarray(classes)[decided.codes] if classes else decided.codes}
    if decided.probabilities is not None:
        found["probability"] = decided.probabilities[np.arange(len(decided.codes)), decided.codes]
    found["margin"] = decided.margins
    if errors is not None:
        if errors.probabilities is not None:
            found["probability_error"] = errors.probabilities
        found |= {"margin_error": errors.margins, "undecided": errors.undecided(decided)}
    return found


def read_out(plan: "MeasurementPlan", counts: Sequence[Sequence[Counts]]) -> MeasurementResult:
    """Overlaps, calibration, decisions and errors from the counts of all jobs."""
    _check_counts(plan, counts)
    form = plan.settings.form
    estimates: list[Estimates] = []
    lines: list[Lines | None] = []
    drifts: list[Drift | None] = []
    raw: list[Array] = []
    for shape, tests in enumerate(plan.tests):
        measured, known = _Collected(len(tests)), _Collected(0)
        for job, of_job in zip(plan.jobs, counts, strict=True):
            for part, ones in zip(job.parts, of_job, strict=True):
                if part.shape == shape:
                    measured.add(part.tests, ones, part.batch.shots, part.tests >= 0, job.number)
                    known.add_known(part, ones, job.number)
        readings, jobs = measured.ordered(form.at_zero, form.slope)
        readings = replace(readings, directions=tests.directions)
        raw.append(readings.overlaps)
        line, drifted = None, None
        if known.n:
            line, drifted = _calibrated(known, plan.packs[shape].n_copies, form.at_zero, form.slope)
            if drifted is not None:
                readings = without_drift(readings, line, drifted, np.searchsorted(known.job_numbers, jobs))
        lines.append(line)
        drifts.append(drifted)
        estimates.append(estimated(readings, line))
    decided = plan.decided_by(joined([one.overlaps for one in estimates]))
    errors = plan.errors_of(decided, estimates)
    return MeasurementResult(plan, decided, errors, tuple(estimates), tuple(lines), tuple(raw), tuple(drifts))


def _calibrated(known: "_Collected", n_copies: int, at_zero: float, slope: float) -> tuple[Lines, Drift | None]:
    """The lines of known pairs, and the drift of their jobs about them, where there is one."""
    readings, exact = known.readings(at_zero, slope), np.concatenate(known.exact)
    lines = fit_lines(readings, exact, n_copies)
    jobs = np.searchsorted(known.job_numbers, np.concatenate(known.jobs))
    drift = fit_drift(readings, exact, lines, jobs, len(known.job_numbers))
    if drift is None:
        return lines, None
    # What the jobs shift looked like scatter about the common lines, and is none.
    expected = np.stack([np.ones_like(exact), exact], axis=1)
    change = np.einsum("ni,ni->n", expected, drift.shifts[jobs])
    return fit_lines(replace(readings, overlaps=readings.overlaps - change), exact, n_copies), drift


def _check_counts(plan: "MeasurementPlan", counts: Sequence[Sequence[Counts]]) -> None:
    """Raise unless counts are those that the jobs of a plan can have."""
    asked = [[(part.tests.shape, part.batch.shots) for part in job.parts] for job in plan.jobs]
    fits = [len(parts) for parts in asked] == [len(of_job) for of_job in counts] and all(
        ones.shape == shape and ones.min(initial=0) >= 0 and ones.max(initial=0) <= shots
        for parts, of_job in zip(asked, counts, strict=True)
        for (shape, shots), ones in zip(parts, of_job, strict=True)
    )
    if not fits:
        raise ModelError("The counts are not those of this plan: make a new run.")


class _Collected:
    """Counts of tests from all jobs."""

    def __init__(self, n: int) -> None:
        self.n_tests, self.n = n, 0
        self.tests: list[Codes] = []
        self.ones: list[Counts] = []
        self.shots: list[Counts] = []
        self.positions: list[Codes] = []
        self.jobs: list[Codes] = []
        self.exact: list[Array] = []
        self.directions: list[Directions | None] = []

    @property
    def job_numbers(self) -> Codes:
        """Jobs that there are counts of, in order."""
        return np.unique(np.concatenate(self.jobs))

    def add(self, tests: Codes, ones: Counts, shots: int, used: Flags, job: int) -> None:
        circuit, copy = np.nonzero(used)
        self.n += len(copy)
        self.tests.append(tests[circuit, copy])
        self.ones.append(ones[circuit, copy])
        self.shots.append(np.full(len(copy), shots, dtype=np.int64))
        self.positions.append(copy)
        self.jobs.append(np.full(len(copy), job, dtype=np.intp))

    def add_known(self, part: PackedBatch, ones: Counts, job: int) -> None:
        used = np.isfinite(part.known)
        self.add(np.zeros(used.shape, dtype=np.intp), ones, part.batch.shots, used, job)
        self.exact.append(part.known[used])
        self.directions.append(part.directions)

    def readings(self, at_zero: float, slope: float) -> Readings:
        ones, shots = np.concatenate(self.ones), np.concatenate(self.shots).astype(np.float64)
        positions, directions = np.concatenate(self.positions), joined_directions(self.directions)
        return Readings(at_zero + slope * ones / shots, shots, positions, slope, at_zero, directions=directions)

    def ordered(self, at_zero: float, slope: float) -> tuple[Readings, Codes]:
        """The readings of the tests in their order, each once, and their jobs."""
        found = self.readings(at_zero, slope)
        order = np.argsort(np.concatenate(self.tests), kind="stable")
        if not np.array_equal(np.concatenate(self.tests)[order], np.arange(self.n_tests)):
            raise ModelError("The counts are not those of this plan: make a new run.")
        ordered = Readings(found.overlaps[order], found.shots[order], found.positions[order], slope, at_zero)
        return ordered, np.concatenate(self.jobs)[order]


def _change(decided: Decided, exact: Decided) -> Array:
    """Change of the gap between the two classes that the closed form ranks first."""
    rows, order = np.arange(len(exact.codes)), np.argsort(-exact.scores, axis=1, kind="stable")
    best, second = order[:, 0], order[:, 1]
    gaps = [one.scores[rows, best] - one.scores[rows, second] for one in (decided, exact)]
    return np.asarray(gaps[0] - gaps[1])


def joined(of_shapes: Sequence[Array]) -> Array:
    """Numbers of the tests of all shapes one after the other; there may be none."""
    return np.concatenate([np.zeros(0), *of_shapes])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _described(lines: Lines, n_features: int) -> dict[str, Any]:
    slope_errors, intercept_errors = (np.sqrt(lines.covariances[:, place, place]) for place in (1, 0))
    return {
        "columns": n_features,
        "used": lines.used,
        "by_position": lines.by_position,
        "known_pairs": lines.n_pairs,
        "slope": float(lines.slopes.mean()),
        "slope_error": float(np.sqrt(np.mean(slope_errors**2))),
        "slope_least": float(lines.slopes.min()),
        "slope_most": float(lines.slopes.max()),
        "intercept": float(lines.intercepts.mean()),
        "intercept_error": float(np.sqrt(np.mean(intercept_errors**2))),
        "excess": lines.excess,
        "residual_deviation": lines.spread,
        "chance": lines.chance,
    }
