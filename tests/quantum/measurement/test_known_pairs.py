"""Known pairs of a job: which ones tell the line of a shape."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from qmedoid.quantum import Device, MeasurementSettings, make_plan
from qmedoid.quantum.measurement.recorder import Decided


def known_of(X, Y, register):
    """Tests of a measurement, and the circuits of its known pairs."""

    def decide(swap_test):
        scores = swap_test(X, Y).overlap
        return Decided(scores.argmax(axis=1), scores, scores.max(axis=1), None)

    settings = MeasurementSettings(register=register, shots=64, circuits_per_job=50, calibration_circuits=16)
    plan = make_plan(decide, Device(n_qubits=12), settings)
    parts = [batch for job in plan.jobs for batch in job.batches if batch.known is not None]
    assert parts
    return plan.tests, parts


def pairs(n_records, n_medoids=8, d=4, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_records, d)), rng.standard_normal((n_medoids, d))


def test_many_tests_of_several_columns_tell_their_own_line():
    tests, parts = known_of(*pairs(10), "group")
    for part in parts:
        angles = part.angles.reshape(-1, tests[0].angles.shape[1])
        assert {row.tobytes() for row in angles} <= {row.tobytes() for row in tests[0].angles}
        assert part.known.std() > 0.05


@pytest.mark.parametrize(("n_records", "register"), [(1, "group"), (10, "column")])
def test_few_tests_and_single_columns_are_helped_by_equal_and_opposite_vectors(n_records, register):
    _, parts = known_of(*pairs(n_records), register)
    overlaps = np.concatenate([part.known.ravel() for part in parts])
    assert np.mean(overlaps == 0.0) == pytest.approx(0.25, abs=0.05)
    assert np.mean(overlaps == 1.0) == pytest.approx(0.25, abs=0.05)


def test_tests_of_one_overlap_are_helped_as_well():
    x, _ = pairs(1)
    _, parts = known_of(np.tile(x, (40, 1)) * np.arange(1.0, 41.0)[:, None], -x, "group")
    assert all(part.known.std() > 0.05 for part in parts)
