"""The plan of a measurement: which circuits records need, what they cost, and how sure their decisions will be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.quantum.circuits.compact_swap import CircuitForm
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import Counts
from qmedoid.quantum.documents import PlanSummaryDict
from qmedoid.quantum.measurement.calibration import Estimates, Lines, Readings, expected_lines, guessed_lines
from qmedoid.quantum.measurement.errors import Errors, decided_errors
from qmedoid.quantum.measurement.packing import Job, PackedBatch
from qmedoid.quantum.measurement.recorder import Answers, Call, Decide, Decided, Recipe, Tests
from qmedoid.quantum.measurement.result import MeasurementResult, decided_columns, joined, read_out, read_overlaps
from qmedoid.quantum.measurement.settings import MeasurementSettings
from qmedoid.quantum.measurement.trained import TrainedCircuit, TrainedReading, Values
from qmedoid.quantum.measurement.trained_stage import TrainedStage


def expected_estimates(plan: "MeasurementPlan") -> tuple[Estimates, ...]:
    """Overlaps and their expected errors, shape by shape."""
    form, found = plan.settings.form, []
    for shape, (tests, shots, positions, pack, known) in enumerate(
        zip(plan.tests, plan.test_shots, plan.positions, plan.packs, plan.lines, strict=True)
    ):
        lines = known or guessed_lines(
            pack.shrink, float(form.overlap(0.5)), form.template(tests.n_features).num_qubits
        )
        expected = lines.intercepts[positions] + lines.slopes[positions] * tests.overlaps
        if plan.settings.calibrate:
            pairs = [part for job in plan.jobs for part in job.parts if part.shape == shape]
            lines = expected_lines(lines, *_known_pairs(pairs, form))
        # An outcome that never comes has no shot noise: equal values read 0 without noise, whatever the shots.
        share = np.clip(form.chance(expected), 0.0, 1.0)
        by_shots = form.slope**2 * share * (1.0 - share) / shots
        if lines.used and plan.settings.calibrate:
            own = np.sqrt(by_shots + lines.own_scatter(tests.directions)) / np.abs(lines.slopes[positions])
            found.append(Estimates(tests.overlaps, own, positions, lines, tests.directions))
        else:
            found.append(Estimates(expected, np.sqrt(by_shots + lines.excess**2), positions, None))
    return tuple(found)


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


class RecordBlock(NamedTuple):
    """Records that are measured with the same number of shots: their numbers, calls and how they are answered."""

    rows: Codes
    shots: int
    calls: tuple[Call, ...]
    asked: tuple[Recipe, ...]


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

    def inputs(self, inputs: Array) -> Array:
        """Inputs of a trained circuit as an earlier process had them, up to rounding, or these, which are kept."""
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
    blocks : tuple of RecordBlock
    tests : tuple of Tests
        Distinct tests, shape by shape.
    packs : tuple of Pack
        The packed circuit of each shape.
    jobs : tuple of Job
        Of the distances.
    exact : Decided
        The decisions in closed form.
    lines : tuple of Lines or None
        What noise does to overlaps by an earlier run, shape by shape; None where nothing is known.
    classes : tuple
        Names of the classes, in the order of their codes.
    notes : tuple of str
        What is worth knowing about the plan, in sentences.
    trained : TrainedStage or None
        The trained circuit that runs after the distances, with jobs of its own; None where there is none.
    """

    device: Device
    settings: MeasurementSettings
    decide: Decide
    blocks: tuple[RecordBlock, ...]
    tests: tuple[Tests, ...]
    packs: tuple[Pack, ...]
    jobs: tuple[Job, ...]
    exact: Decided
    lines: tuple[Lines | None, ...]
    classes: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    trained: TrainedStage | None = None

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
    def all_jobs(self) -> tuple[Job, ...]:
        """Jobs of the distances, and of the trained circuit with the inputs that it has in closed form."""
        return self.jobs if self.trained is None else (*self.jobs, *self.trained.jobs)

    @property
    def layout(self) -> list[tuple[int | None, Pack]]:
        """Packed circuits, with the columns of each; the trained circuit comes last and has None."""
        found: list[tuple[int | None, Pack]] = [
            (tests.n_features, pack) for tests, pack in zip(self.tests, self.packs, strict=True)
        ]
        return found if self.trained is None else [*found, (None, self.trained.pack)]

    @cached_property
    def n_circuits(self) -> int:
        """Circuits of tests and of the trained circuit, without known ones."""
        return sum(job.n_tested for job in self.all_jobs)

    @cached_property
    def n_calibration_circuits(self) -> int:
        """Circuits of known pairs, and of known inputs of the trained circuit."""
        return sum(job.n_circuits for job in self.all_jobs) - self.n_circuits

    @cached_property
    def n_test_shots(self) -> int:
        """Shots of all circuits together, without known ones."""
        return sum(
            len(part.tests) * part.batch.shots for job in self.all_jobs for part in job.parts if (part.tests >= 0).any()
        )

    @cached_property
    def n_shots(self) -> int:
        """Shots of all circuits together, with known ones."""
        return sum(len(part.tests) * part.batch.shots for job in self.all_jobs for part in job.parts)

    @cached_property
    def seconds(self) -> float:
        """About how long the device is busy, without waiting in a queue."""
        return sum(self.device.seconds(batch) for job in self.all_jobs for batch in job.batches)

    @cached_property
    def expected_estimates(self) -> tuple[Estimates, ...]:
        """Overlaps and their expected errors, shape by shape: by shots, and by what noise leaves of overlaps.

        What noise leaves is known from an earlier run, or guessed from the error rates that the device reports.
        """
        return expected_estimates(self)

    @cached_property
    def expected_errors(self) -> Errors:
        """Expected errors of margin and probability of every record, from overlaps drawn within theirs."""
        return self.errors_of(
            self.exact, self.expected_estimates, None if self.trained is None else self.trained.expected
        )

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
        from qmedoid.quantum.measurement.running import run_jobs

        first, total = len(self.jobs), len(self.all_jobs)

        def run_some(jobs: Sequence[Job], before: int) -> list[list[Counts]]:
            told = None if on_job is None else lambda done, _: on_job(before + done, total)
            return run_jobs(jobs, self.device, store, on_job=told, attempts=attempts)

        counts = run_some(self.jobs, 0)
        if self.trained is not None:
            counts += run_some(self.trained_jobs(counts, store), first)
        return self.read_out(counts)

    def trained_jobs(self, counts: Sequence[Sequence[Counts]], store: CountStore | None = None) -> tuple[Job, ...]:
        """Jobs of the trained circuit, with inputs by the counts of the jobs of distances."""
        if self.trained is None:
            return ()
        inputs = self.inputs_by(joined([one.estimates.overlaps for one in read_overlaps(self, counts)]))
        return self.trained.jobs_at(inputs if store is None else store.inputs(inputs))

    def read_out(self, counts: Sequence[Sequence[Counts]]) -> MeasurementResult:
        """The result from the counts of all jobs: of those of distances, then of those of the trained circuit."""
        return read_out(self, counts)

    def decided_by(self, values: Array, circuit: Values | None = None) -> Decided:
        """Decisions about all records from the values of all tests, and those that the trained circuit has.

        Without these it is simulated exactly, with the inputs that the tests give it.
        """
        padded, trained = np.append(values, 0.5), None if self.trained is None else self.trained.circuit
        reads = trained.exact if circuit is None and trained is not None else circuit

        def decided(block: RecordBlock) -> Decided:
            answers = Answers(block.calls, _overlaps(block.asked, padded))  # test −1 is the last
            return decided_block(self.decide, trained, answers, block.rows, reads)

        return put_together((block.rows, decided(block)) for block in self.blocks)

    def inputs_by(self, values: Array) -> Array:
        """Inputs of the trained circuit from the values of all tests, shape (n, m)."""
        if self.trained is None:
            return np.zeros((0, 0))
        trained, inputs = self.trained.circuit, np.empty_like(self.trained.inputs)

        def noted(places: Codes, given: Array) -> Array:
            inputs[places] = given
            return trained.exact(places, given)

        self.decided_by(values, noted)
        return inputs

    def errors_of(
        self, decided: Decided, estimates: Sequence[Estimates], trained: TrainedReading | None = None
    ) -> Errors:
        """Errors of decisions from those of overlaps, and of expectation values of the trained circuit."""
        rng = np.random.default_rng([self.settings.seed, 0, 2])  # no stream of a job

        def again() -> Decided:
            values = joined([one.draw(rng) for one in estimates])
            return self.decided_by(values, None if trained is None else trained.drawn(rng))

        return decided_errors(decided, again, self.settings.draws)

    @cached_property
    def test_shots(self) -> tuple[Codes, ...]:
        """Shots of every test, shape by shape."""
        return shots_of(self.blocks, self.tests)

    @cached_property
    def positions(self) -> tuple[Codes, ...]:
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

    def summary(self) -> PlanSummaryDict:
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
            "jobs": len(self.all_jobs),
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
            "trained_circuit": None if self.trained is None else self.trained.summary(),
            "device": self.device.describe(),
        }


def decided_block(
    decide: Decide, trained: TrainedCircuit | None, swap_test: SwapTestFunction, rows: Codes, circuit: Values | None
) -> Decided:
    """Decisions about some records, with a trained circuit that is measured or without."""
    if trained is None or circuit is None:
        return decide(swap_test, rows)
    return trained.decide(swap_test, rows, trained.backend(rows, circuit))


def shots_of(blocks: Sequence[RecordBlock], tests: Sequence[Tests]) -> tuple[Codes, ...]:
    """Shots of every test, shape by shape: the most that a record asks for which needs it."""
    shots = np.zeros(sum(map(len, tests)), dtype=np.int64)
    for block in blocks:
        for one in block.asked:
            used = one.test[one.test >= 0]
            shots[used] = np.maximum(shots[used], block.shots)
    ends = np.cumsum([len(one) for one in tests], dtype=np.intp)
    return tuple(np.split(shots, ends)[:-1])


def _overlaps(asked: Sequence[Recipe], values: Array) -> Callable[[int], Array]:
    return lambda place: asked[place].overlap(values)


def put_together(parts: Iterable[tuple[Codes, Decided]]) -> Decided:
    """Decisions about parts of the records, put back in order."""
    listed = list(parts)
    order = np.argsort(np.concatenate([rows for rows, _ in listed]), kind="stable")
    codes, scores, margins = (np.concatenate([decided[field] for _, decided in listed])[order] for field in range(3))
    shares = [decided.probabilities for _, decided in listed if decided.probabilities is not None]
    return Decided(codes, scores, margins, np.concatenate(shares)[order] if shares else None)
