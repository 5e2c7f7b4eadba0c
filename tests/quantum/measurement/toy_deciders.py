"""Deciders that are so simple that the errors of their margins are known in closed form."""

import numpy as np

from qmedoid.arrays import Array
from qmedoid.geometry.overlap import row_norms
from qmedoid.quantum import Device, MeasurementPlan, MeasurementSettings, make_plan
from qmedoid.quantum.measurement.recorder import Decide, Decided


def by_mean_square(X: Array, medoids: Array, classes: Array, biases: Array | None = None) -> Decide:
    """Scores are minus the mean squared distance to the medoids of a class: linear in overlaps."""
    n_classes = int(classes.max()) + 1
    added = np.zeros(n_classes) if biases is None else biases

    def decide(swap_test):
        z = row_norms(X)[:, None] ** 2 + row_norms(medoids) ** 2
        squares = 2.0 * z * swap_test(X, medoids).overlap
        scores = added - np.stack([squares[:, classes == c].mean(axis=1) for c in range(n_classes)], axis=1)
        ranked = np.sort(scores, axis=1)
        margins = scores[:, 1] - scores[:, 0] if n_classes == 2 else ranked[:, -1] - ranked[:, -2]
        shares = np.exp(scores - ranked[:, -1:])
        codes = (margins > 0).astype(np.intp) if n_classes == 2 else scores.argmax(axis=1)
        return Decided(codes, scores, margins, shares / shares.sum(axis=1, keepdims=True))

    return decide


def toy_table(seed: int = 0, n: int = 12, n_columns: int = 3, n_medoids: int = 4, n_classes: int = 2):
    """Records, medoids and the classes of the medoids."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_medoids) % n_classes
    medoids = rng.normal(size=(n_medoids, n_columns)) + classes[:, None]
    return rng.normal(size=(n, n_columns)) + 0.5, medoids, classes


def toy_plan(backend=None, *, table=None, n_qubits: int = 7, device_seed: int = 0, **settings) -> MeasurementPlan:
    """A plan for a toy table; without calibration unless it is asked for."""
    X, medoids, classes = toy_table() if table is None else table
    device = backend if isinstance(backend, Device) else Device(backend, n_qubits=n_qubits, seed=device_seed)
    chosen = MeasurementSettings(**{"calibrate": False, "draws": 16} | settings)
    return make_plan(by_mean_square(X, medoids, classes), device, chosen)
