"""The same fitted classifier on circuits: exact circuits decide alike, shots come near."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from qmedoid import MedoidClassifier, NearestMedoidClassifier, RareEventClassifier
from qmedoid.estimators.evidence import EvidenceClassifier

pytest.importorskip("qiskit", reason='needs Qiskit: pip install "qmedoid[quantum]"')
from qmedoid.quantum import SamplerSwapTest, StatevectorSwapTest


@pytest.fixture(params=[NearestMedoidClassifier, NearestMedoidClassifier.paper], ids=["default", "paper"])
def fitted(request):
    X, y = load_wine(return_X_y=True)
    return request.param(max_passes=0, random_state=0).fit(X, y), X[::9]


def test_exact_circuits_give_the_same_channels_and_decisions(fitted):
    model, X = fitted
    measured = model.measured_by(StatevectorSwapTest())
    for ours, circuit in zip(model.channels(X), measured.channels(X), strict=True):
        np.testing.assert_allclose(circuit, ours, atol=1e-6)
    np.testing.assert_allclose(measured.decision_function(X), model.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(measured.predict(X), model.predict(X))


def test_shots_come_nearer_as_they_grow():
    X, y = load_breast_cancer(return_X_y=True)
    model = NearestMedoidClassifier(max_passes=0, random_state=0, n_anchors=6).fit(X, y)
    exact = model.decision_function(X[:40])
    errors = [
        np.abs(model.measured_by(SamplerSwapTest(shots=shots, seed=1)).decision_function(X[:40]) - exact).mean()
        for shots in (100, 10_000)
    ]
    assert errors[1] < errors[0] / 3


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine], ids=["two classes", "three"])
def test_exact_circuits_weigh_the_same_evidence(load):
    X, y = load(return_X_y=True)
    model = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=0), random_state=0).fit(X[:, :5], y)
    rows = X[::40, :5]
    measured = model.measured_by(StatevectorSwapTest())
    np.testing.assert_allclose(measured.predict_proba(rows), model.predict_proba(rows), atol=1e-6)
    np.testing.assert_array_equal(model.predict_proba(rows), model.measured_by().predict_proba(rows))


def test_exact_circuits_look_for_rare_events():
    X, y = load_breast_cancer(return_X_y=True)
    keep = np.concatenate([np.flatnonzero(y == 1)[:200], np.flatnonzero(y == 0)[:9]])
    settings = RareEventClassifier(n_common=20, n_hard=5)
    model = MedoidClassifier(method=settings, refine="never", random_state=0).fit(X[keep, :4], y[keep])
    rows = X[keep[::30], :4]
    measured = model.measured_by(StatevectorSwapTest())
    np.testing.assert_allclose(measured.predict_proba(rows), model.predict_proba(rows), atol=1e-6)
