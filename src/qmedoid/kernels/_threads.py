"""How many threads to use, one rule for scoring and search."""

import os

from qmedoid.exceptions import ParameterError


def thread_count(threads: int | None) -> int:
    """The number of threads asked for by the caller, else by ``QMEDOID_THREADS``, else one per core."""
    if threads is not None:
        if threads < 1:
            raise ParameterError(f"The 'threads' parameter must be None or an int >= 1. Got {threads!r} instead.")
        return threads
    wanted = os.environ.get("QMEDOID_THREADS", "")
    if not wanted:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ParameterError(f"The environment variable QMEDOID_THREADS must be an int >= 1. Got {wanted!r} instead.")
    return int(wanted)
