"""Jobs, run one after the other or by a service; what has finished is never run again."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from qmedoid.exceptions import JobError, ParameterError, QMedoidError
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.sampling import Counts, counts_of, has_failed, runs_here, says_how_it_is
from qmedoid.quantum.measurement.packing import Job

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import CountStore

_AHEAD = 10
"""Jobs that wait at a service at a time."""


def run_jobs(
    jobs: Sequence[Job],
    device: Device,
    store: "CountStore | None" = None,
    *,
    on_job: Callable[[int, int], None] | None = None,
    attempts: int = 3,
) -> list[list[Counts]]:
    """Counts of all jobs in order.

    A job whose counts are in the store is not run. One that a service runs already, by the name that the store has
    kept, is fetched. A job that fails is tried again, unless circuits or counts are refused here, and its last failure
    is raised after all others have been waited for.

    Raises
    ------
    JobError
        Jobs failed as often as they may; counts of the others are in the store.
    """
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise ParameterError(f"The 'attempts' parameter must be an int >= 1. Got {attempts!r} instead.")
    found: dict[int, list[Counts]] = {}
    waiting: deque[tuple[Job, Any]] = deque()
    failures: list[tuple[Job, Exception]] = []

    def finish() -> None:
        job, started = waiting.popleft()
        counts = _finished(job, started, device, store, attempts)
        if isinstance(counts, Exception):
            failures.append((job, counts))
        else:
            found[job.number] = counts
        if on_job is not None:
            on_job(len(found), len(jobs))

    for job in jobs:
        counts = None if store is None else store.counts(job)
        if counts is not None:
            found[job.number] = counts
            if on_job is not None:
                on_job(len(found), len(jobs))
            continue
        try:
            started = _started(job, device, store)
        except Exception as error:  # tried again, and reported, when its turn comes
            started = error
        waiting.append((job, started))
        if device.is_simulated or runs_here(started) or len(waiting) >= _AHEAD:
            finish()
    while waiting:
        finish()
    if failures:
        job, why = failures[0]
        said = f"{type(why).__name__}: {why}".rstrip(".")
        tried = "" if isinstance(why, QMedoidError) else f" {attempts} times"
        kept = "" if store is None else " What has finished is kept: the same command goes on from there."
        raise JobError(
            f"{len(failures)} of {len(jobs)} jobs failed{tried}; job {job.number} with {said}.{kept}"
        ) from why
    return [found[job.number] for job in jobs]


def _finished(
    job: Job, started: Any, device: Device, store: "CountStore | None", attempts: int
) -> list[Counts] | Exception:
    """Counts of a job that was started, or could not be; or the last failure of so many attempts."""
    error = started if isinstance(started, Exception) else None
    handle = None if error is not None else started
    if isinstance(error, QMedoidError):
        return error
    for _ in range(attempts if error is None else attempts - 1):
        try:
            if handle is None:
                handle = _started(job, device, store)
            counts = counts_of(handle.result(), job.batches)
        except QMedoidError as refused:  # ours: the circuits or what they returned, which is paid for, stay as they are
            # One that was sent, and whose name could not be kept, is found by its key.
            if store is not None and handle is not None:
                store.forget_submitted(job)
            return refused
        except Exception as failed:  # any provider's
            error = failed
            if store is not None and handle is not None and has_failed(handle):
                store.forget_submitted(job)
            # One that has not failed is asked again: by its name, which the store knows, or as it is.
            if store is not None or handle is None or has_failed(handle) or not says_how_it_is(handle):
                handle = None
        else:
            if store is not None:
                store.keep(job, counts)
            return counts
    assert error is not None, "a job without counts has failed"
    return error


def _started(job: Job, device: Device, store: "CountStore | None") -> Any:
    """The job of an earlier process at the service, or a new one.

    Before a job is sent to a service the store notes that it will be, and the job carries its key: so that a process
    that dies between the two leaves no job behind that nobody fetches.
    """
    if store is None or device.is_simulated:
        return device.submit(job.batches, seed=[job.number])
    job_id, key = store.submitted(job), job.key(device)
    if job_id is not None:
        handle = device.fetch(job_id) if job_id else device.find(key)
        if handle is not None:
            return handle
    store.keep_submitted(job, "")
    handle = device.submit(job.batches, seed=[job.number], key=key)
    name = getattr(handle, "job_id", None)
    store.keep_submitted(job, str(name()) if callable(name) else "")
    return handle
