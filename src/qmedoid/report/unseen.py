"""Rows that a model is evaluated on: a square for each, the worst errors with reasons, and figures by level."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.intervals import share_change, share_interval
from qmedoid.metrics.texts import percent_text
from qmedoid.model.explanation import column_contributions
from qmedoid.model.model import Model
from qmedoid.report.documents import ErrorRowDict, ErrorsDict, LevelDict, SliceDict, SquaresDict, TenthDict
from qmedoid.report.figures import added_text, bounds_text
from qmedoid.report.operating import RankedLogOdds
from qmedoid.report.parts import cell_text, plain_cells
from qmedoid.report.reading import Looked, Sample, evenly
from qmedoid.report.verdict import RARE
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import one_chunk

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
_TENTHS = 10
OUTCOMES = ("found", "missed", "false", "alone")
"""What became of a row, in the order of the legend; with more than two classes ``"alone"`` is right."""


Evaluated = tuple[Sample, Array, Codes, Array, Codes]
"""Rows with a class that are counted and whose cells are at hand, with the codes that count; by row the log-odds of the
positive class, or of more classes the probability of the one that was called, and its place in `OUTCOMES`; and both of
all rows that are counted, by falling log-odds."""


def evaluated_rows(model: Model, looked: Looked) -> Evaluated | None:
    """The rows of a table that a model is evaluated on; None without any."""
    counted = np.flatnonzero(looked.codes >= 0)
    if not len(counted):
        return None
    sample, is_two = looked.known_rows(), len(model.decision.classes) == 2
    scores, called = looked.decided.scores, looked.decided.codes
    strength = scores[:, 1] - scores[:, 0] if is_two else looked.decided.margins
    if not is_two and model.decision.probabilistic:
        strength = model.decision.probabilities(scores)[np.arange(len(called)), called]
    outcome = _outcomes(looked.codes, called, is_two=is_two)
    order = counted[np.argsort(-strength[counted], kind="stable")]
    rows = sample.rows
    return sample, strength[rows], outcome[rows], strength[order], outcome[order]


def _outcomes(true: Codes, called: Codes, *, is_two: bool) -> Codes:
    """Places in `OUTCOMES`; of more than two classes a row is right or wrong."""
    if not is_two:
        return np.where(called == true, 3, 1)
    return np.where(called == true, np.where(called == 1, 0, 3), np.where(called == 1, 2, 1))


def squares(model: Model, looked: Looked, found: Evaluated, *, with_rows: bool) -> SquaresDict | None:
    """The squares of a page: rows by falling probability, what became of them and why."""
    sample, strength, outcome, all_strengths, all_outcomes = found
    if not len(strength):
        return None
    chosen, about = _chosen(model, found)
    order = chosen[np.argsort(-strength[chosen], kind="stable")]
    rows, names, used = sample.rows[order], model.contract.names, model.layout.used
    cells = plain_cells(model, plain_records(sample.table, order)) if with_rows else None
    shown = None
    if cells is not None and len(order) * len(used) <= MOST_CELLS:
        shown = [[record.get(names[place]) for place in used] for record in cells]
        # A what-if starts from whole cells or from none: a level that is cut short is another level.
        if sum(len(cell) for record in shown for cell in record if isinstance(cell, str)) > MOST_CHARACTERS:
            shown = None
    made = _squares(
        model, all_strengths, all_outcomes, strength[order], outcome[order],
        looked.codes[rows], looked.decided.codes[rows], about,
    )  # fmt: skip
    why = reasons(model, looked, sample, order, cells)
    return {**made, "row": rows.tolist(), "columns": list(names), "why": why, "used": list(used), "cells": shown}


def curve_squares(model: Model, rows: RankedLogOdds) -> SquaresDict:
    """Squares of out-of-fold rows, of which nothing but their class and their probability is known."""
    order = np.argsort(-rows.log_odds, kind="stable")
    strength, true = rows.log_odds[order], rows.positive[order].astype(int)
    called = (strength > (0.0 if model.decision.cut is None else model.decision.cut)).astype(int)
    outcome, places = _outcomes(true, called, is_two=True), evenly(len(order), MOST_SQUARES)
    about = None if len(places) == len(order) else _even_sample(len(places), len(order))
    return _squares(model, strength, outcome, strength[places], outcome[places], true[places], called[places], about)


def _squares(
    model: Model, strengths: Array, outcomes: Codes, strength: Array, outcome: Codes, true: Codes, called: Codes,
    about: str | None,
) -> SquaresDict:  # fmt: skip
    """Squares of some rows, and counts of all rows by what became of them, also by tenths of the rows."""
    bounds = np.unique(np.linspace(0, len(strengths), min(_TENTHS, len(strengths)) + 1).round().astype(int))
    tenths = list[TenthDict]()
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        high, low = _chances(model, strengths[[begin, end - 1]])
        counts = np.bincount(outcomes[begin:end], minlength=len(OUTCOMES)).tolist()
        tenths.append({"chances": high if high == low else f"{high} to {low}", "rows": end - begin, "counts": counts})
    return {
        "classes": [str(label) for label in model.decision.classes],
        "rows": len(strengths),
        "counts": np.bincount(outcomes, minlength=len(OUTCOMES)).tolist(),
        "tenths": tenths,
        "about": about,
        "rank": np.searchsorted(-strengths, -strength, side="left").tolist(),
        "outcome": outcome.tolist(),
        "row": None,
        "class": true.tolist(),
        "called": called.tolist(),
        "chance": _chances(model, strength),
        "columns": [],
        "why": None,
        "used": [],
        "cells": None,
    }


def _chances(model: Model, strengths: Array) -> list[str]:
    """Probabilities as texts; scores where the model has none."""
    if not model.decision.probabilistic:
        return [f"{one:.3g}" for one in strengths.tolist()]
    chances = strengths if len(model.decision.classes) > 2 else 1.0 / (1.0 + np.exp(-np.clip(strengths, -700, 700)))
    return [percent_text(one) for one in chances.tolist()]


def _even_sample(shown: int, rows: int) -> str:
    return f"{shown:,} squares are an even sample of the {rows:,} rows."


def _chosen(model: Model, found: Evaluated) -> tuple[Codes, str | None]:
    """The rows that have a square, and a sentence on them where they are not all."""
    _, strength, outcome, _, all_outcomes = found
    n, n_all = len(strength), len(all_outcomes)
    if n == n_all <= MOST_SQUARES:
        return np.arange(n), None
    order = np.argsort(-strength, kind="stable")
    is_rare = np.isin(outcome, (0, 1))
    n_rare = int(np.isin(all_outcomes, (0, 1)).sum())
    if len(model.decision.classes) != 2 or n_rare > RARE * n_all:
        places = order[evenly(n, MOST_SQUARES)]
        return places, _even_sample(len(places), n_all)
    rare, others = order[is_rare[order]], order[~is_rare[order]]
    rare = rare[evenly(len(rare), MOST_RARE)]
    others = others[evenly(len(others), MOST_SQUARES - len(rare))]
    label = str(model.decision.classes[1])
    of_rare = "all" if len(rare) == n_rare else f"{len(rare):,} of"
    return np.concatenate([rare, others]), (
        f"Squares are {of_rare} {n_rare:,} rows of {label!r} and an even sample of "
        f"{len(others):,} of the {n_all - n_rare:,} others."
    )


def reasons(
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
        best = np.argsort(-np.abs(row), kind="stable")[:MOST_REASONS]
        made.append([
            [int(one), None if cells is None else cell_text(cells[place].get(names[one])), round(float(row[one]), 4),
             added_text(float(row[one]), odds=model.decision.probabilistic)]
            for one in best.tolist() if abs(row[one]) >= _SMALLEST
        ])  # fmt: skip
    return made


def errors(model: Model, looked: Looked, found: Evaluated, *, with_rows: bool) -> ErrorsDict | None:
    """The rows that were decided wrongly by the widest margin, with what spoke for the wrong class."""
    sample, strength, outcome, _, all_outcomes = found
    wrong = np.flatnonzero(np.isin(outcome, (1, 2)))
    total = int(np.isin(all_outcomes, (1, 2)).sum())
    sizes = np.abs(looked.decided.margins[sample.rows[wrong]])
    places = wrong[np.argsort(-sizes, kind="stable")[:MOST_ERRORS]]
    rows, labels = sample.rows[places], [str(label) for label in model.decision.classes]
    cells = plain_cells(model, plain_records(sample.table, places)) if with_rows else None
    why = reasons(model, looked, sample, places, cells)
    called, true = looked.decided.codes[rows], looked.codes[rows]
    listed: list[ErrorRowDict] = [
        {
            "row": int(rows[place]), "true": labels[true[place]], "called": labels[called[place]], "chance": chance,
            "why": None if why is None else _spoke_for(model, why[place], int(called[place])),
        }
        for place, chance in enumerate(_chances(model, strength[places]))
    ]  # fmt: skip
    return {"total": total, "rows": listed, "of_sample": len(strength) < len(all_outcomes)}


def _spoke_for(model: Model, why: list[list[Any]], called: int) -> str:
    """The reasons for the class that was called, the largest first."""
    sign, names = -1.0 if len(model.decision.classes) == 2 and called == 0 else 1.0, model.contract.names
    said = [
        f"{names[place]}{'' if cell is None else f' {cell}'} ({text})"
        for place, cell, value, text in why if sign * value > 0
    ]  # fmt: skip
    return ", ".join(said[:3]) or "no column speaks for it"


def slices(model: Model, found: Evaluated, importance: Array | None) -> list[SliceDict]:
    """Figures by the levels of categories and truth values, for the columns that contribute most."""
    sample, _, outcome, _, _ = found
    columns, used, sliced = model.contract.columns, list(model.layout.used), list[SliceDict]()
    order = used if importance is None else [used[one] for one in np.argsort(-importance[used], kind="stable")]
    for place in order:
        name, is_level = columns[place].name, columns[place].kind in ("category", "boolean")
        if not is_level or len(sliced) == MOST_SLICED or name not in sample.table.column_names:
            continue
        given = one_chunk(sample.table.column(name)).cast(pa.string())
        # No array of texts: there, each takes the room of the longest.
        cells = [cell or "missing" for cell in given.to_pylist()]
        counts = sorted(Counter(cells).items(), key=lambda one: (-one[1], one[0]))
        shown = [level for level, n in counts if n >= LEAST_ROWS][:MOST_LEVELS]
        if len(shown) > 1:
            inside = {level: np.array([cell == level for cell in cells]) for level in shown}
            rows = [_level(cell_text(level), inside[level], outcome) for level in shown]
            sliced.append({"column": name, "levels": rows})
    return sliced


def _level(name: str, inside: Flags, outcome: Codes) -> LevelDict:
    """Counts of one level; it differs where it is right for another share of rows than all others, beyond error."""
    right = np.isin(outcome, (0, 3))
    hits, n = int(right[inside].sum()), int(inside.sum())
    rest, n_rest = int(right[~inside].sum()), int((~inside).sum())
    share = share_interval(hits, n)
    apart = 0.0 if not n_rest else hits / n - rest / n_rest
    change = share_change(hits, n, rest, max(n_rest, 1), width=WIDTH)
    is_apart = bool(n_rest) and abs(change.standard_errors) > WIDTH and abs(apart) >= LEAST_APART
    counts = np.bincount(outcome[inside], minlength=len(OUTCOMES)).tolist()
    return {
        "level": name, "rows": n, "counts": counts, "right": percent_text(share.value), "interval": bounds_text(share),
        "differs": ("better" if apart > 0 else "worse") if is_apart else None,
    }  # fmt: skip
