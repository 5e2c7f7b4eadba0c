"""Reports of a fit to the callbacks of scikit-learn."""

from collections.abc import Callable
from typing import Any

from sklearn.callback import CallbackContext

from qmedoid.estimators.time_limit import time_is_up

# Reports of a fit that tells its progress as a fraction.
_REPORTS = 100


class FitReport:
    """Reports one task of a fit, which `make` makes, to the callbacks of its owner; X and y where it is the fit."""

    def __init__(self, owner: Any, make: Callable[..., CallbackContext], **data: Any) -> None:
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
