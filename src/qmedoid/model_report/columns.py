"""The columns of a model: how they are read, what their values contribute, and which of them count together."""

from itertools import combinations
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.contributions import Grouped
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.explanation import explained_by
from qmedoid.model.importance import ImportanceTally, by_importance, class_contributions
from qmedoid.model.table import TableModel
from qmedoid.model_report.reading import Sample
from qmedoid.tables.effect import EffectTally

MOST_COLUMNS = 200
"""Columns that are listed at most; of more the most important ones."""


def column_list(model: TableModel, importance: Array | None) -> list[dict[str, Any]]:
    """Columns in the order of the contract; of more than `MOST_COLUMNS` the most important first."""
    columns, training = model.contract.columns, model.training
    order = list(range(len(columns)))
    if len(columns) > MOST_COLUMNS:
        order = (order if importance is None else stable_order(-importance).tolist())[:MOST_COLUMNS]
    used = set(model.layout.used)
    shares = None if training is None else training.missing_shares
    listed = []
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


def importances(model: TableModel, rows: Sample) -> Array:
    """Mean absolute contribution of every column to the margins of some rows, shape (columns,)."""
    few, tally = rows.first(MOST_ROWS), ImportanceTally(model)
    tally.add(few.encoded, model.decide(few.encoded))
    return tally.importances


def effects(model: TableModel, rows: Sample, importance: Array) -> list[dict[str, Any]]:
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


def _spoken_for(model: TableModel, rows: Sample, places: list[int]) -> int:
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


def together(model: TableModel, rows: Sample | None) -> dict[frozenset[int], float]:
    """Mean absolute contribution of sets of two columns or more, by places in the contract.

    Groups of evidence and paths of trees that look at the same columns count together.
    """
    if rows is None or model.method is None or not isinstance(model.method, Grouped) or not len(rows.table):
        return {}
    few = rows.first(GROUP_ROWS)
    decided = model.decide(few.encoded)
    others = model.decision.runners_up(decided.scores, decided.codes)
    X = np.column_stack(few.encoded).astype(np.float64)
    groups, added = model.method.group_contributions(X, decided.codes, others)
    _, best = explained_by(model)
    sums: dict[frozenset[int], Array] = {}
    for place, columns in enumerate(groups):
        found = frozenset(model.source[list(columns)].tolist())
        if 1 < len(found) <= _LARGEST_SET:
            sums[found] = sums.get(found, 0.0) + best.slope * added[:, place]
    return {found: float(np.abs(amount).mean()) for found, amount in sums.items()}


def pairs(model: TableModel, sets: dict[frozenset[int], float]) -> list[dict[str, Any]]:
    """The groups of two and three columns that contribute most."""
    names = model.contract.names
    listed = [(amount, sorted(found)) for found, amount in sets.items() if len(found) <= 3 and amount > 0]
    listed.sort(key=lambda one: (-one[0], one[1]))
    return [
        {"columns": [names[place] for place in found], "importance": amount} for amount, found in listed[:MOST_PAIRS]
    ]


def graph(model: TableModel, sets: dict[frozenset[int], float], importance: Array | None) -> dict[str, Any]:
    """Columns, and how much two of them count together; a larger group is shared among its pairs evenly."""
    names, weights = model.contract.names, dict[tuple[int, int], float]()
    for found, amount in sets.items():
        edges = list(combinations(sorted(found), 2))
        for edge in edges:
            weights[edge] = weights.get(edge, 0.0) + amount / len(edges)
    nodes, kept = dict[int, int](), list[dict[str, Any]]()
    for (a, b), weight in sorted(weights.items(), key=lambda one: (-one[1], one[0])):
        if weight > 0 and len(kept) < MOST_EDGES and len(nodes.keys() | {a, b}) <= MOST_NODES:
            # The edge has a < b: columns are numbered as they come.
            kept.append({"a": nodes.setdefault(a, len(nodes)), "b": nodes.setdefault(b, len(nodes)), "weight": weight})
    sizes = {place: None if importance is None else float(importance[place]) for place in nodes}
    return {"nodes": [{"name": names[place], "importance": size} for place, size in sizes.items()], "edges": kept}
