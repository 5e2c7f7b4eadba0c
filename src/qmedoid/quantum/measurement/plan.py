"""The plan of a measurement: which circuits records need, what they cost, and how sure their decisions will be.

A model knows nothing of this: it asks a SWAP test for overlaps. What it asks is noted down in closed form, becomes a
list of distinct tests, is packed on the qubits that are there, runs in a few jobs, and is answered from the counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import check_int
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import Counts
from qmedoid.quantum.documents import CircuitPlanDict
from qmedoid.quantum.measurement.calibration import Estimates, Lines, expected_estimates, guessed_lines
from qmedoid.quantum.measurement.jobs import (
    Job,
    MeasurementSettings,
    Part,
    Shape,
    check_counts,
    known_of,
    known_pairs,
    make_jobs,
    not_of_this_plan,
    positions_of,
    read_tests,
    refuse_equal_repeats,
    run_jobs,
)
from qmedoid.quantum.measurement.recorder import Answers, Call, Decide, Decided, Recorder, Tests, tests_of
from qmedoid.quantum.measurement.result import (
    Errors,
    MeasurementResult,
    decided_errors,
    joined,
    root_mean,
)
from qmedoid.quantum.measurement.trained import (
    TrainedCircuit,
    TrainedReading,
    TrainedStage,
    Values,
    make_stage,
)

if TYPE_CHECKING:
    from qmedoid.quantum.runs.files import JobFiles

# Decimals of the inputs of a trained circuit.
_DECIMALS = 9
_SHOTS_ALONE = (
    "Without calibration, and without error rates of the device, stated errors are those of shots alone, and what "
    "noise does is not in them. Calibrate: calibrate=True, --calibrate."
)
# Undecided rows that a summary lists.
_LISTED = 20


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """What a measurement of records will run; nothing has run yet.

    Attributes
    ----------
    device : Device
    settings : MeasurementSettings
    decide : callable
        Decides about records with the distances of a SWAP test.
    shots : int
        Of each circuit.
    calls : tuple of Call
        Calls of the SWAP test, and how they are answered.
    tests : tuple of Tests
        Distinct tests, shape by shape.
    packs : tuple of Pack
        The packed circuit of each shape.
    jobs : tuple of Job
        Of the distances.
    exact : Decided
        The decisions in closed form.
    trained : TrainedStage or None
        The trained circuit that runs after the distances, with jobs of its own; None where there is none.
    classes : tuple
        Names of the classes, in the order of their codes.
    notes : tuple of str
        What is worth knowing about the plan, in sentences.
    """

    device: Device
    settings: MeasurementSettings
    decide: Decide
    shots: int
    calls: tuple[Call, ...]
    tests: tuple[Tests, ...]
    packs: tuple[Pack, ...]
    jobs: tuple[Job, ...]
    exact: Decided
    trained: TrainedStage | None = None
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
        return sum(int(np.count_nonzero(test >= 0)) for _, _, test, _ in self.calls)

    @cached_property
    def all_jobs(self) -> tuple[Job, ...]:
        """Jobs of the distances, and of the trained circuit with the inputs that it has in closed form."""
        return self.jobs if self.trained is None else (*self.jobs, *self.trained.jobs)

    @cached_property
    def n_circuits(self) -> int:
        """Circuits of tests and of the trained circuit, without known ones."""
        return sum(job.n_tested for job in self.all_jobs)

    @cached_property
    def n_calibration_circuits(self) -> int:
        """Circuits of known pairs, and of known inputs of the trained circuit."""
        return sum(job.n_circuits for job in self.all_jobs) - self.n_circuits

    @cached_property
    def guessed(self) -> tuple[Lines, ...]:
        """What noise does to the overlaps of each shape by the error rates that the device reports."""
        form = self.settings.form
        at_noise = float(form.overlap(0.5))
        return tuple(
            guessed_lines(pack.shrink, at_noise, form.template(tests.n_features).num_qubits)
            for tests, pack in zip(self.tests, self.packs, strict=True)
        )

    @cached_property
    def expected_estimates(self) -> tuple[Estimates, ...]:
        """Overlaps and their errors as expected by shots and by the error rates that the device reports."""
        form, found = self.settings.form, []
        ends = form.slope, form.at_zero
        for shape, (tests, pack, lines) in enumerate(zip(self.tests, self.packs, self.guessed, strict=True)):
            known, positions = known_of(self.jobs, shape, *ends), positions_of(len(tests), pack)
            exact = tests.overlaps, self.shots, positions
            found.append(expected_estimates(*exact, ends, lines, known, directions=tests.directions))
        return tuple(found)

    @cached_property
    def expected_errors(self) -> Errors:
        """Expected errors of margin and probability of every record, from overlaps drawn within theirs."""
        trained = None if self.trained is None else self.trained.expected
        return self.errors_of(self.exact, self.expected_estimates, trained)

    @property
    def undecided(self) -> Flags:
        """Records whose margin is expected not to be settled within two errors."""
        return self.expected_errors.undecided(self.exact)

    def run(
        self,
        store: "JobFiles | None" = None,
        *,
        repeats: int = 1,
        on_job: Callable[[int, int], None] | None = None,
    ) -> MeasurementResult:
        """Run the jobs that have not finished yet, and read out the result.

        Parameters
        ----------
        store : JobFiles or None
            Where counts are kept and found; None keeps them in memory alone.
        repeats : int
            How often every job runs, each time with new shots. The result is that of the first time, and knows
            how much decisions scatter; see `MeasurementResult.margin_scatter`.
        on_job : callable or None
            Called as ``on_job(done, total)`` after each job.
        """
        check_int("'repeats' parameter", repeats, 1)
        n_jobs, measured = len(self.all_jobs), list[list[list[Counts]]]()

        def run_some(jobs: Sequence[Job], before: int) -> list[list[Counts]]:
            told = None if on_job is None else lambda done, _: on_job(before + done, repeats * n_jobs)
            first = len(measured) * n_jobs  # other numbers are other shots
            again = [replace(job, number=job.number + first) for job in jobs]
            return run_jobs(again, self.device, store, on_job=told)

        for repeat in range(repeats):
            counts = run_some(self.jobs, repeat * n_jobs)
            counts += run_some(self.trained_jobs(counts), repeat * n_jobs + len(self.jobs))
            measured.append(counts)
        if repeats > 1:
            refuse_equal_repeats(measured, self.shots)
            others = [self.decided_from(*self.read(counts)) for counts in measured[1:]]
        result = self.read_out(measured[0])
        return result if repeats == 1 else replace(result, repeats=(result.decided, *others))

    def dry_run(self) -> float | None:
        """Seconds of the device as its service says, which checks all jobs and runs none; None where it does not say.

        With the inputs that a trained circuit has in closed form.
        """
        found = [self.device.dry_run(job.batches) for job in self.all_jobs]
        return None if None in found else sum(one or 0.0 for one in found)

    def trained_jobs(self, counts: Sequence[Sequence[Counts]]) -> tuple[Job, ...]:
        """Jobs of the trained circuit, with inputs by the counts of the jobs of distances."""
        if self.trained is None:
            return ()
        return self.trained.jobs_at(self.inputs_by(joined([one.overlaps for one in self.read_overlaps(counts)])))

    def read_overlaps(self, counts: Sequence[Sequence[Counts]]) -> tuple[Estimates, ...]:
        """Overlaps and their calibration, shape by shape, from the counts of the jobs of distances."""
        check_counts(self.jobs, counts)
        parts: list[list[Part]] = [[] for _ in self.tests]
        for job, of_job in zip(self.jobs, counts, strict=True):
            for batch, ones in zip(job.batches, of_job, strict=True):
                parts[batch.shape].append((job.number, batch, ones, batch.known))
        form = self.settings.form
        return tuple(
            read_tests(own, len(tests), pack.n_copies, form.slope, form.at_zero, guess, directions=tests.directions)
            for own, tests, pack, guess in zip(parts, self.tests, self.packs, self.guessed, strict=True)
        )

    def read_out(self, counts: Sequence[Sequence[Counts]]) -> MeasurementResult:
        """The result from the counts of all jobs: of those of distances, then of those of the trained circuit."""
        return self.result_of(*self.read(counts))

    def read(self, counts: Sequence[Sequence[Counts]]) -> tuple[tuple[Estimates, ...], TrainedReading | None]:
        """Overlaps, and what the trained circuit read if there is one, from the counts of all jobs."""
        first, second = counts[: len(self.jobs)], counts[len(self.jobs) :]
        estimates = self.read_overlaps(first)
        if self.trained is not None:
            values = joined([one.overlaps for one in estimates])
            return estimates, self.trained.read(second, self.inputs_by(values))
        if second:
            raise not_of_this_plan()
        return estimates, None

    def decided_from(self, estimates: Sequence[Estimates], trained: TrainedReading | None) -> Decided:
        """Decisions by the overlaps, and by what the trained circuit read, if there is one."""
        values = joined([one.overlaps for one in estimates])
        return self.decided_by(values, None if trained is None else lambda _: trained.values)

    def result_of(self, estimates: Sequence[Estimates], trained: TrainedReading | None) -> MeasurementResult:
        """The same with their errors."""
        decided = self.decided_from(estimates, trained)
        return MeasurementResult(self, decided, self.errors_of(decided, estimates, trained), tuple(estimates), trained)

    def decided_by(self, values: Array, circuit: Values | None = None) -> Decided:
        """Decisions about all records from the values of all tests, and those that the trained circuit has.

        Without these it is simulated exactly, with the inputs that the tests give it.
        """
        answers = Answers(self.calls, np.append(values, 0.5))  # test −1 is the last
        if self.trained is None:
            return self.decide(answers)
        trained = self.trained.circuit
        return self.decide(answers, trained.backend(circuit or trained.exact))

    def inputs_by(self, values: Array) -> Array:
        """Inputs of the trained circuit from the values of all tests, shape (n, m).

        A job is found by all bits of its angles, and another processor or version may round the last ones otherwise.
        """
        if self.trained is None:
            return np.zeros((0, 0))
        inputs = self.trained.circuit.inputs_of(self.decide, Answers(self.calls, np.append(values, 0.5)))[1]
        rounded: Array = np.round(inputs, _DECIMALS) + 0.0  # one zero, not two
        return rounded

    def errors_of(
        self, decided: Decided, estimates: Sequence[Estimates], trained: TrainedReading | None = None
    ) -> Errors:
        """Errors of decisions from those of overlaps, and of expectation values of the trained circuit."""
        rng = np.random.default_rng([self.settings.seed, 0, 2])  # no stream of a job

        def again() -> Decided:
            values = joined([one.draw(rng) for one in estimates])
            return self.decided_by(values, None if trained is None else trained.drawn(rng))

        return decided_errors(decided, again, self.settings.draws)

    def summary(self) -> CircuitPlanDict:
        """The plan in plain values, with the errors that are to be expected."""
        undecided, value_error = np.flatnonzero(self.undecided), None
        batches = [batch for job in self.all_jobs for batch in job.batches]
        overlaps = [
            (one.overlaps - tests.overlaps) ** 2 + one.errors**2
            for one, tests in zip(self.expected_estimates, self.tests, strict=True)
        ]
        if self.trained is not None:
            values = self.trained.expected
            value_error = root_mean((values.values - values.exact) ** 2 + values.errors**2)
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
            "jobs": len(self.all_jobs),
            "total_shots": sum(len(batch.angles) * batch.shots for batch in batches),
            "device_seconds": sum(map(self.device.seconds, batches)),
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
            "trained_circuit": None if self.trained is None else self.trained.summary(),
            "device": self.device.describe(),
            "expected": {
                "value_rms_error": value_error,
                "overlap_rms_error": root_mean(joined(overlaps)),
                "margin_rms_error": root_mean(self.expected_errors.margins**2),
                "undecided": len(undecided),
                "undecided_rows": undecided[:_LISTED].tolist(),
            },
        }


def make_plan(
    decide: Decide,
    device: Device,
    settings: MeasurementSettings,
    *,
    classes: Sequence[Any] = (),
    trained: TrainedCircuit | None = None,
) -> MeasurementPlan:
    """Plan the measurement of records; no circuit runs.

    Parameters
    ----------
    decide : callable (swap_test, expectations) -> Decided
        Decides about all records.
    device : Device
    settings : MeasurementSettings
    classes : sequence
        Names of the classes.
    trained : TrainedCircuit or None
        A trained circuit that runs on the device as well, for the records that it decides.
    """
    recorder, inputs, stage = Recorder(), np.zeros((0, 0)), None
    if trained is None:
        exact = decide(recorder)
    else:
        exact, inputs = trained.inputs_of(decide, recorder)
    form = settings.form
    tests, calls = tests_of(recorder.asked, form, settings.register)
    shapes: list[Shape] = []
    for one in tests:
        pack = device.pack(form, one.n_features, 1 if settings.register == "paper" else len(one))
        shapes.append((pack, one.angles, partial(known_pairs, one, pack.n_copies, form)))
    jobs, packs = make_jobs(shapes, settings), tuple(shape[0] for shape in shapes)
    if trained is not None:
        stage = make_stage(trained, inputs, device, settings, after=len(jobs))
    of_plan = device, settings, decide, settings.shots, tuple(calls), tests, packs, jobs, exact, stage
    unknown = not settings.calibrate and device.quality is None and device.place != "exact simulator"
    return MeasurementPlan(*of_plan, tuple(classes), (_SHOTS_ALONE,) if unknown else ())
