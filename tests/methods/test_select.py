"""Calibration that is interrupted keeps what the search has found."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.methods.nearest import fit as select


@pytest.mark.parametrize("calls_before", [0, 1])
def test_an_interrupted_calibration_keeps_the_models_that_are_ready(monkeypatch, calls_before):
    X, y = load_wine(return_X_y=True)
    calibrate, calls = select.calibrate, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > calls_before:
            raise KeyboardInterrupt
        return calibrate(*arguments)

    whole = NearestMedoidClassifier(max_passes=0, random_state=0).fit(X, y)
    monkeypatch.setattr(select, "calibrate", interrupted)
    with pytest.warns(QMedoidWarning, match="calibration was interrupted: 1 of 2 models"):
        cut = NearestMedoidClassifier(max_passes=0, random_state=0).fit(X, y)
    assert len(cut.candidates_) == 1
    assert cut.configuration_ == whole.configuration_
    assert cut.alpha_ == (whole.alpha_ if calls_before else cut.search_alpha)
    assert np.mean(cut.predict(X) == y) > 0.8


def test_without_the_search_kernel_a_fit_is_the_same(monkeypatch):
    X, y = load_wine(return_X_y=True)
    quick = NearestMedoidClassifier(n_anchors=3, max_passes=1, candidate_budget=2, random_state=0)
    expected = clone(quick).fit(X, y)
    monkeypatch.setattr("qmedoid.estimators._search.compiled", lambda _: None)
    found = quick.fit(X, y)
    assert found.search_trace_ == expected.search_trace_
    assert found.configuration_ == expected.configuration_
