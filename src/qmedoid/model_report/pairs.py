"""Columns that count together: groups of two and three, and the graph of all of them."""

from itertools import combinations
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.methods.contributions import Grouped
from qmedoid.model.explanation import explained_by
from qmedoid.model.table import TableModel
from qmedoid.model_report.effects import KnownRows

MOST_ROWS = 200
"""Rows that contributions of groups are computed of."""
MOST_PAIRS = 20
MOST_NODES = 24
MOST_EDGES = 60
_LARGEST_SET = 6


def together(model: TableModel, rows: KnownRows | None) -> dict[frozenset[int], float]:
    """Mean absolute contribution of sets of two columns or more, by places in the contract.

    Groups of evidence and paths of trees that look at the same columns count together.
    """
    if rows is None or model.method is None or not isinstance(model.method, Grouped) or not len(rows.table):
        return {}
    few = rows.first(MOST_ROWS)
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
        {"columns": [names[place] for place in found], "importance": amount, "text": f"{amount:.4f}"}
        for amount, found in listed[:MOST_PAIRS]
    ]


def graph(model: TableModel, sets: dict[frozenset[int], float], importance: Array | None) -> dict[str, Any]:
    """Columns, and how much two of them count together; a larger group is shared among its pairs evenly."""
    names, weights = model.contract.names, dict[tuple[int, int], float]()
    for found, amount in sets.items():
        edges = list(combinations(sorted(found), 2))
        for edge in edges:
            weights[edge] = weights.get(edge, 0.0) + amount / len(edges)
    heaviest = sorted(weights.items(), key=lambda one: (-one[1], one[0]))
    nodes: dict[int, int] = {}
    kept: list[dict[str, Any]] = []
    for (a, b), weight in heaviest:
        new = {a, b} - nodes.keys()
        if weight <= 0 or len(kept) >= MOST_EDGES or len(nodes) + len(new) > MOST_NODES:
            continue
        for place in sorted(new):
            nodes[place] = len(nodes)
        kept.append({"a": nodes[a], "b": nodes[b], "weight": weight, "text": f"{weight:.4f}"})
    return {
        "nodes": [
            {"name": names[place], "importance": None if importance is None else float(importance[place])}
            for place in nodes
        ],
        "edges": kept,
    }
