"""How much rows differ from one record: in single columns, and in those that decide about it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.model.contract import Dates, Levels
from qmedoid.model.table import TableModel
from qmedoid.tables.encode import encode_batch

OTHER_LEVEL = 0.5
"""What another level or truth value counts, in shares of the training rows that a number passes."""


def known_values(model: TableModel, encoded: int) -> Array | None:
    """Smallest and largest training value of an encoded column, and the edges of its bins; None where not known."""
    novelty = model.novelty
    if novelty is None or encoded not in novelty.limited:
        return None
    limited = int(np.searchsorted(novelty.limited, encoded))
    values = [np.array([novelty.lowest[limited], novelty.highest[limited]])]
    if encoded in novelty.binned:
        values.append(novelty.bin_edges(int(np.searchsorted(novelty.binned, encoded))))
    held = np.clip(np.concatenate(values), novelty.lowest[limited], novelty.highest[limited])
    return np.asarray(np.unique(held))


def sizes(model: TableModel, encoded: int, start: float | None, values: Array) -> Array:
    """Shares of the training rows between the start and each value; one half where the start is missing."""
    known = known_values(model, encoded)
    novelty = model.novelty
    if start is None or known is None or novelty is None:
        return np.full(len(values), OTHER_LEVEL)
    if encoded not in novelty.binned:
        return np.minimum(_in_widths(known, start, values), 1.0)
    place = int(np.searchsorted(novelty.binned, encoded))
    edges = np.unique(np.concatenate([known[:1], novelty.bin_edges(place), known[-1:]]))
    counts = novelty.counts[novelty.offsets[place] + place : novelty.offsets[place + 1] + place + 1]
    shares = np.concatenate([[0.0], np.cumsum(counts) / max(int(counts.sum()), 1)])
    # The first edge may be the smallest value itself: its bin below is empty then.
    heights = shares if len(edges) == len(shares) else shares[-len(edges) :]
    between = np.abs(np.interp(values, edges, heights) - np.interp(start, edges, heights))
    # Within one bin, and beyond the outer values, the distance breaks ties, however far a cell lies outside.
    away = _in_widths(known, start, values)
    return np.asarray(between + 1e-6 * away / (1.0 + away))


def _in_widths(known: Array, start: float, values: Array) -> Array:
    """Distances in units of the width of the training values."""
    width = float(known[-1] - known[0])
    return np.asarray(np.abs(values - start) / (width if width > 0 else 1.0))


class SimilarRows:
    r"""Differences of rows from one record in the columns that decide about it.

    .. math:: \frac{\sum_j |c_j|\,d_j}{\sum_j |c_j|},

    with :math:`c_j` what column j contributes to the decision, and :math:`d_j` the share of the training rows between
    the two numbers or dates; of other cells, and where one of them is missing, 1 if the model tells them apart.

    Parameters
    ----------
    model : TableModel
    record : pyarrow.Table
        One row, under the names of the contract.
    contributions : mapping of str to float
        By column of the contract.
    """

    def __init__(self, model: TableModel, record: pa.Table, contributions: Mapping[str, float]) -> None:
        self._model = model
        weights = np.abs([contributions.get(name, 0.0) for name in model.contract.names])
        # Without any contribution all columns count alike.
        self._weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1.0 / len(weights))
        self._used = np.flatnonzero(self._weights).tolist()
        self._starts = np.searchsorted(model.source, np.arange(len(model.encodings))).tolist()
        self._record = [float(column[0]) for column in encode_batch(record, model.contract, model.encodings)]

    def of_records(self, records: Sequence[Mapping[str, Any]]) -> Array:
        """Differences of records as plain values, shape (n,)."""
        return self.of_encoded(self._encoded(records))

    def is_ordered(self, name: str) -> bool:
        """Whether cells of a column can be close to each other: numbers and dates."""
        kind = self._model.contract.columns[self._model.contract.names.index(name)].kind
        return kind in ("number", "date")

    def by_column(self, record: Mapping[str, Any]) -> dict[str, float]:
        """What one record as plain values differs by in every column that contributes."""
        columns, names = self._encoded([record]), self._model.contract.names
        return {names[place]: float(self._in_column(place, columns)[0]) for place in self._used}

    def _encoded(self, records: Sequence[Mapping[str, Any]]) -> list[Array]:
        contract = self._model.contract
        names = [contract.names[place] for place in self._used]
        table = pa.table({name: _column([record.get(name) for record in records]) for name in names})
        return encode_batch(table, contract, self._model.encodings, only=self._used)

    def of_encoded(self, columns: Sequence[Array]) -> Array:
        """Differences of rows by their encoded columns, each of shape (n,), shape (n,)."""
        total = np.zeros(len(columns[0]))
        for place in self._used:
            total += self._weights[place] * self._in_column(place, columns)
        return total

    def _in_column(self, place: int, columns: Sequence[Array]) -> Array:
        encoding, first = self._model.encodings[place], self._starts[place]
        outputs = encoding.outputs
        differs = np.zeros(len(columns[0]), dtype=np.bool_)
        is_ordered = self._model.contract.columns[place].kind != "boolean" and not isinstance(encoding, Levels)
        value = first + (outputs.index(": days") if ": days" in outputs else 0)
        for column in range(first, first + len(outputs)):
            own, others = self._record[column], np.asarray(columns[column], dtype=np.float64)
            absent = outputs[column - first] == " is missing"
            if not is_ordered or absent or (isinstance(encoding, Dates) and ": days" not in outputs):
                differs |= ~((others == own) | (np.isnan(others) & np.isnan(own)))
            elif column == value:
                differs |= np.isnan(others) != np.isnan(own)
        if not is_ordered or np.isnan(self._record[value]):
            return differs.astype(np.float64)
        between = sizes(self._model, value, self._record[value], np.nan_to_num(np.asarray(columns[value], np.float64)))
        return np.where(differs, 1.0, np.minimum(between, 1.0))


def _column(cells: list[Any]) -> pa.Array:
    """Plain cells as Arrow has them: numbers, truth values or texts."""
    if any(isinstance(cell, str) for cell in cells):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return pa.array(cells)
