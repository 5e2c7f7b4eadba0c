"""Small models with trained circuits: random geometry and weights, so that nothing is fitted."""

from functools import cache

import numpy as np

from qmedoid import MedoidClassifier, NearestMedoidClassifier, SavedModel, VariationalClassifier

HYBRIDS = {
    "two classes, some records": (2, {"refine": 0.4}),
    "two classes, residual": (2, {"refine": 0.4, "residual": True}),
    "three classes, all records": (3, {"refine": "always", "deltas": "pairs"}),
    "three classes, two nearest, residual": (3, {"refine": 0.5, "deltas": "nearest", "residual": True}),
}


def classes_of(n_classes, n=90, seed=0):
    """Rows of overlapping classes, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centers = np.random.default_rng(7).normal(size=(n_classes, 3))
    return centers[y] + rng.normal(scale=0.8, size=(n, 3)), y


@cache
def hybrid(kind):
    """A saved model whose circuit decides some records or all, and rows to decide."""
    n_classes, settings = HYBRIDS[kind]
    X, y = classes_of(n_classes)
    circuit = VariationalClassifier(n_reps=1, n_steps=15, n_seeds=1)
    method = NearestMedoidClassifier(max_passes=0, n_anchors=4)
    model = MedoidClassifier(method=method, variational=circuit, random_state=0, **settings).fit(X, y)
    return SavedModel(model.model_), classes_of(n_classes, n=16, seed=1)[0]


@cache
def alone(n_classes=2, readout="strings", n_qubits=2, n_reps=2):
    """A circuit alone, and rows to decide."""
    X, y = classes_of(n_classes)
    settings = {"n_qubits": n_qubits, "n_reps": n_reps, "n_steps": 25, "n_seeds": 1, "random_state": 0}
    model = VariationalClassifier(readout=readout, **settings).fit(X, y)
    return SavedModel(model.model_), classes_of(n_classes, n=16, seed=1)[0]
