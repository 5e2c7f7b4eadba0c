"""What a run showed, as files: the decisions as a table, a summary in JSON, and a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.measurement.result import MeasurementResult
from qmedoid.runs.manifest import as_json
from qmedoid.runs.page import PAGE, render
from qmedoid.runs.values import page_values
from qmedoid.storage.atomic import atomic_file
from qmedoid.tables.writing import open_sink

RECORDS, SUMMARY = "records.csv", "summary.json"


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
