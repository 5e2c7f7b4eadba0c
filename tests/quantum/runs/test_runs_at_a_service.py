"""Runs at a service: what a stopped process sent is fetched by the next one, and nothing is sent twice."""

import pytest

pytest.importorskip("qiskit_aer")

from tests.quantum.devices.runtime_standin import StandinService, standin_device
from tests.quantum.runs.toy_run import toy_plan

from qmedoid.exceptions import JobError, ModelError, ParameterError, QMedoidWarning
from qmedoid.quantum import JobFiles, RunFolder
from qmedoid.quantum.runs.files import KeptCircuits


class Killed(BaseException):
    """Stops a run at once, as a kill does."""


@pytest.fixture
def service(tmp_path):
    return StandinService(tmp_path / "service")


def run(path, service, *, on_submitted=None, on_job=None, day=1, **settings):
    with RunFolder(path) as folder:
        device = folder.device(standin_device(service, on_submitted=on_submitted, day=day))
        return folder.run(toy_plan(device, **settings), on_job=on_job)


def counts(path):
    return {file.name: file.read_bytes() for file in sorted((path / "jobs").glob("*.npz"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nobody stopped."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run(path, StandinService(path.parent / "service"))
    return path


def test_every_job_is_sent_once_with_its_key(tmp_path, service):
    path = tmp_path / "run"
    result = run(path, service)
    keys = [job.key(result.plan.device) for job in result.plan.jobs]
    assert service.submissions == keys
    names = JobFiles(path / "jobs", result.plan.device)
    assert [names.submitted(job) for job in result.plan.jobs] == [f"job{number:04d}" for number in range(len(keys))]
    run(path, service)
    assert service.submissions == keys


def test_process_that_dies_while_it_waits_leaves_jobs_that_are_fetched(tmp_path, service, undisturbed):
    path = tmp_path / "run"

    def dies(done, _):
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        run(path, service, on_job=dies)
    sent = service.submissions
    assert len(counts(path)) == 2 < len(sent)
    run(path, service)
    assert service.submissions[: len(sent)] == sent
    assert len({*service.submissions}) == len(service.submissions) == len(counts(undisturbed))
    assert counts(path) == counts(undisturbed)


@pytest.mark.parametrize("at", [0, 3])
def test_process_that_dies_before_it_knows_the_name_of_its_job_finds_it_by_its_key(tmp_path, service, undisturbed, at):
    path = tmp_path / "run"

    def dies(job):
        if job.job_id() == f"job{at:04d}":
            raise Killed

    with pytest.raises(Killed):
        run(path, service, on_submitted=dies)
    assert len(service.submissions) == at + 1
    run(path, service)
    assert len({*service.submissions}) == len(service.submissions) == len(counts(undisturbed))
    assert counts(path) == counts(undisturbed)


def test_counts_that_were_damaged_are_fetched_again_once_they_are_removed(tmp_path, service, undisturbed):
    path = tmp_path / "run"
    run(path, service)
    (path / "records.csv").unlink()
    file, sent = sorted((path / "jobs").glob("*.npz"))[1], service.submissions
    file.write_bytes(b"")
    with pytest.raises(ModelError, match=rf"{file.name} in .* changed after the run was finished"):
        run(path, service)
    file.unlink()
    run(path, service)
    assert service.submissions == sent
    assert counts(path) == counts(undisturbed)


def test_jobs_that_failed_at_the_service_are_sent_again(tmp_path, service, undisturbed):
    path = tmp_path / "run"
    service.fail_next(2)
    run(path, service)
    assert len(service.submissions) == len(counts(undisturbed)) + 2
    assert counts(path) == counts(undisturbed)


def test_ten_failures_end_a_run_that_goes_on_later(tmp_path, service, undisturbed):
    path, jobs = tmp_path / "run", len(counts(undisturbed))
    # All six jobs are sent before the first is waited for, and fail; the first two fail twice more.
    service.fail_next(10)
    with pytest.raises(
        JobError, match=r"2 of 6 jobs failed 3 times; job 0 with StandinError: .*ERROR\. What .* goes on from there"
    ):
        run(path, service)
    failed = [job for job in service.jobs(limit=None) if job.errored()]
    assert len(failed) == 10
    run(path, service)
    done = [service.read(job.job_id())["tags"][0] for job in service.jobs(limit=None) if job.done()]
    assert len(done) == len({*done}) == jobs
    assert counts(path) == counts(undisturbed)


def test_without_a_connection_nothing_is_sent_again(tmp_path, service, undisturbed):
    """A job that may have been sent is looked for; where nobody can say whether it was, it is not sent."""
    path = tmp_path / "run"

    def cut(job):
        service.offline = job.job_id() == "job0002"

    with pytest.raises(JobError, match="The service cannot be reached"):
        run(path, service, on_submitted=cut)
    assert len(service.submissions) == 3
    with pytest.raises(JobError):
        run(path, service)
    service.offline = False
    run(path, service)
    assert len({*service.submissions}) == len(service.submissions) == len(counts(undisturbed))
    assert counts(path) == counts(undisturbed)


@pytest.mark.parametrize("register", ["column", "group"])
def test_run_goes_on_another_day_with_the_circuits_of_the_first(tmp_path, service, register):
    """The device has other error rates by then, by which other qubits would be chosen."""
    path = tmp_path / "run"

    def dies(done, _):
        if done == 1:
            raise Killed

    with pytest.raises(Killed):
        run(path, service, on_job=dies, register=register)
    other = toy_plan(standin_device(service, day=2), register=register)
    result = run(path, service, day=2, register=register)
    assert other.packs[0].qubits != result.plan.packs[0].qubits
    assert len({*service.submissions}) == len(service.submissions) == len(result.plan.jobs)


def test_circuit_that_is_damaged_is_made_again_and_another_one_is_refused(tmp_path, service):
    path = tmp_path / "run"
    run(path, service)
    (file,) = (path / "circuits").iterdir()
    content = file.read_bytes()
    other = content.replace(b'"shrink":[0.9', b'"shrink":[0.8')
    assert other != content
    for day, damaged in ((1, other), (2, b"")):
        file.write_bytes(damaged)
        with RunFolder(path) as folder:
            device = folder.device(standin_device(service, day=day))
            assert isinstance(device.packs, KeptCircuits)
            with pytest.warns(QMedoidWarning, match=r"circuit in .* cannot be used .* made again"):
                plan = toy_plan(device)
        if day == 1:
            with RunFolder(path) as folder:
                folder.run(plan)
            assert file.exists()
        else:
            with RunFolder(path) as folder, pytest.raises(ParameterError, match="other circuits"):
                folder.run(plan)
