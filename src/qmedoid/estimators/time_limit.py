"""Reports of a fit to the callbacks of scikit-learn, and a time limit.

Parts that would end after the limit are not begun, or given up, and a warning says so.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from qmedoid.exceptions import InterruptedWarning, warn

if TYPE_CHECKING:
    from sklearn.callback import CallbackContext

T = TypeVar("T")
Progress = Callable[[float], None]
"""Progress callback; receives the fraction done."""


class TimeLimit:
    """Seconds that a fit may take, and the names of the parts that it left out for them."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
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


_NONE = TimeLimit(math.inf, time.monotonic)
_current: ContextVar[TimeLimit] = ContextVar("qmedoid_time_limit", default=_NONE)


@contextmanager
def time_limit(seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> Iterator[TimeLimit]:
    """Put a limit on the fits within the block."""
    limit = TimeLimit(seconds, clock)
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


# Reports of a fit that tells its progress as a fraction.
_REPORTS = 100


class FitReport:
    """Reports one task of a fit, which `make` makes, to the callbacks of its owner; X and y where it is the fit."""

    def __init__(self, owner: Any, make: "Callable[..., CallbackContext]", **data: Any) -> None:
        self._owner, self._make, self._data = owner, make, data
        self._done = 0
        self.task: CallbackContext | None = None

    def begin(self, n_steps: int) -> None:
        """Begin the task."""
        self.task = self._make(max_subtasks=n_steps).call_on_fit_task_begin(estimator=self._owner, **self._data)

    def step(self, name: str) -> bool:
        """Report a step; whether a callback asks to stop, or the time is up."""
        assert self.task is not None, "the task has begun"
        step = self.task.subcontext(task_name=name).call_on_fit_task_begin(estimator=self._owner)
        return bool(step.call_on_fit_task_end(estimator=self._owner)) or time_is_up()

    def fraction(self, done: float) -> None:
        """Report the fraction done, in steps of a percent."""
        if self.task is None:
            self.begin(_REPORTS)
        while self._done < min(_REPORTS, int(done * _REPORTS + 1e-9)):
            self._done += 1
            self.step(f"{self._done} of {_REPORTS}")

    def end(self) -> None:
        """End the task."""
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self._owner, **self._data)
