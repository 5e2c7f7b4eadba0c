"""Tasks on the workers of a Dask cluster, whichever of them die; on threads of this process where there is none.

A task that dies with its worker is given to another one by the scheduler, which raises `KilledWorker` when that has
happened a few times: a cluster whose machines are taken away is then told to try again. What a task returns must
depend on its arguments alone, and then so do all results.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, LocalCluster, default_client

from qmedoid.exceptions import ClusterError, ParameterError, warn
from qmedoid.kernels.backend import thread_count
from qmedoid.large.runner import Results, on_threads
from qmedoid.large.shared import Shared

MOST_ATTEMPTS = 25
"""Times that a task is given out again, each after the scheduler has given it up."""
PATIENCE = 30.0
"""Seconds without any worker after which an error is raised."""
# Seconds between looks at the cluster while nothing is done, and until tasks that no worker has are given out again.
_LOOK, _STALLED = 1.0, 10.0


def results_by(client: Client | None = None, *, patience: float = PATIENCE, threads: int | None = None) -> Results:
    """What runs tasks on the workers of a client, or of the one in force; else on threads of this process.

    Partitions of Dask collections among the arguments of a task (`Delayed`) are computed where it runs. What tasks
    share goes to every worker once, however many tasks there are.

    Parameters
    ----------
    client : distributed.Client or None
    patience : float
        Seconds without any worker after which an error is raised.
    threads : int or None
        Threads of this process, where there is no cluster; all by default.
    """
    if client is None:
        with suppress(ValueError):
            client = default_client()
    if client is None:
        return partial(on_threads, threads=thread_count(threads), ready=_computed)
    if client.asynchronous:
        raise ParameterError("The client of the cluster is asynchronous. Give one made with asynchronous=False.")

    def results(
        what: str, function: Callable[..., Any], shared: Any, tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        return _ClusterRun(client, what, function, tasks, patience).results(shared)

    return results


def _computed(task: tuple[Any, ...]) -> tuple[Any, ...]:
    made: tuple[Any, ...] = dask.compute(*task, scheduler="synchronous", traverse=False)
    return made


class _ClusterRun:
    """One round of tasks on a cluster."""

    def __init__(self, client: Client, what: str, function: Any, tasks: Sequence[tuple[Any, ...]], patience: float):
        self._client, self._what, self._function, self._tasks = client, what, function, tasks
        self._name = f"qmedoid-{what.replace(' ', '-')}-{uuid4().hex}"
        self._patience, self._worker_seen, self._progress = patience, time.monotonic(), time.monotonic()
        self._has_told, self._known_room = False, 0
        self._finished: SimpleQueue[Future] = SimpleQueue()
        self._futures: dict[int, Future] = {}
        self._attempts = [0] * len(tasks)
        # Partitions of a collection may be made of the same parts, which are computed once if all are asked for.
        self._is_collection = any(isinstance(one, Delayed) for task in tasks for one in task)

    def results(self, shared: Any) -> Iterator[tuple[int, Any]]:
        """Results as they come; a future is released as soon as its result is here."""
        packed = Shared.of(shared)
        self._shared = self._client.submit(Shared, packed.sha256, packed.data, key=packed.key)
        places = iter(range(len(self._tasks)))
        try:
            while True:
                room = len(self._tasks) if self._is_collection else self._room()
                new = list[int]()
                while len(self._futures) + len(new) < room and (place := next(places, None)) is not None:
                    new.append(place)
                self._submit(new)
                if not self._futures:
                    return
                found = self._next()
                if found is not None:
                    yield found
        finally:
            if self._futures:
                self._client.cancel([*self._futures.values()])
            self._shared.release()

    def _room(self) -> int:
        """Tasks to give out at a time: two for every thread there is, so that none waits for the next."""
        if len(self._futures) >= 2:
            return self._known_room
        self._known_room = max(4, 2 * sum(self._client.nthreads().values()))
        return self._known_room

    def _submit(self, places: Sequence[int]) -> None:
        keys = [f"{self._name}-{place}-{self._attempts[place]}" for place in places]
        if not places:
            return
        if self._is_collection:
            call = delayed(_call, pure=False, traverse=False)
            graphs = [
                call(self._function, self._shared, *self._tasks[place], dask_key_name=key)
                for place, key in zip(places, keys, strict=True)
            ]
            made = self._client.compute(graphs)
        else:
            made = [
                self._client.submit(_call, self._function, self._shared, *self._tasks[place], key=key, pure=False)
                for place, key in zip(places, keys, strict=True)
            ]
        for place, future in zip(places, made, strict=True):
            self._futures[place] = future
            future.add_done_callback(self._finished.put)

    def _next(self) -> tuple[int, Any] | None:
        """The next result, or None where something was done instead of waiting on."""
        try:
            future = self._finished.get(timeout=_LOOK)
        except Empty:
            self._look()
            return None
        place = self._place_of(future)
        if place is None:
            return None
        self._progress = self._worker_seen = time.monotonic()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                self._again(place, future, error)
                return None
            return (place, future.result())  # which raises
        try:
            result = future.result(timeout=self._patience)
        except (CancelledError, KilledWorker) as error:
            self._again(place, None if isinstance(error, CancelledError) else future, error)
            return None
        except TimeoutError:  # the worker that had the result has died; the task runs again elsewhere
            self._look()
            future.add_done_callback(self._finished.put)
            return None
        self._futures.pop(place).release()
        return (place, result)

    def _place_of(self, future: Future) -> int | None:
        place = int(str(future.key).rsplit("-", 2)[1])
        current = self._futures.get(place)
        return place if current is not None and current.key == future.key else None

    def _again(self, place: int, future: Future | None, error: BaseException | None) -> None:
        """Give a task out once more; None for a future that is lost."""
        self._attempts[place] += 1
        if self._attempts[place] > MOST_ATTEMPTS:
            raise ClusterError(
                f"{self._what}: partition {place} was given out {MOST_ATTEMPTS + 1} times, and its workers died each "
                "time. Give the workers more memory, or make the partitions smaller."
            ) from error
        if self._client.status != "running":
            raise ClusterError(
                f"{self._what}: the connection to the scheduler was lost. Start again when it is back."
            ) from error
        if future is None:
            self._futures.pop(place).release()
            self._submit([place])
        else:
            self._client.retry([future])
            future.add_done_callback(self._finished.put)

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
        missing = now - self._worker_seen
        if missing > self._patience:
            raise ClusterError(
                f"{self._what}: the cluster has had no worker for {self._patience:g} seconds. Start workers, and run "
                "this again."
            )
        if missing > self._patience / 3 and not self._has_told:
            self._has_told = True
            warn(f"{self._what}: the cluster has no worker; waiting up to {self._patience:g} seconds for one.")
        if is_anyone_there and now - self._progress > _STALLED and not any(self._client.processing().values()):
            self._progress = now
            for place, future in list(self._futures.items()):
                self._client.cancel([future])
                self._again(place, None, None)


def _call(function: Callable[..., Any], shared: Shared, *arguments: Any) -> Any:
    return function(shared.value(), *arguments)


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
