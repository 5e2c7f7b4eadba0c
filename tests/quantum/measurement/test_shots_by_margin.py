"""Shots where they settle records: the budget, who gets how many, and whether it pays."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from toy_deciders import by_mean_square, toy_plan, toy_table

from qmedoid.quantum import Device, MeasurementSettings, make_plan
from qmedoid.quantum.measurement.errors import LEAST_SHOTS, MOST_SHOTS, shots_for


def shots_of_tests(plan):
    """Shots of all circuits together, without known ones."""
    batches = [batch for job in plan.jobs for batch in job.batches if batch.known is None]
    return sum(len(batch.angles) * batch.shots for batch in batches)


@pytest.mark.parametrize("budget", [1, 3, 200, 256, 300, 1000, 4096, 10**6])
def test_mean_is_within_the_budget_and_no_record_gets_none(budget):
    rng = np.random.default_rng(budget)
    distances = np.concatenate([rng.exponential(3.0, 500), [0.0, np.inf, np.nan, 1e300]])
    shots = shots_for(distances, 1024, budget)
    assert shots.mean() <= budget
    assert min(LEAST_SHOTS, budget) >= shots.min() >= max(1, min(LEAST_SHOTS, budget // 2))
    assert shots.max() <= MOST_SHOTS
    assert np.array_equal(shots, 2 ** np.log2(shots).astype(int))


def test_what_shots_cannot_settle_and_what_needs_none_get_the_fewest():
    distances = np.array([0.0, 0.001, 1.0, 2.0, 3.0, 16.0, 1e6])  # at 1,024 shots
    shots = shots_for(distances, 1024, 10**6)
    assert shots[0] == shots[1] == shots[-1] == LEAST_SHOTS
    assert (np.diff(shots[2:]) <= 0).all()
    assert shots[2] > 4096  # one error becomes four at 16 times the shots
    assert shots[5] == LEAST_SHOTS  # sixteen errors are still eight


def test_a_small_budget_goes_to_those_who_gain_most():
    distances = np.array([2.0] * 4 + [0.2] * 4 + [20.0] * 92)
    shots = shots_for(distances, 1024, 300)
    assert (shots[:4] > LEAST_SHOTS).all()
    assert (shots[4:] == LEAST_SHOTS).all()


@pytest.mark.parametrize("register", ["column", "group"])
@pytest.mark.parametrize("budget", [200, 1024, 3000])
def test_all_circuits_together_keep_the_budget(register, budget):
    table = toy_table(3, n=60)
    flat = toy_plan(table=table, shots=budget, register=register)
    plan = toy_plan(table=table, shots="auto", budget=budget, register=register)
    assert shots_of_tests(plan) <= shots_of_tests(flat) == budget * flat.n_circuits
    assert sorted(row for rows, _, _ in plan.blocks for row in rows) == list(range(60))


def test_tests_that_records_share_run_with_the_most_shots_of_these():
    X, medoids, classes = toy_table(1, n=40, n_columns=2)
    X[:, 0] = np.round(X[:, 0])  # few values, so that records share tests
    plan = toy_plan(table=(X, medoids, classes), shots="auto", budget=2000)
    assert len(plan.blocks) > 2
    most = np.zeros(plan.n_tests, dtype=int)
    for _, shots, calls in plan.blocks:
        for _, _, test, _ in calls:
            for number in test[test >= 0]:
                most[number] = max(most[number], shots)
    ran = np.zeros(plan.n_tests, dtype=int)
    for job in plan.jobs:
        for part in job.batches:
            ran[part.tests[part.tests >= 0]] += part.shots
    np.testing.assert_array_equal(ran, most)


def test_fewer_records_are_undecided_than_with_the_same_shots_for_all():
    by_margin, alike, spent = 0, 0, []
    for seed in range(5):
        table = toy_table(seed, n=100, n_medoids=6)
        plans = [
            make_plan(
                by_mean_square(*table), 100, Device(n_qubits=50, seed=seed),
                MeasurementSettings(shots=shots, budget=1024, calibrate=False, draws=32),
            )
            for shots in ("auto", 1024)
        ]  # fmt: skip
        results = [plan.run() for plan in plans]
        by_margin += results[0].undecided.sum()
        alike += results[1].undecided.sum()
        spent.append(shots_of_tests(plans[0]) / shots_of_tests(plans[1]))
    assert by_margin < 0.6 * alike
    assert max(spent) <= 1.0


def test_calibration_is_counted_in_when_shots_are_chosen():
    """What calibration undoes is no reason for shots."""
    from qiskit_ibm_runtime.fake_provider import FakeManilaV2

    backend, table = FakeManilaV2(), toy_table(4, n=40)
    spent = {
        calibrate: shots_of_tests(toy_plan(backend, table=table, shots="auto", budget=4096, calibrate=calibrate))
        for calibrate in (False, True)
    }
    assert spent[True] < 0.8 * spent[False]
