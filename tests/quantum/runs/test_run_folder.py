"""A run in a folder: it goes on where it was stopped, runs nothing twice, and refuses to be another run."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("qiskit_aer")

from qiskit.providers.fake_provider import GenericBackendV2
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, ReadoutError
from tests.quantum.runs.toy_run import counted, toy_plan

from qmedoid.exceptions import JobError, ModelError, ParameterError, QMedoidWarning
from qmedoid.quantum import Device, JobFiles, RunFolder
from qmedoid.quantum.runs.folder import asked_for, read_manifest, write_manifest

SCRIPT = Path(__file__).parent / "stoppable_run.py"


def run(path, device=None, **settings):
    """Run a toy plan in a folder; its result, the jobs that were sent, and the manifest."""
    with RunFolder(path) as folder:
        device, sent = counted(folder.device(device or Device(n_qubits=4)))
        result = folder.run(toy_plan(device, **settings))
        return result, sent, folder.manifest


def counts(path):
    return {file.name: file.read_bytes() for file in sorted((path / "jobs").glob("*.npz"))}


def results(path):
    """The decisions, and what does not hang on the time of a run."""
    manifest = json.loads((path / "run.json").read_text())
    return {"records.csv": (path / "records.csv").read_bytes(), **{key: manifest[key] for key in ("plan", "result")}}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nobody stopped."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run(path)
    return path


def test_run_writes_what_it_showed(tmp_path):
    result, sent, manifest = run(tmp_path / "run")
    plan = result.plan
    assert sent == [job.number for job in plan.jobs]
    assert {one.name for one in (tmp_path / "run").iterdir()} == {
        ".lock", "run.json", "circuits", "jobs", "records.csv",
    }  # fmt: skip
    with (tmp_path / "run" / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == [str(row) for row in range(plan.n_records)]
    for name, values in result.columns().items():
        found = [row[name] for row in rows]
        if values.dtype.kind == "f":
            assert [float(one) for one in found] == values.tolist()
        else:
            assert found == [str(one).lower() if values.dtype.kind == "b" else str(one) for one in values]
    assert manifest["result"] == json.loads(json.dumps(result.summary()))
    assert manifest["plan"]["circuits"] == plan.n_circuits
    assert manifest["circuits"]["jobs"] == len(plan.jobs)
    assert manifest["versions"].keys() == {"qmedoid", "python", "numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime"}
    assert manifest["asked"]["seed"] == 0
    assert manifest["started"] <= manifest["finished"]


def test_results_that_were_lost_are_written_again_from_the_counts(tmp_path):
    path = tmp_path / "run"
    first, _, _ = run(path)
    kept = {**counts(path), **results(path)}
    second, sent, _ = run(path)
    assert sent == []
    assert second.summary() == first.summary()
    (path / "records.csv").unlink()
    with RunFolder(path) as folder:
        assert not folder.is_finished
    assert run(path)[1] == []
    assert {**counts(path), **results(path)} == kept
    with RunFolder(path) as folder:
        assert folder.is_finished


def sealed_again(file):
    """Counts of another run of the same job, with a seal that is right."""
    plan = toy_plan(Device(n_qubits=4))
    store = JobFiles(file.parent, plan.device)
    found = [ones.copy() for ones in store.counts(plan.jobs[0])]
    found[0][0, 0] += 1 if found[0][0, 0] < 16 else -1
    store.keep(plan.jobs[0], found)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("records.csv", lambda file: file.write_text("row,class\n")),
        ("jobs", lambda file: file.write_bytes(file.read_bytes()[:-1] + b"x")),
        ("jobs", lambda file: file.write_bytes(b"")),
        ("jobs", sealed_again),
    ],
    ids=["results", "a byte of counts", "no counts", "counts with a seal"],
)
def test_finished_run_with_files_that_were_changed_shows_nothing_and_sends_nothing(undisturbed, tmp_path, name, change):
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    file = sorted(path.glob("jobs/*.npz"))[0] if name == "jobs" else path / name
    change(file)
    before, sent = {one: one.read_bytes() for one in path.rglob("*") if one.is_file()}, []
    with RunFolder(path) as folder:
        device, sent = counted(folder.device(Device(n_qubits=4)))
        for look in (lambda: folder.is_finished, lambda: folder.run(toy_plan(device))):
            with pytest.raises(ModelError, match=rf"{file.name} in .* changed after the run was finished"):
                look()
    assert sent == []
    assert {one: one.read_bytes() for one in path.rglob("*") if one.is_file()} == before
    file.unlink()
    assert run(path)[1] == ([] if name == "records.csv" else [0])
    assert counts(path) == counts(undisturbed)
    assert results(path) == results(undisturbed)


def test_repeats_run_every_job_again_and_once(tmp_path):
    path = tmp_path / "run"

    def repeated(repeats):
        with RunFolder(path) as folder:
            device, sent = counted(folder.device(Device(n_qubits=4)))
            return folder.run(toy_plan(device, shots=200), repeats=repeats), sent

    result, sent = repeated(3)
    n_jobs = len(result.plan.jobs)
    assert sent == list(range(3 * n_jobs))
    again, none = repeated(3)
    assert none == []
    assert again.summary() == result.summary()
    with RunFolder(tmp_path / "none") as folder, pytest.raises(ParameterError, match=r"'repeats' .* int >= 1"):
        folder.run(toy_plan(folder.device(Device(n_qubits=4))), repeats=0)
    assert not (tmp_path / "none").exists()
    with pytest.raises(ParameterError, match=r"differs in repeats \(3 there, 2 now\)"):
        repeated(2)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_processes_leave_nothing_to_be_run_twice(tmp_path, undisturbed):
    """SIGKILL while jobs run, three times; then the run ends as if nothing had happened."""
    path, log = tmp_path / "run", tmp_path / "sent.log"

    def started(slowly):
        return subprocess.Popen([sys.executable, SCRIPT, path, log, slowly], stderr=subprocess.PIPE, text=True)

    for wanted in (1, 4, 6):
        there, child = counts(path), started("0.05")
        limit = time.monotonic() + 60
        while len(counts(path)) < wanted and child.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL, child.stderr.read()
        child.stderr.close()
        assert there.items() <= counts(path).items() <= counts(undisturbed).items()
    child = started("0")
    assert child.wait() == 0, child.stderr.read()
    child.stderr.close()
    assert counts(path) == counts(undisturbed)
    assert results(path) == results(undisturbed)
    # A process never sends a job whose counts were there when it began.
    for line in log.read_text().splitlines():
        sent, *finished = line.split()
        assert sent not in finished, line


class Flaky:
    """Fails jobs that are in a list, each as often as it is there."""

    def __init__(self, device, failing):
        self.failing, self.sent, submit = list(failing), [], device.submit

        def submitting(batches, *, seed=(), key=None):
            if seed[0] in self.failing:
                self.failing.remove(seed[0])
                raise ConnectionError("the sampler is out of order")
            self.sent.append(seed[0])
            return submit(batches, seed=seed, key=key)

        device.submit = submitting


def test_jobs_that_fail_are_tried_again_and_the_others_are_kept(tmp_path, undisturbed):
    path = tmp_path / "run"
    # Ten failures: job 2 fails for good, and as often as it may; jobs 4, 5 and 6 recover.
    failing = [2] * 5 + [4] * 2 + [5] * 2 + [6]
    with RunFolder(path) as folder:
        device = folder.device(Device(n_qubits=4))
        flaky = Flaky(device, failing)
        with pytest.raises(JobError, match=r"1 of 9 jobs failed 3 times; job 2 with ConnectionError: the sampler"):
            folder.run(toy_plan(device))
    assert flaky.sent == [0, 1, 3, 4, 5, 6, 7, 8]
    with RunFolder(path) as folder:
        assert not folder.is_finished
        device = folder.device(Device(n_qubits=4))
        again = Flaky(device, flaky.failing)
        assert again.failing == [2, 2]
        folder.run(toy_plan(device))
    assert again.sent == [2]
    assert counts(path) == counts(undisturbed)
    assert results(path) == results(undisturbed)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"shots": 32}, r"shots \(16 there, 32 now\)"),
        ({"register": "group"}, r"register \(column there, group now\)"),
        ({"calibrate": False}, r"calibrate \(True there, False now\)"),
        ({"n_records": 5}, r"--limit\) \(6 there, 5 now\)"),
        ({"device": Device(n_qubits=3)}, r"n_qubits \(4 there, 3 now\)"),
        ({"circuits_per_job": 2, "draws": 5}, r"circuits_per_job .*; draws"),
    ],
)
def test_other_run_in_the_same_folder_is_refused(undisturbed, changes, named):
    before = (undisturbed / "run.json").read_bytes()
    with pytest.raises(ParameterError, match=rf"holds another run, which differs in .*{named}.*Give another folder"):
        run(undisturbed, **changes)
    assert (undisturbed / "run.json").read_bytes() == before


def test_other_model_or_records_are_refused_where_they_are_known(tmp_path):
    path, facts = tmp_path / "run", {"model": "a" * 64, "records": "b" * 64}
    with RunFolder(path) as folder:
        folder.run(toy_plan(folder.device(Device(n_qubits=4))), facts=facts)
        plan = toy_plan(folder.device(Device(n_qubits=4)))
        asked = {key: asked_for(plan.settings, "simulator", 4, 6, **facts | {key: "c" * 64}) for key in facts}
        for key, one in asked.items():
            with pytest.raises(ParameterError, match=rf"the {key} \([ab]+… there, c+… now\)"):
                folder.refuse_other(one)
        folder.refuse_other(asked_for(plan.settings, "simulator", 4, 6, **facts))
        # Other records that nobody has hashed are decided otherwise.
        with pytest.raises(ParameterError, match=r"differs in the decisions in closed form \("):
            folder.run(toy_plan(folder.device(Device(n_qubits=4)), seed=1))


def test_other_versions_are_noted_and_other_circuits_of_theirs_are_refused(tmp_path):
    path = tmp_path / "run"
    run(path)
    manifest = read_manifest(path)
    manifest["versions"]["qiskit"] = "1.9"
    write_manifest(path, manifest)
    with pytest.warns(QMedoidWarning, match=r"begun with qiskit 1\.9 \(now .*circuits are the same"):
        run(path)
    manifest["circuits"]["sha256"] = "0" * 64
    write_manifest(path, manifest)
    with pytest.raises(ParameterError, match=r"begun with qiskit 1\.9 .*go on with these versions"):
        run(path)


def test_two_processes_do_not_share_a_folder(tmp_path):
    with RunFolder(tmp_path / "run"), pytest.raises(ParameterError, match="Another process is at work"):
        RunFolder(tmp_path / "run")
    with RunFolder(tmp_path / "run"):
        pass


def test_folder_in_which_nothing_began_is_left_as_it_was(tmp_path):
    with RunFolder(tmp_path / "new"):
        assert (tmp_path / "new" / ".lock").exists()
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    with RunFolder(tmp_path / "empty"):
        pass
    assert [*(tmp_path / "empty").iterdir()] == []


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ParameterError, match=r"files that are no run: thesis\.tex"):
        RunFolder(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("change", ["cut", "classes"])
def test_other_decisions_by_the_same_circuits_are_refused(tmp_path, change):
    """A model with another cut asks for the same distances: its decisions are another run all the same."""
    with RunFolder(tmp_path / "run") as folder:
        plan = toy_plan(folder.device(Device(n_qubits=4)))
        folder.run(plan)
        before = (folder.path / "run.json").read_bytes()
        other = replace(plan, classes=("yes", "no"))
        if change == "cut":
            other = replace(plan, exact=plan.exact._replace(margins=plan.exact.margins - 0.01))
        with pytest.raises(ParameterError, match=r"holds another run, which differs in the decisions in closed form"):
            folder.run(other)
        assert (folder.path / "run.json").read_bytes() == before
        folder.run(replace(plan, exact=plan.exact._replace(margins=plan.exact.margins + 1e-12)))


def readout_noise(chance):
    noise = NoiseModel(basis_gates=["ry", "h"])
    noise.add_all_qubit_readout_error(ReadoutError([[1 - chance, chance], [chance, 1 - chance]]))
    return AerSimulator(noise_model=noise)


@pytest.mark.parametrize(
    "makers",
    [(lambda: readout_noise(0.01), lambda: readout_noise(0.2)),
     (lambda: GenericBackendV2(4, seed=1), lambda: GenericBackendV2(4, seed=2))],
    ids=["Aer", "generic"],
)  # fmt: skip
def test_counts_of_another_noise_are_not_taken_for_those_of_this_one(tmp_path, makers):
    """Simulated devices of one name differ in their noise."""
    path, (one, other) = tmp_path / "run", makers
    _, sent, _ = run(path, Device(one(), n_qubits=4))
    assert run(path, Device(one(), n_qubits=4))[1] == []
    with pytest.raises(ParameterError, match=r"differs in the noise of the simulated device \("):
        run(path, Device(other(), n_qubits=4))
    (path / "run.json").unlink()
    assert run(path, Device(other(), n_qubits=4))[1] == sent


def edited(text, change):
    document = json.loads(text)
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "edit",
    [
        lambda _: "",
        lambda _: "[]",
        lambda _: '{"asked": {}}',
        lambda text: edited(text, lambda one: one.pop("result")),
        lambda text: edited(text, lambda one: one.update(asked=None)),
        lambda text: edited(text, lambda one: one["plan"].update(records=7)),
        lambda text: edited(text, lambda one: one.update(finished=None)),
    ],
)
def test_manifest_that_was_damaged_or_edited_is_refused(undisturbed, tmp_path, edit):
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    (path / "run.json").write_text(edit((path / "run.json").read_text()))
    with pytest.raises(ModelError, match=r"run\.json' is no manifest of a run, or is damaged .* remove the file"):
        RunFolder(path)
    (path / "run.json").unlink()
    assert run(path)[1] == []


def test_circuit_in_the_place_of_another_is_noticed(tmp_path):
    """Its contents are whole, but those of another circuit."""
    run(tmp_path / "run")
    run(tmp_path / "other", Device(n_qubits=3))
    (mine,), (other,) = ([*(tmp_path / name / "circuits").iterdir()] for name in ("run", "other"))
    mine.write_bytes(other.read_bytes())
    (tmp_path / "run" / "run.json").unlink()
    with pytest.warns(QMedoidWarning, match=r"do not match its hash, which is of its name.*made again"):
        result, again, _ = run(tmp_path / "run")
    assert [pack.n_copies for pack in result.plan.packs] == [4]
    assert again == []
