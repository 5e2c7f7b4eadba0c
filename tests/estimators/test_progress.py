"""TrainingProgress: how far a fit is, in a terminal and nowhere else."""

import io
import multiprocessing
import os
import pickle
import pty
import re
import select
import sys

import numpy as np
import pytest
from joblib import parallel_config
from rich.console import Console
from sklearn.model_selection import GridSearchCV, cross_val_score

from qmedoid import TrainingProgress, VariationalClassifier
from qmedoid.estimators import progress

rng = np.random.default_rng(0)
Y = np.arange(60) % 2
X = rng.normal(size=(60, 2)) + 0.8 * Y[:, None]


def quick(**changes):
    return VariationalClassifier(**({"n_steps": 30, "n_reps": 1, "n_seeds": 2, "random_state": 0} | changes))


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def plain(console):
    """What was written, without the movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not progress._displays


def test_it_shows_a_bar_with_the_step_the_loss_and_the_time():
    console = terminal()
    quick().set_callbacks(TrainingProgress(console)).fit(X, Y)
    shown = plain(console)
    last = shown.strip().splitlines()[-1]
    assert "VariationalClassifier" in last
    assert "100%" in last
    assert re.search(r"step 30 of 30, loss 0\.\d{4}", last)
    assert re.search(r"\d:\d\d:\d\d", last)
    assert console.file.getvalue().rstrip().endswith("\x1b[?25h")  # the cursor is shown again


class Halfway:
    """What the bar says in the middle of a fit."""

    def __init__(self):
        self.seen = None

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
        if metadata and metadata["step"] == 15:
            (display,) = progress._displays.values()
            (task,) = display.tasks
            self.seen = (task.completed, task.total)


def test_bar_counts_what_is_done():
    """Two folds of two candidates and the last training: five trainings, and the bar stands at four and a half."""
    halfway = Halfway()
    quick(n_seeds=1, grid={"n_reps": [1, 2]}, cv=2).set_callbacks(TrainingProgress(terminal()), halfway).fit(X, Y)
    assert halfway.seen == (4 * 30 + 15, 5 * 30)


def test_without_a_terminal_there_is_nothing(capfd):
    console = Console(file=io.StringIO(), force_terminal=False)
    quick().set_callbacks(TrainingProgress(console)).fit(X, Y)
    quick().set_callbacks(TrainingProgress()).fit(X, Y)
    assert console.file.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def test_it_writes_to_standard_error_when_that_is_a_terminal(monkeypatch, capfd):
    ours, theirs = pty.openpty()
    with open(theirs, "w") as screen:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", screen)
        quick(n_steps=5).set_callbacks(TrainingProgress()).fit(X, Y)
        monkeypatch.undo()
        shown = b""
        while b"VariationalClassifier" not in shown and select.select([ours], [], [], 5.0)[0]:
            shown += os.read(ours, 100_000)
        assert b"VariationalClassifier" in shown
    os.close(ours)
    assert capfd.readouterr() == ("", "")


def test_fit_that_raises_leaves_a_clean_terminal():
    class Fails(Halfway):
        def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
            raise ZeroDivisionError

    console = terminal()
    with pytest.raises(ZeroDivisionError):
        quick().set_callbacks(TrainingProgress(console), Fails()).fit(X, Y)
    assert console.file.getvalue().rstrip().endswith("\x1b[?25h")
    before = console.file.getvalue()
    quick().set_callbacks(TrainingProgress(console)).fit(X, Y)
    assert "100%" in plain(console)[len(before) :]


def test_it_shows_the_fits_inside_a_search():
    class Bars(Halfway):
        max_propagation_depth = None

        def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
            if metadata:
                (display,) = progress._displays.values()
                seen.append([(task.description, task.fields["detail"]) for task in display.tasks])

    console, seen = terminal(), []
    GridSearchCV(quick(), {"n_reps": [1, 2]}, cv=2).set_callbacks(TrainingProgress(console), Bars()).fit(X, Y)
    for bars in seen:
        assert bars[0] == ("GridSearchCV", "")
        assert re.fullmatch(" +VariationalClassifier", bars[-1][0])
    assert any(re.fullmatch(r"step \d+ of 30, loss 0\.\d{4}", bars[-1][1]) for bars in seen)
    # Bars of fits that ended are gone.
    assert max(len(bars) for bars in seen) == 3  # the search, its candidates, a fit
    assert "100%" in plain(console).strip().splitlines()[-1]


def test_it_is_pickled_without_its_console():
    again = pickle.loads(pickle.dumps(TrainingProgress(terminal())))
    assert again.console is None
    model = quick().set_callbacks(TrainingProgress(terminal())).fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_stay_silent_or_share(backend):
    with parallel_config(backend=backend, n_jobs=2):
        console = terminal()
        search = GridSearchCV(quick(n_steps=3), {"n_reps": [1, 2]}, cv=2, error_score="raise")
        search.set_callbacks(TrainingProgress(console)).fit(X, Y)
        assert "GridSearchCV" in plain(console)
        scores = cross_val_score(quick(n_steps=3).set_callbacks(TrainingProgress()), X, Y, cv=2, error_score="raise")
        assert np.isfinite(scores).all()


def test_fit_in_a_worker_process_is_silent(monkeypatch):
    console = terminal()
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "somebody")
    quick(n_steps=3).set_callbacks(TrainingProgress(console)).fit(X, Y)
    assert console.file.getvalue() == ""


def test_one_display_at_a_time():
    class Nested(Halfway):
        def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
            if metadata and metadata["step"] == 10 and self.seen is None:
                self.seen = inner = terminal()
                quick(n_steps=2).set_callbacks(TrainingProgress(inner)).fit(X, Y)

    nested, outer = Nested(), terminal()
    quick(n_seeds=1).set_callbacks(TrainingProgress(outer), nested).fit(X, Y)
    assert nested.seen.file.getvalue() == ""
    assert "100%" in plain(outer).strip().splitlines()[-1]
