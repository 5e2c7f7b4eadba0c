"""Compiled kernels or their NumPy twins, and the number of threads they use."""

import importlib
import os
from functools import cache
from types import ModuleType

from qmedoid.exceptions import ParameterError, warn


@cache
def compiled(name: str) -> ModuleType | None:
    """The compiled kernel ``qmedoid.kernels._<name>``, or None where its NumPy twin is to be used.

    ``QMEDOID_KERNELS=numpy`` asks for the twins. The answer is kept from the first call on.
    """
    if os.environ.get("QMEDOID_KERNELS") == "numpy":
        return None
    try:
        return importlib.import_module(f"{__package__}._{name}")
    except ImportError:
        _warn_not_built()
        return None


@cache
def _warn_not_built() -> None:
    """Say once that results are the same but slower, and how to change that."""
    warn(
        "The compiled kernels of qmedoid were not built, so their NumPy twins are used: same results, but slower. "
        "To get them, install a C compiler and reinstall qmedoid. "
        "Set QMEDOID_KERNELS=numpy to use the twins without this warning."
    )


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
