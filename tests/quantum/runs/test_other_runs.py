"""What is in a run's folder is never taken for that of another run: other noise, other decisions, edited files."""

import json
import shutil
from dataclasses import replace

import pytest

pytest.importorskip("qiskit_aer")

from qiskit.providers.fake_provider import GenericBackendV2
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, ReadoutError
from tests.quantum.runs.toy_run import counted, toy_plan

from qmedoid.exceptions import ModelError, ParameterError, QMedoidWarning
from qmedoid.quantum import Device, RunFolder


def run(path, device=None):
    """Run a toy plan in a folder; its result, and the jobs that were sent."""
    with RunFolder(path) as folder:
        device, sent = counted(folder.device(device or Device(n_qubits=4)))
        return folder.run(toy_plan(device)), sent


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "run"
    run(path)
    return path


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
    _, sent = run(path, Device(one(), n_qubits=4))
    assert run(path, Device(one(), n_qubits=4))[1] == []
    with pytest.raises(ParameterError, match=r"differs in the noise of the simulated device \("):
        run(path, Device(other(), n_qubits=4))
    (path / "run.json").unlink()
    assert run(path, Device(other(), n_qubits=4))[1] == sent


@pytest.mark.parametrize("name", ["asked", "names", "versions", "where", "started", "result", "files", "plan"])
@pytest.mark.parametrize("edit", ["lost", "null", "text", "other"])
def test_manifest_that_was_edited_is_refused(finished, tmp_path, name, edit):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    document = json.loads((path / "run.json").read_text())
    del document[name]
    if edit != "lost":
        document[name] = {"null": None, "text": "edited", "other": {"edited": True}}[edit]
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=r"do not match its hash.* remove the file"):
        RunFolder(path)


def test_circuit_in_the_place_of_another_is_noticed(tmp_path):
    """Its contents are whole, but those of another circuit."""
    run(tmp_path / "run")
    run(tmp_path / "other", Device(n_qubits=3))
    (mine,), (other,) = ([*(tmp_path / name / "circuits").iterdir()] for name in ("run", "other"))
    mine.write_bytes(other.read_bytes())
    (tmp_path / "run" / "run.json").unlink()
    with pytest.warns(QMedoidWarning, match=r"do not match its hash, which is of its name.*made again"):
        result, again = run(tmp_path / "run")
    assert [pack.n_copies for pack in result.plan.packs] == [4]
    assert again == []
