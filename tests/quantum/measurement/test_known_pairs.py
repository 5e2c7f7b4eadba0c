"""Known pairs of a job: which ones tell the line of a shape."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from qmedoid.geometry.overlap import pair_overlaps
from qmedoid.quantum.circuits.compact_swap import form_named
from qmedoid.quantum.devices import Device
from qmedoid.quantum.measurement.packing import Packing, make_jobs, shapes_of
from qmedoid.quantum.measurement.recorder import Call
from qmedoid.quantum.measurement.recorder import tests_of as distinct_tests

FORM = form_named("interference")


def known_of(calls, register):
    """Overlaps, angles and directions of the known pairs of a measurement."""
    tests, _ = distinct_tests(calls, FORM, register)
    shots = [np.full(len(one), 64) for one in tests]
    packing = Packing(50, 16, False, 0)
    jobs = make_jobs(shapes_of(tests, shots, FORM, Device(n_qubits=12), packing), packing)
    parts = [part for job in jobs for part in job.parts if np.isfinite(part.known).any()]
    assert parts
    return tests, parts


def call(n_records, n_medoids=8, d=4, seed=1):
    rng = np.random.default_rng(seed)
    return Call(rng.standard_normal((n_records, d)), rng.standard_normal((n_medoids, d)))


def test_many_tests_of_several_columns_tell_their_own_line():
    tests, parts = known_of([call(10)], "group")
    for part in parts:
        angles = part.batch.angles.reshape(-1, tests[0].angles.shape[1])
        assert {row.tobytes() for row in angles} <= {row.tobytes() for row in tests[0].angles}
        assert part.known.std() > 0.05


@pytest.mark.parametrize(("n_records", "register"), [(1, "group"), (10, "column")])
def test_few_tests_and_single_columns_are_helped_by_equal_and_opposite_vectors(n_records, register):
    _, parts = known_of([call(n_records)], register)
    overlaps = np.concatenate([part.known.ravel() for part in parts])
    assert np.mean(overlaps == 0.0) == pytest.approx(0.25, abs=0.05)
    assert np.mean(overlaps == 1.0) == pytest.approx(0.25, abs=0.05)


def test_tests_of_one_overlap_are_helped_as_well():
    equal = call(1, n_medoids=1)
    _, parts = known_of([Call(np.tile(equal.X, (40, 1)) * np.arange(1.0, 41.0)[:, None], -equal.X)], "group")
    assert all(part.known.std() > 0.05 for part in parts)


@pytest.mark.parametrize("n_records", [1, 10])
def test_directions_are_those_of_the_known_overlaps(n_records):
    """Vectors of equal lengths have the overlap (1 − cos) / 2."""
    rng = np.random.default_rng(2)
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in rng.standard_normal((2, n_records, 4))]
    _, parts = known_of([Call(unit[0], np.concatenate([unit[1], unit[0][:1]]))], "group")
    for part in parts:
        found = pair_overlaps(part.directions.left, part.directions.right)
        np.testing.assert_allclose(found, part.known.ravel(), atol=1e-12)
