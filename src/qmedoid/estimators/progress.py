"""A bar in the terminal for fits that train circuits."""

import multiprocessing
import os
import sys
import threading
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from sklearn.callback import CallbackContext

# Weight of the past in the loss that is shown: batch losses jump.
_SMOOTHING = 0.8

Key = tuple[int, ...]


class TrainingProgress:
    """A scikit-learn callback that shows how far a fit is: a bar, the step, the smoothed loss and the time left.

    ``VariationalClassifier().set_callbacks(TrainingProgress()).fit(X, y)``

    It writes to standard error, and nothing at all where that is not a terminal. Set on a meta-estimator, such as a
    grid search, it shows the fits inside as well. There is one display per process: fits in worker processes, and fits
    next to one that is already shown, stay silent.

    Parameters
    ----------
    console : rich.console.Console or None, default=None
        Where to show it instead of standard error. It is not pickled with the callback.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import TrainingProgress, VariationalClassifier
    >>> model = VariationalClassifier(n_qubits=2, n_steps=2, n_seeds=1, random_state=0)
    >>> model.set_callbacks(TrainingProgress()).fit(X, y).loss_curve_.shape
    (2,)
    """

    max_propagation_depth: int | None = None

    def __init__(self, console: Console | None = None) -> None:
        self.console = console

    def __getstate__(self) -> dict[str, Any]:
        """Without the console, which no other process could use."""
        return {"console": None}

    def setup(self, estimator: Any, context: CallbackContext) -> None:  # noqa: ARG002
        """Begin a display, if there is a terminal and no other display."""
        console = self._terminal()
        with _lock:
            if console is not None and not _displays:
                _displays[context.root_uuid] = _Display(console)

    def on_fit_task_begin(self, estimator: Any, context: CallbackContext) -> None:  # noqa: ARG002
        """Add a bar for a task that has parts."""
        display = _display_of(context)
        if display is not None and context.max_subtasks != 0:
            title = context.estimator_name if context.task_name == "fit" else context.task_name
            display.begin(_key(context), title, context.max_subtasks)

    def on_fit_task_end(
        self,
        estimator: Any,  # noqa: ARG002
        context: CallbackContext,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Advance the bar of the task this one is part of."""
        display = _display_of(context)
        if display is not None:
            display.end(_key(context), metadata or {})

    def teardown(self, estimator: Any, context: CallbackContext) -> None:  # noqa: ARG002
        """End the display, however the fit ended."""
        with _lock:
            display = _displays.pop(context.root_uuid, None)
        if display is not None and display.process == os.getpid():
            display.progress.stop()

    def _terminal(self) -> Console | None:
        if multiprocessing.parent_process() is not None:
            return None
        if self.console is not None:
            return self.console if self.console.is_terminal else None
        return Console(stderr=True) if sys.stderr is not None and sys.stderr.isatty() else None


class _Display:
    """Bars by the path of their tasks; those below the first disappear when their task ends."""

    def __init__(self, console: Console) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._bars: dict[Key, TaskID] = {}
        self._losses: dict[Key, float] = {}
        # Standard output keeps to itself, as it may go to a file.
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[detail]}"),
            # It moves on where a step takes long.
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            redirect_stdout=False,
        )
        self.progress.start()

    def begin(self, key: Key, title: str, parts: int | None) -> None:
        with self._lock:
            self._bars[key] = self.progress.add_task("  " * (len(key) - 1) + title, total=parts, detail="")

    def end(self, key: Key, metadata: dict[str, Any]) -> None:
        with self._lock:
            own, above = self._bars.get(key), self._bars.get(key[:-1])
            if own is not None and len(key) > 1:
                self.progress.remove_task(self._bars.pop(key))
                self._losses.pop(key, None)
            elif own is not None:
                # A fit that settled early did fewer parts than there might have been.
                self.progress.update(own, total=1, completed=1)
            if above is not None:
                self.progress.advance(above)
            if above is not None and "loss" in metadata:
                loss = float(metadata["loss"])
                smoothed = _SMOOTHING * self._losses.get(key[:-1], loss) + (1.0 - _SMOOTHING) * loss
                self._losses[key[:-1]] = smoothed
                step = f"step {metadata['step']} of {metadata['steps']}, " if "steps" in metadata else ""
                self.progress.update(above, detail=f"{step}loss {smoothed:.4f}")


# Displays live here and not on the callback, which travels to worker processes.
_displays: dict[UUID, _Display] = {}
_lock = threading.Lock()


def _display_of(context: CallbackContext) -> _Display | None:
    """The display of a task's fit, if it is this process's own and not one that a fork brought along."""
    display = _displays.get(context.root_uuid)
    return display if display is not None and display.process == os.getpid() else None


def _key(context: CallbackContext) -> Key:
    above = () if context.parent is None else _key(context.parent)
    return (*above, context.task_id)
