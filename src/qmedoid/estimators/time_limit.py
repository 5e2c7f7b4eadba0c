"""A time limit for fits: parts that would end after it are not begun, or given up, and a warning says so."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from qmedoid.exceptions import InterruptedWarning, warn

T = TypeVar("T")
Progress = Callable[[float], None]
"""Progress callback; receives the fraction done."""


class TimeLimit:
    """Seconds that a fit may take, and the names of the parts that it left out for them."""

    def __init__(self, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.left_out: list[str] = []
        self._end = clock() + seconds

    @property
    def is_up(self) -> bool:
        """Whether the time is up."""
        return self.clock() > self._end

    def allows(self, what: str, expected: float = 0.0) -> bool:
        """Whether there is time for a part that takes so many seconds; if not, it is noted as left out."""
        if self.clock() + expected <= self._end:
            return True
        self.left_out.append(what)
        warn(f"The time limit of {self.seconds:g} s left out: {what}.", InterruptedWarning)
        return False


_NONE = TimeLimit()
_current: ContextVar[TimeLimit] = ContextVar("qmedoid_time_limit", default=_NONE)


@contextmanager
def time_limit(limit: TimeLimit) -> Iterator[TimeLimit]:
    """Put a limit on the fits within the block."""
    before = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(before)


def time_is_up() -> bool:
    """Whether the time of the fit is up; what can stop with its best so far does."""
    return _current.get().is_up


def is_time_for(what: str, expected: float = 0.0) -> bool:
    """Whether a part that takes about so many seconds may begin."""
    return _current.get().allows(what, expected)


class _OutOfTimeError(Exception):
    """A part would end after the limit."""


def part_in_time(
    what: str, expected: float, fit: Callable[[Progress], T], progress: Progress | None = None
) -> T | None:
    """A part of a fit, or None where there is no time for it.

    It is not begun where the expected seconds are too many, and given up where it is slower than expected: at every
    report of the fraction done, the rest is expected to go on at the pace so far.
    """
    limit = _current.get()
    if not limit.allows(what, expected):
        return None
    began = limit.clock()

    def report(done: float) -> None:
        if progress is not None:
            progress(done)
        if 0.0 < done < 1.0 and not limit.allows(what, (limit.clock() - began) * (1.0 - done) / done):
            raise _OutOfTimeError

    try:
        return fit(report)
    except _OutOfTimeError:
        return None
