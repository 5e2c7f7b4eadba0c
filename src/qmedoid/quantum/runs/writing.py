"""What a run showed, as files: the decisions as a table, a summary in JSON, and a page."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.markup.charts import label
from qmedoid.markup.page import render as render_page
from qmedoid.model.storage.atomic import atomic_file
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.documents import CircuitPlace, CircuitPlanDict
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.result import MeasurementResult, joined
from qmedoid.quantum.measurement.trained import TrainedReading
from qmedoid.tables.writing import open_sink

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
            "value_rms_error": None if plan.trained is None else _of_trained_values(plan.trained.expected),
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


def _of_trained_values(expected: TrainedReading) -> float:
    return _root_mean((expected.values - expected.exact) ** 2 + expected.errors**2)


def _root_mean(squares: Any) -> float:
    return float(np.sqrt(np.mean(squares))) if len(squares) else 0.0


RECORDS, SUMMARY, PAGE = "records.csv", "summary.json", "report.html"
_SECONDS, _MINUTES = 120.0, 7200.0
MOST_POINTS = 1000
"""Overlaps that are drawn."""
MOST_MARGINS = 80
"""Margins that are drawn."""
MOST_LISTED = 200
"""Undecided records that are listed."""
_BINS = 10


def write_results(folder: Path, result: MeasurementResult, manifest: Mapping[str, Any]) -> None:
    """Write the files of a finished run, each atomically."""
    columns = {"row": np.arange(len(result.kept)), **result.columns()}
    batch = pa.record_batch([pa.array(values) for values in columns.values()], names=list(columns))
    with open_sink(str(folder / RECORDS), batch.schema) as write:
        write(batch)
    document = summary_of(manifest)
    with atomic_file(folder / SUMMARY) as file:
        file.write(as_json(document))
    with atomic_file(folder / PAGE) as file:
        file.write(
            render(
                {**document, **page_values(result), "started": manifest["started"], "finished": manifest["finished"]}
            ).encode()
        )


def summary_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, planned and found, without times: two runs of the same counts have the same."""
    return {name: manifest[name] for name in ("names", "asked", "versions", "where", "plan", "result")}


def render(values: Mapping[str, Any]) -> str:
    """The page of a run.

    Parameters
    ----------
    values : mapping
        `summary_of` and `values.page_values`, with the times of begin and end.
    """
    device_time = duration(values["plan"]["device_seconds"])
    return render_page("run.html", **values, device_time=device_time, fitted=_fitted)


def duration(seconds: float) -> str:
    """A time in the unit that it is read in."""
    if seconds < _SECONDS:
        return f"{label(seconds)} s"
    return f"{label(seconds / 60)} min" if seconds < _MINUTES else f"{label(seconds / 3600)} h"


def _fitted(line: Mapping[str, Any]) -> list[str]:
    """The cells of a fitted line, and whether it was used."""
    used = ("a line for each place" if line["by_position"] else "one line") if line["used"] else "left out"
    ends = (f"{line[name]:.4f} ± {line[f'{name}_error']:.4f}" for name in ("slope", "intercept"))
    return [*ends, f"{line['known_pairs']:,}", used]


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


def as_json(value: Any) -> bytes:
    """Plain values as JSON; numbers that it lacks become null."""
    return (json.dumps(finite(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def finite(value: Any) -> Any:
    """Plain values, with null for numbers that JSON lacks."""
    if isinstance(value, Mapping):
        return {str(key): finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
