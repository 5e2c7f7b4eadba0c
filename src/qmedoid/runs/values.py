"""What the page of a run draws, in plain values: a sample of the overlaps, and margins with their errors."""

from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.measurement.result import MeasurementResult, joined
from qmedoid.measurement.trained import TrainedReading

MOST_POINTS = 1000
"""Overlaps that are drawn."""
MOST_MARGINS = 80
"""Margins that are drawn."""
MOST_LISTED = 200
"""Undecided records that are listed."""
_BINS = 10


def page_values(result: MeasurementResult) -> dict[str, Any]:
    """Overlaps, margins and undecided records for the page of a run."""
    exact = joined([tests.overlaps for tests in result.plan.tests])
    measured = joined([one.overlaps for one in result.estimates])
    stated = joined([one.errors for one in result.estimates])
    some = _spread(len(exact), MOST_POINTS)
    columns = result.columns()
    order = np.argsort(columns["margin"], kind="stable")
    undecided = np.flatnonzero(columns["undecided"])
    return {
        "overlaps": {
            "all": len(exact),
            "points": np.stack([exact[some], measured[some]], axis=1).tolist(),
            "bins": _bins(exact, measured - exact, stated),
        },
        "values": None if result.trained is None else _values(result.trained),
        "n_classes": len(result.plan.classes) or int(result.decided.scores.shape[1]),
        "margins": [_record(columns, row) for row in _some_margins(order, columns["undecided"])],
        "undecided": [_record(columns, int(row)) for row in undecided[:MOST_LISTED]],
        "changed": [_record(columns, int(row)) for row in np.flatnonzero(~result.kept)[:MOST_LISTED]],
    }


def _values(trained: TrainedReading) -> dict[str, Any]:
    """Expectation values of a trained circuit, all and by observable."""
    exact, measured, errors = trained.exact.ravel(), trained.values.ravel(), trained.values - trained.exact
    some, circuit = _spread(len(exact), MOST_POINTS), trained.circuit
    return {
        "all": len(exact),
        "ends": [float(circuit.least.min()), float((circuit.least + circuit.span).max())],
        "points": np.stack([exact[some], measured[some]], axis=1).tolist(),
        "observables": [
            {
                "observable": name,
                "mean_error": float(errors[:, place].mean()),
                "rms_error": float(np.sqrt(np.mean(errors[:, place] ** 2))),
                "rms_stated": float(np.sqrt(np.mean(trained.errors[:, place] ** 2))),
            }
            for place, name in enumerate(circuit.names)
        ],
    }


def _spread(count: int, most: int) -> Codes:
    """At most so many of the numbers below a count, at even distances, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _some_margins(order: Codes, undecided: Flags) -> list[int]:
    """Some rows in the order of their margins: up to half of them undecided, the others at even distances."""
    marked = np.flatnonzero(undecided[order])
    marked = marked[_spread(len(marked), MOST_MARGINS // 2)] if len(marked) else marked
    others = np.flatnonzero(~undecided[order])
    others = others[_spread(len(others), MOST_MARGINS - len(marked))] if len(others) else others
    return [int(row) for row in order[np.sort(np.concatenate([marked, others]))]]


def _bins(exact: Array, errors: Array, stated: Array) -> list[dict[str, Any]]:
    """Errors of overlaps by tenths of the exact overlap."""
    place = np.minimum((exact * _BINS).astype(np.intp), _BINS - 1)
    found = []
    for number in np.unique(place):
        own = place == number
        found.append(
            {
                "from": number / _BINS,
                "to": (number + 1) / _BINS,
                "tests": int(own.sum()),
                "mean_error": float(errors[own].mean()),
                "rms_error": float(np.sqrt(np.mean(errors[own] ** 2))),
                "rms_stated": float(np.sqrt(np.mean(stated[own] ** 2))),
            }
        )
    return found


def _record(columns: dict[str, Any], row: int) -> dict[str, Any]:
    found = {name: values[row] for name, values in columns.items()}
    return {"row": row, **{name: one.item() if isinstance(one, np.generic) else one for name, one in found.items()}}
