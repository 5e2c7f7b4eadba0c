"""Tests on the copies of packed circuits, and circuits into jobs, with pairs of known overlap in every job."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.quantum.circuits.compact_swap import CircuitForm
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.devices.sampling import CircuitBatch
from qmedoid.quantum.measurement.recorder import Tests
from qmedoid.quantum.measurement.scatter import Directions, directions_of

# Calibration circuits that a job has for each shape at least.
_LEAST_KNOWN = 4
# Tests of several columns, and the deviation of their overlaps, from which on they tell a line by themselves.
_ENOUGH, _SPREAD = 32, 0.05


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Circuits of one shape in a job, and what each of their copies tests.

    Attributes
    ----------
    shape : int
        Place of the shape among those of the plan.
    batch : CircuitBatch
    tests : ndarray of shape (circuits, copies)
        Number of the test among those of its shape; −1 where a copy is not used, or tests a known pair.
    known : ndarray of shape (circuits, copies), or (circuits, copies, K)
        Exact overlap of a known pair, or what K observables are in a known state; NaN elsewhere.
    directions : Directions or None
        The vectors of all known pairs, circuit by circuit; None where there are none, or vectors of one column.
    """

    shape: int
    batch: CircuitBatch
    tests: Codes
    known: Array
    directions: Directions | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """Circuits that are sent at once.

    Attributes
    ----------
    number : int
        Place in the run.
    parts : tuple of PackedBatch
    """

    number: int
    parts: tuple[PackedBatch, ...]

    @property
    def batches(self) -> list[CircuitBatch]:
        """The circuits, as a device takes them."""
        return [part.batch for part in self.parts]

    @property
    def n_circuits(self) -> int:
        """Circuits with those of known pairs."""
        return sum(len(part.tests) for part in self.parts)

    @property
    def n_tested(self) -> int:
        """Circuits without those of known pairs."""
        return sum(len(part.tests) for part in self.parts if (part.tests >= 0).any())

    def key(self, device: Device) -> str:
        """What is run, and where, as a hash, the same in every process: circuits, angles, shots, device and place.

        The noise of a simulated device counts. That of a device does not: it has another every day.
        """
        digest = sha256(f"{device.name}\n{device.noise}\n{device.seed}\n{self.number}\n".encode())
        for part in self.parts:
            batch = part.batch
            digest.update(f"{batch.pack.sha256} {batch.shots} {batch.angles.shape}\n".encode())
            digest.update(np.ascontiguousarray(batch.angles, dtype="<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Packing:
    """How tests become jobs.

    Attributes
    ----------
    circuits_per_job : int
    n_known : int
        Circuits of known pairs for each shape in the whole run, about; 0 for none. Every job with circuits of the shape
        has at least four.
    alone : bool
        Whether every test has a circuit to itself.
    seed : int
        Of the choice of known pairs.
    """

    circuits_per_job: int
    n_known: int
    alone: bool
    seed: int


class Known(NamedTuple):
    """Known pairs for all copies of some circuits: angles (n, n_angles), what they are known to be, and vectors."""

    angles: Array
    exact: Array
    directions: Directions | None = None


class Shape(NamedTuple):
    """Tests that the same packed circuit runs.

    Attributes
    ----------
    pack : Pack
    angles : ndarray of shape (tests, n_angles)
    shots : ndarray of shape (tests,)
    known : callable (count, rng) -> Known
        Known pairs for all copies of so many circuits.
    """

    pack: Pack
    angles: Array
    shots: Codes
    known: Callable[[int, np.random.Generator], Known]


def shapes_of(
    tests: Sequence[Tests], shots: Sequence[Codes], form: CircuitForm, device: Device, packing: Packing
) -> list[Shape]:
    """Tests of overlaps with the packed circuits that run them."""
    found = []
    for one, of_test in zip(tests, shots, strict=True):
        pack = device.pack(form, one.n_features, 1 if packing.alone else max(1, len(one)))
        found.append(Shape(pack, one.angles, of_test, partial(_known_pairs, one, pack.n_copies, form)))
    return found


def make_jobs(shapes: Sequence[Shape], packing: Packing, *, after: int = 0) -> list[Job]:
    """Jobs that run all tests, each with its number of shots; they are numbered after so many others."""
    rows = list(_circuits(shapes))
    groups = [rows[start : start + packing.circuits_per_job] for start in range(0, len(rows), packing.circuits_per_job)]
    jobs_of = {place: sum(any(row[0] == place for row in group) for group in groups) for place in range(len(shapes))}
    jobs = []
    for number, group in enumerate(groups, start=after):
        rng = np.random.default_rng([packing.seed, number, 1])  # not that of the job's simulated shots
        parts = []
        for place, n_shots in sorted({(shape, n) for shape, n, _ in group}):
            own = np.stack([row[2] for row in group if row[:2] == (place, n_shots)])
            angles = tested_angles(own, shapes[place].angles)
            batch = CircuitBatch(shapes[place].pack, angles, n_shots)
            parts.append(PackedBatch(place, batch, own, np.full(own.shape, np.nan)))
        if packing.n_known:
            for place in sorted({shape for shape, _, _ in group}):
                count = max(_LEAST_KNOWN, -(-packing.n_known // jobs_of[place]))
                most = max(n for shape, n, _ in group if shape == place)
                parts.append(_known(place, shapes[place], count, most, rng))
        jobs.append(Job(number, tuple(parts)))
    return jobs


def _circuits(shapes: Sequence[Shape]) -> Iterator[tuple[int, int, Codes]]:
    """Shape, shots and tests of every circuit; copies that are left over have −1."""
    for place, shape in enumerate(shapes):
        n_copies = shape.pack.n_copies
        for n_shots in np.unique(shape.shots).tolist():
            own = np.flatnonzero(shape.shots == n_shots)
            for start in range(0, len(own), n_copies):
                row = np.full(n_copies, -1, dtype=np.intp)
                row[: len(own) - start] = own[start : start + n_copies]
                yield place, n_shots, row


def tested_angles(numbers: Codes, angles: Array) -> Array:
    """Angles of circuits, copy by copy, from those of the tests that are on them; 0 where a copy is not used."""
    return np.where((numbers >= 0)[..., None], angles[numbers], 0.0).reshape(len(numbers), -1)


def _known(place: int, shape: Shape, count: int, shots: int, rng: np.random.Generator) -> PackedBatch:
    known = shape.known(count, rng)
    numbers = np.full((count, shape.pack.n_copies), -1, dtype=np.intp)
    batch = CircuitBatch(shape.pack, known.angles.reshape(count, -1), shots)
    exact = known.exact.reshape(*numbers.shape, *known.exact.shape[1:])
    return PackedBatch(place, batch, numbers, exact, known.directions)


def _known_pairs(tests: Tests, n_copies: int, form: CircuitForm, count: int, rng: np.random.Generator) -> Known:
    """Known pairs: of tests, and half of medoids with themselves and their opposites where tests tell no line.

    The closed form knows the overlap of every pair. Equal and opposite vectors have the overlaps that tell a line best.
    But noise shrinks those of several columns less than other pairs, so that tests alone tell the better line if there
    are many of them, with different overlaps.
    """
    size = count * n_copies
    of_test = rng.integers(len(tests), size=size)
    angles, overlaps = tests.angles[of_test], tests.overlaps[of_test]
    directions = None if tests.directions is None else tests.directions.part(of_test)
    if directions is None or len(tests) < _ENOUGH or tests.overlaps.std() < _SPREAD:
        # Every copy has all kinds, in turn.
        turn = (np.arange(size) // n_copies + np.arange(size) % n_copies) % 4
        for kind, sign in ((0, 1.0), (2, -1.0)):
            own = turn == kind
            left = tests.known[rng.integers(len(tests.known), size=np.count_nonzero(own))]
            angles[own], overlaps[own] = form.angles(left, sign * left), (1.0 - sign) / 2.0
            toward = directions_of(left, sign * left)
            if directions is not None and toward is not None:
                directions.left[own], directions.right[own] = toward.left, toward.right
    return Known(angles, overlaps, directions)
