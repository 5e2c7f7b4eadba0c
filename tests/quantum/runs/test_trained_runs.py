"""Runs of models with trained circuits: stopped between and within both stages they go on, and run nothing twice."""

import csv
import json
import shutil
from dataclasses import replace

import pytest

pytest.importorskip("qiskit_aer")

from tests.quantum.measurement.trained_models import alone, hybrid
from tests.quantum.runs.toy_run import counted

from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.quantum import Device, JobFiles, RunFolder

QUICK = {"shots": 40, "draws": 4, "circuits_per_job": 1, "calibration_circuits": 6}


def made(device, *, circuit_alone=False, **settings):
    """A plan of some jobs of distances, unless it is of a circuit alone, and some of the trained circuit."""
    model, rows = alone() if circuit_alone else hybrid("two classes, some records")
    return model.measurement_plan(rows[:8], device, **QUICK | settings)


def run(path, device=None, *, on_job=None, **settings):
    """Run it in a folder; its result and the jobs that were sent."""
    with RunFolder(path) as folder:
        device, sent = counted(folder.device(device or Device(n_qubits=4)))
        return folder.run(made(device, **settings), on_job=on_job), sent


def counts(path):
    return {file.name: file.read_bytes() for file in sorted((path / "jobs").glob("*.npz"))}


def results(path):
    manifest = json.loads((path / "run.json").read_text())
    return {"records.csv": (path / "records.csv").read_bytes(), **{key: manifest[key] for key in ("plan", "result")}}


class Killed(BaseException):
    """Stops a run at once, as a kill does."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nobody stopped, and its result."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    return path, run(path)[0]


def test_run_says_what_the_trained_circuit_showed(undisturbed):
    path, result = undisturbed
    plan = result.plan
    summary = json.loads((path / "run.json").read_text())
    assert summary["result"] == json.loads(json.dumps(result.summary()))
    assert summary["plan"]["jobs"] == len(counts(path)) == len(plan.jobs) + len(plan.trained.jobs)
    assert summary["plan"]["expected"]["value_rms_error"] > 0
    with (path / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["by_circuit"] == "true" for row in rows] == result.by_circuit.tolist()
    assert summary["circuits"]["jobs"] == summary["plan"]["jobs"]


def test_run_of_a_circuit_alone_has_its_jobs_alone(tmp_path):
    result, sent = run(tmp_path / "run", circuit_alone=True)
    assert sent == [job.number for job in result.plan.trained.jobs] == list(range(len(sent)))
    assert run(tmp_path / "run", circuit_alone=True)[1] == []


def test_run_that_is_stopped_in_either_stage_goes_on(tmp_path, undisturbed):
    whole, result = undisturbed
    first, total = len(result.plan.jobs), len(result.plan.all_jobs)
    assert 1 < first < total - 1
    for at in (1, first, first + 1):
        path = tmp_path / str(at)

        def stop(done, of, at=at):
            assert of == total
            if done == at:
                raise Killed

        with pytest.raises(Killed):
            run(path, on_job=stop)
        assert run(path)[1] == list(range(at, total))
        assert counts(path) == counts(whole)
        assert results(path) == results(whole)
        assert run(path)[1] == []


def test_damaged_counts_of_the_trained_circuit_are_run_again(tmp_path):
    path = tmp_path / "run"
    result, _ = run(path)
    before, last = counts(path), max((path / "jobs").glob("*.npz"))
    number = int(last.name[:5])
    assert number >= len(result.plan.jobs)
    (path / "run.json").unlink()  # a run that was not finished
    files = JobFiles(path / "jobs", result.plan.device)
    job = result.plan.trained_jobs([files.counts(job) for job in result.plan.jobs])[-1]
    right = files.counts(job)
    for wrong in ([one[..., :1] for one in right], [one + 1 for one in right], [one - one for one in right]):
        files.keep(job, wrong)
        with pytest.warns(QMedoidWarning, match="not those of the circuits of its job"):
            assert files.counts(job) is None
    last.write_bytes(before[last.name][:-20])
    with pytest.warns(QMedoidWarning, match=f"counts of job {number}"):
        assert run(path)[1] == [number]
    assert counts(path) == before


@pytest.mark.parametrize(("change", "again"), [(1e-15, False), (1e-3, True)])
def test_inputs_that_another_machine_rounds_otherwise_are_those_of_the_first(undisturbed, tmp_path, change, again):
    path = tmp_path / "run"
    shutil.copytree(undisturbed[0], path)

    def decide(swap_test, expectations=None):
        def changed(ansatz, rotations, inputs, observables, /):
            return expectations(ansatz, rotations, inputs + change, observables)

        changed.bounded = expectations.bounded
        return plan.decide(swap_test, changed)

    with RunFolder(path) as folder:
        device, sent = counted(folder.device(Device(n_qubits=4)))
        plan = made(device)
        folder.run(replace(plan, decide=decide))
    assert bool(sent) == again


def test_simulated_and_measured_circuits_are_different_runs(tmp_path):
    run(tmp_path / "run", refine="simulated")
    with pytest.raises(ParameterError, match=r"refine \(simulated there, device now\)"):
        run(tmp_path / "run")
