"""A plan says before what a run does: circuits, jobs and shots to the last one, and errors nearly."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
pytest.importorskip("qiskit_ibm_runtime", reason='needs: pip install "qmedoid[ibm]"')
from qiskit_aer.noise import NoiseModel
from qiskit_aer.primitives import SamplerV2 as AerSampler
from qiskit_ibm_runtime import fake_provider
from tests.quantum.counts import run
from toy_deciders import toy_plan, toy_table

from qmedoid.exceptions import ModelError, ParameterError, QMedoidWarning
from qmedoid.quantum import BlockSampler, as_device
from qmedoid.quantum.circuits.compact_swap import FORMS
from qmedoid.quantum.measurement.recorder import Decided
from qmedoid.quantum.measurement.result import decided_errors


@pytest.fixture(scope="module")
def manila():
    return fake_provider.FakeManilaV2()


@pytest.mark.parametrize("circuit", FORMS)
def test_errors_of_linear_margins_are_those_of_the_formula(circuit):
    """Margins that are linear in overlaps have errors in closed form."""
    X, medoids, _ = table = toy_table(2, n=6)
    plan = toy_plan(table=table, register="group", circuit=circuit, shots=1000, draws=1500)
    chance = plan.settings.form.chance(plan.tests[0].overlaps)
    of_test = plan.settings.form.slope**2 * chance * (1.0 - chance) / 1000
    z = (X**2).sum(axis=1)[:, None] + (medoids**2).sum(axis=1)
    weights = 2.0 * z / 2  # two medoids of each class
    expected = np.sqrt(np.sum(weights**2 * of_test[plan.calls[0][2][..., 0]], axis=1))
    np.testing.assert_allclose(plan.expected_errors.margins, expected, rtol=0.08)
    np.testing.assert_allclose(plan.run().errors.margins, expected, rtol=0.2)


def repeated(backend, table, n, **settings):
    """Changes of margins and stated errors of n runs, and the expected ones."""
    changes, stated, scores = [], [], []
    for seed in range(n):
        plan = toy_plan(backend, table=table, n_qubits=5, device_seed=seed, seed=seed, **settings)
        result = plan.run()
        changes.append(result.decided.margins - plan.exact.margins)
        stated.append(result.errors.margins)
        scores.append(result.overlap_scores)
    return (*(np.sqrt(np.mean(np.square(one))) for one in (changes, stated, scores)), plan)


@pytest.mark.parametrize(
    ("noisy", "n_columns", "settings"),
    [
        *((False, 3, {"circuit": one, "shots": 300, "calibrate": both}) for one in FORMS for both in (False, True)),
        *((True, n_columns, {"shots": 1000, "calibrate": True}) for n_columns in (1, 3)),
    ],
)
def test_stated_and_expected_errors_are_the_actual_ones(manila, noisy, n_columns, settings):
    table = toy_table(0, n=20, n_columns=n_columns)
    actual, stated, scores, plan = repeated(manila if noisy else None, table, 30, **settings)
    assert stated == pytest.approx(actual, rel=0.15)
    assert np.sqrt(np.mean(plan.expected_errors.margins**2)) == pytest.approx(actual, rel=0.15)
    assert 0.9 < scores < 1.15


@pytest.mark.parametrize("settings", [{"calibrate": True}, {"calibrate": False}], ids=["calibrated", "not"])
@pytest.mark.parametrize("noisy", [False, True])
def test_repeats_scatter_as_the_shots_do(manila, noisy, settings):
    plan = toy_plan(manila if noisy else None, table=toy_table(0, n=20), n_qubits=5, shots=500, **settings)
    result = plan.run(repeats=20)
    assert len(result.repeats) == 20
    assert result.repeats[0] is result.decided
    found = result.summary()["repeats"]
    shots = plan.expected_estimates if not noisy else [replace(one, bias=0.0) for one in result.estimates]
    alone_ = plan.errors_of(result.decided if noisy else plan.exact, shots).margins
    assert found["margin_rms_scatter"] == pytest.approx(np.sqrt(np.mean(alone_**2)), rel=0.25)
    assert found["margin_rms_planned"] == pytest.approx(np.sqrt(np.mean(plan.expected_errors.margins**2)))
    np.testing.assert_array_equal(result.columns()["margin_scatter"], result.margin_scatter)
    assert (result.margin_scatter > 0).all()
    alike = np.mean([len({one.codes[row] for one in result.repeats}) == 1 for row in range(20)])
    assert found["decided_alike"] == alike
    once = plan.run()
    assert once.summary()["repeats"] is once.margin_scatter is None
    np.testing.assert_array_equal(once.decided.margins, result.decided.margins)


def test_repeats_with_one_seed_are_refused():
    with pytest.warns(QMedoidWarning, match="fixed seed 5"):
        device = as_device(AerSampler(seed=5), n_qubits=4)
    plan = toy_plan(device, table=toy_table(0, n=20), shots=300)
    with pytest.raises(
        ParameterError, match=r"Repeats read the very same counts: .* Leave the seed of the sampler out"
    ):
        plan.run(repeats=3)
    for wrong in (0, True, 2.0):
        with pytest.raises(ParameterError, match="'repeats' parameter must be an int >= 1"):
            plan.run(repeats=wrong)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_errors_without_calibration_are_whole_and_calibration_is_the_advice(manila, n_columns):
    """Noise shifts and shrinks overlaps: far more than shots do, and nothing undoes it."""
    table = toy_table(0, n=20, n_columns=n_columns)
    actual, stated, scores, plan = repeated(manila, table, 12, shots=4000, calibrate=False)
    assert stated == pytest.approx(actual, rel=0.35)
    assert 0.7 < scores < 1.4
    result = plan.run()
    shots_alone = replace(result.estimates[0], bias=0.0)
    assert np.sqrt(np.mean(plan.errors_of(result.decided, [shots_alone]).margins ** 2)) < 0.7 * actual
    assert result.undecided.sum() >= (plan.errors_of(result.decided, [shots_alone]).undecided(result.decided)).sum()
    (note,) = result.notes
    assert "stated errors count it as these rates have it. Calibrate to undo it" in note
    assert "register" not in note
    again = result.without_calibration()
    np.testing.assert_array_equal(again.errors.margins, result.errors.margins)


def test_advice_is_not_what_is_done_already(manila):
    """Where errors of margins are clearly larger than stated ones."""
    table = toy_table(0, n=10)
    for settings, advice in (
        ({"calibrate": False}, "or calibrate"),
        ({"calibrate": True}, r"or use other qubits"),
        ({"calibrate": True, "register": "group"}, r"or use register='column'"),
    ):
        result = toy_plan(manila, table=table, n_qubits=5, **settings).run()
        small = replace(result, errors=result.errors._replace(margins=result.margin_errors / 5.0))
        assert re.search(rf"Margins are off by 5\.0 times.*{advice}", small.notes[-1])


def test_errors_are_said_to_be_of_shots_alone_where_nothing_is_known_of_noise():
    silent = as_device(BlockSampler(NoiseModel(), seed=0), n_qubits=5)
    plan = toy_plan(silent, table=toy_table(0, n=4), shots=64)
    (note,) = plan.notes
    assert plan.run().notes == (note,)
    assert toy_plan(silent, table=toy_table(0, n=4), shots=64, calibrate=True).notes == ()
    assert "stated errors are those of shots alone, and what noise does is not in them. Calibrate:" in note


def test_calibration_undoes_noise_and_says_where_it_does_not(manila):
    table = toy_table(0, n=10)
    raw = toy_plan(manila, table=table, n_qubits=5).run()
    calibrated = toy_plan(manila, table=table, n_qubits=5, calibrate=True).run()
    assert calibrated.estimates[0].fitted.used
    assert calibrated.notes == ()
    errors = [result.summary()["overlap_rms_error"] for result in (raw, calibrated, calibrated.without_calibration())]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] > 2.0 * errors[1]
    assert raw.estimates[0].fitted is None
    assert any("stated errors count it" in note for note in raw.notes)
    exact = toy_plan(table=table, calibrate=True).run()
    assert not exact.estimates[0].fitted.used
    assert any("without calibration" in note for note in exact.notes)
    np.testing.assert_array_equal(exact.estimates[0].overlaps, exact.estimates[0].raw)
    assert toy_plan(table=table).run().notes == ()


@pytest.mark.parametrize("register", ["column", "group"])
@pytest.mark.parametrize("medoids", [np.ones((2, 2)), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 2.0]] * 2)])
def test_equal_medoids_and_a_single_known_vector_are_calibrated_without_nan(manila, register, medoids):
    X = np.array([[0.3, 0.4], [1.0, 1.0], [-2.0, 0.1]])
    plan = toy_plan(manila, table=(X, medoids, np.array([0, 1])), register=register, calibrate=True, n_qubits=5)
    result = plan.run()
    for values in (
        result.decided.margins,
        result.errors.margins,
        result.estimates[0].fitted.covariances,
        result.estimates[0].errors,
        plan.expected_errors.margins,
    ):
        assert np.isfinite(values).all()


def test_a_third_class_that_is_less_surely_behind_leaves_a_record_undecided():
    rng = np.random.default_rng(0)
    scores = np.array([[0.0, -1.0, -2.0], [0.0, -1.0, -2.0]])

    def decided(values):
        ranked = np.sort(values, axis=1)
        return Decided(values.argmax(axis=1), values, ranked[:, -1] - ranked[:, -2], None)

    def again():
        noise = rng.normal(size=(2, 3)) * [[0.01, 0.01, 1.5], [0.01, 0.01, 0.01]]
        return decided(scores + noise)

    errors = decided_errors(decided(scores), again, 500)
    np.testing.assert_allclose(errors.margins, 0.0141, rtol=0.1)  # of the runner-up
    np.testing.assert_allclose(errors.distances, [2.0 / 1.5, 1.0 / 0.0141], rtol=0.1)
    assert errors.undecided(decided(scores)).tolist() == [True, False]
    assert errors.probabilities is None


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_what_is_no_number_is_undecided(n_classes):
    """A margin or an error of NaN settles nothing; an error of 0 settles everything."""
    scores = np.tile(np.arange(float(n_classes)), (3, 1))

    def decided(change):
        values = scores + change
        margins = values[:, -1] - values[:, -2]
        return Decided(np.full(3, n_classes - 1), values, margins, None)

    nowhere = np.zeros((3, n_classes - 1))
    first, again = (decided(np.column_stack([nowhere, last])) for last in ([0.0, 0.0, np.inf], [0.0, np.nan, np.inf]))
    assert decided_errors(first, lambda: again, 2).undecided(first).tolist() == [False, True, True]


def test_undecided_records_are_those_that_other_runs_decide_otherwise():
    table = toy_table(5, n=60)
    plans = [toy_plan(table=table, shots=100, device_seed=seed, n_qubits=20, draws=64) for seed in range(15)]
    results = [plan.run() for plan in plans]
    flips = np.mean([~result.kept for result in results], axis=0)
    settled = ~plans[0].undecided
    assert flips[settled].max(initial=0.0) < 0.2
    assert flips[~settled].mean() > 5 * flips[settled].mean()
    # A record that a run itself calls settled is seldom wrong: two errors are one in forty.
    wrong = np.mean([(~result.kept & ~result.undecided).sum() for result in results])
    assert wrong <= 60 / 40


def test_margins_that_are_further_off_than_stated_are_told():
    """As by noise that tests of a record have in common, which no error of a single overlap shows."""
    plan = toy_plan(table=toy_table(n=40), shots=1000, draws=64)
    result = plan.run()
    assert result.margin_ratio == pytest.approx(1.0, abs=0.3)
    assert result.notes == ()
    shift = 3.0 * result.errors.margins[:, None] * [1.0, -1.0] / 2.0
    moved = result.decided._replace(scores=result.decided.scores + shift)
    off = replace(result, decided=moved)
    assert off.margin_ratio == pytest.approx(3.0, rel=0.2)
    assert "times their stated errors" in off.notes[0]


def test_counts_of_another_plan_are_refused():
    plan, other = toy_plan(), toy_plan(table=toy_table(n=5))
    counts = [run(plan.device, job.batches, seed=[job.number]) for job in plan.jobs]
    assert plan.read_out(counts).kept.all()
    for plans, wrong in (
        (other, counts),
        (plan, counts[:-1]),
        (plan, [[ones + 4097 for ones in job] for job in counts]),
        (plan, [[ones[:, ::2] for ones in job] for job in counts]),
    ):
        with pytest.raises(ModelError, match="not those of this plan"):
            plans.read_out(wrong)
