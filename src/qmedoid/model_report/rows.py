"""Real rows in a report: medoids, rows that a model keeps, and the live model that scores others in the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import ModelError
from qmedoid.exports.flat import flattened
from qmedoid.exports.javascript import as_document
from qmedoid.markup.html import script_json
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.table import Record, TableModel
from qmedoid.model_report.reading import Sample
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import read_as
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.targets import MISSING

MOST_MEDOIDS = 64
"""Medoids that are shown at most, evenly of all classes."""
MOST_COLUMNS = 200
_LONGEST = 200

MOST_BYTES = 3_000_000
"""Size of a page at most, with its live model."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What a report is asked for.

    Attributes
    ----------
    cost : float or None
        What a missed positive costs, in false alerts.
    rows : bool
        Whether real rows are shown: medoids, and a live model, which holds rows.
    live : bool
        Whether the model itself is in the page.
    max_bytes : int
        Size of the page from which on the live model is left out.
    ignore : tuple of str
        Codes of findings that are not judged.
    all_rows : bool
        Whether rows of a table that the fit has seen are counted as well.
    """

    cost: float | None = None
    rows: bool = True
    live: bool = True
    max_bytes: int = MOST_BYTES
    ignore: tuple[str, ...] = ()
    all_rows: bool = False


def cell_text(value: Any) -> str:
    """A cell of a real row as text on one line."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def medoid_rows(model: TableModel) -> dict[str, Any] | None:
    """The medoids as rows of the training table; None where the model does not hold them."""
    method = model.method
    if method is None or not model.records or not model.records[0]:
        return None
    records = model.records[0]
    names = [name for name in model.contract.names if any(name in record for record in records)][:MOST_COLUMNS]
    rows = [
        {
            "training_row": int(method.medoid_rows[place]),
            "class": str(model.decision.classes[method.medoid_classes[place]]),
            "cells": [cell_text(records[place].get(name)) for name in names],
        }
        for place in _spread(method.medoid_classes.tolist(), MOST_MEDOIDS)
        if place < len(records)
    ]
    return {"columns": names, "rows": rows, "n_medoids": len(method.medoid_rows)}


def _spread(codes: list[int], most: int) -> list[int]:
    """Places of at most so many medoids, class by class in turn, in their order."""
    turns, seen = list[tuple[int, int, int]](), dict[int, int]()
    for place, code in enumerate(codes):
        seen[code] = seen.get(code, 0) + 1
        turns.append((seen[code], list(seen).index(code), place))
    return sorted(place for *_, place in sorted(turns)[:most])


def kept_rows(model: TableModel) -> Sample | None:
    """The real rows that a model keeps: its neighbors, where cells can be read from them, else its medoids as rows.

    None where it was saved without rows.
    """
    if not model.records or not model.records[0]:
        return None
    neighbors = _neighbor_rows(model)
    if neighbors is not None and len(neighbors.table) > len(model.records[0]):
        return neighbors
    table = pa.table({column.name: _column(column, model.records[0]) for column in model.contract.columns})
    plain = replace(model.contract, columns=tuple(replace(one, spelling="") for one in model.contract.columns))
    encoded = encode_batch(table, plain, model.encodings, issues=Issues())
    return _unlabeled(table, [np.asarray(one, dtype=np.float64) for one in encoded])


def _unlabeled(table: pa.Table, encoded: list[Array]) -> Sample:
    return Sample(table, encoded, np.full(len(table), MISSING), np.arange(len(table)))


def _column(column: Column, records: Sequence[Record]) -> pa.Array:
    """Cells of a column in plain form, whatever their spelling was in the table."""
    given = pa.array([record.get(column.name) for record in records])
    if column.kind == "category" or pa.types.is_null(given.type):
        return given
    values = read_as(given, column).values
    if column.kind == "date":
        return pa.array(values)
    # Comparisons with NaN are false.
    return pa.array(values > 0.5 if column.kind == "boolean" else values, mask=np.isnan(values))


def plain_cells(model: TableModel, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Rows of the training table with numbers, truth values and ISO dates, as the what-if panel edits them."""
    columns = {column.name: _column(column, records) for column in model.contract.columns}
    return plain_records(pa.table(columns))


def _neighbor_rows(model: TableModel) -> Sample | None:
    """Neighbors with their cells; None where there are none, or where an encoding does not tell its cells."""
    method = model.method
    kept = [getattr(part, "records", None) for part in getattr(method, "parts", ())]
    kept.append(getattr(getattr(getattr(method, "base", method), "neighbors", None), "records", None))
    found = [records for records in kept if isinstance(records, np.ndarray) and records.ndim == 2]
    if not found:
        return None
    rows = max(found, key=len)
    columns, begin = dict[str, pa.Array](), 0
    for column, encoding in zip(model.contract.columns, model.encodings, strict=True):
        width = len(encoding.outputs)
        cells = _cells(column, encoding, rows[:, begin : begin + width])
        if cells is None:
            return None
        columns[column.name], begin = cells, begin + width
    return _unlabeled(pa.table(columns), [np.ascontiguousarray(one) for one in rows.T])


def _cells(column: Column, encoding: Encoding, encoded: Array) -> pa.Array | None:
    """The cells of a column from its numbers; None where several cells have the same numbers."""
    if isinstance(encoding, Dates):
        return None
    if isinstance(encoding, Levels):
        # A row for each level, then those of a missing cell and of a new level, which may be like another one.
        known, places = np.unique(encoding.values[: len(encoding.levels)], axis=0, return_index=True)
        if len(known) < len(encoding.levels):
            return None
        by_numbers = {row.tobytes(): encoding.levels[place] for row, place in zip(known, places, strict=True)}
        return pa.array([by_numbers.get(np.ascontiguousarray(row).tobytes()) for row in encoded], pa.string())
    values = encoded[:, 0]
    absent = np.isnan(values) | (encoded[:, 1] > 0.5 if encoding.indicator else False)
    return pa.array(values > 0.5 if column.kind == "boolean" else values, mask=absent)


def start_record(model: TableModel, *, with_rows: bool) -> dict[str, Any]:
    """The record that the what-if panel begins with: a medoid of the positive class, else what fills missing cells."""
    method = model.method
    used = [model.contract.columns[place] for place in model.layout.used]
    if with_rows and method is not None and model.records and model.records[0]:
        code = 1 if len(model.decision.classes) == 2 else 0
        places = np.flatnonzero(method.medoid_classes == code).tolist() or [0]
        (record,) = plain_cells(model, model.records[0][places[0] : places[0] + 1])
        return {column.name: record.get(column.name) for column in used}
    return {column.name: _fill(model, place) for column, place in zip(used, model.layout.used, strict=True)}


def _fill(model: TableModel, place: int) -> Any:
    encoding: Encoding = model.encodings[place]
    if isinstance(encoding, Levels):
        counts = () if model.training is None else model.training.levels[place]
        frequent = int(np.argmax(counts)) if len(counts) else 0
        return encoding.levels[frequent] if encoding.levels else None
    if isinstance(encoding, Dates):
        days = dict(zip(encoding.parts, encoding.fills.tolist(), strict=True)).get("days", float("nan"))
        return None if not np.isfinite(days) else str(np.datetime64(int(np.floor(days)), "D"))
    if not np.isfinite(encoding.fill):
        return 0.0
    return bool(encoding.fill >= 0.5) if model.contract.columns[place].kind == "boolean" else encoding.fill


def holds(model: TableModel, settings: ReportSettings) -> str:
    """Which rows of the training table a page holds, in sentences."""
    method = model.method
    if not settings.rows:
        return "This page holds no rows of the training table: they were left out, as asked for (--no-rows)."
    parts = ["This page holds no row of the training table as it was there: the model was saved without them."]
    if model.records and model.records[0]:
        n_raw = len(model.records[0])
        parts = [f"This page holds {n_raw:,} rows of the training table as they were there, the medoids."]
    if settings.live and method is not None:
        further = f" and {model.n_neighbors:,} further rows" if model.n_neighbors else ""
        parts.append(
            f"Where the page has its live model, it holds the numbers that the model compares with, of "
            f"{len(method.medoid_rows):,} medoids{further}: values of columns can be computed back."
        )
    parts.append("Whoever can read the page can read them.")
    return " ".join(parts)


PAGE_BYTES = 100_000
"""What the page takes besides its summary at least: styles and scripts."""


def live(model: TableModel, sha256: str | None, settings: ReportSettings, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the model, or why there is none; the size of the page is that of the summary and of both."""
    if not settings.live:
        return {"absent": "The live model was left out, as asked for (--no-live)."}
    if not settings.rows:
        return {"absent": "The live model was left out, as it holds rows of the training table (--no-rows)."}
    try:
        document = as_document(flattened(model, sha256))
    except ModelError as error:
        return {"absent": str(error)}
    if len(document["medoids"]["records"] or ()) > MOST_MEDOIDS:
        # Scoring needs their numbers alone, and the list of medoids has some of them as they were.
        document["medoids"]["records"] = None
    elif document["medoids"]["records"]:
        document["medoids"]["records"] = plain_cells(model, document["medoids"]["records"])
    size = len(script_json(document)) + len(script_json(dict(summary))) + PAGE_BYTES
    return left_out_for_size(size, settings.max_bytes) if size > settings.max_bytes else {"document": document}


def left_out_for_size(size: int, most: int) -> dict[str, Any]:
    """That there is no live model, as the page would be too large with it."""
    return {
        "absent": f"The live model was left out: with it the page would have {size / 1e6:.1f} MB, and "
        f"{most / 1e6:.1f} MB are allowed (--max-size). 'qmedoid export' writes it to a file."
    }
