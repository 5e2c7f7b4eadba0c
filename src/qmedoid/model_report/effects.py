"""What columns contribute: importances, and the learnt shape of the most important ones."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.model.explanation import column_contributions
from qmedoid.model.importance import by_importance, class_contributions
from qmedoid.model.table import TableModel
from qmedoid.tables.effect import EffectTally

N_EFFECTS = 12
"""Columns whose shape is shown: the most important ones."""
N_BINS = 20
"""Bins of numbers and dates at most, of about equally many rows."""
ROWS_IN_BIN = 10
"""Rows of a bin at least, where there are several bins."""
MOST_ROWS = 2_000
"""Rows that contributions are computed of, at most; fewer with more classes."""


_LEAST_ROWS = 200


class KnownRows(NamedTuple):
    """Rows whose contributions are looked at: a table of raw cells, and its encoded columns."""

    table: pa.Table
    encoded: list[Array]

    def first(self, n_rows: int) -> "KnownRows":
        """Evenly spread rows of them, at most so many."""
        n = len(self.table)
        if n <= n_rows:
            return self
        places = np.unique(np.linspace(0, n - 1, n_rows).round().astype(np.intp))
        return KnownRows(self.table.take(pa.array(places)), [column[places] for column in self.encoded])


def importances(model: TableModel, rows: KnownRows) -> Array:
    """Mean absolute contribution of every column to the margins of some rows, shape (columns,)."""
    few = rows.first(MOST_ROWS)
    decided = model.decide(few.encoded)
    others = model.decision.runners_up(decided.scores, decided.codes)
    return np.asarray(np.abs(column_contributions(model, few.encoded, decided.codes, others)).mean(axis=0))


def effects(model: TableModel, rows: KnownRows, importance: Array, n_effects: int = N_EFFECTS) -> list[dict[str, Any]]:
    """The shape of the most important columns: contribution against value, all toward one class."""
    places = {name: place for place, name in enumerate(model.contract.names)}
    used = set(model.layout.used)
    ranked = by_importance(model.contract.names, importance)
    wanted = [name for name, amount in ranked.items() if places[name] in used and amount > 0][:n_effects]
    few = rows.first(max(_LEAST_ROWS, MOST_ROWS // max(len(model.decision.classes) - 1, 1)))
    if not wanted or not len(few.table):
        return []
    code = _spoken_for(model, rows, [places[name] for name in wanted])
    added = class_contributions(model, np.column_stack(few.encoded).astype(np.float64), code)
    n_bins = min(N_BINS, max(1, len(few.table) // ROWS_IN_BIN))
    return [_effect(model, few.table, name, code, added[:, places[name]], n_bins) for name in wanted]


def _spoken_for(model: TableModel, rows: KnownRows, places: list[int]) -> int:
    """The second of two classes, else the one that the columns at these places contribute most to."""
    n_classes = len(model.decision.classes)
    if n_classes == 2:
        return 1
    X = np.column_stack(rows.first(max(20, _LEAST_ROWS // n_classes)).encoded).astype(np.float64)
    sizes = [float(np.abs(class_contributions(model, X, code)[:, places]).mean()) for code in range(n_classes)]
    return int(np.argmax(sizes))


def _effect(model: TableModel, table: pa.Table, name: str, code: int, added: Array, n_bins: int) -> dict[str, Any]:
    """The shape of one column, from what it adds for a class, shape (n,)."""
    tally = EffectTally(model, name, model.decision.classes[code])
    tally.add_contributions(table, added)
    shape = tally.report(n_bins).drawn()
    missing = None if shape["missing"] is None else _with_text(shape["missing"])
    return {**shape, "bins": [_with_text(one) for one in shape["bins"]], "missing": missing}


def _with_text(one: dict[str, Any]) -> dict[str, Any]:
    text = f"{one['mean']:+.4f} ({one['low']:+.4f} to {one['high']:+.4f}), {one['count']:,} rows"
    return {**one, "text": text}
