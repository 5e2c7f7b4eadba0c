"""Novelty: a summary of the training rows that finds records unlike them.

The summary keeps no row: limits of each number, counts of the rows in a few bins of each column, and the distances of
rows to the nearest medoid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.methods.part import Part
from qmedoid.schema import MOST_ROWS, Offsets, RefusedError, Values

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
    distances: Array = part.score(X, channels=True, threads=threads).channels.distance.min(axis=1)
    return distances
