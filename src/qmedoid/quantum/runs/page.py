"""What a run showed, as files: the decisions as a table, a summary in JSON, and a page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.markup.charts import label
from qmedoid.markup.page import render as render_page
from qmedoid.model.storage.atomic import atomic_file
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.documents import CircuitPlace, CircuitPlanDict
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.result import MeasurementResult, joined
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
    value_error = None
    if plan.trained is not None:
        values = plan.trained.expected
        value_error = _root_mean((values.values - values.exact) ** 2 + values.errors**2)
    return {
        **plan.summary(),
        "expected": {
            "value_rms_error": value_error,
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
        `summary_of` and `page_values`, with the times of begin and end.
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
    errors, stated = result.overlap_errors, joined([one.errors for one in result.estimates])
    tenths = [f"{label(k / 10)} to {label((k + 1) / 10)}" for k in range(10)]
    overlaps = _against_exact(exact, errors, stated, np.minimum((exact * 10).astype(np.intp), 9), tenths, (0.0, 1.0))
    trained, values = result.trained, None
    if trained is not None:
        circuit, errors = trained.circuit, trained.values - trained.exact
        kinds = np.broadcast_to(np.arange(len(circuit.names)), errors.shape).ravel()
        ends = float(circuit.observables.min()), float(circuit.observables.max())
        shown = trained.exact.ravel(), errors.ravel(), trained.errors.ravel()
        values = _against_exact(*shown, kinds, circuit.names, ends)
    columns = result.columns()
    order = np.argsort(columns["margin"], kind="stable")
    undecided, is_open = np.flatnonzero(columns["undecided"]), columns["undecided"][order]
    # Up to half of the margins that are drawn are undecided; the others are at even distances.
    marked, others = np.flatnonzero(is_open), np.flatnonzero(~is_open)
    marked = marked[_spread(len(marked), MOST_MARGINS // 2)]
    drawn = order[np.sort(np.concatenate([marked, others[_spread(len(others), MOST_MARGINS - len(marked))]]))]
    return {
        "overlaps": overlaps,
        "values": values,
        "n_classes": len(result.plan.classes) or int(result.decided.scores.shape[1]),
        "margins": [_record(columns, int(row)) for row in drawn],
        "undecided": [_record(columns, int(row)) for row in undecided[:MOST_LISTED]],
        "changed": [_record(columns, int(row)) for row in np.flatnonzero(~result.kept)[:MOST_LISTED]],
    }


def _against_exact(
    exact: Array, errors: Array, stated: Array, kinds: Codes, names: Sequence[str], ends: tuple[float, float]
) -> dict[str, Any]:
    """Some exact values with the measured ones, the ends between which exact ones are, and errors by kinds."""
    some = _spread(len(exact), MOST_POINTS)
    return {
        "all": len(exact),
        "ends": ends,
        "points": np.stack([exact[some], (exact + errors)[some]], axis=1).tolist(),
        "errors": [
            {
                "kind": names[kind],
                "count": int(np.sum(kinds == kind)),
                "mean_error": float(errors[kinds == kind].mean()),
                "rms_error": _root_mean(errors[kinds == kind] ** 2),
                "rms_stated": _root_mean(stated[kinds == kind] ** 2),
            }
            for kind in np.unique(kinds).tolist()
        ],
    }


def _spread(count: int, most: int) -> Codes:
    """At most so many of the numbers below a count, at even distances, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


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
