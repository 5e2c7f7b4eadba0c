"""What columns contribute to the decisions about the rows of a table: effects of values, and importances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.exceptions import DataError, ParameterError, check_int, some_of
from qmedoid.explain.documents import ColumnEffectDict, EffectBinDict
from qmedoid.markup.page import render
from qmedoid.model.contract import Column, Encoding, Kind, Label, Levels
from qmedoid.model.importance import NO_ROWS, ImportanceTally, by_importance, class_contributions
from qmedoid.model.model import Model
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.arrow import BATCH_ROWS
from qmedoid.tables.difference import Issues
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import label_codes

N_BINS = 10
"""Bins of a column of numbers or dates."""
MOST_ROWS = 1_000_000
"""Rows that are kept of a table at most; of a longer one these are drawn at random."""
MOST_LEVELS = 20
"""Levels of a category that are shown one by one, the most frequent; the others are one."""
_BLOCK_ROWS = 4096
_OTHERS = "other levels"
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Effect:
    """Effect of a column on decisions.

    Attributes
    ----------
    column : str
    kind : {"number", "category", "boolean", "date"}
    toward : label
        The class that contributions above 0 are for.
    against : label or None
        The other of two classes; None for the mean of all others.
    unit : {"log-odds", "score"}
        Of contributions; scores where the model has no probabilities.
    rows : int
        Rows of the table.
    kept : int
        Rows that the bins are made of: all, or `MOST_ROWS` drawn at random.
    bins : tuple of dict
        Of numbers and dates with about equally many rows each, in order; of categories the levels, the most frequent
        first. Each has ``"value"`` in words, ``"low"`` and ``"high"`` (None for levels), ``"rows"``, their ``"mean"``
        contribution, and ``"p10"`` and ``"p90"``, which 10 % and 90 % of the rows stay below.
    missing : dict or None
        Rows in which the column is missing; None where there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import MedoidClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MedoidClassifier(method="evidence", random_state=0).fit(X, y)
    >>> found = model.effect(X, "petal width (cm)", toward=2)
    >>> found.rows, found.kind, len(found.bins) > 1
    (150, 'number', True)
    """

    column: str
    kind: Kind
    toward: Label
    against: Label | None
    unit: Literal["log-odds", "score"]
    rows: int
    kept: int
    bins: tuple[EffectBinDict, ...]
    missing: EffectBinDict | None

    def to_dict(self) -> ColumnEffectDict:
        """The effect as plain values, fit for JSON."""
        return cast("ColumnEffectDict", {**vars(self), "bins": list(self.bins)})

    def _repr_html_(self) -> str:
        title = f"What {self.column} contributes toward {self.toward}"
        return render("notebook/effect.html", title=title, shape=self.to_dict())


class EffectTally:
    """The effect of a column, gathered batch by batch in bounded memory."""

    def __init__(self, model: Model, column: str, toward: Any = None) -> None:
        names, labels = model.contract.names, model.decision.classes
        if column in model.contract.left_out:
            raise ParameterError(f"Column {column!r} was left out of the fit: {model.contract.left_out[column]}.")
        if column not in names:
            hint = did_you_mean(str(column), names)
            raise ParameterError(f"The model has no column {column!r}.{hint} It has {some_of([*map(repr, names)])}.")
        code = 1 if toward is None and len(labels) == 2 else -1
        if toward is not None:
            code = int(label_codes(pa.array([toward]), labels)[0])
        if code < 0:
            raise ParameterError(
                f"The 'toward' parameter must be one of the classes, {some_of([*map(repr, labels)])}. "
                f"Got {toward!r} instead."
            )
        self._model, self._code, self._place = model, code, names.index(column)
        self._column, self._encoding = model.contract.columns[self._place], model.encodings[self._place]
        self._rng = np.random.default_rng(0)
        # Value (NaN where missing), contribution and a random number of every row that is kept.
        self._parts: list[Array] = []
        self.rows = self._kept = 0

    def add(self, batch: pa.RecordBatch | pa.Table, columns: list[Array]) -> None:
        """Look at a batch and its encoded columns."""
        rows = np.column_stack(columns).astype(np.float64)
        parts = [class_contributions(self._model, rows[some], self._code) for some in row_slices(rows, _BLOCK_ROWS)]
        self.add_contributions(batch, np.concatenate([part[:, self._place] for part in parts]))

    def add_contributions(self, batch: pa.RecordBatch | pa.Table, added: Array) -> None:
        """Look at a batch whose contributions (n,) toward the class are known."""
        chance = self._rng.random(len(batch))
        self._parts.append(np.column_stack([column_values(batch, self._column, self._encoding), added, chance]))
        self.rows, self._kept = self.rows + len(batch), self._kept + len(batch)
        if self._kept > 2 * MOST_ROWS:
            self._parts = [self._drawn()]
            self._kept = len(self._parts[0])

    def report(self, n_bins: int = N_BINS) -> Effect:
        """The effect of all rows that were added."""
        if not self.rows:
            raise DataError(NO_ROWS)
        kept = self._drawn()
        values, added = kept[:, 0], kept[:, 1]
        is_missing, labels = np.isnan(values), self._model.decision.classes
        known, amounts = values[~is_missing], added[~is_missing]
        is_number = self._column.kind in ("number", "date")
        bins = self._ranges(known, amounts, n_bins) if is_number else self._levels(known.astype(np.intp), amounts)
        missing = _bin("missing", None, None, added[is_missing]) if is_missing.any() else None
        against = labels[1 - self._code] if len(labels) == 2 else None
        return Effect(
            self._column.name,
            self._column.kind,
            labels[self._code],
            against,
            "log-odds" if self._model.decision.probabilistic else "score",
            self.rows,
            len(kept),
            bins,
            missing,
        )

    def _drawn(self) -> Array:
        """The rows that are kept, at most `MOST_ROWS` of them, in their order."""
        rows = np.concatenate([np.zeros((0, 3)), *self._parts])
        if len(rows) <= MOST_ROWS:
            return rows
        return rows[np.sort(np.argpartition(rows[:, 2], MOST_ROWS)[:MOST_ROWS])]

    def _ranges(self, values: Array, added: Array, n_bins: int) -> tuple[EffectBinDict, ...]:
        """Bins of about equally many rows; equal values are in one."""
        if not len(values):
            return ()
        place = np.searchsorted(_edges(np.sort(values), n_bins), values, side="right")
        found = []
        for number in np.unique(place):
            inside = place == number
            low, high = (self._shown(float(bound(values[inside]))) for bound in (np.min, np.max))
            texts = [f"{one:.6g}" if isinstance(one, float) else one for one in (low, high)]
            found.append(_bin(texts[0] if low == high else " to ".join(texts), low, high, added[inside]))
        return tuple(found)

    def _shown(self, value: float) -> float | str:
        if self._column.kind != "date":
            return value
        moment = np.datetime64(int(value), "us")
        day = moment.astype("M8[D]")
        return str(day if day == moment else moment.astype("M8[s]"))

    def _levels(self, codes: Codes, added: Array) -> tuple[EffectBinDict, ...]:
        """The most frequent levels, and all others together; truth values are two."""
        names: tuple[str, ...] = ("false", "true")
        if isinstance(self._encoding, Levels):
            names = (*self._encoding.levels, _OTHERS)
        counts = np.bincount(codes, minlength=len(names))
        is_named = np.arange(len(names)) < len(names) - isinstance(self._encoding, Levels)
        order = np.argsort(-counts[is_named], kind="stable")
        shown = order[counts[order] > 0][:MOST_LEVELS]
        bins = [_bin(names[level], None, None, added[codes == level]) for level in shown]
        rest = ~np.isin(codes, shown)
        return (*bins, *([_bin(_OTHERS, None, None, added[rest])] if rest.any() else []))


def column_values(batch: pa.RecordBatch | pa.Table, column: Column, encoding: Encoding) -> Array:
    """The cells of a column: numbers, microseconds of dates, or places of levels; NaN where one is missing."""
    given = batch.column(column.name) if column.name in batch.schema.names else pa.nulls(len(batch))
    if isinstance(encoding, Levels):
        codes, _ = cells.level_codes(given, encoding.levels, column)
        n_levels = len(encoding.levels)
        # A level that the model does not know comes behind all others.
        return np.where(codes == n_levels, np.nan, np.minimum(codes, n_levels)).astype(np.float64)
    values = cells.read(given, column).values
    if column.kind == "date":
        return np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64))
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= cells.LARGEST, values, np.nan).astype(np.float64)


def _edges(ordered: Array, n_bins: int) -> Array:
    """The first value of every bin but the lowest, from values in order; rows of a frequent value stay together.

    Each bin ends where the rows that are left have the same number for every bin that is left, or at the nearer end of
    the value that is there.
    """
    n_rows, begin, edges = len(ordered), 0, list[float]()
    for n_left in range(n_bins, 1, -1):
        wanted = begin + (n_rows - begin) // n_left
        first, last = (int(np.searchsorted(ordered, ordered[wanted], side=side)) for side in _SIDES)
        begin = first if begin < first and wanted - first <= last - wanted else last
        if begin >= n_rows:
            break
        edges.append(float(ordered[begin]))
    return np.array(edges)


def _bin(value: str, low: float | str | None, high: float | str | None, added: Array) -> EffectBinDict:
    p10, p90 = np.quantile(added, [0.1, 0.9]).tolist()
    figures = {"rows": len(added), "mean": float(added.mean()), "p10": p10, "p90": p90}
    return cast("EffectBinDict", {"value": value, "low": low, "high": high, **figures})


def table_effect(
    model: Model, table: pa.Table, issues: Issues, column: str, toward: Any = None, n_bins: int = N_BINS
) -> Effect:
    """The effect of a column in a table."""
    tally = EffectTally(model, column, toward)
    check_int("'bins' parameter", n_bins, 1)
    for start in range(0, len(table), BATCH_ROWS):
        batch = table.slice(start, BATCH_ROWS)
        tally.add(batch, decide_batch(model, batch, issues)[1])
    return tally.report(n_bins)


def column_effects(
    model: Model, table: pa.Table, added: Array, places: Sequence[int], code: int, n_bins: int
) -> list[ColumnEffectDict]:
    """The effects of the columns at some places, from what all columns add toward a class, shape (n, columns)."""
    found = []
    for place in places:
        tally = EffectTally(model, model.contract.names[place], model.decision.classes[code])
        tally.add_contributions(table, added[:, place])
        found.append(tally.report(n_bins).to_dict())
    return found


def table_importances(model: Model, table: pa.Table, issues: Issues) -> dict[str, float]:
    """Mean absolute contribution of every column to the margins of the rows of a table, the largest first."""
    tally = ImportanceTally(model)
    for start in range(0, len(table), BATCH_ROWS):
        decided, columns = decide_batch(model, table.slice(start, BATCH_ROWS), issues)
        tally.add(columns, decided)
    return by_importance(model.contract.names, tally.importances)
