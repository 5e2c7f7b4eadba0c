"""A plan that is made in milliseconds: the nearest of two medoids decides about a few random records."""

import numpy as np

from qmedoid.quantum import Device, MeasurementSettings, make_plan
from qmedoid.quantum.measurement.recorder import Decided

CLASSES = ("no", "yes")


def decider(n_records=6, n_columns=3, seed=0):
    """Decides about random records by their overlaps with two medoids."""
    rng = np.random.default_rng(seed)
    records, medoids = rng.normal(size=(n_records, n_columns)), rng.normal(size=(2, n_columns))

    def decide(swap_test):
        scores = -4.0 * swap_test(records, medoids).overlap
        margins = scores[:, 1] - scores[:, 0]
        positive = 1.0 / (1.0 + np.exp(-margins))
        probabilities = np.stack([1.0 - positive, positive], axis=1)
        return Decided((margins > 0).astype(np.intp), scores, margins, probabilities)

    return decide


def toy_plan(device=None, *, n_records=6, n_columns=3, seed=0, classes=CLASSES, **settings):
    """A plan of several jobs; by default on an exact simulator of four qubits, a circuit in each job."""
    asked = {"shots": 16, "circuits_per_job": 1, "calibration_circuits": 6, "draws": 4} | settings
    device = Device(n_qubits=4) if device is None else device
    return make_plan(decider(n_records, n_columns, seed), device, MeasurementSettings(**asked), classes=classes)


def counted(device):
    """The same device, and a list that grows by the number of every job that is sent to it."""
    sent, submit = [], device.submit

    def counting(batches, *, seed=(), key=None):
        sent.append(seed[0])
        return submit(batches, seed=seed, key=key)

    device.submit = counting
    return device, sent
