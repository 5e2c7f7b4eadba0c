"""The plan of a measurement: which circuits records need, what they cost, and how sure their decisions will be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.circuits.forms import CircuitForm
from qmedoid.devices.device import Device
from qmedoid.devices.packs import Pack
from qmedoid.devices.sampling import Counts
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.measurement.asking import Answers, Call, Decide, Decided, Recorder
from qmedoid.measurement.calibration import Estimates, Lines, Readings, expected_lines, guessed_lines
from qmedoid.measurement.errors import Errors, decided_errors
from qmedoid.measurement.packing import Job, PackedBatch, make_jobs
from qmedoid.measurement.result import MeasurementResult, decided_columns, joined, read_out
from qmedoid.measurement.settings import MeasurementSettings
from qmedoid.measurement.shots import shots_for
from qmedoid.measurement.tests import Asked, Tests, tests_of

# Shots at which "auto" looks at errors first.
_TRIAL_SHOTS = 1024
# How often it chooses less where the budget does not reach.
_TRIALS = 5


class Block(NamedTuple):
    """Records that are measured with the same number of shots: their numbers, calls and how they are answered."""

    rows: Codes
    shots: int
    calls: tuple[Call, ...]
    asked: tuple[Asked, ...]


class CountStore(Protocol):
    """Where the counts of finished jobs are kept, and the names of those that a service still runs."""

    def counts(self, job: Job) -> list[Counts] | None:
        """The counts of a job that has finished, or None."""
        ...

    def keep(self, job: Job, counts: Sequence[Counts]) -> None:
        """Keep the counts of a job."""
        ...

    def submitted(self, job: Job) -> str | None:
        """The name under which a service runs a job already, or None; empty where only that it was about to be sent."""
        ...

    def keep_submitted(self, job: Job, job_id: str) -> None:
        """Keep the name under which a service runs a job; an empty one before it is sent."""
        ...

    def forget_submitted(self, job: Job) -> None:
        """Forget the name of a job that failed at the service."""
        ...


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """What a measurement of records will run; nothing has run yet.

    Attributes
    ----------
    device : Device
    settings : MeasurementSettings
    decide : callable
        Decides about records with the distances of a SWAP test.
    blocks : tuple of Block
    tests : tuple of Tests
        Distinct tests, shape by shape.
    packs : tuple of Pack
        The packed circuit of each shape.
    jobs : tuple of Job
    exact : Decided
        The decisions in closed form.
    lines : tuple of Lines or None
        What noise does to overlaps by an earlier run, shape by shape; None where nothing is known.
    classes : tuple
        Names of the classes, in the order of their codes.
    notes : tuple of str
        What is worth knowing about the plan, in sentences.
    """

    device: Device
    settings: MeasurementSettings
    decide: Decide
    blocks: tuple[Block, ...]
    tests: tuple[Tests, ...]
    packs: tuple[Pack, ...]
    jobs: tuple[Job, ...]
    exact: Decided
    lines: tuple[Lines | None, ...]
    classes: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_records(self) -> int:
        """Records that are measured."""
        return len(self.exact.codes)

    @property
    def n_tests(self) -> int:
        """Distinct tests."""
        return sum(map(len, self.tests))

    @property
    def n_asked(self) -> int:
        """Tests that records ask for, with repeats."""
        return sum(int(np.count_nonzero(one.test >= 0)) for block in self.blocks for one in block.asked)

    @cached_property
    def n_circuits(self) -> int:
        """Circuits of tests, without those of known pairs."""
        return sum(len(part.tests) for job in self.jobs for part in job.parts if (part.tests >= 0).any())

    @cached_property
    def n_calibration_circuits(self) -> int:
        """Circuits of known pairs."""
        return sum(job.n_circuits for job in self.jobs) - self.n_circuits

    @cached_property
    def n_test_shots(self) -> int:
        """Shots of all circuits of tests together."""
        return sum(
            len(part.tests) * part.batch.shots for job in self.jobs for part in job.parts if (part.tests >= 0).any()
        )

    @cached_property
    def n_shots(self) -> int:
        """Shots of all circuits together, with those of known pairs."""
        return sum(len(part.tests) * part.batch.shots for job in self.jobs for part in job.parts)

    @cached_property
    def seconds(self) -> float:
        """About how long the device is busy, without waiting in a queue."""
        return sum(self.device.seconds(batch) for job in self.jobs for batch in job.batches)

    @cached_property
    def expected_estimates(self) -> tuple[Estimates, ...]:
        """Overlaps and their expected errors, shape by shape: by shots, and by what noise leaves of overlaps.

        What noise leaves is known from an earlier run, or guessed from the error rates that the device reports.
        """
        form, found = self.settings.form, []
        for shape, (tests, shots, positions, pack, known) in enumerate(
            zip(self.tests, self.test_shots, self._positions, self.packs, self.lines, strict=True)
        ):
            lines = known or guessed_lines(
                pack.shrink, float(form.overlap(0.5)), form.template(tests.n_features).num_qubits
            )
            expected = lines.intercepts[positions] + lines.slopes[positions] * tests.overlaps
            if self.settings.calibrate:
                pairs = [part for job in self.jobs for part in job.parts if part.shape == shape]
                lines = expected_lines(lines, *_known_pairs(pairs, form))
            # An outcome that never comes has no shot noise: equal values read 0 without noise, whatever the shots.
            share = np.clip(form.chance(expected), 0.0, 1.0)
            by_shots = form.slope**2 * share * (1.0 - share) / shots
            if lines.used and self.settings.calibrate:
                own = np.sqrt(by_shots + lines.own_scatter(tests.directions)) / np.abs(lines.slopes[positions])
                found.append(Estimates(tests.overlaps, own, positions, lines, tests.directions))
            else:
                found.append(Estimates(expected, np.sqrt(by_shots + lines.excess**2), positions, None))
        return tuple(found)

    @cached_property
    def expected_errors(self) -> Errors:
        """Expected errors of margin and probability of every record, from overlaps drawn within theirs."""
        return self.errors_of(self.exact, self.expected_estimates)

    @property
    def undecided(self) -> Flags:
        """Records whose margin is expected not to be settled within two errors."""
        return self.expected_errors.undecided(self.exact)

    def run(
        self,
        store: CountStore | None = None,
        *,
        on_job: Callable[[int, int], None] | None = None,
        attempts: int = 3,
    ) -> MeasurementResult:
        """Run the jobs that have not finished yet, and read out the result.

        Parameters
        ----------
        store : CountStore or None
            Where counts are kept and found; None keeps them in memory alone.
        on_job : callable or None
            Called as ``on_job(done, total)`` after each job.
        attempts : int
            How often a job that fails is tried.
        """
        from qmedoid.measurement.running import run_jobs

        return self.read_out(run_jobs(self.jobs, self.device, store, on_job=on_job, attempts=attempts))

    def read_out(self, counts: Sequence[Sequence[Counts]]) -> MeasurementResult:
        """The result from the counts of all jobs."""
        return read_out(self, counts)

    def decided_by(self, values: Array) -> Decided:
        """Decisions about all records from the values of all tests."""
        padded = np.append(values, 0.5)  # test −1 is the last
        return _joined(
            (block.rows, self.decide(Answers(block.calls, _overlaps(block.asked, padded)), block.rows))
            for block in self.blocks
        )

    def errors_of(self, decided: Decided, estimates: Sequence[Estimates]) -> Errors:
        """Errors of decisions from those of overlaps."""
        rng = np.random.default_rng([self.settings.seed, 0, 2])  # no stream of a job

        def again() -> Decided:
            return self.decided_by(joined([one.draw(rng) for one in estimates]))

        return decided_errors(decided, again, self.settings.draws)

    @cached_property
    def test_shots(self) -> tuple[Codes, ...]:
        """Shots of every test, shape by shape."""
        return _shots_of(self.blocks, self.tests)

    @cached_property
    def _positions(self) -> tuple[Codes, ...]:
        """The copy of the circuit that runs each test, shape by shape."""
        found = tuple(np.zeros(len(one), dtype=np.intp) for one in self.tests)
        for job in self.jobs:
            for part in job.parts:
                circuit, copy = np.nonzero(part.tests >= 0)
                found[part.shape][part.tests[circuit, copy]] = copy
        return found

    def columns(self) -> dict[str, Array]:
        """A column for every fact about the records: expected decision, margin and their errors."""
        return decided_columns(self.exact, self.expected_errors, self.classes)

    def summary(self) -> dict[str, Any]:
        """The plan in plain values, without the expected errors."""
        return {
            "records": self.n_records,
            "circuit": self.settings.form.name,
            "register": self.settings.register,
            "shots": self.settings.shots,
            "calibrate": self.settings.calibrate,
            "tests_asked": self.n_asked,
            "tests": self.n_tests,
            "circuits": self.n_circuits,
            "circuits_per_record": self.n_circuits / max(1, self.n_records),
            "calibration_circuits": self.n_calibration_circuits,
            "jobs": len(self.jobs),
            "total_shots": self.n_shots,
            "device_seconds": self.seconds,
            "shapes": [
                {
                    "columns": tests.n_features,
                    "tests": len(tests),
                    "side_by_side": pack.n_copies,
                    "qubits": pack.n_copies * self.settings.form.template(tests.n_features).num_qubits,
                    "two_qubit_gates": pack.two_qubit_gates / pack.n_copies,
                    "depth": pack.depth,
                }
                for tests, pack in zip(self.tests, self.packs, strict=True)
            ],
            "device": self.device.describe(),
        }


def make_plan(
    decide: Decide,
    n_records: int,
    device: Device,
    settings: MeasurementSettings,
    *,
    calibration: Sequence[Lines | None] | None = None,
    classes: Sequence[Any] = (),
) -> MeasurementPlan:
    """Plan the measurement of records; no circuit runs.

    Parameters
    ----------
    decide : callable (swap_test, rows) -> Decided
    n_records : int
    device : Device
    settings : MeasurementSettings
    calibration : sequence of Lines or None
        What noise does by an earlier run of the same shapes (`MeasurementResult.lines`); shots and expected errors
        take it into account.
    classes : sequence
        Names of the classes.
    """
    if n_records < 1:
        raise DataError("There are no records to measure: pass at least one row.")
    everybody = np.arange(n_records)
    if settings.shots == "auto":
        plan = _plan_by_margins(decide, everybody, device, settings, calibration)
    else:
        plan = _plan(decide, [(everybody, int(settings.shots))], device, settings, calibration)
    return replace(plan, classes=tuple(classes))


def _plan_by_margins(
    decide: Decide,
    everybody: Codes,
    device: Device,
    settings: MeasurementSettings,
    calibration: Sequence[Lines | None] | None,
) -> MeasurementPlan:
    """More shots for records that these settle; all circuits together have no more than with the budget for each."""
    trial = replace(settings, shots=_TRIAL_SHOTS)
    first = _plan(decide, [(everybody, _TRIAL_SHOTS)], device, trial, calibration)
    distances = first.expected_errors.settled_by(first.exact)
    budget, mean = settings.budget * first.n_circuits, float(settings.budget)
    for _ in range(_TRIALS):
        chosen = shots_for(distances, _TRIAL_SHOTS, mean)
        groups = [(np.flatnonzero(chosen == n), int(n)) for n in np.unique(chosen)]
        plan = _plan(decide, groups, device, settings, calibration)
        if plan.n_test_shots <= budget:
            return plan
        # Records share tests, which run with the most shots that one of them asks for.
        mean *= 0.95 * budget / plan.n_test_shots
    return _plan(decide, [(everybody, int(settings.budget))], device, settings, calibration)


def _plan(
    decide: Decide,
    groups: Sequence[tuple[Codes, int]],
    device: Device,
    settings: MeasurementSettings,
    calibration: Sequence[Lines | None] | None,
) -> MeasurementPlan:
    recorders = [Recorder() for _ in groups]
    exact = _joined((rows, decide(one, rows)) for (rows, _), one in zip(groups, recorders, strict=True))
    calls = [call for recorder in recorders for call in recorder.calls]
    tests, asked = tests_of(calls, settings.form, settings.register)
    blocks, start = [], 0
    for (rows, shots), recorder in zip(groups, recorders, strict=True):
        stop = start + len(recorder.calls)
        blocks.append(Block(rows, shots, tuple(calls[start:stop]), tuple(asked[start:stop])))
        start = stop
    shots_of = _shots_of(blocks, tests)
    jobs, packs = make_jobs(tests, shots_of, settings.form, device, settings.packing)
    lines = tuple(calibration) if calibration is not None else (None,) * len(tests)
    sizes = [None if one is None else len(one.slopes) for one in lines]
    if len(lines) != len(tests) or any(n not in (None, pack.n_copies) for n, pack in zip(sizes, packs, strict=True)):
        raise ParameterError(
            f"The calibration is of {len(lines)} shapes of circuits side by side {sizes} times, and these records need "
            f"{[pack.n_copies for pack in packs]}: take that of a run with the same model, circuit and register."
        )
    return MeasurementPlan(device, settings, decide, tuple(blocks), tests, tuple(packs), tuple(jobs), exact, lines)


def _shots_of(blocks: Sequence[Block], tests: Sequence[Tests]) -> tuple[Codes, ...]:
    """Shots of every test, shape by shape: the most that a record asks for which needs it."""
    shots = np.zeros(sum(map(len, tests)), dtype=np.int64)
    for block in blocks:
        for one in block.asked:
            used = one.test[one.test >= 0]
            shots[used] = np.maximum(shots[used], block.shots)
    ends = np.cumsum([len(one) for one in tests], dtype=np.intp)
    return tuple(np.split(shots, ends)[:-1])


def _known_pairs(parts: Sequence[PackedBatch], form: CircuitForm) -> tuple[Readings, Array]:
    """Shots and positions of known pairs, which are not read yet, and their overlaps."""
    exact, shots, positions = [], [], []
    for part in parts:
        used = np.isfinite(part.known)
        exact.append(part.known[used])
        shots.append(np.full(len(exact[-1]), float(part.batch.shots)))
        positions.append(np.nonzero(used)[1])
    overlaps = np.concatenate(exact)
    return Readings(overlaps, np.concatenate(shots), np.concatenate(positions), form.slope, form.at_zero), overlaps


def _overlaps(asked: Sequence[Asked], values: Array) -> Callable[[int], Array]:
    return lambda place: asked[place].overlap(values)


def _joined(parts: Iterable[tuple[Codes, Decided]]) -> Decided:
    """Decisions about parts of the records, put back in order."""
    listed = list(parts)
    order = np.argsort(np.concatenate([rows for rows, _ in listed]), kind="stable")
    codes, scores, margins = (np.concatenate([decided[field] for _, decided in listed])[order] for field in range(3))
    shares = [decided.probabilities for _, decided in listed if decided.probabilities is not None]
    return Decided(codes, scores, margins, np.concatenate(shares)[order] if shares else None)
