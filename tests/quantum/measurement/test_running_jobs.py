"""Jobs that fail, are tried again, are kept, and are never run twice."""

from itertools import chain

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from qiskit.primitives import StatevectorSampler
from qiskit_aer.noise import NoiseModel
from toy_deciders import toy_plan, toy_table

from qmedoid.exceptions import JobError, OutputError
from qmedoid.quantum import BlockSampler, Device
from qmedoid.quantum.measurement.jobs import run_jobs

TABLE = toy_table(n=5)


def small_plan(device=None, **settings):
    return toy_plan(device or Device(n_qubits=3), table=TABLE, shots=20, circuits_per_job=4, **settings)


class Memory:
    """A store of counts and names in memory."""

    def __init__(self):
        self.kept, self.names, self.forgotten = {}, {}, []

    def counts(self, job):
        return self.kept.get(job.number)

    def keep(self, job, counts):
        assert job.number not in self.kept
        self.kept[job.number] = counts

    def submitted(self, job):
        return self.names.get(job.number)

    def keep_submitted(self, job, job_id):
        self.names[job.number] = job_id

    def forget_submitted(self, job):
        self.forgotten.append(job.number)
        self.names.pop(job.number, None)


def failing(device, plan):
    """Make submissions of a device fail as often as a dict says for each job; note all of them."""
    sent, submit = [], device.submit

    def submitting(batches, *, seed=(), key=None):
        sent.append(seed[0])
        if plan.get(seed[0], 0) > 0:
            plan[seed[0]] -= 1
            raise ConnectionError("the line is dead")
        return submit(batches, seed=seed, key=key)

    device.submit = submitting
    return sent


def equal(first, second):
    pairs = zip(chain(*first), chain(*second), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


class RemoteJob:
    """A job of a service: it may fail, or not be there yet."""

    def __init__(self, service, name, inner):
        self.service, self.name, self.inner, self.asked = service, name, inner, 0

    def job_id(self):
        return self.name

    def errored(self):
        return self.name in self.service.broken

    def cancelled(self):
        return False

    def result(self):
        self.asked += 1
        if self.errored():
            raise RuntimeError("the job ended with an error")
        if self.service.hiccups:
            self.service.hiccups -= 1
            raise ConnectionError("no answer")
        return self.inner.result()


class Service:
    """A service with a sampler; it keeps all jobs."""

    name, num_qubits, target = "served", 3, None

    def __init__(self):
        self.sent, self.broken, self.hiccups, self.service = [], set(), 0, self

    def run(self, pubs):
        inner = BlockSampler(NoiseModel(), seed=len(self.sent)).run(list(pubs))
        self.sent.append(RemoteJob(self, str(len(self.sent)), inner))
        return self.sent[-1]

    def job(self, name):
        return self.sent[int(name)]

    def jobs(self, **_):
        return []

    def device(self):
        return Device(self, sampler=self, n_qubits=3)


@pytest.mark.parametrize("make_store", [lambda: None, Memory])
def test_a_job_whose_result_does_not_come_is_asked_again_and_not_sent_again(make_store):
    service = Service()
    plan = small_plan(service.device())
    service.hiccups = 2
    plan.run(make_store())
    assert len(service.sent) == len(plan.jobs)
    assert service.sent[0].asked == 3


def test_a_job_whose_name_cannot_be_kept_is_not_forgotten():
    """It was sent, and is paid for: the note that it was leads to it by its key."""

    class Full(Memory):
        def keep_submitted(self, job, job_id):
            if job_id:
                raise OutputError("No space left on device.")
            super().keep_submitted(job, job_id)

    service, store = Service(), Full()
    plan = small_plan(service.device())
    sent = failing(plan.device, {0: 1})
    with pytest.raises(JobError, match=r"5 of 5 jobs failed; job 0 with OutputError: No space"):
        plan.run(store)
    assert len(sent) == len(plan.jobs) + 1
    assert store.forgotten == []
    assert store.names == dict.fromkeys(range(5), "")


def test_a_service_has_no_more_than_ten_jobs_at_a_time():
    service, most = Service(), 0
    plan = toy_plan(service.device(), table=toy_table(n=20), shots=5, circuits_per_job=3)
    assert len(plan.jobs) > 20

    def note(done, _):
        nonlocal most
        most = max(most, len(service.sent) - done + 1)

    plan.run(on_job=note)
    assert most == 10


def test_a_generator_of_the_callers_sampler_is_drawn_from_in_order():
    """Jobs run in threads of their own; two at once would share the generator in no order."""
    found = []
    for _ in range(2):
        sampler = StatevectorSampler(seed=np.random.default_rng(5))
        plan = small_plan(Device(sampler=sampler, n_qubits=3))
        found.append(run_jobs(plan.jobs, plan.device))
    assert equal(*found)
