"""Which tests calls need, and that exact values of them answer the calls as the closed form does."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from exact_values import exact_values
from toy_deciders import by_mean_square, toy_plan, toy_table

from qmedoid import compact_swap_test
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.quantum import Device, MeasurementSettings, make_plan
from qmedoid.quantum.circuits.compact_swap import FORMS, form_named
from qmedoid.quantum.measurement.recorder import Answers, Decided
from qmedoid.quantum.measurement.recorder import tests_of as distinct_tests

INTERFERENCE = form_named("interference")


def rows_with_zeros(rng, n, d):
    """Rows of all sizes: some zero, some with zero entries, norms from 1e-100 to 1e100."""
    rows = rng.normal(size=(n, d)) * rng.choice([1.0, 1.0, 1e-100, 1e100], size=(n, 1))
    rows[rng.random(rows.shape) < 0.2] = 0.0
    rows[0] = 0.0
    return rows


def answered(calls, form, register):
    """Overlaps of all calls from the exact overlaps of their tests."""
    tests, asked = distinct_tests(calls, form, register)
    values = np.concatenate([np.zeros(0), *(one.overlaps for one in tests), [0.5]])
    answers = Answers(asked, values)
    return [answers(X, Y).overlap for X, Y in calls]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("register", ["column", "group", "paper"])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 64])
def test_answers_are_those_of_the_closed_form(form, register, d):
    rng = np.random.default_rng(d)
    X, Y = rows_with_zeros(rng, 9, d), rows_with_zeros(rng, 7, d)
    Y[1], Y[2] = X[3], -X[4]  # overlaps 0 and 1
    calls = [(X, Y), (X[:1], Y[:1]), (X[2:5], Y[1:2])]
    for call, overlap in zip(calls, answered(calls, form, register), strict=True):
        np.testing.assert_allclose(overlap, compact_swap_test(*call).overlap, rtol=0, atol=1e-12)


def test_calls_of_different_widths_are_answered_by_their_own_tests():
    rng = np.random.default_rng(3)
    calls = [(rng.normal(size=(4, d)), rng.normal(size=(3, d))) for d in (5, 1, 2, 8, 3, 1)]
    tests, _ = distinct_tests(calls, INTERFERENCE, "group")
    assert [one.n_features for one in tests] == [1, 2, 4, 8]
    for register in ("column", "group"):
        for call, overlap in zip(calls, answered(calls, INTERFERENCE, register), strict=True):
            np.testing.assert_allclose(overlap, compact_swap_test(*call).overlap, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("circuit", "register"), [*((form, one) for form in FORMS for one in ("column", "group")), (None, "paper")]
)
def test_circuits_measure_the_overlaps_however_many_are_side_by_side(circuit, register):
    rng = np.random.default_rng(1)
    table = rows_with_zeros(rng, 6, 3), rows_with_zeros(rng, 4, 3), np.array([0, 1, 0, 1])
    plans = [toy_plan(table=table, n_qubits=n, circuit=circuit, register=register) for n in (5, 10, 100)]
    values = [exact_values(plan) for plan in plans]
    exact = np.concatenate([tests.overlaps for tests in plans[0].tests])
    np.testing.assert_allclose(values[0], exact, rtol=0, atol=1e-12)
    sizes = {plan.packs[-1].n_copies for plan in plans}
    assert len(sizes) == (1 if register == "paper" else 3)
    for plan, value in zip(plans, values, strict=True):
        np.testing.assert_array_equal(value, values[0])  # bit for bit
        decided = plan.decided_by(value)
        np.testing.assert_array_equal(decided.margins, plans[0].decided_by(values[0]).margins)
        np.testing.assert_array_equal(decided.codes, plan.exact.codes)


def test_repeats_are_removed_to_the_last_bit_and_no_further():
    x = np.array([[0.3, 0.0], [0.3, -0.0], [0.3 + 1e-14, 0.0], [0.3, 0.0]])
    y = np.array([[0.7, 0.2]])
    for register in ("column", "group"):
        (tests,), (asked,) = distinct_tests([(x, y)], INTERFERENCE, register)
        numbers = asked[2][:, 0, 0]
        assert len(tests) == 2
        assert numbers[0] == numbers[1] == numbers[3] != numbers[2]
    # A column where one entry is zero needs no circuit, whatever the sign of the zero.
    np.testing.assert_array_equal(distinct_tests([(x, y)], INTERFERENCE, "column")[1][0][2][:, 0, 1], -1)


def test_tests_are_numbered_as_they_are_first_asked_for():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(3, 2))
    (tests,), asked = distinct_tests([(X[::-1], Y), (X, Y)], INTERFERENCE, "column")
    np.testing.assert_array_equal(asked[0][2].ravel(), np.arange(36))
    np.testing.assert_array_equal(asked[1][2], asked[0][2][::-1])
    assert len(tests) == 36


def test_the_same_angles_are_the_same_test_whatever_the_scale():
    X, Y = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    for register in ("column", "group"):
        (tests,), _ = distinct_tests([(X, Y), (4.0 * X, 4.0 * Y)], INTERFERENCE, register)
        assert len(tests) == (2 if register == "column" else 1)


def test_calls_that_were_not_planned_are_refused():
    asked = [(np.array([[1.0]]), np.array([[2.0]])), (np.array([[1.0]]), np.array([[3.0]]))]
    tests, calls = distinct_tests(asked, INTERFERENCE, "group")
    answers = Answers(calls, np.append(tests[0].overlaps, 0.5))
    answers(*asked[0])
    for wrong in (asked[0], (asked[1][0], np.array([[3.0 + 1e-15]])), (asked[1][0], np.array([[3.0], [3.0]]))):
        with pytest.raises(ModelError, match="Make a new plan"):
            answers(*wrong)
    assert answers(*asked[1]).overlap == tests[0].overlaps[1]
    with pytest.raises(ModelError, match="Make a new plan"):
        answers(*asked[1])


def test_records_that_change_after_the_plan_are_noticed():
    X, medoids, classes = toy_table()
    plan = make_plan(by_mean_square(X, medoids, classes), Device(n_qubits=7), MeasurementSettings(calibrate=False))
    X[0, 0] += 1e-9
    with pytest.raises(ModelError, match="changed after the plan"):
        plan.run()


def nothing_asked(_):
    return Decided(np.ones(3, dtype=np.intp), np.tile([0.0, 1.0], (3, 1)), np.ones(3), np.full((3, 2), 0.5))


@pytest.mark.parametrize("calibrate", [False, True])
def test_without_a_single_test_nothing_runs_and_the_closed_form_decides(calibrate):
    settings = MeasurementSettings(calibrate=calibrate, shots=64)
    for decide in (
        nothing_asked,
        by_mean_square(np.zeros((3, 2)), np.eye(2), np.array([0, 1])),
        by_mean_square(np.zeros((3, 0)), np.zeros((2, 0)), np.array([0, 1])),
    ):
        plan = make_plan(decide, Device(n_qubits=4), settings)
        assert plan.n_circuits == plan.n_calibration_circuits == len(plan.jobs) == plan.summary()["device_seconds"] == 0
        result = plan.run()
        np.testing.assert_array_equal(result.decided.margins, plan.exact.margins)
        np.testing.assert_array_equal(result.errors.margins, 0.0)
        assert result.summary()["agreement"] == 1.0


def test_settings_that_cannot_be_are_refused():
    for settings, message in (
        ({"register": "row"}, "'column', 'group', 'paper'"),
        ({"circuit": "swap"}, "'interference', 'compact_swap'"),
        ({"register": "paper", "circuit": "interference"}, r"register='paper' has the circuit 'compact_swap': leave"),
        ({"shots": 0}, "'shots' parameter must be an int from 1 to 1,000,000"),
        ({"shots": 10**20}, "'shots'"),
        ({"shots": True}, "'shots'"),
        ({"shots": "many"}, "'shots'"),
        ({"refine": "never"}, "'device', 'simulated'"),
        ({"draws": 1.5}, "'draws'"),
        ({"circuits_per_job": 0}, "'circuits_per_job'"),
        ({"calibration_circuits": 5}, "'calibration_circuits' parameter must be an int >= 6"),
        ({"seed": -1}, "'seed'"),
        ({"seed": None}, "'seed'"),
        ({"calibrate": "no"}, "'calibrate' parameter must be one of True, False"),
    ):
        with pytest.raises(ParameterError, match=message):
            MeasurementSettings(**settings)


@pytest.mark.parametrize("register", ["column", "group"])
def test_what_is_equal_needs_no_circuit(register):
    X = np.array([[1.0, 2.0, 3.0], [1.0, -2.0, 0.5]])
    Y = np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 3.0]])
    tests, (asked,) = distinct_tests([(X, Y)], FORMS["interference"], register)
    assert np.all(tests[0].overlaps > 0)
    overlap = Answers([asked], np.append(tests[0].overlaps, 0.5))(X, Y).overlap
    assert overlap[0, 0] == 0.0
    np.testing.assert_allclose(overlap, compact_swap_test(X, Y).overlap, rtol=0, atol=1e-14)
    if register == "group":
        by_paper, _ = distinct_tests([(X, Y)], FORMS["interference"], "paper")
        assert len(by_paper[0]) == len(tests[0]) + 1
