"""The second stage of a measurement: the trained circuit of those records that it decides.

Its inputs come from measured distances, so that it runs after them. Which records it decides is chosen by the closed
form, as is everything that is asked: so a plan knows circuits, jobs and shots of this stage before any distance is
measured. Copies run side by side, all qubits of each are read, and known inputs in every job say what noise does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import Counts, state_counts
from qmedoid.quantum.documents import TrainedPlanDict
from qmedoid.quantum.measurement.calibration import Estimates, Readings, guessed_lines
from qmedoid.quantum.measurement.packing import Job, Known, Packing, Shape, make_jobs, tested_angles
from qmedoid.quantum.measurement.running import Collected, check_counts
from qmedoid.quantum.measurement.trained import (
    TrainedCircuit,
    TrainedReading,
    common_roots,
    expected_line_or_shift,
    fit_line_or_shift,
)

# Inputs that known ones are taken from where they are not those of records, and how many at each end of an observable.
_POOL, _ENDS = 512, 16


@dataclass(frozen=True, eq=False)
class TrainedStage:
    """The circuits of a trained circuit that a plan runs.

    Attributes
    ----------
    circuit : TrainedCircuit
    pack : Pack
    inputs : ndarray of shape (n, m)
        In closed form.
    shots : ndarray of shape (n,)
    jobs : tuple of Job
        With the inputs of the closed form; those that run have the measured ones.
    """

    circuit: TrainedCircuit
    pack: Pack
    inputs: Array
    shots: Codes
    jobs: tuple[Job, ...]

    def jobs_at(self, inputs: Array) -> tuple[Job, ...]:
        """The jobs with other inputs of the records, shape (n, m); known inputs stay."""
        return tuple(
            replace(
                job,
                parts=tuple(
                    replace(part, batch=replace(part.batch, angles=tested_angles(part.tests, inputs)))
                    if (part.tests >= 0).any()
                    else part
                    for part in job.parts
                ),
            )
            for job in self.jobs
        )

    def read(self, counts: Sequence[Sequence[Counts]], inputs: Array) -> TrainedReading:
        """Expectation values from the counts of all jobs, which ran with these inputs."""
        check_counts(self.jobs, counts)
        masks = self.circuit.masks
        of_observables = [Collected(len(inputs), self.pack.n_copies) for _ in masks]
        states = np.zeros((len(inputs), masks.shape[1]))
        for job, of_job in zip(self.jobs, counts, strict=True):
            for part, found in zip(job.parts, of_job, strict=True):
                by_state = state_counts(found, part.batch.shots)
                used, ones = part.tests >= 0, by_state @ masks.T.astype(np.int64)
                states[part.tests[used]] = by_state[used]
                for number, collected in enumerate(of_observables):
                    known = part.known if used.any() else part.known[..., number]
                    collected.add(part, known, ones[..., number], job.number)
        reads = tuple(one.read(0.0, 1.0, fit_line_or_shift) for one in of_observables)
        estimates = tuple(one.estimates for one in reads)
        # A part of a count for every state, so that no outcome is taken as impossible.
        probabilities = (states + 1.0 / states.shape[1]) / (states.sum(axis=1, keepdims=True) + 1.0)
        by_shots = np.stack([one.by_shots for one in reads], axis=1)
        roots = common_roots(probabilities, masks, estimates, by_shots)
        return TrainedReading(self.circuit, inputs, estimates, roots, reads)

    @cached_property
    def expected(self) -> TrainedReading:
        """Values and errors that are to be expected, by shots and by the error rates that the device reports."""
        circuit, pack = self.circuit, self.pack
        positions, probabilities = self._positions, circuit.probabilities(self.inputs)
        left = pack.shrink[positions][:, None]
        mixed = left * probabilities + (1.0 - left) / probabilities.shape[1]
        shares, known, estimates = probabilities @ circuit.masks.T, self._known, list[Estimates]()
        by_shots = np.empty_like(shares)
        for number, (mask, read) in enumerate(zip(circuit.masks, circuit.qubits_read, strict=True)):
            # As seen on fake devices: half of what noise takes is by gates, half goes with the qubits that are read.
            guess = guessed_lines(pack.shrink ** (0.5 + 0.5 * read), float(mask.mean()), circuit.ansatz.n_qubits)
            exact = shares[:, number]
            raw = np.clip(guess.intercepts[positions] + guess.slopes[positions] * exact, 0.0, 1.0)
            by_shots[:, number] = raw * (1.0 - raw) / self.shots
            lines = guess if known is None else expected_line_or_shift(guess, known[0], known[1][:, number])
            own = np.sqrt(by_shots[:, number] + lines.excess**2)
            if lines.used and known is not None:
                estimates.append(Estimates(exact, own / np.abs(lines.slopes[positions]), positions, lines))
            else:
                estimates.append(Estimates(raw, own, positions, None))
        made = tuple(estimates)
        return TrainedReading(circuit, self.inputs, made, common_roots(mixed, circuit.masks, made, by_shots))

    def summary(self) -> TrainedPlanDict:
        """What the trained circuit takes, in plain values."""
        n_circuits = sum(job.n_tested for job in self.jobs)
        return {
            "records": len(self.inputs),
            "inputs": self.circuit.ansatz.n_inputs,
            "qubits": self.circuit.ansatz.n_qubits,
            "observables": len(self.circuit.masks),
            "circuits": n_circuits,
            "calibration_circuits": sum(job.n_circuits for job in self.jobs) - n_circuits,
            "jobs": len(self.jobs),
            "side_by_side": self.pack.n_copies,
            "two_qubit_gates": self.pack.two_qubit_gates / self.pack.n_copies,
            "depth": self.pack.depth,
        }

    @cached_property
    def _positions(self) -> Codes:
        """The copy of the circuit that runs each record."""
        found = np.zeros(len(self.inputs), dtype=np.intp)
        for job in self.jobs:
            for part in job.parts:
                circuit, copy = np.nonzero(part.tests >= 0)
                found[part.tests[circuit, copy]] = copy
        return found

    @property
    def _known(self) -> tuple[Readings, Array] | None:
        """Shots and positions of known inputs, which are not read yet, and their exact shares; None for none."""
        parts = [part for job in self.jobs for part in job.parts if (part.tests < 0).all()]
        if not parts:
            return None
        exact = np.concatenate([part.known.reshape(-1, len(self.circuit.masks)) for part in parts])
        shots = np.concatenate([np.full(part.tests.size, float(part.batch.shots)) for part in parts])
        positions = np.concatenate([np.indices(part.tests.shape)[1].ravel() for part in parts])
        return Readings(np.zeros(len(exact)), shots, positions, 1.0, 0.0), exact


def make_stage(
    circuit: TrainedCircuit, inputs: Array, shots: Codes, device: Device, packing: Packing, *, after: int
) -> TrainedStage:
    """The stage of a circuit for records of these inputs in closed form, with jobs numbered after so many others."""
    pack = device.trained_pack(circuit.ansatz, circuit.rotations, 1 if packing.alone else len(inputs))
    known = partial(_known_inputs, circuit, inputs, _far_inputs(circuit, packing.seed), pack.n_copies)
    jobs = make_jobs([Shape(pack, inputs, shots, known)], packing, after=after)
    return TrainedStage(circuit, pack, inputs, shots, tuple(jobs))


def _far_inputs(circuit: TrainedCircuit, seed: int) -> Array:
    """Inputs at which an observable is especially small or large, shape (K, 2, inputs, m): they tell a slope best."""
    rng = np.random.default_rng([seed, 0, 3])  # no stream of a job or of draws
    pool = rng.uniform(-np.pi, np.pi, size=(_POOL, circuit.ansatz.n_inputs))
    order = np.argsort(circuit.shares(pool), axis=0, kind="stable")
    return pool[np.stack([order[:_ENDS], order[-_ENDS:]]).transpose(2, 0, 1)]


def _known_inputs(
    circuit: TrainedCircuit, inputs: Array, far: Array, n_copies: int, count: int, rng: np.random.Generator
) -> Known:
    """Inputs whose expectation values are known: half as in closed form, half where an observable is at an end."""
    size = count * n_copies
    chosen = inputs[rng.integers(len(inputs), size=size)]
    # Every copy has both kinds, in turn.
    at_ends = (np.arange(size) // n_copies + np.arange(size) % n_copies) % 2 == 1
    which = [rng.integers(n, size=np.count_nonzero(at_ends)) for n in far.shape[:3]]
    chosen[at_ends] = far[tuple(which)]
    return Known(chosen, circuit.shares(chosen))
