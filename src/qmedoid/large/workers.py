"""Tasks on the workers of a Dask cluster, whichever of them die; on threads of this process where there is none.

A task that dies with its worker is given to another one by the scheduler, which raises `KilledWorker` when that has
happened a few times: a cluster whose machines are taken away is then told to try again. What a task returns must
depend on its arguments alone, and then so do all results.
"""

import hashlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, LocalCluster, default_client

from qmedoid.exceptions import ClusterError, ParameterError
from qmedoid.kernels.backend import thread_count
from qmedoid.large.runner import Results, on_threads

MOST_ATTEMPTS = 25
"""Times that a task is given out again, each after the scheduler has given it up."""
PATIENCE = 30.0
"""Seconds without any worker after which an error is raised."""
# Seconds between looks at the cluster while nothing is done, and until tasks that no worker has are given out again.
_LOOK, _STALLED = 1.0, 10.0


def results_by(client: Client | None = None, *, patience: float = PATIENCE) -> Results:
    """What runs tasks on the workers of a client, or of the one in force; else on threads of this process.

    Partitions of Dask collections among the arguments of a task (`Delayed`) are computed where it runs. What tasks
    share goes to every worker once, however many tasks there are. After `patience` seconds without any worker an error
    is raised.
    """
    if client is None:
        with suppress(ValueError):
            client = default_client()
    if client is None:
        here: dict[str, Any] = {"scheduler": "synchronous", "traverse": False}
        return partial(on_threads, threads=thread_count(None), ready=lambda task: dask.compute(*task, **here))
    if client.asynchronous:
        raise ParameterError("The client of the cluster is asynchronous. Give one made with asynchronous=False.")

    def results(what: str, function: Any, shared: Any, tasks: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        return _ClusterRun(client, what, function, tasks, patience).results(shared)

    return results


def packed(value: Any) -> tuple[bytes, str]:
    """An object as bytes, and the name of the task that unpickles them.

    In a graph that is one task that others depend on: the scheduler holds the bytes once, every worker gets the object
    once, and what is lost with a worker is made again from the task.
    """
    data = cloudpickle.dumps(value)
    return data, f"qmedoid-{hashlib.sha256(data).hexdigest()}"


class _ClusterRun:
    """One round of tasks on a cluster."""

    def __init__(self, client: Client, what: str, function: Any, tasks: Sequence[tuple[Any, ...]], patience: float):
        self._client, self._what, self._function, self._tasks = client, what, function, tasks
        self._name = f"qmedoid-{what.replace(' ', '-')}-{uuid4().hex}"
        self._patience, self._worker_seen, self._progress = patience, time.monotonic(), time.monotonic()
        self._finished: SimpleQueue[Future] = SimpleQueue()
        self._running: dict[str, tuple[int, Future]] = {}
        self._attempts = [0] * len(tasks)
        # Partitions of a collection may be made of the same parts, which are computed once if all are wanted together.
        self._is_collection = any(isinstance(one, Delayed) for task in tasks for one in task)

    def results(self, shared: Any) -> Iterator[tuple[int, Any]]:
        """Results as they come; a future is released as soon as its result is here."""
        data, key = packed(shared)
        self._shared = self._client.submit(cloudpickle.loads, data, key=key)
        left, room = deque(range(len(self._tasks))), 0
        try:
            while left or self._running:
                if len(self._running) < 2:
                    # Two for every thread there is, so that none waits for the next.
                    room = len(left) if self._is_collection else max(4, 2 * sum(self._client.nthreads().values()))
                if new := [left.popleft() for _ in range(min(room - len(self._running), len(left)))]:
                    self._submit(new)
                yield from self._next()
        finally:
            if self._running:
                self._client.cancel([future for _, future in self._running.values()])
            self._shared.release()

    def _submit(self, numbers: Sequence[int]) -> None:
        keys = [f"{self._name}-{number}-{self._attempts[number]}" for number in numbers]
        if self._is_collection:
            call = delayed(self._function, pure=False, traverse=False)
            made = self._client.compute(
                [call(self._shared, *self._tasks[n], dask_key_name=key) for n, key in zip(numbers, keys, strict=True)]
            )
        else:
            made = [
                self._client.submit(self._function, self._shared, *self._tasks[n], key=key, pure=False)
                for n, key in zip(numbers, keys, strict=True)
            ]
        for number, key, future in zip(numbers, keys, made, strict=True):
            self._running[key] = number, future
            future.add_done_callback(self._finished.put)

    def _next(self) -> list[tuple[int, Any]]:
        """The next result, or none where something was done instead of waiting on."""
        try:
            future = self._finished.get(timeout=_LOOK)
        except Empty:
            self._look()
            return []
        key = str(future.key)
        if key not in self._running:  # it was given out again since
            return []
        self._progress = self._worker_seen = time.monotonic()
        try:
            # A worker that had the result may have died; the task runs again elsewhere then.
            found = self._running[key][0], future.result(timeout=self._patience)
        except (CancelledError, KilledWorker) as error:
            self._again(key, error)
        except TimeoutError:
            if future.status == "error":  # the task's own
                raise
            self._look()
            future.add_done_callback(self._finished.put)
        else:
            self._running.pop(key)[1].release()
            return [found]
        return []

    def _again(self, key: str, error: BaseException | None) -> None:
        """Give a task out once more, which is lost or was given up."""
        number, future = self._running[key]
        self._attempts[number] += 1
        if self._attempts[number] > MOST_ATTEMPTS:
            raise ClusterError(
                f"{self._what}: partition {number} was given out {MOST_ATTEMPTS + 1} times, and its workers died each "
                "time. Give the workers more memory, or make the partitions smaller."
            ) from error
        if self._client.status != "running":
            raise ClusterError(
                f"{self._what}: the connection to the scheduler was lost. Start again when it is back."
            ) from error
        if isinstance(error, KilledWorker):
            self._client.retry([future])
            future.add_done_callback(self._finished.put)
        else:
            self._running.pop(key)
            future.release()
            self._submit([number])

    def _look(self) -> None:
        """Raise if there is no worker for long; give out again what no worker has."""
        now = time.monotonic()
        try:
            is_anyone_there = bool(self._client.nthreads())
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"{self._what}: the scheduler does not answer ({error}). Start again when it is back."
            ) from error
        if is_anyone_there:
            self._worker_seen = now
        if now - self._worker_seen > self._patience:
            raise ClusterError(
                f"{self._what}: the cluster has had no worker for {self._patience:g} seconds. Start workers, and run "
                "this again."
            )
        if is_anyone_there and now - self._progress > _STALLED and not any(self._client.processing().values()):
            self._progress = now
            for key, (_, future) in list(self._running.items()):
                self._client.cancel([future])
                self._again(key, None)


LOCAL = "local"
"""What asks for workers of this machine."""
# Seconds until a scheduler must have answered.
_ANSWER = 10.0
# How often workers of this machine are counted.
_WATCH = "1s"


@contextmanager
def connected(where: str) -> Iterator[Client]:
    """A client of the scheduler at an address, or of workers of this machine, one process for each core.

    Workers of this machine listen on loopback alone, are replaced when they die, and end with the block.
    """
    if where == LOCAL:
        n_workers = thread_count(None)
        how: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
        with LocalCluster(n_workers=n_workers, threads_per_worker=1, **how) as cluster, Client(cluster) as client:
            # A worker that dies while it starts is given up by what watches it: others are started then.
            cluster.adapt(minimum=n_workers, maximum=n_workers, interval=_WATCH)
            yield client
        return
    if "://" not in where:
        raise ParameterError(
            f"--dask must be {LOCAL!r} or the address of a scheduler, such as tcp://host:8786. Got {where!r} instead."
        )
    try:
        client = Client(where, timeout=_ANSWER)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {where}: {error}. Check the address, or start one."
        ) from error
    with client:
        yield client
