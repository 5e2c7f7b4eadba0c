"""A trained circuit on a device: the second stage of a measurement, for those records that the circuit decides.

Its inputs come from measured distances, so that it runs after them. Which records it decides is chosen by the closed
form, as is everything that is asked: so a plan knows circuits, jobs and shots of this stage before any distance is
measured. Copies run side by side, all qubits of each are read, and known inputs in every job say what noise does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import Counts, state_counts
from qmedoid.quantum.documents import TrainedPlanDict
from qmedoid.quantum.measurement.calibration import (
    Estimates,
    Lines,
    expected_estimates,
    guessed_lines,
)
from qmedoid.quantum.measurement.jobs import (
    Job,
    Known,
    MeasurementSettings,
    check_counts,
    in_turn,
    known_of,
    make_jobs,
    positions_of,
    read_tests,
    tested_angles,
)
from qmedoid.quantum.measurement.recorder import Decide, Decided

# Inputs that known ones are taken from where they are not those of records, and how many at each end of an observable.
_POOL, _ENDS = 512, 16

Values = Callable[[Array], Array]
"""Expectation values, shape (n, K), of the circuit's records from their inputs, shape (n, m)."""


@dataclass(frozen=True, eq=False)
class TrainedCircuit:
    """A trained circuit, and the records that it decides."""

    ansatz: Ansatz
    rotations: Array
    observables: Array  # eigenvalues at the basis states, of two different values each, (K, 2**n)
    names: tuple[str, ...]  # of the observables
    rows: Codes  # numbers of the records, ascending, (n,)

    def __post_init__(self) -> None:
        ends = np.stack([self.least, self.least + self.span], axis=1)
        if np.any(self.span == 0) or not np.all((self.observables[..., None] == ends[:, None]).any(axis=-1)):
            raise ModelError(
                "The trained circuit has an observable of one or of more than two eigenvalues, whose shots are not "
                "counted here: simulate it with refine='simulated'."
            )

    @cached_property
    def least(self) -> Array:
        """Smaller eigenvalue of each observable, shape (K,)."""
        return np.asarray(self.observables.min(axis=1))

    @cached_property
    def span(self) -> Array:
        """Difference of its two eigenvalues, shape (K,)."""
        return np.asarray(self.observables.max(axis=1) - self.observables.min(axis=1))

    @cached_property
    def masks(self) -> Flags:
        """Basis states with the larger eigenvalue of each observable, shape (K, 2**n)."""
        return self.observables > self.least[:, None]

    def probabilities(self, inputs: Array) -> Array:
        """Exact probabilities of the basis states, shape (n, 2**n)."""
        states = statevector.states(self.ansatz.qubit_angles(inputs), self.rotations, reupload=self.ansatz.reupload)
        probabilities: Array = states.real**2 + states.imag**2
        return probabilities

    def exact(self, inputs: Array) -> Array:
        """Exact expectation values, shape (n, K)."""
        return self.least + self.span * (self.probabilities(inputs) @ self.masks.T)

    def backend(self, values: Values) -> ExpectationFunction:
        """A backend that gives these values to the circuit's records."""
        return Replay(len(self.rows), values)

    def inputs_of(self, decide: Decide, swap_test: SwapTestFunction) -> tuple[Decided, Array]:
        """Decisions with the circuit simulated exactly, and the inputs that it got, shape (n, m)."""
        noted = list[Array]()

        def exact(inputs: Array) -> Array:
            noted.append(inputs)
            return self.exact(inputs)

        return decide(swap_test, self.backend(exact)), noted[0]


class Replay:
    """A backend that answers with given values for a number of records."""

    bounded = False  # calibrated values may lie beyond the eigenvalues

    def __init__(self, n_records: int, values: Values) -> None:
        self.n_records, self.values = n_records, values

    def __call__(self, _: Ansatz, __: Array, inputs: Array, ___: Array, /) -> Array:
        """Values by the inputs of the records."""
        if len(inputs) != self.n_records:
            raise ModelError(
                "The model gives other records to its circuit than were planned: the records or the model changed "
                "after the plan was made. Make a new plan."
            )
        return self.values(inputs)


@dataclass(frozen=True, eq=False)
class TrainedReading:
    """Expectation values of a trained circuit with their errors, as they were read or are expected."""

    circuit: TrainedCircuit
    inputs: Array  # angles that the circuit ran with, (n, m)
    estimates: tuple[Estimates, ...]  # of each observable, K
    roots: Array  # of the correlations of their errors, (n, K, K)

    @cached_property
    def values(self) -> Array:
        """Expectation values, shape (n, K)."""
        return np.stack([one.overlaps for one in self.estimates], axis=1)

    @cached_property
    def raw(self) -> Array:
        """The same without calibration."""
        return np.stack([one.raw for one in self.estimates], axis=1)

    @cached_property
    def errors(self) -> Array:
        """Stated standard errors of the expectation values, shape (n, K)."""
        return np.stack([one.errors for one in self.estimates], axis=1)

    @cached_property
    def exact(self) -> Array:
        """Expectation values by exact simulation with the same inputs, shape (n, K)."""
        return self.circuit.exact(self.inputs)

    def drawn(self, rng: np.random.Generator) -> Values:
        """Values as another run might read them if these were true, with inputs that may differ."""
        normal = np.einsum("nij,nj->ni", self.roots, rng.standard_normal(self.roots.shape[:2]))
        values = np.stack([replace(one, own=np.zeros_like(one.own)).draw(rng) for one in self.estimates], axis=1)
        values += np.stack([one.own for one in self.estimates], axis=1) * normal
        off = values - self.exact
        return lambda inputs: self.circuit.exact(inputs) + off


def common_roots(probabilities: Array, masks: Flags, estimates: Sequence[Estimates]) -> Array:
    """Roots of the correlations between the errors of K observables that are read from the same shots, shape (n, K, K).

    Errors by shots are correlated as the outcomes are, by the probabilities of the basis states, (n, 2**q), and by the
    states with the larger eigenvalue of each observable, (K, 2**q). What scatters beyond them is taken as independent.
    With R·Rᵀ the correlations, R times independent normal numbers has them.
    """
    # The sign of a slope stays: what is divided by it turns over.
    own = np.stack(
        [one.own * (1.0 if one.lines is None else one.lines.slopes[one.positions]) for one in estimates], axis=1
    )
    by_shots = np.sqrt(np.stack([one.by_shots for one in estimates], axis=1))
    part = np.clip(np.divide(by_shots, own, out=np.zeros_like(own), where=own != 0), -1.0, 1.0)
    means = probabilities @ masks.T
    both = (masks[:, None] & masks[None]).reshape(-1, masks.shape[1])
    covariances = (probabilities @ both.T).reshape(-1, len(masks), len(masks)) - means[:, :, None] * means[:, None]
    part = part / np.sqrt(np.clip(np.einsum("nkk->nk", covariances), 1e-300, None))
    correlations = covariances * part[:, :, None] * part[:, None]
    np.einsum("nkk->nk", correlations)[...] = 1.0
    sizes, vectors = np.linalg.eigh(correlations)
    roots: Array = vectors * np.sqrt(np.clip(sizes, 0.0, None))[:, None]
    return roots


@dataclass(frozen=True, eq=False)
class TrainedStage:
    """The circuits of a trained circuit that a plan runs."""

    circuit: TrainedCircuit
    pack: Pack
    inputs: Array  # in closed form, (n, m)
    shots: int  # of each circuit
    jobs: tuple[Job, ...]  # with the inputs of the closed form; those that run have the measured ones

    def jobs_at(self, inputs: Array) -> tuple[Job, ...]:
        """The jobs with other inputs of the records, shape (n, m); known inputs stay."""
        return tuple(
            replace(
                job,
                batches=tuple(
                    replace(one, angles=tested_angles(one.tests, inputs)) if one.known is None else one
                    for one in job.batches
                ),
            )
            for job in self.jobs
        )

    def read(self, counts: Sequence[Sequence[Counts]], inputs: Array) -> TrainedReading:
        """Expectation values from the counts of all jobs, which ran with these inputs."""
        check_counts(self.jobs, counts)
        circuit, masks = self.circuit, self.circuit.masks
        found = [
            (job.number, batch, state_counts(one, batch.shots))
            for job, of_job in zip(self.jobs, counts, strict=True)
            for batch, one in zip(job.batches, of_job, strict=True)
        ]
        states = np.zeros((len(inputs), masks.shape[1]))
        for _, batch, of_states in found:
            states[batch.tests[batch.tests >= 0]] = of_states[batch.tests >= 0]
        estimates = []
        each = zip(masks, circuit.span, circuit.least, self.guessed, strict=True)
        for number, (mask, span, least, guess) in enumerate(each):
            parts = [
                (job, batch, of_states @ mask.astype(np.int64), None if batch.known is None else batch.known[:, number])
                for job, batch, of_states in found
            ]
            ends = float(span), float(least)
            estimates.append(read_tests(parts, len(inputs), self.pack.n_copies, *ends, guess))
        # A part of a count for every state, so that no outcome is taken as impossible.
        probabilities = (states + 1.0 / states.shape[1]) / (states.sum(axis=1, keepdims=True) + 1.0)
        return TrainedReading(circuit, inputs, tuple(estimates), common_roots(probabilities, masks, estimates))

    @cached_property
    def guessed(self) -> tuple[Lines, ...]:
        """What noise does to each observable by the error rates that the device reports."""
        circuit, shrink, n_qubits = self.circuit, self.pack.shrink, self.circuit.ansatz.n_qubits
        found, states = [], np.arange(circuit.masks.shape[1])
        for mask, span, least in zip(circuit.masks, circuit.span, circuit.least, strict=True):
            # As seen on fake devices: half of what noise takes is by gates, half goes with the qubits that are read.
            read = np.mean([np.any(mask != mask[states ^ (1 << qubit)]) for qubit in range(n_qubits)])
            found.append(guessed_lines(shrink ** (0.5 + 0.5 * read), float(least + span * mask.mean()), n_qubits))
        return tuple(found)

    @cached_property
    def expected(self) -> TrainedReading:
        """Values and errors that are to be expected, by shots and by the error rates that the device reports."""
        circuit, shrink = self.circuit, self.pack.shrink
        positions, probabilities = positions_of(len(self.inputs), self.pack), circuit.probabilities(self.inputs)
        exact, estimates = circuit.exact(self.inputs), list[Estimates]()
        for number, (span, least, lines) in enumerate(zip(circuit.span, circuit.least, self.guessed, strict=True)):
            ends = float(span), float(least)
            known = known_of(self.jobs, 0, *ends)
            of_one = None if known is None else (known[0], known[1][:, number])
            shown = exact[:, number], self.shots, positions
            estimates.append(expected_estimates(*shown, ends, lines, of_one))
        left = shrink[positions][:, None]
        mixed = left * probabilities + (1.0 - left) / probabilities.shape[1]
        return TrainedReading(circuit, self.inputs, tuple(estimates), common_roots(mixed, circuit.masks, estimates))

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


def make_stage(
    circuit: TrainedCircuit, inputs: Array, device: Device, settings: MeasurementSettings, *, after: int
) -> TrainedStage:
    """The stage of a circuit for records of these inputs in closed form; its jobs are numbered from `after` on."""
    pack = device.trained_pack(circuit.ansatz, circuit.rotations, 1 if settings.register == "paper" else len(inputs))
    # Inputs at which an observable is especially small or large, shape (K, 2, inputs, m): they tell a slope best.
    rng = np.random.default_rng([settings.seed, 0, 3])  # no stream of a job or of draws
    pool = rng.uniform(-np.pi, np.pi, size=(_POOL, circuit.ansatz.n_inputs))
    order = np.argsort(circuit.exact(pool), axis=0, kind="stable")
    far = pool[np.stack([order[:_ENDS], order[-_ENDS:]]).transpose(2, 0, 1)]

    def known(count: int, rng: np.random.Generator) -> Known:
        """Inputs whose expectation values are known: half as in closed form, half where an observable is at an end."""
        chosen = inputs[rng.integers(len(inputs), size=count * pack.n_copies)]
        at_ends = in_turn(count, pack.n_copies) % 2 == 1
        which = [rng.integers(n, size=np.count_nonzero(at_ends)) for n in far.shape[:3]]
        chosen[at_ends] = far[tuple(which)]
        return chosen, circuit.exact(chosen)

    jobs = make_jobs([(pack, inputs, known)], settings, after=after)
    return TrainedStage(circuit, pack, inputs, settings.shots, jobs)
