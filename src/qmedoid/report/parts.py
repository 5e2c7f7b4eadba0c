"""What a report shows of a model itself: how it decides, columns and what their values contribute, and real rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.explain.documents import ColumnEffectDict
from qmedoid.explain.effect import column_effects
from qmedoid.kernels.ties import stable_order
from qmedoid.markup.charts import shortened
from qmedoid.model.contract import Column
from qmedoid.model.importance import class_contributions, column_contributions
from qmedoid.model.model import Model, Record
from qmedoid.model.storage.card import encoding_text
from qmedoid.report.documents import (
    AboutModelDict,
    ReportColumnDict,
    ReportMedoidDict,
    ReportMedoidsDict,
)
from qmedoid.report.reading import Sample
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import read_as
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.targets import MISSING

MOST_MEDOIDS = 64
"""Medoids that are shown at most, evenly of all classes."""
MOST_COLUMNS = 200
"""Columns that are listed at most; of more the most important ones."""
_LONGEST = 200


def cell_text(value: Any) -> str:
    """A cell of a real row as text on one line."""
    if value is None or isinstance(value, bool):
        return {None: "missing", True: "true", False: "false"}[value]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shortened(text, _LONGEST)


def describe(model: Model, looked: Sample | None, *, with_rows: bool) -> tuple[AboutModelDict, Array | None]:
    """The parts of a summary that are about the model, and the importances of its columns.

    Contributions are those of some rows of a table, else of the medoids, where the model holds them as rows.
    """
    rows = None if model.medoids is None else medoid_sample(model) if looked is None else looked
    importance, left_out = model.importances, model.contract.left_out
    if looked is not None and model.medoids is not None:
        few = looked.first(MOST_ROWS)
        decided = model.decide(few.encoded)
        others = model.decision.runners_up(decided.scores, decided.codes)
        importance = np.abs(column_contributions(model, few.encoded, decided.codes, others)).mean(axis=0)
    return {
        "columns": _columns(model, importance),
        "n_columns": len(model.contract.columns),
        "left_out": [
            {"name": name, "reason": reason[:MOST_COLUMNS]} for name, reason in list(left_out.items())[:MOST_COLUMNS]
        ],
        "effects": [] if rows is None or importance is None else effects(model, rows, importance),
        "medoids": medoid_rows(model) if with_rows else None,
        "start_record": start_record(model, with_rows=with_rows),
    }, importance


def medoid_rows(model: Model) -> ReportMedoidsDict | None:
    """The medoids as rows of the training table; None where the model does not hold them."""
    medoids, records = model.medoids, model.records
    if medoids is None or not records:
        return None
    codes = medoids.classes
    # Class by class in turn.
    turn = np.zeros(len(codes), dtype=np.intp)
    for code in np.unique(codes):
        turn[codes == code] = np.arange((codes == code).sum())
    shown = np.sort(np.argsort(turn, kind="stable")[:MOST_MEDOIDS]).tolist()
    names = [name for name in model.contract.names if any(name in record for record in records)][:MOST_COLUMNS]
    rows: list[ReportMedoidDict] = [
        {
            "training_row": int(medoids.numbers[place]),
            "class": str(model.decision.classes[medoids.classes[place]]),
            "cells": [cell_text(records[place].get(name)) for name in names],
        }
        for place in shown
        if place < len(records)
    ]
    return {"columns": names, "rows": rows, "n_medoids": len(medoids.numbers)}


def medoid_sample(model: Model) -> Sample | None:
    """The medoids as rows of the training table; None where the model was saved without them."""
    if not model.records:
        return None
    table = pa.table({column.name: _column(column, model.records) for column in model.contract.columns})
    plain = replace(model.contract, columns=tuple(replace(one, spelling="") for one in model.contract.columns))
    encoded = [
        np.asarray(one, dtype=np.float64) for one in encode_batch(table, plain, model.encodings, issues=Issues())
    ]
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


def plain_cells(model: Model, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Rows of the training table with numbers, truth values and ISO dates, as the what-if panel edits them."""
    columns = {column.name: _column(column, records) for column in model.contract.columns}
    return plain_records(pa.table(columns))


def start_record(model: Model, *, with_rows: bool) -> dict[str, Any]:
    """The record that the what-if panel begins with: a medoid of the positive class; without rows all are missing."""
    medoids, names, record = model.medoids, model.contract.names, dict[str, Any]()
    if with_rows and medoids is not None and model.records:
        first = int(np.argmax(medoids.classes == int(len(model.decision.classes) == 2)))
        (record,) = plain_cells(model, model.records[first : first + 1])
    return {names[place]: record.get(names[place]) for place in model.layout.used}


def _columns(model: Model, importance: Array | None) -> list[ReportColumnDict]:
    """Columns in the order of the contract; of more than `MOST_COLUMNS` the most important first."""
    columns, training = model.contract.columns, model.training
    order = list(range(len(columns)))
    if len(columns) > MOST_COLUMNS:
        order = (order if importance is None else stable_order(-importance).tolist())[:MOST_COLUMNS]
    used = set(model.layout.used)
    shares = None if training is None else training.missing_shares
    listed = list[ReportColumnDict]()
    for place in order:
        column, encoding = columns[place], model.encodings[place]
        listed.append(
            {
                "name": column.name,
                "kind": column.kind,
                "read": place in used,
                "encoding": encoding_text(column, encoding),
                "missing": None if shares is None else float(shares[place]),
                "importance": None if importance is None else float(importance[place]),
            }
        )
    return listed


N_EFFECTS = 12
"""Columns whose shape is shown: the most important ones."""
N_BINS, ROWS_IN_BIN = 20, 10
"""Bins of numbers and dates at most, of about equally many rows, and rows of a bin at least."""
MOST_ROWS = 2_000
"""Rows that contributions of columns are computed of, at most; fewer with more classes."""
_LEAST_ROWS = 200


def effects(model: Model, rows: Sample, importance: Array) -> list[ColumnEffectDict]:
    """The shape of the most important columns: contribution against value, all toward one class.

    It is the second of two classes, else the one that these columns contribute most to.
    """
    names = model.contract.names
    ranked = sorted(model.layout.used, key=lambda place: (-importance[place], names[place]))
    wanted = [place for place in ranked if importance[place] > 0][:N_EFFECTS]
    n_classes = len(model.decision.classes)
    few = rows.first(max(_LEAST_ROWS, MOST_ROWS // max(n_classes - 1, 1)))
    if not wanted or not len(few.table):
        return []
    code = 1
    if n_classes > 2:
        X = np.column_stack(rows.first(max(20, _LEAST_ROWS // n_classes)).encoded).astype(np.float64)
        sizes = [np.abs(class_contributions(model, X, one)[:, wanted]).mean() for one in range(n_classes)]
        code = int(np.argmax(sizes))
    added = class_contributions(model, np.column_stack(few.encoded).astype(np.float64), code)
    n_bins = min(N_BINS, max(1, len(few.table) // ROWS_IN_BIN))
    return column_effects(model, few.table, added, wanted, code, n_bins)
