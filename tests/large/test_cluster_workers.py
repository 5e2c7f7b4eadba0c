"""Tasks on a cluster whose workers are killed: every result once, and an error instead of a wait without end."""

import os
import signal
import time
from threading import Event, Thread

import pytest

from qmedoid.exceptions import ClusterError

dask = pytest.importorskip("dask", reason="pip install 'qmedoid[dask]'")
distributed = pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")

from qmedoid.large import workers  # noqa: E402 (it imports Dask)
from qmedoid.large.workers import results_by  # noqa: E402


def slow_square(factor, number):
    time.sleep(0.15)
    return factor[0] * number**2, os.getpid()


def die(_, number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse(_, number):
    raise ValueError(f"no {number}")


@pytest.fixture(scope="module")
def cluster():
    settings = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None, "silence_logs": 60}
    # The scheduler gives a task up at its first death, so that giving it out again is up to us.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=2, **settings) as found,
    ):
        # A worker that dies while it starts is given up by what watches it: others are started then.
        found.adapt(minimum=2, maximum=2, interval="500ms")
        yield found


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as found:
        yield found


def test_results_are_the_same_while_workers_are_killed(cluster, client):
    stop, killed = Event(), []

    def kill():
        while len(killed) < 3 and not stop.wait(0.3):
            there = client.nthreads()
            alive = [one.pid for one in cluster.workers.values() if one.worker_address in there and one.pid]
            if len(alive) > 1:
                os.kill(alive[0], signal.SIGKILL)
                killed.append(alive[0])

    killer = Thread(target=kill)
    killer.start()
    try:
        found = list(results_by(client)("square", slow_square, [2], [(number,) for number in range(24)]))
    finally:
        stop.set()
        killer.join()
    assert killed
    assert sorted(place for place, _ in found) == list(range(24))
    assert all(result[0] == 2 * place**2 for place, result in found)


def test_a_task_that_kills_every_worker_is_named(client, monkeypatch):
    monkeypatch.setattr(workers, "MOST_ATTEMPTS", 0)
    client.wait_for_workers(1, timeout=60)
    with (
        distributed.Client(client.scheduler.address, set_as_default=False) as other,
        pytest.raises(ClusterError, match=r"dying: partition 0 was given out 1 times"),
    ):
        # One task: the scheduler blames all that wait on a worker for its death, not only the one that runs.
        list(results_by(other, patience=60.0)("dying", die, None, [(3,)]))


def test_an_error_of_a_task_is_raised_as_it_is(client):
    with pytest.raises(ValueError, match="no 0"):
        list(results_by(client, patience=60.0)("refuse", refuse, None, [(0,)]))


def test_without_workers_there_is_an_error():
    settings = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 60}
    with (
        distributed.LocalCluster(n_workers=0, **settings) as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match="no worker for 2 seconds"),
    ):
        list(results_by(client, patience=2.0)("square", slow_square, [2], [(1,)]))
