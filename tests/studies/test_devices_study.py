"""The study of devices: what cells measure has the law of a run, and tables and sentences say what cells found."""

import copy
import json

import numpy as np
import pytest
from benchmarks.studies import device_report, paper, runner
from benchmarks.studies.cells import FRAUD_SAMPLE, Cell, load_data, paper_split
from benchmarks.studies.device_report import make_device_report
from benchmarks.studies.devices import STUDY, DevicePlan
from benchmarks.studies.measured import chances_of, chosen_rows, drawn_counts, rms, run_measured
from benchmarks.studies.results import StudyResults
from made_up_devices import made_up

pytest.importorskip("qiskit_aer", reason='needs Qiskit: pip install "qmedoid[quantum]"')
pytest.importorskip("qiskit_ibm_runtime", reason='needs the runtime: pip install "qmedoid[ibm]"')
from qiskit_ibm_runtime.fake_provider import FakeManilaV2

import qmedoid.quantum
from qmedoid import NearestMedoidClassifier
from qmedoid.quantum import Device
from qmedoid.quantum.measurement.jobs import run_jobs

N_QUBITS = 5
CELL = Cell("devices", "wine", "random", 0, "a method")


@pytest.fixture(scope="module")
def backend():
    """A small device with noise."""
    return FakeManilaV2()


@pytest.fixture(scope="module")
def fitted():
    """The paper's model of the wines, and two test rows."""
    data = load_data("wine")
    split = paper_split(data.y, 0)
    model = NearestMedoidClassifier(max_passes=0, random_state=0).fit(data.X[split.fit], data.y[split.fit])
    return model, data.X[split.test[:2]]


def measured(name, **settings):
    asked = {"model": "printed", "register": "column", "shots": [256], "repeats": 2, "records": 2}
    return run_measured(load_data("wine"), CELL, backend=name, n_qubits=N_QUBITS, **(asked | settings))


@pytest.fixture(scope="module")
def noisy(backend):
    """A cell on the small device, which has no name among those of the study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qmedoid.quantum, "as_device", lambda _, **settings: Device(backend, **settings))
        return measured("fake")


class TestCells:
    def test_without_noise_and_shots_the_circuits_are_the_closed_form(self):
        for register in ("column", "group"):
            found = measured("simulator", register=register, shots=[64], repeats=1)
            exact, shots = found["measured"]
            assert exact["shots"] is None
            assert exact["raw"]["s_error"] < 1e-11 < shots["raw"]["s_error"]
            assert exact["raw"]["kept"] == exact["raw"]["decisions"] == 2
            assert exact["calibrated"] is None
            assert exact["lines"] == [None] * len(found["plan"]["shapes"])

    def test_results_are_what_json_holds_and_the_same_again(self):
        first, again = (measured("simulator", shots=[64], repeats=1) for _ in range(2))
        assert json.loads(json.dumps(first)) == first == again

    def test_more_runs_count_for_the_errors_of_margins_alone(self):
        few, more = (measured("simulator", shots=[64], repeats=2, margin_repeats=n)["measured"] for n in (0, 3))
        assert [len(one["raw"]["margin_errors"]) for one in more] == [1, 5]
        for exact_or_shots in zip(few, more, strict=True):
            one, other = (figures["raw"] for figures in exact_or_shots)
            assert other["margin_errors"][:2] == one["margin_errors"]
            assert other["kept"] == one["kept"]
            assert other["s_error"] == one["s_error"]
            assert other["margin_error"] ** 2 == pytest.approx(np.mean(np.square(other["margin_errors"])))

    def test_a_line_undoes_the_noise_of_one_qubit(self, noisy):
        exact, _ = noisy["measured"]
        assert exact["raw"]["s_error"] > 0.005
        assert exact["calibrated"]["s_error"] < 1e-9

    def test_errors_of_overlaps_are_as_stated_and_as_planned(self, noisy):
        _, shots = noisy["measured"]
        for how in ("calibrated", "raw"):  # without calibration the bias is among the stated errors
            assert 0.85 < shots[how]["s_score_deviation"] < 1.2
        assert shots["raw"]["s_error"] > 1.3 * shots["calibrated"]["s_error"]
        assert shots["planned"]["s_error"] == pytest.approx(shots["calibrated"]["s_error"], rel=0.2)
        assert shots["repeats"] == 2
        assert shots["raw"]["decisions"] == 4

    def test_circuits_of_records_alone_and_together(self, noisy):
        columns = load_data("wine").X.shape[1]
        assert noisy["circuits_alone"] == [-(-3 * columns // N_QUBITS)] * 2
        assert noisy["plan"]["circuits"] == -(-6 * columns // N_QUBITS)
        assert noisy["records"] == 2
        assert noisy["test_rows"] == 45

    def test_counts_have_the_law_of_a_run(self, backend, fitted):
        model, X = fitted
        one = model.measurement_plan(X, Device(backend, n_qubits=N_QUBITS, seed=3), shots=500, seed=3)
        chances = chances_of(one)
        for counts in (run_jobs(one.jobs, one.device), drawn_counts(one, one, chances, np.random.default_rng(3))):
            pairs = [
                (ones, p)
                for of_job, expected in zip(counts, chances, strict=True)
                for ones, p in zip(of_job, expected, strict=True)
            ]
            scores = [(ones - 500 * p) / np.sqrt(500 * p * (1 - p)) for ones, p in pairs]
            assert rms(np.concatenate(scores)) == pytest.approx(1.0, abs=0.1)


def test_plans_expect_next_to_no_shot_noise_of_an_outcome_that_hardly_ever_comes(fitted):
    model, _ = fitted
    one = model.measurement_plan(load_data("wine").X, Device(n_qubits=N_QUBITS), shots=64)
    exact = np.concatenate([tests.overlaps for tests in one.tests])
    errors = np.concatenate([expected.errors for expected in one.expected_estimates])
    assert exact.min() < 1e-6  # half a count in 64 shots would be an error of 0.01
    np.testing.assert_allclose(errors, np.sqrt(exact * (1 - exact) / 64))


def test_rare_classes_are_measured_as_often_as_others():
    y = np.array([0] * 95 + [1] * 5)
    test = np.arange(0, 100, 2)
    rows = chosen_rows(y, test, 4)
    assert y[rows].tolist() == [0, 0, 1, 1]
    assert set(rows) <= set(test)
    assert chosen_rows(np.arange(100) % 2, test, 4).tolist() == [0, 2, 4, 6]
    assert chosen_rows(y, test, None) is test


class TestPlan:
    def test_every_model_circuit_and_device(self):
        cells = DevicePlan().cells
        assert len(cells) == len(set(cells)) == 3 * 2 * 9 + 9
        assert all(STUDY.method(cell).run is run_measured for cell in cells)
        settings = [STUDY.method(cell).settings for cell in cells if cell.data == FRAUD_SAMPLE]
        assert {(one["model"], one["records"]) for one in settings} == {("default", 20)}

    def test_results_depend_on_the_versions_of_qiskit_where_they_do(self, monkeypatch):
        cells = DevicePlan().quick().cells[0], Cell("small", "wine", "random", 0, "LogReg")
        keys = STUDY.key(cells[0]), paper.STUDY.key(cells[1])
        monkeypatch.setattr(runner, "version_of", lambda _: "another")
        assert STUDY.key(cells[0]) != keys[0]
        assert paper.STUDY.key(cells[1]) == keys[1]
        assert STUDY.versions()["qiskit-aer"] == "another"


def report(results, asked):
    return make_device_report(asked, results, "qmedoid reproduce devices")


@pytest.fixture
def no_pictures(monkeypatch):
    """Pictures are not drawn, which takes most of the time of a report."""
    monkeypatch.setattr(device_report, "_pictures", lambda *_: [])


class TestReport:
    def test_every_cell_has_its_rows(self):
        asked = DevicePlan().quick()
        tables = {table.name: table for table in report(made_up(asked), asked).tables}
        assert set(tables) == {"device_goals", "device_decisions", "device_errors", "device_circuits", "device_shapes",
                               "cost"}  # fmt: skip
        assert len(tables["device_decisions"].rows) == len(tables["device_errors"].rows) == 12 * 2
        assert len(tables["device_circuits"].rows) == 12
        row = dict(zip(tables["device_decisions"].labels, tables["device_decisions"].rows[1], strict=True))
        assert row["shots"] == "1024"
        assert row["raw: kept"] == 0.995
        assert row["raw: kept of clear"] == 1.0
        assert row["calibrated: kept"] is None  # without noise
        assert tables["device_decisions"].rows[0][4] == "∞"

    @pytest.mark.usefixtures("no_pictures")
    def test_goals_that_are_met(self):
        document = report(made_up(DevicePlan()), DevicePlan())
        (goals,) = [table for table in document.tables if table.name == "device_goals"]
        # Two noisy devices with five goals at two numbers of shots, and circuits of three devices, for three tables.
        assert len(goals.rows) == 3 * (2 * 2 * 5 + 3)
        assert {row[-1] for row in goals.rows} == {"yes"}
        assert "Goals of calibrated packed columns: 69 of 69 are met." in document.findings

    @pytest.mark.usefixtures("no_pictures")
    @pytest.mark.parametrize(
        ("change", "goal"),
        [
            (lambda own, _: own.update(kept=195), "decisions kept of all"),
            (lambda own, _: own.update(clear_kept=189), "decisions kept of the clear ones"),
            (lambda own, _: own.update(s_score_deviation=1.2), "errors of s over stated ones"),
            (lambda own, _: own.update(s_score_deviation=0.8), "errors of s over stated ones"),
            (lambda _, planned: planned.update(margin_error=0.4), "planned error of the margin over measured"),
        ],
        ids=["kept", "clear", "too small errors", "too large errors", "planned"],
    )
    def test_a_goal_that_is_missed_is_said(self, change, goal):
        results = made_up(DevicePlan())
        cell = next(cell for cell in results.by_cell if "default, packed columns, fake Torino" in cell.method)
        last = copy.deepcopy(results.by_cell[cell])
        change(last["measured"][-1]["calibrated"], last["measured"][-1]["planned"])
        document = report(StudyResults({**results.by_cell, cell: last}), DevicePlan())
        found = [one for one in document.findings if "Not met" in one]
        assert len(found) == 1
        assert found[0].startswith(f"Not met: Heart disease, fake Torino, 4,096 shots: {goal} is ")
