"""What a plan costs and promises, in plain values."""

from typing import Any

import numpy as np

from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.documents import CircuitPlace, CircuitPlanDict
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.result import joined
from qmedoid.quantum.measurement.trained import TrainedReading

LISTED = 20
"""Rows that are listed as undecided."""


def planned(plan: MeasurementPlan) -> CircuitPlanDict:
    """The summary of a plan with the errors that are to be expected.

    Returns
    -------
    dict
        `MeasurementPlan.summary`, and as ``expected`` the root mean square errors of overlaps, of expectation values
        of a trained circuit and of margins, and which records will not be settled.
    """
    squares = [
        (one.overlaps - tests.overlaps) ** 2 + one.errors**2
        for one, tests in zip(plan.expected_estimates, plan.tests, strict=True)
    ]
    undecided = np.flatnonzero(plan.undecided)
    return {
        **plan.summary(),
        "expected": {
            "value_rms_error": None if plan.trained is None else _of_values(plan.trained.expected),
            "overlap_rms_error": _root_mean(joined(squares)),
            "margin_rms_error": _root_mean(plan.expected_errors.margins**2),
            "undecided": len(undecided),
            "undecided_rows": undecided[:LISTED].tolist(),
        },
    }


def where(device: Device) -> CircuitPlace:
    """What circuits run on."""
    if device.is_simulated:
        return "exact simulator" if device.backend is None else "simulated device"
    if device.name.startswith(("fake_", "aer_")):
        return "simulated device"
    return "sampler" if getattr(device.backend, "service", None) is None else "device of a service"


def _of_values(expected: TrainedReading) -> float:
    return _root_mean((expected.values - expected.exact) ** 2 + expected.errors**2)


def _root_mean(squares: Any) -> float:
    return float(np.sqrt(np.mean(squares))) if len(squares) else 0.0
