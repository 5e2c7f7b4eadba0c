"""What a run showed, as files: the decisions as a table, a summary in JSON, and a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.markup.page import render as render_page
from qmedoid.markup.svg import label
from qmedoid.measurement.result import MeasurementResult
from qmedoid.runs.manifest import as_json
from qmedoid.runs.values import page_values
from qmedoid.storage.atomic import atomic_file
from qmedoid.tables.writing import open_sink

RECORDS, SUMMARY, PAGE = "records.csv", "summary.json", "report.html"
_SECONDS, _MINUTES = 120.0, 7200.0


def write_results(folder: Path, result: MeasurementResult, manifest: Mapping[str, Any]) -> None:
    """Write the files of a finished run, each atomically."""
    columns = {"row": np.arange(len(result.kept)), **result.columns()}
    batch = pa.record_batch([pa.array(values) for values in columns.values()], names=list(columns))
    with open_sink(str(folder / RECORDS), batch.schema) as sink:
        sink.write(batch)
    document = summary_of(manifest)
    with atomic_file(folder / SUMMARY) as file:
        file.write(as_json(document))
    with atomic_file(folder / PAGE) as file:
        file.write(render({**document, **page_values(result), "started": manifest["started"],
                           "finished": manifest["finished"]}).encode())  # fmt: skip


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
