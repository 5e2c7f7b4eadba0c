"""Novelty: a summary of the training rows that finds records unlike them, and hashes that find the same rows again.

The summary keeps no row: limits of each number, counts of the rows in a few bins of each column, and the distances of
rows to the nearest medoid. Hashes of the rows are keyed; with them a report says whether the rows it judges are new.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.methods.base import Method
from qmedoid.model.contract import Dates, Encoding, Levels, Numbers
from qmedoid.schema import MOST_ROWS, Offsets, RefusedError, Values, Wording

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
    offsets: Annotated[Codes, Offsets("B", "E")]
    edges: Annotated[Array, Values("E", order="rises", within="offsets")]
    counts: Annotated[Codes, Values("E+B", most="n_rows")]
    far: Far | None = None

    def validate(self) -> None:
        """Refuse stored bins of a column that do not hold all rows."""
        starts = self.offsets[:-1] + np.arange(len(self.binned))
        if len(starts) and not (np.add.reduceat(self.counts, starts) == self.n_rows).all():
            raise RefusedError(f"counts must add up to the {self.n_rows} rows in every column")

    def bin_edges(self, place: int) -> Array:
        """The edges of the column that is at a place in `binned`."""
        return self.edges[self.offsets[place] : self.offsets[place + 1]]

    def counted(self, columns: Columns, read: Flags, method: Method | None) -> tuple[Codes, int]:
        """How many rows lie in each bin, as `counts` has it, 0 in columns that are not read; and how many are far."""
        found = np.zeros(len(self.counts), dtype=np.intp)
        for place, column in enumerate(self.binned):
            if read[column]:
                edges = self.bin_edges(place)
                bins = np.searchsorted(edges, columns[column], side="right")
                start = self.offsets[place] + place
                found[start : start + len(edges) + 1] = np.bincount(bins, minlength=len(edges) + 1)
        if self.far is None or method is None:
            return found, 0
        return found, int((_nearest_distances(method, columns, threads=1) > self.far.distance).sum())

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

    def of_records(self, columns: Columns, read: Flags, method: Method | None, threads: int | None = None) -> Array:
        r"""Novelty of every record, above 1 for those that are farther out than 99 % of the training rows, shape (n,).

        .. math:: \max\Bigl(\frac{d}{q_{0.99}},\ \max_{f:\ x_f \notin [l_f, h_f]} \frac{2 x_f - l_f - h_f}{h_f - l_f}
            \Bigr)

        d is the distance to the nearest medoid. Columns count only beyond their limits, by their distance from the
        middle of the limits, in halves of their width. `FARTHEST` is the most.
        """
        novelty = np.zeros(len(columns[0]))
        if method is not None and self.far is not None:
            novelty = _nearest_distances(method, columns, threads) / self.far.distance
        for place, rows in self.outside(columns, read).items():
            novelty[rows] = np.maximum(novelty[rows], self.excess(place, columns[self.limited[place]][rows]))
        return np.minimum(novelty, FARTHEST)


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
    limits = {
        column: _limits(X[:, column])
        for column, reading in enumerate(readings)
        if reading in ("number", "days") and np.ptp(X[:, column]) > 0
    }
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


def _limits(values: Array) -> tuple[float, float, float, float]:
    """Smallest and largest value, and the limits below and above, which keep the sign of a column that has one."""
    lowest, low_tail, high_tail, highest = np.quantile(values, [0.0, _TAIL, 1.0 - _TAIL, 1.0])
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
    distances = _nearest_distances(method, X[others])
    distance = float(np.quantile(distances, FAR))
    return Far(distance, int((distances > distance).sum()), len(others)) if LEAST <= distance <= MOST else None


def _nearest_distances(method: Method, X: Table, threads: int | None = None) -> Array:
    """Distance of every record to its nearest medoid of any class, on the scale of the model, shape (n,)."""
    distances: Array = method.measure(X, threads=threads).channels.distance.min(axis=1)
    return distances


def _spaced(n_rows: int, most: int) -> Codes:
    """At most `most` row numbers, evenly spaced."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)


Hashes = npt.NDArray[np.int64]
MOST_KEPT = 2**18
"""Hashes that a model keeps at most, 2 MB of them; of more rows those with the smallest hashes are a random sample."""
KEY_BYTES = 16


class Seen(NamedTuple):
    """How many rows of a table have the same cells as rows that a model was fitted on.

    Attributes
    ----------
    rows : int
    checked : int
        Rows that could be checked: all, unless the model keeps a sample of its hashes.
    """

    rows: int
    checked: int


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the rows that a model was fitted on, in the columns that it reads.

    Attributes
    ----------
    key : bytes of length 16
        What the hashes are keyed with, made from the rows: it differs from table to table.
    hashes : ndarray of int64
        Different hashes of 63 bits, in ascending order.
    is_sample : bool
        Whether there were more than `MOST_KEPT`, so that only those up to the last one here are known.
    """

    key: Annotated[bytes, Wording(form=f"[0-9a-f]{{{2 * KEY_BYTES}}}", words=f"{2 * KEY_BYTES} hexadecimal digits")]
    hashes: Annotated[Hashes, Values("h", order="rises", length=(1, MOST_KEPT))]
    is_sample: bool = False

    @classmethod
    def of(cls, key: bytes, hashes: Hashes, *, most: int = MOST_KEPT) -> "SeenRows":
        """Keep the hashes of rows, or the smallest of them."""
        different = np.unique(hashes)
        return cls(key, different[:most].copy(), len(different) > most)

    def among(self, hashes: Hashes) -> Seen:
        """How many of some rows, by their hashes under the same key, were seen."""
        if self.is_sample:
            hashes = hashes[hashes <= self.hashes[-1]]
        return Seen(int(np.isin(hashes, self.hashes).sum()), len(hashes))


def seen_in_words(found: dict[str, Any] | None, rows: int) -> str | None:
    """A note on rows that were seen in fitting, from `Seen`; None where there are none, or nothing is known."""
    if found is None or found["rows"] == 0:
        return None
    of = f"{rows:,} rows" if found["checked"] == rows else f"{found['checked']:,} rows that could be checked"
    return (
        f"{found['rows']:,} of {of} have the same cells as rows that the model was fitted on, in all columns that it "
        "reads: on new rows expect figures that are less good."
    )
