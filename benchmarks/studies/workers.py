"""Tasks in other processes, each worker on a pipe of its own: the end of one never blocks another."""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import wait
from typing import Any

# Spawned, not forked: a fork would copy the threads of OpenMP in whatever state they are.
_CONTEXT = multiprocessing.get_context("spawn")


class WorkerKilledError(RuntimeError):
    """A worker ended before its task did."""


class _Worker:
    """A process that calls functions, one after another, until its pipe is closed."""

    def __init__(self) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_work, args=(theirs,))
        self.process.start()
        # Only the worker holds its end now: when it dies, the pipe says so.
        theirs.close()

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Begin a task."""
        with suppress(OSError):  # a dead worker: its answer will say so
            self.pipe.send((function, arguments))

    def answer(self) -> Callable[[], Any]:
        """Wait for the end of the task; a function that returns its value or raises its error."""
        try:
            value, error = self.pipe.recv()
        except (EOFError, OSError) as cause:
            value, error = None, WorkerKilledError(f"Process {self.process.pid} ended before its task did.")
            error.__cause__ = cause
        except Exception as cause:  # an error that cannot be built again here
            value, error = None, cause
        return partial(_value_or_error, value, error)

    def end(self) -> None:
        """Wait for the process, which ends when it has answered."""
        self.pipe.close()
        self.process.join()


def run_tasks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int, *, fresh: bool = False
) -> Generator[tuple[int, Callable[[], Any]]]:
    """Call a function with the arguments of each task in other processes, `jobs` at a time.

    Yields the number of a task as it ends, and a function that returns its value or raises its error, which is
    `WorkerKilledError` if its process was killed. `fresh` starts a new process for each task. Closing the generator
    ends all workers.
    """
    workers: list[_Worker] = []
    idle: list[_Worker] = []
    busy: dict[Any, tuple[int, _Worker]] = {}
    waiting = list(enumerate(tasks))[::-1]
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                if not idle:
                    with _ctrl_c_waits():
                        workers.append(_Worker())
                    idle.append(workers[-1])
                number, arguments = waiting.pop()
                worker = idle.pop()
                worker.call(function, arguments)
                busy[worker.pipe] = number, worker
            for pipe in wait(list(busy)):
                number, worker = busy[pipe]
                answer = worker.answer()
                del busy[pipe]
                if fresh:
                    worker.end()
                    workers.remove(worker)
                else:
                    idle.append(worker)
                yield number, answer
    finally:
        for worker in workers:
            if worker.pipe in busy:
                worker.process.terminate()
        for worker in workers:
            worker.end()


def _value_or_error(value: Any, error: Exception | None) -> Any:
    if error is not None:
        raise error
    return value


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends, where the system can; processes that start meanwhile never hear of it.

    It reaches the whole group, and a worker that is still importing would print where it was.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Any) -> None:
    """Answer the calls of the parent; runs in the worker."""
    # Ctrl-C is the parent's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        answer = _answer(task)
        try:
            pipe.send(answer)
        except OSError:
            return
        except Exception as error:
            pipe.send((None, RuntimeError(f"What a task returned or raised cannot be sent: {error}")))


def _answer(task: bytes) -> tuple[Any, Exception | None]:
    try:
        function, arguments = pickle.loads(task)
        return function(*arguments), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        return None, error


def _end_with_parent() -> None:
    """End a busy worker when the parent is gone: killed, it cannot tell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
