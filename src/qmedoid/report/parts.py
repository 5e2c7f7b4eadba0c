"""What a report shows: how a model decides, columns and what their values contribute, and real rows with decisions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.explain.documents import ColumnEffectDict
from qmedoid.explain.effect import column_effects
from qmedoid.kernels.ties import stable_order
from qmedoid.metrics.intervals import share_change, share_interval
from qmedoid.metrics.texts import cell_text, effect_text, percent_text
from qmedoid.model.contract import Column
from qmedoid.model.importance import class_contributions, column_contributions
from qmedoid.model.model import Model, Record
from qmedoid.model.storage.card import encoding_text
from qmedoid.report import documents
from qmedoid.report.reading import Looked, Sample, evenly
from qmedoid.report.verdict import RARE, bounds_text
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import read
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.targets import MISSING

MOST_SQUARES = 400
"""Squares of a page at most."""
MOST_RARE = 150
"""Squares of the positive class where it is rare and an even sample would show few of its rows."""
MOST_ERRORS = 20
MOST_REASONS = 6
MOST_CELLS, MOST_CHARACTERS = 20_000, 500_000
"""Cells of the rows of squares that the page holds at most, and characters in them, for the what-if panel."""
MOST_SLICED, MOST_LEVELS, LEAST_ROWS = 6, 8, 10
"""Columns and levels that have figures, and rows that a level needs."""
WIDTH, LEAST_APART = 3.0, 0.05
"""Standard errors and difference from which on a level is called different."""
_SMALLEST = 0.01
OUTCOMES = ("found", "missed", "false", "alone")
"""What became of a row, in the order of the legend; with more than two classes ``"alone"`` is right."""
MOST_MEDOIDS = 64
"""Medoids that are shown at most, evenly of all classes."""
MOST_COLUMNS = 200
"""Columns that are listed at most; of more the most important ones."""


def describe(model: Model, looked: Looked | None, *, with_rows: bool) -> tuple[documents.AboutModelDict, Array | None]:
    """The parts of a summary that are about the model and about rows, and the importances of its columns.

    Contributions are those of some rows of a table, else of the medoids, where the model holds them as rows. Rows that
    have codes below 0 are not counted.
    """
    rows = None if model.medoids is None else medoid_sample(model) if looked is None else looked.sample
    importance, left_out = model.importances, model.contract.left_out
    if looked is not None and rows is not None:
        few = rows.first(MOST_ROWS)
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
        **_evaluated_rows(model, looked, importance, with_rows=with_rows),
    }, importance


def medoid_rows(model: Model) -> documents.ReportMedoidsDict | None:
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
    rows: list[documents.ReportMedoidDict] = [
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
    values = read(given, column).values
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


def _columns(model: Model, importance: Array | None) -> list[documents.ReportColumnDict]:
    """Columns in the order of the contract; of more than `MOST_COLUMNS` the most important first."""
    columns, training = model.contract.columns, model.training
    order = list(range(len(columns)))
    if len(columns) > MOST_COLUMNS:
        order = (order if importance is None else stable_order(-importance).tolist())[:MOST_COLUMNS]
    used = set(model.layout.used)
    shares = None if training is None else training.missing / training.n_rows
    listed = list[documents.ReportColumnDict]()
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


def _evaluated_rows(
    model: Model, looked: Looked | None, importance: Array | None, *, with_rows: bool
) -> documents.EvaluatedRowsDict:
    """The rows that a model is evaluated on: squares, errors and slices; cells of them `with_rows` alone."""
    if looked is None or not (looked.codes >= 0).any():
        return {"squares": None, "errors": None, "slices": []}
    counted = np.flatnonzero(looked.codes >= 0)
    # The rows whose cells are known, in the order of the table.
    every, is_two = looked.sample.joined([looked.rare]), len(model.decision.classes) == 2
    rows, first = np.unique(every.rows, return_index=True)
    sample = every.take(first[looked.codes[rows] >= 0])
    scores, called = looked.decided.scores, looked.decided.codes
    # The log-odds of the positive class, or of more classes the probability of the one that was called.
    strength = scores[:, 1] - scores[:, 0] if is_two else looked.decided.margins
    if not is_two and model.decision.probabilistic:
        strength = model.decision.probabilities(scores)[np.arange(len(called)), called]
    # Positions in `OUTCOMES`; of more than two classes a row is right or wrong.
    outcome = np.where(called == looked.codes, 3, 1)
    if is_two:
        outcome = np.where(called == 1, np.where(looked.codes == 1, 0, 2), outcome)
    order = counted[np.argsort(-strength[counted], kind="stable")]
    own, shown = outcome[sample.rows], None
    if len(sample.rows):
        shown = _squares(model, looked, sample, strength, outcome, order, with_rows=with_rows)
    wrong = np.flatnonzero(np.isin(own, (1, 2)))
    sizes = np.abs(looked.decided.margins[sample.rows[wrong]])
    places = wrong[np.argsort(-sizes, kind="stable")[:MOST_ERRORS]]
    chances = _chances(model, strength[sample.rows[places]])
    errors: documents.ErrorsDict = {
        "total": int(np.isin(outcome[counted], (1, 2)).sum()),
        "rows": _errors(model, looked, sample, places, chances, with_rows=with_rows),
        "of_sample": len(own) < len(counted),
    }
    return {"squares": shown, "errors": errors, "slices": _slices(model, sample, own, importance)}


def _squares(
    model: Model, looked: Looked, sample: Sample, strength: Array, outcome: Codes, order: Codes, *, with_rows: bool
) -> dict[str, Any]:
    """The squares of a page: rows by falling probability, what became of them and why."""
    chosen, about = _chosen(model, strength[sample.rows], outcome[sample.rows], outcome[order])
    places = chosen[np.argsort(-strength[sample.rows][chosen], kind="stable")]
    rows, names, used = sample.rows[places], model.contract.names, model.layout.used
    cells = plain_cells(model, plain_records(sample.table, places)) if with_rows else None
    shown = None
    if cells is not None and len(places) * len(used) <= MOST_CELLS:
        shown = [[record.get(names[place]) for place in used] for record in cells]
        # A what-if starts from whole cells or from none: a level that is cut short is another level.
        if sum(len(cell) for record in shown for cell in record if isinstance(cell, str)) > MOST_CHARACTERS:
            shown = None
    return {
        "classes": [str(label) for label in model.decision.classes],
        "rows": len(order),
        "counts": np.bincount(outcome[order], minlength=len(OUTCOMES)).tolist(),
        "about": about,
        "rank": np.searchsorted(-strength[order], -strength[rows], side="left").tolist(),
        "outcome": outcome[rows].tolist(),
        "row": rows.tolist(),
        "class": looked.codes[rows].tolist(),
        "called": looked.decided.codes[rows].tolist(),
        "chance": _chances(model, strength[rows]),
        "columns": list(names),
        "why": _reasons(model, looked, sample, places, cells),
        "used": list(used),
        "cells": shown,
    }


def _chances(model: Model, strengths: Array) -> list[str]:
    """Probabilities as texts; scores where the model has none."""
    if not model.decision.probabilistic:
        return [f"{one:.3g}" for one in strengths.tolist()]
    chances = strengths if len(model.decision.classes) > 2 else 1.0 / (1.0 + np.exp(-np.clip(strengths, -700, 700)))
    return [percent_text(one) for one in chances.tolist()]


def _chosen(model: Model, strength: Array, outcome: Codes, all_outcomes: Codes) -> tuple[Codes, str | None]:
    """The rows that have a square, and a sentence on them where they are not all."""
    n, n_all = len(strength), len(all_outcomes)
    if n == n_all <= MOST_SQUARES:
        return np.arange(n), None
    order = np.argsort(-strength, kind="stable")
    is_rare, n_rare = np.isin(outcome, (0, 1)), int(np.isin(all_outcomes, (0, 1)).sum())
    if len(model.decision.classes) != 2 or n_rare > RARE * n_all:
        places = order[evenly(n, MOST_SQUARES)]
        return places, f"{len(places):,} squares are an even sample of the {n_all:,} rows."
    rare, others = order[is_rare[order]], order[~is_rare[order]]
    rare = rare[evenly(len(rare), MOST_RARE)]
    others = others[evenly(len(others), MOST_SQUARES - len(rare))]
    label = str(model.decision.classes[1])
    of_rare = "all" if len(rare) == n_rare else f"{len(rare):,} of"
    return np.concatenate([rare, others]), (
        f"Squares are {of_rare} {n_rare:,} rows of {label!r} and an even sample of "
        f"{len(others):,} of the {n_all - n_rare:,} others."
    )


def _reasons(
    model: Model, looked: Looked, sample: Sample, places: Codes, cells: list[dict[str, Any]] | None
) -> list[list[list[Any]]] | None:
    """The columns that contributed most to each decision: place, cell, log-odds and their text; None for a circuit.

    Contributions point toward the positive class, or of more than two classes toward the one that was called.
    """
    if model.medoids is None:
        return None
    rows = sample.rows[places]
    called = looked.decided.codes[rows]
    pair = np.ones_like(called), np.zeros_like(called)
    if len(model.decision.classes) > 2:
        pair = called, model.decision.runners_up(looked.decided.scores[rows], called)
    added = column_contributions(model, [column[places] for column in sample.encoded], *pair)
    names, made = model.contract.names, []
    for place, row in enumerate(added):
        best = np.argsort(-np.abs(row), kind="stable")[:MOST_REASONS].tolist()
        own = [None if cells is None else cell_text(cells[place].get(names[one])) for one in best]
        values = [
            (one, cell, float(row[one])) for one, cell in zip(best, own, strict=True) if abs(row[one]) >= _SMALLEST
        ]
        odds = model.decision.probabilistic
        made.append([[one, cell, round(value, 4), effect_text(value, odds=odds)] for one, cell, value in values])
    return made


def _errors(
    model: Model, looked: Looked, sample: Sample, places: Codes, chances: list[str], *, with_rows: bool
) -> list[documents.ErrorRowDict]:
    """Rows that were decided wrongly by the widest margin, with what spoke for the wrong class, the largest first."""
    cells = plain_cells(model, plain_records(sample.table, places)) if with_rows else None
    why = _reasons(model, looked, sample, places, cells)
    names, labels = model.contract.names, [str(label) for label in model.decision.classes]
    listed = list[documents.ErrorRowDict]()
    for place, (row, chance) in enumerate(zip(sample.rows[places].tolist(), chances, strict=True)):
        called, said = int(looked.decided.codes[row]), None
        if why is not None:
            sign = -1.0 if len(labels) == 2 and called == 0 else 1.0
            spoke = [(names[one], cell, text) for one, cell, value, text in why[place] if sign * value > 0][:3]
            texts = [f"{name}{'' if cell is None else f' {cell}'} ({text})" for name, cell, text in spoke]
            said = ", ".join(texts) or "no column speaks for it"
        true = labels[looked.codes[row]]
        listed.append({"row": row, "true": true, "called": labels[called], "chance": chance, "why": said})
    return listed


def _slices(model: Model, sample: Sample, outcome: Codes, importance: Array | None) -> list[documents.SliceDict]:
    """Figures by the levels of categories and truth values, for the columns that contribute most."""
    columns, used, sliced = model.contract.columns, list(model.layout.used), list[documents.SliceDict]()
    order = used if importance is None else [used[one] for one in np.argsort(-importance[used], kind="stable")]
    for place in order:
        name, is_level = columns[place].name, columns[place].kind in ("category", "boolean")
        if not is_level or len(sliced) == MOST_SLICED or name not in sample.table.column_names:
            continue
        given = sample.table.column(name).cast(pa.string())
        # No array of texts: there, each takes the room of the longest.
        cells = [cell or "missing" for cell in given.to_pylist()]
        counts = sorted(Counter(cells).items(), key=lambda one: (-one[1], one[0]))
        shown = [level for level, n in counts if n >= LEAST_ROWS][:MOST_LEVELS]
        if len(shown) > 1:
            inside = {level: np.array([cell == level for cell in cells]) for level in shown}
            rows = [_level(cell_text(level), inside[level], outcome) for level in shown]
            sliced.append({"column": name, "levels": rows})
    return sliced


def _level(name: str, inside: Flags, outcome: Codes) -> documents.LevelDict:
    """Counts of one level; it differs where it is right for another share of rows than all others, beyond error."""
    right = np.isin(outcome, (0, 3))
    hits, n = int(right[inside].sum()), int(inside.sum())
    rest, n_rest = int(right[~inside].sum()), int((~inside).sum())
    share = share_interval(hits, n)
    apart = 0.0 if not n_rest else hits / n - rest / n_rest
    change = share_change(hits, n, rest, max(n_rest, 1), width=WIDTH)
    is_apart = bool(n_rest) and abs(change.standard_errors) > WIDTH and abs(apart) >= LEAST_APART
    return {
        "level": name,
        "rows": n,
        "counts": np.bincount(outcome[inside], minlength=len(OUTCOMES)).tolist(),
        "right": percent_text(share.value),
        "interval": bounds_text(share),
        "differs": ("better" if apart > 0 else "worse") if is_apart else None,
    }
