"""The trained circuit on a device: what it computes, what it costs, how it is calibrated, and what its errors are."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
pytest.importorskip("qiskit_ibm_runtime", reason='needs: pip install "qmedoid[ibm]"')
from qiskit_ibm_runtime import fake_provider
from tests.quantum.counts import chances_of, run
from trained_models import HYBRIDS, alone, hybrid

from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum import Device, StatevectorExpectations
from qmedoid.quantum.measurement.calibration import Readings, estimated, fit_lines
from qmedoid.quantum.measurement.result import joined
from qmedoid.quantum.measurement.trained import TrainedCircuit


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def exact_overlaps(plan):
    return joined([tests.overlaps for tests in plan.tests])


def chances(plan, jobs):
    """Expectation values of all records from the exact chances of packed circuits."""
    circuit = plan.trained.circuit
    found = np.full((len(circuit.rows), len(circuit.masks)), np.nan)
    for job in jobs:
        for part in job.batches:
            states = chances_of(plan.device, part)
            states = np.stack([1.0 - states, states], axis=-1) if states.ndim == 2 else states
            used = part.tests >= 0
            found[part.tests[used]] = circuit.least + circuit.span * (states[used] @ circuit.masks.T)
    return found


@pytest.mark.parametrize("kind", HYBRIDS)
@pytest.mark.parametrize("n_qubits", [2, 3, 7])
def test_packed_circuits_decide_as_the_simulator_does(kind, n_qubits):
    model, rows = hybrid(kind)
    width = model.model.circuit.network.ansatz.n_qubits
    n_qubits = max(n_qubits, width)
    plan = model.measurement_plan(rows, n_qubits=n_qubits, shots=10, calibrate=False)
    picked = model.decide(rows).by_circuit
    assert picked.sum() > 0
    np.testing.assert_array_equal(plan.trained.circuit.rows, np.flatnonzero(picked))
    assert plan.trained.pack.n_copies == min(n_qubits // width, picked.sum())
    values = exact_overlaps(plan)
    inputs = plan.inputs_by(values)
    np.testing.assert_allclose(inputs, plan.trained.inputs, atol=1e-6)
    measured = chances(plan, plan.trained.jobs_at(inputs))
    decided, simulated = plan.decided_by(values, lambda _: measured), plan.decided_by(values)
    np.testing.assert_allclose(decided.scores, simulated.scores, rtol=0, atol=1e-6)  # inputs have nine decimals
    closed = model.decide(rows)
    np.testing.assert_array_equal(decided.codes, closed.codes)
    np.testing.assert_allclose(plan.exact.margins, closed.margins, rtol=0, atol=1e-9)
    np.testing.assert_allclose(decided.margins, closed.margins, atol=1e-5)


@pytest.mark.parametrize(("n_classes", "readout", "n_qubits"), [(2, "strings", 1), (2, "parity", 2), (3, "direct", 2),
                                                                (3, "strings", 3)])  # fmt: skip
def test_a_circuit_alone_is_all_that_runs(n_classes, readout, n_qubits):
    model, rows = alone(n_classes, readout, n_qubits)
    plan = model.measurement_plan(rows, n_qubits=6, shots=4096, seed=1)
    assert plan.tests == plan.jobs == plan.calls == ()
    assert plan.trained.circuit.rows.tolist() == list(range(len(rows)))
    measured, closed = chances(plan, plan.trained.jobs), model.decide(rows)
    decided = plan.decided_by(np.zeros(0), lambda _: measured)
    np.testing.assert_allclose(decided.margins, closed.margins, rtol=0, atol=1e-12)
    result = plan.run()
    assert (result.kept | result.undecided).all()
    assert result.by_circuit.all()
    assert 0.3 < rms(result.margin_errors) / rms(result.errors.margins) < 2.0
    assert len(result.summary()["trained_circuit"]["calibration"]) == len(plan.trained.circuit.names)


def test_saved_circuits_alone_are_measured_by_backends():
    model, rows = alone()
    measured = model.measured_by(expectations=StatevectorExpectations())
    np.testing.assert_allclose(measured.decide(rows).margins, model.decide(rows).margins, rtol=0, atol=1e-12)
    plan = measured.measurement_plan(rows, shots=10)  # as of the model itself
    np.testing.assert_array_equal(plan.trained.inputs, model.measurement_plan(rows, shots=10).trained.inputs)


@pytest.mark.parametrize(
    "settings", [{"calibrate": False}, {"register": "group"}, {"circuits_per_job": 2, "calibration_circuits": 6}]
)
def test_circuits_jobs_and_shots_are_those_of_the_plan(settings):
    model, rows = hybrid("two classes, some records")
    device = Device(n_qubits=5)
    plan = model.measurement_plan(rows, device, **{"shots": 20, "draws": 4} | settings)
    ran, submit, told = Counter(), device.submit, []

    def counted(batches, *, seed=(), key=None):
        ran.update(jobs=1, circuits=sum(len(one.angles) for one in batches))
        ran.update(shots=sum(len(one.angles) * one.shots for one in batches))
        return submit(batches, seed=seed, key=key)

    device.submit = counted
    summary = plan.summary()
    plan.run(on_job=lambda done, total: told.append((done, total)))
    assert ran == {"jobs": summary["jobs"], "circuits": plan.n_circuits + plan.n_calibration_circuits,
                   "shots": summary["total_shots"]}  # fmt: skip
    assert told == [(done + 1, summary["jobs"]) for done in range(summary["jobs"])]
    own = summary["trained_circuit"]
    assert own["jobs"] == len(plan.trained.jobs) > 0
    assert own["records"] == model.decide(rows).by_circuit.sum()
    assert own["circuits"] == -(-own["records"] // own["side_by_side"])
    assert [job.number for job in plan.all_jobs] == list(range(summary["jobs"]))
    assert all(job.n_tested <= plan.settings.circuits_per_job for job in plan.all_jobs)
    if settings.get("calibrate", True):
        assert all((job.batches[-1].tests < 0).all() for job in plan.trained.jobs)  # known inputs in every job


def test_a_circuit_that_decides_no_record_takes_nothing():
    model, rows = hybrid("two classes, some records")
    clear = rows[~model.decide(rows).by_circuit]
    plan = model.measurement_plan(clear, shots=50)
    assert plan.trained is None
    assert plan.notes == ()
    assert plan.summary()["trained_circuit"] is None
    # And no noise sends one there.
    assert not np.isin("by_circuit", list(plan.run().columns()))


def test_the_circuit_can_stay_simulated():
    model, rows = hybrid("two classes, some records")
    plan = model.measurement_plan(rows, shots=50, refine="simulated")
    assert plan.trained is None
    assert "simulated exactly" in plan.notes[0]
    assert not any("simulated" in note for note in model.measurement_plan(rows, shots=50).run().notes)


@pytest.fixture(scope="module")
def measured_under_noise():
    """Results of some runs of a circuit alone on a noisy device."""
    (model, rows), manila = alone(n_qubits=2), fake_provider.FakeManilaV2()
    packs, found = {}, []
    for seed in range(10):
        own = Device(manila, n_qubits=4, seed=seed)
        own.packs = packs
        found.append(model.measurement_plan(rows, own, shots=2000, seed=seed, draws=24).run())
    return found


def test_calibrated_values_have_honest_errors_under_noise(measured_under_noise):
    results = measured_under_noise
    scores = [(one.trained.values - one.trained.exact) / one.trained.errors for one in results]
    assert 0.9 < rms(scores) < 1.15
    assert rms([one.margin_errors for one in results]) == pytest.approx(
        rms([one.errors.margins for one in results]), rel=0.2
    )
    expected = results[0].plan.expected_errors.margins
    assert rms(expected) == pytest.approx(rms([one.errors.margins for one in results]), rel=0.3)


def test_calibration_undoes_noise_and_says_so(measured_under_noise):
    result = measured_under_noise[0]
    plain = result.without_calibration()
    raw, calibrated = (rms(one.trained.values - one.trained.exact) for one in (plain, result))
    assert calibrated < 0.6 * raw
    np.testing.assert_array_equal(plain.trained.values, result.trained.raw)
    found = result.summary()["trained_circuit"]
    assert found["value_rms_error"] == pytest.approx(calibrated)
    assert found["value_rms_error_raw"] == pytest.approx(raw)
    assert [one["observable"] for one in found["calibration"]] == ["IZ", "ZI", "ZZ"]
    assert all(one["used"] and 0.5 < one["slope"] < 1.0 for one in found["calibration"])
    assert any("stated errors count it" in note for note in plain.notes)


def test_values_of_a_record_are_drawn_with_the_correlations_of_their_shots():
    model, rows = alone(n_qubits=2)
    plan = model.measurement_plan(rows[:4], n_qubits=8, shots=400, calibrate=False)
    expected = plan.trained.expected
    rng = np.random.default_rng(0)
    drawn = np.array([expected.drawn(rng)(expected.inputs) for _ in range(4000)])
    p = plan.trained.circuit.probabilities(expected.inputs)
    observables = plan.trained.circuit.observables
    for record in range(4):
        by_shots = (observables * p[record]) @ observables.T - np.outer(*[observables @ p[record]] * 2)
        np.testing.assert_allclose(np.cov(drawn[:, record].T), by_shots / 400, atol=0.0003)
    repeated = [model.measurement_plan(rows[:4], n_qubits=8, shots=400, calibrate=False, seed=seed, draws=1).run()
                for seed in range(60)]  # fmt: skip
    scores = [(one.trained.values - one.trained.exact) / one.trained.errors for one in repeated]
    assert 0.9 < rms(scores) < 1.1


def test_errors_of_distances_reach_the_margin_through_the_circuit():
    """A circuit that is read with very many shots leaves the errors that its inputs have."""
    model, rows = hybrid("two classes, some records")
    plan = model.measurement_plan(rows, n_qubits=20, shots=300, calibrate=False, draws=32)
    sharp = replace(plan.trained, shots=plan.trained.shots * 10**9)
    alone_ = replace(plan, trained=sharp).expected_errors.margins[plan.trained.circuit.rows]
    both = plan.expected_errors.margins[plan.trained.circuit.rows]
    assert 0.1 * rms(both) < rms(alone_) < rms(both)


def test_the_circuit_runs_with_the_inputs_of_measured_distances():
    model, rows = hybrid("two classes, some records")
    plan = model.measurement_plan(rows, n_qubits=20, shots=60, calibrate=False, draws=1)
    result = plan.run()
    values = joined([one.overlaps for one in result.estimates])
    np.testing.assert_array_equal(result.trained.inputs, plan.inputs_by(values))
    assert np.abs(result.trained.inputs - plan.trained.inputs).max() > 0.01
    first = [run(plan.device, job.batches, seed=[job.number]) for job in plan.jobs]
    for job in plan.trained_jobs(first):
        for part in job.batches:
            used = part.tests >= 0
            ran = part.angles.reshape(*part.tests.shape, -1)[used]
            np.testing.assert_array_equal(ran, result.trained.inputs[part.tests[used]])


def test_noise_sends_no_other_records_to_the_circuit():
    """Few shots leave few margins as they are, and the records that the circuit decides are the planned ones."""
    model, rows = hybrid("two classes, some records")
    for seed in range(5):
        result = model.measurement_plan(rows, n_qubits=20, shots=5, calibrate=False, draws=4, seed=seed).run()
        np.testing.assert_array_equal(result.by_circuit, model.decide(rows).by_circuit)


@pytest.mark.parametrize("spread", [0.0, 1e-4])
def test_an_observable_that_hardly_changes_is_shifted_alone(spread):
    rng = np.random.default_rng(3)
    exact = 0.7 + spread * rng.normal(size=200)
    readings = Readings(rng.binomial(1000, 0.62, size=200) / 1000, 1000.0, np.arange(200) % 2, 1.0, 0.0)
    lines = fit_lines(readings, exact, 2)
    assert lines.used
    np.testing.assert_allclose(lines.slopes, 1.0, atol=0.05)
    estimates = estimated(readings, lines)
    assert abs(estimates.overlaps.mean() - 0.7) < 0.005
    assert 1.0 < rms(estimates.errors) / np.sqrt(0.62 * 0.38 / 1000) < 1.25


def test_what_cannot_run_is_refused_with_advice():
    ansatz = Ansatz(n_qubits=2, n_inputs=1, n_reps=1)
    three = np.array([[0.0, 1.0, 2.0, 1.0]])
    for observables in (three, np.ones((1, 4))):
        with pytest.raises(ModelError, match="refine='simulated'"):
            TrainedCircuit(ansatz, np.zeros(ansatz.weight_shape), observables, ("one",), np.arange(2))
    model, rows = alone(n_qubits=3)
    with pytest.raises(ParameterError, match=r"trained circuit takes 3 qubits, and n_qubits=2"):
        model.measurement_plan(rows, n_qubits=2)


def test_counts_of_another_plan_are_refused():
    model, rows = alone(n_qubits=2)
    plan = model.measurement_plan(rows, n_qubits=4, shots=20, calibrate=False)
    counts = [run(plan.device, job.batches, seed=[job.number]) for job in plan.trained_jobs([])]
    assert plan.read_out(counts).trained.values.shape == (len(rows), 3)
    short, doubled = ([[change(one) for one in job] for job in counts]
                      for change in (lambda one: one[..., :2], lambda one: one * 2))  # fmt: skip
    for wrong in ([], short, doubled):
        with pytest.raises(ModelError, match="not those of this plan"):
            plan.read_out(wrong)
    other, table = hybrid("two classes, some records")
    simulated = other.measurement_plan(table, shots=5, refine="simulated", calibrate=False)
    first = [run(simulated.device, job.batches, seed=[job.number]) for job in simulated.jobs]
    with pytest.raises(ModelError, match="not those of this plan"):
        simulated.read_out([*first, *counts])
