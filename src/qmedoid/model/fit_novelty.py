"""Fit of the novelty of a training table: limits, bins and far distances."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.methods.base import Method
from qmedoid.model.contract import Dates, Encoding, Levels, Numbers
from qmedoid.model.novelty import LEAST, MOST, Far, Novelty, nearest_distances

Reading = Literal["number", "days", "part", "flag", "frequency", "nothing"]
"""What is kept of an encoded column: limits and bins of a number, limits of days, bins of parts of a date and of truth
values, how frequent new levels are, or nothing."""
FAR = 0.99
"""Quantile of the distances of training rows beyond which a record is far from all training rows."""
MOST_BINS = 10
_ROWS_PER_BIN = 20
# Rows of long tables that bins and distances are taken from; limits see all rows.
_MOST_ROWS, _MOST_MEASURED = 20_000, 5_000
_FEWEST_MEASURED = 100
# Numbers whose quantiles are sought together.
_BLOCK_NUMBERS = 2**20
# Limits lie beyond the training values by half of their width, or thrice the way from their 5 % tail to the extreme.
_WIDTHS, _TAILS, _TAIL = 0.5, 3.0, 0.05
# The same way in ratios, for numbers from 0 up, is held below this; and all limits are.
_MOST_RATIO, _LARGEST_LIMIT = 10.0, 1e151


def encoded_readings(encodings: Sequence[Encoding]) -> list[Reading]:
    """What is to be kept of every encoded column."""
    readings: list[Reading] = []
    for encoding in encodings:
        match encoding:
            case Numbers():
                readings.append("number")
                readings += ["flag"] * encoding.indicator
            case Dates():
                readings += ["days" if part == "days" else "part" for part in encoding.parts]
                readings += ["flag"] * encoding.indicator
            case Levels():
                # Shares of a class are made from other rows for a training row than for a new one.
                kept: dict[str, Reading] = {": frequency": "frequency"}
                readings += [
                    kept.get(output, "nothing" if output.startswith(": share") else "flag")
                    for output in encoding.outputs
                ]
    return readings


def fit_novelty(X: Array, encodings: Sequence[Encoding] | None = None, method: Method | None = None) -> Novelty:
    """Summarize training rows.

    Parameters
    ----------
    X : ndarray of shape (n, M)
        Encoded columns of the training rows.
    encodings : sequence of Encoding, optional
        They say what to keep of each; all columns are numbers by default.
    method : Method, optional
        The model whose medoids distances are measured to.
    """
    readings: list[Reading] = ["number"] * X.shape[1] if encodings is None else encoded_readings(encodings)
    sample = X[_spaced(len(X), _MOST_ROWS)]
    limits = _all_limits(X, [column for column, reading in enumerate(readings) if reading in ("number", "days")])
    bins = {
        column: edges
        for column, reading in enumerate(readings)
        if len(edges := _edges(sample[:, column], reading, len(X))) > 0
    }
    counts = [
        np.bincount(np.searchsorted(edges, sample[:, column], side="right"), minlength=len(edges) + 1)
        for column, edges in bins.items()
    ]
    lowest, highest, low, high = np.array(list(limits.values())).reshape(-1, 4).T
    return Novelty(
        n_rows=len(sample),
        limited=np.array(list(limits), dtype=np.intp),
        lowest=lowest,
        highest=highest,
        low=low,
        high=high,
        binned=np.array(list(bins), dtype=np.intp),
        offsets=np.cumsum([0, *(len(edges) for edges in bins.values())], dtype=np.intp),
        edges=np.concatenate([np.zeros(0), *bins.values()]),
        counts=np.concatenate([np.zeros(0, dtype=np.intp), *counts]),
        far=None if method is None else _far(X, method),
    )


def _all_limits(X: Array, columns: Sequence[int]) -> dict[int, tuple[float, float, float, float]]:
    """The `_limits` of those columns that vary."""
    found, step = {}, max(1, _BLOCK_NUMBERS // len(X))
    for start in range(0, len(columns), step):
        block = columns[start : start + step]
        quantiles = np.quantile(X[:, block], [0.0, _TAIL, 1.0 - _TAIL, 1.0], axis=0)
        found.update({column: _limits(*own) for column, own in zip(block, quantiles.T, strict=True) if own[0] < own[3]})
    return found


def _limits(lowest: float, low_tail: float, high_tail: float, highest: float) -> tuple[float, float, float, float]:
    """Smallest and largest value, and the limits below and above, which keep the sign of a column that has one."""
    width = highest - lowest
    low = lowest - max(_WIDTHS * width, _TAILS * (low_tail - lowest))
    high = highest + max(_WIDTHS * width, _TAILS * (highest - high_tail))
    if lowest >= 0 and high_tail > 0:
        # Long tails, as those of amounts, go on by factors.
        high = min(max(high, highest * min(highest / high_tail, _MOST_RATIO) ** _TAILS), _LARGEST_LIMIT)
    return lowest, highest, max(low, 0.0) if lowest >= 0 else low, min(high, 0.0) if highest <= 0 else high


def _edges(values: Array, reading: Reading, n_rows: int) -> Array:
    """Inner edges of the bins of a column: at quantiles of numbers, between the values that others can have."""
    if reading in ("nothing", "days"):
        return np.zeros(0)
    if reading == "flag":
        return np.array([0.5])
    if reading == "frequency":
        return np.array([0.5 / n_rows])
    n_bins = min(MOST_BINS, max(2, len(values) // _ROWS_PER_BIN))
    ordered = np.sort(values)
    at = ordered[np.arange(1, n_bins) * len(values) // n_bins]
    above = ordered[ordered > ordered[0]]
    # The smallest value, where it is frequent, is a bin without others.
    edges: Array = np.unique(np.where(at == ordered[0], above[0], at)) if len(above) else np.zeros(0)
    return edges


def _far(X: Array, method: Method) -> Far | None:
    """Distances of rows that are not medoids, to their nearest medoid."""
    others = np.setdiff1d(np.arange(len(X)), method.medoid_rows)
    others = others[_spaced(len(others), _MOST_MEASURED)]
    if len(others) < _FEWEST_MEASURED:
        return None
    distances = nearest_distances(method, X[others])
    distance = float(np.quantile(distances, FAR))
    return Far(distance, int((distances > distance).sum()), len(others)) if LEAST <= distance <= MOST else None


def _spaced(n_rows: int, most: int) -> Codes:
    """At most `most` row numbers, evenly spaced."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)
