"""A bar in the terminal for fits that train circuits."""

import multiprocessing
import sys
import threading
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from sklearn.callback import CallbackContext

Key = tuple[int, ...]


class TrainingProgress:
    """A scikit-learn callback that shows how far a fit is: a bar, the step, the loss of its batch and the time left.

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
        console = self.console
        if console is None and sys.stderr is not None and sys.stderr.isatty():
            console = Console(stderr=True)
        is_shown = console is not None and console.is_terminal and multiprocessing.parent_process() is None
        with _lock:
            if is_shown and not _displays:
                _displays[context.root_uuid] = display = _Bars(console)
                display.start()

    def on_fit_task_begin(self, estimator: Any, context: CallbackContext) -> None:  # noqa: ARG002
        """Add a bar for a task that has parts."""
        display = _displays.get(context.root_uuid)
        if display is not None and context.max_subtasks != 0:
            key, title = _key(context), context.estimator_name if context.task_name == "fit" else context.task_name
            with _lock:
                display.of_task[key] = display.add_task(
                    "  " * (len(key) - 1) + title, total=context.max_subtasks, detail=""
                )

    def on_fit_task_end(
        self,
        estimator: Any,  # noqa: ARG002
        context: CallbackContext,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Advance the bar of the task this one is part of."""
        display, key = _displays.get(context.root_uuid), _key(context)
        if display is None:
            return
        with _lock:
            own, above = display.of_task.get(key), display.of_task.get(key[:-1])
            if own is not None and len(key) > 1:
                display.remove_task(display.of_task.pop(key))
            elif own is not None:
                # A fit that settled early did fewer parts than there might have been.
                display.update(own, total=1, completed=1)
            if above is not None:
                display.advance(above)
            if above is not None and metadata is not None and "loss" in metadata:
                detail = f"step {metadata['step']} of {metadata['steps']}, loss {metadata['loss']:.4f}"
                display.update(above, detail=detail)

    def teardown(self, estimator: Any, context: CallbackContext) -> None:  # noqa: ARG002
        """End the display, however the fit ended."""
        with _lock:
            display = _displays.pop(context.root_uuid, None)
        if display is not None:
            display.stop()


class _Bars(Progress):
    """Bars by the path of their tasks; those below the first disappear when their task ends."""

    def __init__(self, console: Console | None) -> None:
        # It moves on where a step takes long. Standard output keeps to itself, as it may go to a file.
        super().__init__(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[detail]}"), TimeElapsedColumn(), TimeRemainingColumn(),
            console=console, redirect_stdout=False,
        )  # fmt: skip
        self.of_task = dict[Key, TaskID]()


# Displays live here and not on the callback, which travels to worker processes.
_displays: dict[UUID, _Bars] = {}
_lock = threading.Lock()


def _key(context: CallbackContext) -> Key:
    above = () if context.parent is None else _key(context.parent)
    return (*above, context.task_id)
