"""Counts of jobs as files: what was kept is found again, and what is damaged or of another job is never used."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer")

from tests.quantum.counts import run
from tests.quantum.devices.runtime_standin import StandinService, standin_device
from tests.quantum.runs.toy_run import toy_plan

from qmedoid.exceptions import QMedoidWarning
from qmedoid.quantum import Device, JobFiles


@pytest.fixture
def plan():
    return toy_plan()


@pytest.fixture
def files(tmp_path, plan):
    return JobFiles(tmp_path / "jobs", plan.device)


@pytest.fixture
def counts(plan):
    return run(plan.device, plan.jobs[0].batches, seed=[0])


def test_counts_are_found_as_they_were_kept(files, plan, counts):
    store, job = files, plan.jobs[0]
    assert store.counts(job) is None
    store.keep(job, counts)
    found = store.counts(job)
    assert len(found) == len(job.batches) > 1
    for kept, one in zip(counts, found, strict=True):
        np.testing.assert_array_equal(kept, one)
        assert one.dtype == np.int64
    assert store.counts(plan.jobs[1]) is None


def test_counts_can_be_opened_by_numpy_alone(files, plan, counts):
    files.keep(plan.jobs[0], counts)
    (file,) = files.path.iterdir()
    with np.load(file, allow_pickle=False) as archive:
        assert str(archive["key"]) == plan.jobs[0].key(plan.device)
        assert archive["shots"].tolist() == [16] * len(counts)
        np.testing.assert_array_equal(archive["ones_1"], counts[1])
    before = file.read_bytes()
    files.keep(plan.jobs[0], counts)
    assert file.read_bytes() == before


def flipped(content, _):
    """One bit of the counts is another: in the middle of the compressed array."""
    place = content.index(b"ones_0.npy") + 60
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def rewritten(content, **changes):
    import io

    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


DAMAGE = {
    "a bit": flipped,
    "cut off": lambda content, _: content[: len(content) // 2],
    "empty": lambda *_: b"",
    "text": lambda *_: b"these are no counts",
    "other counts": lambda content, _: rewritten(content, ones_0=np.zeros((1, 4), dtype="<i8")),
    "an object": lambda content, _: rewritten(content, ones_0=np.array([{}], dtype=object)),
    "of another job": lambda *both: both[1],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_and_foreign_counts_are_not_used_and_replaced(files, plan, counts, damage):
    job = plan.jobs[0]
    files.keep(plan.jobs[1], run(plan.device, plan.jobs[1].batches, seed=[1]))
    (other,) = files.path.iterdir()
    files.keep(job, counts)
    (file,) = {*files.path.iterdir()} - {other}
    file.write_bytes(DAMAGE[damage](file.read_bytes(), other.read_bytes()))
    with pytest.warns(
        QMedoidWarning, match=r"counts of job 0 .* cannot be used .* run again, and the file is replaced"
    ):
        assert files.counts(job) is None
    files.keep(job, counts)
    assert files.counts(job) is not None


def test_counts_that_cannot_be_are_not_used(files, plan, counts):
    """A file with the right hash whose counts exceed the shots."""
    files.keep(plan.jobs[0], [ones + 17 for ones in counts])
    with pytest.warns(QMedoidWarning, match="cannot be used"):
        assert files.counts(plan.jobs[0]) is None


def test_names_of_jobs_at_a_service(files, plan):
    job = plan.jobs[2]
    assert files.submitted(job) is None
    files.keep_submitted(job, "")
    assert files.submitted(job) == ""
    files.keep_submitted(job, "c7fj2")
    assert files.submitted(job) == "c7fj2"
    assert files.submitted(plan.jobs[1]) is None
    files.forget_submitted(job)
    assert files.submitted(job) is None
    files.forget_submitted(job)


def test_names_that_are_damaged_or_of_another_job_mean_that_the_service_is_asked(files, plan):
    """Edited by hand, or in the place of another, a name would lead to the counts of another job."""
    files.keep_submitted(plan.jobs[0], "c7fj2")
    (file,) = files.path.iterdir()
    content = file.read_bytes()
    files.keep_submitted(plan.jobs[1], "c7fj3")
    (other,) = {*files.path.iterdir()} - {file}
    for wrong in (b"", b"c7fj3", b"{", content.replace(b"c7fj2", b"c7fj3"), other.read_bytes()):
        file.write_bytes(wrong)
        with pytest.warns(QMedoidWarning, match="do not match its hash.* asked for the job by its key"):
            assert files.submitted(plan.jobs[0]) == ""


def test_keys_say_what_runs_where():
    """Anything that changes the counts changes the key, and nothing else does."""
    plan = toy_plan()
    key = plan.jobs[0].key(plan.device)
    assert len({job.key(plan.device) for job in plan.jobs}) == len(plan.jobs)
    assert toy_plan().jobs[0].key(Device(n_qubits=4)) == key
    others = [
        toy_plan(shots=17),
        toy_plan(seed=1),
        toy_plan(circuit="compact_swap"),
        toy_plan(Device(n_qubits=3)),
        toy_plan(Device(n_qubits=4, seed=1)),
        toy_plan(calibrate=False),
    ]
    keys = {other.jobs[0].key(other.device) for other in others}
    assert len(keys | {key}) == len(others) + 1


def test_keys_on_a_device_are_the_same_for_circuits_that_are_made_again(tmp_path):
    """Not by their place in memory: a second process makes the same circuits anew."""
    service = StandinService(tmp_path)
    first, second = (toy_plan(standin_device(service), register="group") for _ in range(2))
    assert any("theta" in str(angle) for one in first.packs[0].circuit.data for angle in one.operation.params)
    keys = [job.key(first.device) for job in first.jobs]
    # Angles that are in memory: those that are asked for next lie elsewhere.
    held = [one.operation.params for one in second.packs[0].circuit.data]
    assert [job.key(second.device) for job in second.jobs] == keys
    assert held
    other = toy_plan(standin_device(service, day=2), register="group")
    assert other.jobs[0].key(other.device) != first.jobs[0].key(first.device)


def test_leftovers_of_killed_writers_are_removed(tmp_path, plan):
    folder = tmp_path / "jobs"
    folder.mkdir()
    left = folder / ".00000-0123456789abcdef.npz.0123456789abcdef.part"
    left.write_bytes(b"half")
    JobFiles(folder, plan.device)
    assert not left.exists()
