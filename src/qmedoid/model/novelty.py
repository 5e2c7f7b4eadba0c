"""Novelty: a summary of the training rows that finds records unlike them, and its fit.

The summary keeps no row: limits of each number, counts of the rows in a few bins of each column, and the distances of
rows to the nearest medoid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table, column_slices
from qmedoid.methods.part import Part
from qmedoid.model.contract import Dates, Encoding, Levels, Numbers
from qmedoid.schema import MOST_ROWS, Values, part_bounds

Columns = Sequence[npt.NDArray[Any]]
LEAST, MOST = 1e-100, 1e100
"""Bounds of the distance that counts as far: its quotients stay within the range of a double."""
# Limits lie some widths beyond values of at most 1e150.
_LARGEST = 1e152
FARTHEST = 1e9
"""Maximum novelty of a record."""


class Far(NamedTuple):
    """Distances of training rows, other than medoids, to their nearest medoid.

    Attributes
    ----------
    distance : float
        Their 99 % quantile, above 0.
    beyond, n_rows : int
        Rows that lie beyond it, and all rows that were measured.
    """

    distance: Annotated[float, Values(least=LEAST, most=MOST)]
    beyond: int
    n_rows: Annotated[int, Values(above="beyond", most=MOST_ROWS)]


@dataclass(frozen=True, eq=False)
class Novelty:
    """A summary of n training rows over M encoded columns.

    Attributes
    ----------
    n_rows : int
    limited : ndarray of shape (L,)
        Columns with limits, ascending.
    lowest, highest : ndarray of shape (L,)
        Smallest and largest training value of each.
    low, high : ndarray of shape (L,)
        The limits: some way below the smallest value and above the largest.
    binned : ndarray of shape (B,)
        Columns with bins, ascending.
    offsets : ndarray of shape (B + 1,)
        Edges of the bins of the b-th of them are at ``offsets[b]`` up to, and without, ``offsets[b + 1]``.
    edges : ndarray
        Ascending within a column; a value lies in the bin whose number is that of the edges at or below it.
    counts : ndarray
        Training rows in each bin; a column has one bin more than edges.
    far : Far or None
        None where the model has no medoids, or too few rows that are not medoids.
    """

    n_rows: Annotated[int, Values(least=1, most=MOST_ROWS)]
    limited: Annotated[Codes, Values("L", below="M", order="rises")]
    lowest: Annotated[Array, Values("L", largest=_LARGEST)]
    highest: Annotated[Array, Values("L", above="lowest", most=_LARGEST)]
    low: Annotated[Array, Values("L", least=-_LARGEST, most="lowest")]
    high: Annotated[Array, Values("L", least="highest", most=_LARGEST)]
    binned: Annotated[Codes, Values("B", below="M", order="rises")]
    offsets: Annotated[Codes, part_bounds("B", "E")]
    edges: Annotated[Array, Values("E", order="rises", within="offsets")]
    counts: Annotated[Codes, Values("E+B", most="n_rows")]
    far: Far | None = None

    def bin_edges(self, place: int) -> Array:
        """The edges of the column that is at a place in `binned`."""
        return self.edges[self.offsets[place] : self.offsets[place + 1]]

    def counted(self, columns: Columns, read: Flags, part: Part | None) -> tuple[Codes, int]:
        """How many rows lie in each bin, as `counts` has it, 0 in columns that are not read; and how many are far."""
        found = np.zeros(len(self.counts), dtype=np.intp)
        for place, column in enumerate(self.binned):
            if read[column]:
                edges = self.bin_edges(place)
                bins = np.searchsorted(edges, columns[column], side="right")
                start = self.offsets[place] + place
                found[start : start + len(edges) + 1] = np.bincount(bins, minlength=len(edges) + 1)
        if self.far is None or part is None:
            return found, 0
        return found, int((nearest_distances(part, columns, threads=1) > self.far.distance).sum())

    def outside(self, columns: Columns, read: Flags) -> dict[int, Flags]:
        """For the places in `limited` where a value is beyond the limits, which rows these are."""
        found = {}
        for place, column in enumerate(self.limited):
            values, low, high = columns[column], self.low[place], self.high[place]
            # Most columns of most tables are in order, and their extremes are found at the speed of memory.
            if read[column] and len(values) and (values.min() < low or values.max() > high):
                found[place] = (values < low) | (values > high)
        return found

    def excess(self, place: int, values: npt.NDArray[Any]) -> Array:
        """Distance of values from the middle of the limits, in halves of their width: above 1 beyond them."""
        low, high = self.low[place], self.high[place]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            excess: Array = np.abs(np.asarray(values, dtype=np.float64) - (low + high) / 2.0) / ((high - low) / 2.0)
        held: Array = np.minimum(excess, FARTHEST)
        return held

    def of_records(self, columns: Columns, read: Flags, part: Part | None, threads: int | None = None) -> Array:
        r"""Novelty of every record, above 1 for those that are farther out than 99 % of the training rows, shape (n,).

        .. math:: \max\Bigl(\frac{d}{q_{0.99}},\ \max_{f:\ x_f \notin [l_f, h_f]} \frac{2 x_f - l_f - h_f}{h_f - l_f}
            \Bigr)

        d is the distance to the nearest medoid. Columns count only beyond their limits, by their distance from the
        middle of the limits, in halves of their width. `FARTHEST` is the most.
        """
        novelty = np.zeros(len(columns[0]))
        if part is not None and self.far is not None:
            novelty = nearest_distances(part, columns, threads) / self.far.distance
        for place, rows in self.outside(columns, read).items():
            novelty[rows] = np.maximum(novelty[rows], self.excess(place, columns[self.limited[place]][rows]))
        return np.minimum(novelty, FARTHEST)


def nearest_distances(part: Part, X: Table, threads: int | None = None) -> Array:
    """Distance of every record to its nearest medoid of any class, on the scale of the model, shape (n,)."""
    distance = part.score(X, channels=True, threads=threads).distance
    assert distance is not None, "the part has medoids"
    distances: Array = distance.min(axis=1)
    return distances


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


def fit_novelty(
    X: Array,
    encodings: Sequence[Encoding] | None = None,
    part: Part | None = None,
    stands_for: Array | None = None,
) -> Novelty:
    """Summarize training rows.

    Parameters
    ----------
    X : ndarray of shape (n, M)
        Encoded columns of the training rows.
    encodings : sequence of Encoding, optional
        They say what to keep of each; all columns are numbers by default.
    part : Part, optional
        The part whose medoids distances are measured to.
    stands_for : ndarray of shape (n,), optional
        How many rows of the table each row stands for, where the rows are a sample of it at different rates.
    """
    readings: list[Reading] = ["number"] * X.shape[1] if encodings is None else encoded_readings(encodings)
    sample = X[_spaced(len(X), _MOST_ROWS, stands_for)]
    limited, (lowest, highest, low, high) = _limits(
        X, np.array([column for column, reading in enumerate(readings) if reading in ("number", "days")], dtype=np.intp)
    )
    binned, sizes, edges, counts = _bins(sample, readings, len(X))
    return Novelty(
        n_rows=len(sample),
        limited=limited,
        lowest=lowest,
        highest=highest,
        low=low,
        high=high,
        binned=binned,
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        edges=edges,
        counts=counts,
        far=None if part is None else _far(X, part, stands_for),
    )


def _limits(X: Array, columns: Codes) -> tuple[Codes, Array]:
    """Those of the columns that vary; and smallest and largest value, and limits below and above, shape (4, L)."""
    kept, found, step = [columns[:0]], [np.zeros((4, 0))], max(1, _BLOCK_NUMBERS // len(X))
    for start in range(0, len(columns), step):
        block = columns[start : start + step]
        quantiles = np.quantile(X[:, block], [0.0, _TAIL, 1.0 - _TAIL, 1.0], axis=0)
        varies = quantiles[0] < quantiles[3]
        kept.append(block[varies])
        lowest, low_tail, high_tail, highest = quantiles[:, varies]
        width = highest - lowest
        low = lowest - np.maximum(_WIDTHS * width, _TAILS * (low_tail - lowest))
        high = highest + np.maximum(_WIDTHS * width, _TAILS * (highest - high_tail))
        # Long tails, as those of amounts, go on by factors.
        of_amounts = np.flatnonzero((lowest >= 0) & (high_tail > 0))
        ratios = np.minimum(highest[of_amounts] / high_tail[of_amounts], _MOST_RATIO)
        # Number by number: powers of arrays round otherwise on some processors.
        by_factors = highest[of_amounts] * np.array([ratio**_TAILS for ratio in ratios])
        high[of_amounts] = np.minimum(np.maximum(high[of_amounts], by_factors), _LARGEST_LIMIT)
        # A column that has one sign keeps it.
        low, high = np.where((lowest >= 0) & (low < 0), 0.0, low), np.where((highest <= 0) & (high > 0), 0.0, high)
        found.append(np.stack([lowest, highest, low, high]))
    return np.concatenate(kept), np.concatenate(found, axis=1)


def _bins(sample: Array, readings: Sequence[Reading], n_rows: int) -> tuple[Codes, Codes, Array, Codes]:
    """Columns that have bins, how many inner edges each has, these edges, and the rows in every bin."""
    parts = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=np.intp))]
    for block in column_slices(*sample.shape):
        values = sample[:, block]
        edges = _edges(values, readings[block], n_rows)
        sizes = (edges < np.inf).sum(axis=1)
        places = np.flatnonzero(sizes)
        edges, sizes, values = edges[places], sizes[places], values[:, places]
        bins = np.zeros(values.shape, dtype=np.intp)
        for edge in edges.T:
            bins += values >= edge
        first = np.cumsum(sizes + 1) - sizes - 1
        counts = np.bincount((bins + first).ravel(), minlength=int((sizes + 1).sum()))
        parts.append((block.start + places, sizes, edges[edges < np.inf], counts))
    columns, sizes, every, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return columns, sizes, every, counts


def _edges(values: Array, readings: Sequence[Reading], n_rows: int) -> Array:
    """Inner edges of the bins of columns, ascending, then infinities, shape (columns, edges).

    They are at quantiles of numbers, and between the values that others can have.
    """
    n_bins = min(MOST_BINS, max(2, len(values) // _ROWS_PER_BIN))
    edges = np.full((values.shape[1], n_bins - 1), np.inf)
    edges[[place for place, reading in enumerate(readings) if reading == "flag"], 0] = 0.5
    edges[[place for place, reading in enumerate(readings) if reading == "frequency"], 0] = 0.5 / n_rows
    numbers = [place for place, reading in enumerate(readings) if reading in ("number", "part")]
    ordered = np.ascontiguousarray(values[:, numbers].T)
    ordered.sort(axis=1)
    is_above = ordered > ordered[:, :1]
    above = ordered[np.arange(len(ordered)), is_above.argmax(axis=1)]
    at = ordered[:, np.arange(1, n_bins) * len(values) // n_bins]
    # The smallest value, where it is frequent, is a bin without others.
    at = np.where(at == ordered[:, :1], above[:, None], at)
    at[:, 1:][at[:, 1:] == at[:, :-1]] = np.inf
    at[~is_above.any(axis=1)] = np.inf
    at.sort(axis=1)
    edges[numbers] = at
    return edges


def _far(X: Array, part: Part, stands_for: Array | None) -> Far | None:
    """Distances of rows that are not medoids, to their nearest medoid."""
    others = np.setdiff1d(np.arange(len(X)), part.rows.numbers)
    if len(others) < _FEWEST_MEASURED:
        return None
    others = others[_spaced(len(others), _MOST_MEASURED, None if stands_for is None else stands_for[others])]
    distances = nearest_distances(part, X[others])
    distance = float(np.quantile(distances, FAR))
    return Far(distance, int((distances > distance).sum()), len(others)) if LEAST <= distance <= MOST else None


def _spaced(n_rows: int, most: int, stands_for: Array | None = None) -> Codes:
    """At most `most` row numbers, evenly spaced; rows that stand for many occur as often as these would."""
    if stands_for is None:
        return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)
    n_drawn, ends = min(n_rows, most), np.cumsum(stands_for)
    return np.asarray(np.searchsorted(ends, ends[-1] * (np.arange(n_drawn) + 0.5) / n_drawn), np.intp)
