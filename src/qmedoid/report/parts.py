"""What a report shows of a model itself: columns, what their values contribute, real rows, and the live model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import ModelError
from qmedoid.explain.documents import DrawnEffectDict
from qmedoid.explain.effect import EffectTally
from qmedoid.export.js.document import as_document
from qmedoid.kernels.ties import stable_order
from qmedoid.markup.html import script_json, shortened
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.importance import ImportanceTally, by_importance, class_contributions
from qmedoid.model.model import Model, Record
from qmedoid.report.documents import (
    EdgeDict,
    GraphDict,
    PairDict,
    ReportColumnDict,
    ReportMedoidDict,
    ReportMedoidsDict,
)
from qmedoid.report.reading import Sample
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import read_as
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.targets import MISSING

MOST_MEDOIDS = 64
"""Medoids that are shown at most, evenly of all classes."""
MOST_COLUMNS = 200
"""Columns that are listed at most; of more the most important ones."""
_LONGEST = 200

MOST_BYTES = 3_000_000
"""Size of a page at most, with its live model."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """The settings of a report.

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
        Codes of findings to ignore.
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
    if value is None or isinstance(value, bool):
        return {None: "missing", True: "true", False: "false"}[value]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shortened(text, _LONGEST)


def medoid_rows(model: Model) -> ReportMedoidsDict | None:
    """The medoids as rows of the training table; None where the model does not hold them."""
    medoids, records = model.medoids, list(model.records or ())
    if medoids is None or not records:
        return None
    names = [name for name in model.contract.names if any(name in record for record in records)][:MOST_COLUMNS]
    rows: list[ReportMedoidDict] = [
        {
            "training_row": int(medoids.numbers[place]),
            "class": str(model.decision.classes[medoids.classes[place]]),
            "cells": [cell_text(records[place].get(name)) for name in names],
        }
        for place in _spread(medoids.classes.tolist(), MOST_MEDOIDS)
        if place < len(records)
    ]
    return {"columns": names, "rows": rows, "n_medoids": len(medoids.numbers)}


def _spread(codes: list[int], most: int) -> list[int]:
    """Indices of the medoids to show, class by class in turn, in their order."""
    turns, seen = list[tuple[int, int, int]](), dict[int, int]()
    for place, code in enumerate(codes):
        seen[code] = seen.get(code, 0) + 1
        turns.append((seen[code], list(seen).index(code), place))
    return sorted(place for *_, place in sorted(turns)[:most])


def kept_rows(model: Model) -> Sample | None:
    """The real rows that a model keeps: its neighbors, where cells can be read from them, else its medoids as rows.

    None where it was saved without rows.
    """
    if not model.records:
        return None
    neighbors = _neighbor_rows(model)
    if neighbors is not None and len(neighbors.table) > len(model.records):
        return neighbors
    table = pa.table({column.name: _column(column, model.records) for column in model.contract.columns})
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


def plain_cells(model: Model, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Rows of the training table with numbers, truth values and ISO dates, as the what-if panel edits them."""
    columns = {column.name: _column(column, records) for column in model.contract.columns}
    return plain_records(pa.table(columns))


def _neighbor_rows(model: Model) -> Sample | None:
    """Neighbors with their cells; None where there are none, or where an encoding does not tell its cells."""
    rows = model.neighbors
    if not len(rows):
        return None
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


def start_record(model: Model, *, with_rows: bool) -> dict[str, Any]:
    """The record that the what-if panel begins with: a medoid of the positive class, else what fills missing cells."""
    medoids = model.medoids
    names = {place: model.contract.names[place] for place in model.layout.used}
    if with_rows and medoids is not None and model.records:
        code = 1 if len(model.decision.classes) == 2 else 0
        first = int(np.argmax(medoids.classes == code))
        (record,) = plain_cells(model, model.records[first : first + 1])
        return {name: record.get(name) for name in names.values()}
    return {name: _fill(model, place) for place, name in names.items()}


def _fill(model: Model, place: int) -> Any:
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


def holds(model: Model, settings: ReportSettings) -> str:
    """Which rows of the training table a page holds, in sentences."""
    medoids = model.medoids
    if not settings.rows:
        return "This page holds no rows of the training table: they were left out (--no-rows)."
    parts = ["This page holds no row of the training table as it was there: the model was saved without them."]
    if model.records:
        parts = [f"This page holds {len(model.records):,} rows of the training table as they were there, the medoids."]
    if settings.live and medoids is not None:
        further = f" and {len(model.neighbors):,} further rows" if len(model.neighbors) else ""
        parts.append(
            f"Where the page has its live model, it holds the numbers that the model compares with, of "
            f"{len(medoids.numbers):,} medoids{further}: values of columns can be computed back."
        )
    parts.append("Whoever can read the page can read them.")
    return " ".join(parts)


PAGE_BYTES = 100_000
"""What the page takes besides its summary at least: styles and scripts."""


def live(model: Model, sha256: str | None, settings: ReportSettings, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the model, or why there is none; the size of the page is that of the summary and of both."""
    if not settings.live:
        return {"absent": "The live model was left out (--no-live)."}
    if not settings.rows:
        return {"absent": "The live model was left out, as it holds rows of the training table (--no-rows)."}
    try:
        document = as_document(model, sha256)
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


def column_list(model: Model, importance: Array | None) -> list[ReportColumnDict]:
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
        n_levels = len(encoding.levels) if isinstance(encoding, Levels) else None
        listed.append({
            "name": column.name,
            "kind": column.kind,
            "read": place in used,
            "encoding": encoding_words(column, encoding),
            "missing": None if shares is None else float(shares[place]),
            "n_levels": 2 if column.kind == "boolean" else n_levels,
            "importance": None if importance is None else float(importance[place]),
        })  # fmt: skip
    return listed


def encoding_words(column: Column, encoding: Encoding) -> str:
    """What a column becomes, in words."""
    if isinstance(encoding, Levels):
        n = len(encoding.outputs)
        new = ", new ones expected" if column.is_open else ""
        return f"{n} {'number' if n == 1 else 'numbers'} from {len(encoding.levels)} levels{new}{column.missing_note}"
    what = ", ".join(encoding.parts) if isinstance(encoding, Dates) else "the number itself"
    if column.kind == "boolean":
        what = "0 or 1"
    if column.spelling:
        what += f", written like {column.spelling}"
    what += ", and whether it is missing" if encoding.indicator else ""
    return what + column.missing_note


N_EFFECTS = 12
"""Columns whose shape is shown: the most important ones."""
N_BINS = 20
"""Bins of numbers and dates at most, of about equally many rows."""
ROWS_IN_BIN = 10
"""Rows of a bin at least, where there are several bins."""
MOST_ROWS = 2_000
"""Rows that contributions are computed of, at most; fewer with more classes."""
_LEAST_ROWS = 200


def importances(model: Model, rows: Sample) -> Array:
    """Mean absolute contribution of every column to the margins of some rows, shape (columns,)."""
    few, tally = rows.first(MOST_ROWS), ImportanceTally(model)
    tally.add(few.encoded, model.decide(few.encoded))
    return tally.importances


def effects(model: Model, rows: Sample, importance: Array) -> list[DrawnEffectDict]:
    """The shape of the most important columns: contribution against value, all toward one class."""
    places = {name: place for place, name in enumerate(model.contract.names)}
    used = set(model.layout.used)
    ranked = by_importance(model.contract.names, importance)
    wanted = [name for name, amount in ranked.items() if places[name] in used and amount > 0][:N_EFFECTS]
    few = rows.first(max(_LEAST_ROWS, MOST_ROWS // max(len(model.decision.classes) - 1, 1)))
    if not wanted or not len(few.table):
        return []
    code = _spoken_for(model, rows, [places[name] for name in wanted])
    added = class_contributions(model, np.column_stack(few.encoded).astype(np.float64), code)
    n_bins = min(N_BINS, max(1, len(few.table) // ROWS_IN_BIN))
    shapes = []
    for name in wanted:
        tally = EffectTally(model, name, model.decision.classes[code])
        tally.add_contributions(few.table, added[:, places[name]])
        shapes.append(tally.report(n_bins).drawn())
    return shapes


def _spoken_for(model: Model, rows: Sample, places: list[int]) -> int:
    """The second of two classes, else the one that the columns at these places contribute most to."""
    n_classes = len(model.decision.classes)
    if n_classes == 2:
        return 1
    X = np.column_stack(rows.first(max(20, _LEAST_ROWS // n_classes)).encoded).astype(np.float64)
    sizes = [float(np.abs(class_contributions(model, X, code)[:, places]).mean()) for code in range(n_classes)]
    return int(np.argmax(sizes))


GROUP_ROWS = 200
"""Rows that contributions of groups are computed of."""
MOST_PAIRS = 20
MOST_NODES = 24
MOST_EDGES = 60
_LARGEST_SET = 6


def together(model: Model, rows: Sample | None) -> dict[frozenset[int], float]:
    """Mean absolute contribution of sets of two columns or more, by places in the contract.

    Groups of evidence and paths of trees that look at the same columns count together.
    """
    if rows is None or model.medoids is None or not len(rows.table):
        return {}
    few = rows.first(GROUP_ROWS)
    decided = model.decide(few.encoded)
    others = model.decision.runners_up(decided.scores, decided.codes)
    X = np.column_stack(few.encoded).astype(np.float64)
    groups, added = model.group_contributions(X, decided.codes, others)
    sums: dict[frozenset[int], Array] = {}
    for place, columns in enumerate(groups):
        found = frozenset(model.source[list(columns)].tolist())
        if 1 < len(found) <= _LARGEST_SET:
            sums[found] = sums.get(found, 0.0) + model.slope * added[:, place]
    return {found: float(np.abs(amount).mean()) for found, amount in sums.items()}


def pairs(model: Model, sets: dict[frozenset[int], float]) -> list[PairDict]:
    """The groups of two and three columns that contribute most."""
    names = model.contract.names
    listed = sorted((-amount, sorted(found)) for found, amount in sets.items() if len(found) <= 3 and amount > 0)
    return [{"columns": [names[place] for place in found], "importance": -less} for less, found in listed[:MOST_PAIRS]]


def graph(model: Model, sets: dict[frozenset[int], float], importance: Array | None) -> GraphDict:
    """Columns, and how much two of them count together; a larger group is shared among its pairs evenly."""
    names, weights = model.contract.names, dict[tuple[int, int], float]()
    for found, amount in sets.items():
        edges = list(combinations(sorted(found), 2))
        for edge in edges:
            weights[edge] = weights.get(edge, 0.0) + amount / len(edges)
    nodes, kept = dict[int, int](), list[EdgeDict]()
    for (a, b), weight in sorted(weights.items(), key=lambda one: (-one[1], one[0])):
        if weight > 0 and len(kept) < MOST_EDGES and len(nodes.keys() | {a, b}) <= MOST_NODES:
            # The edge has a < b: columns are numbered as they come.
            kept.append({"a": nodes.setdefault(a, len(nodes)), "b": nodes.setdefault(b, len(nodes)), "weight": weight})
    sizes = {place: None if importance is None else float(importance[place]) for place in nodes}
    return {"nodes": [{"name": names[place], "importance": size} for place, size in sizes.items()], "edges": kept}
