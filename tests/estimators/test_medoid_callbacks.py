"""MedoidClassifier with callbacks: what they hear of, and when a fit stops."""

import numpy as np
import pytest
from quick_medoids import X2, Y2, quick

from qmedoid.exceptions import QMedoidWarning


class Listener:
    """Keeps the names of the tasks that began and that ended, and may ask to stop."""

    max_propagation_depth = None

    def __init__(self, act=lambda _path: False):
        self.begun, self.paths, self.act = [], [], act

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
        self.begun.append(path_of(context))

    def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
        self.paths.append(path_of(context))
        return self.act(self.paths[-1])


def path_of(context):
    """Names of a task and of those it is part of; a fit inside a task bears the name of that."""
    if context is None:
        return ()
    return (*path_of(context.parent), context.source_task_name or context.task_name)


def steps(paths):
    return [path for path in paths if path[-1].startswith("seed")]


def test_callbacks_hear_of_both_stages():
    listener = Listener()
    quick(refine="always", method={"max_passes": 1}).set_callbacks(listener).fit(X2, Y2)
    ended = [path[-1] for path in listener.paths]
    assert ended.index("nearest") < ended.index("circuit") < len(ended) - 1
    visits = [path for path in listener.paths if path[-1].startswith("k=2, pass 1")]
    assert len(visits) == 6
    assert all("nearest" in path for path in visits)
    assert all("circuit" in path for path in steps(listener.paths))
    assert len(steps(listener.paths)) == 3 * 40  # two folds and all rows
    assert sorted(listener.begun) == sorted(listener.paths)


def test_callback_can_stop_the_circuit():
    listener = Listener(lambda path: "step 5" in path[-1] and len(steps(listener.paths)) > 2 * 40)
    with pytest.warns(QMedoidWarning, match="The training was stopped after 5 steps"):
        fitted = quick(refine="always").set_callbacks(listener).fit(X2, Y2)
    assert fitted.refinement_ == "always"
    assert np.isfinite(fitted.predict_proba(X2)).all()


def test_stop_while_the_circuit_is_judged_leaves_fusion_s_held_out_rows():
    listener = Listener(lambda path: "step 5" in path[-1] and len(steps(listener.paths)) == 5)
    with pytest.warns(QMedoidWarning, match="The choice was interrupted"):
        fitted = quick(refine="always").set_callbacks(listener).fit(X2, Y2)
    assert np.isfinite(fitted.held_out_scores_).all()
    assert fitted.score(X2, Y2) > 0.8


def test_circuit_that_was_not_judged_is_not_cut_where_fusion_would_be():
    listener = Listener(lambda path: "step 5" in path[-1] and len(steps(listener.paths)) == 5)
    with (
        pytest.warns(QMedoidWarning, match="The choice was interrupted"),
        pytest.warns(QMedoidWarning, match="No row was held out to choose the threshold by: it stays at even odds"),
    ):
        fitted = quick(refine="always", operating_point="f1").set_callbacks(listener).fit(X2, Y2)
    assert fitted.refinement_ == "always"
    assert fitted.threshold_ == 0.5
