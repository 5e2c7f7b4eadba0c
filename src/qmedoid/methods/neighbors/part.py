r"""Neighbors under a learnt metric: the nearest training rows correct what other statements miss.

.. math::

   S_c(x) = -\sum_{i \in N(x)} a_i(x)\,v_{ic}, \qquad a(x) = \operatorname{softmax}_{i \in N(x)}(-D_i(x)/\tau), \qquad
   D_i^2(x) = \sum_f u_f\,(z_f(x) - z_f(x_i))^2

N(x) are the k nearest of the kept rows; where these are many, the k nearest of those in the cells around x. z is a
column scaled by rank, and the vote :math:`v_{ic}` of row i is 1 for its class minus the probabilities that the other
statements gave its classes out of fold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.scaling import RankScaling
from qmedoid.kernels.backend import row_block
from qmedoid.kernels.nearest import LEAST_IN_CELL, MOST_NEAREST, CellSearch, nearest_squared
from qmedoid.methods.contributions import Contributions, largest_first
from qmedoid.methods.part import KeptRows, Part, PartFacts, Scored, measured_nearest, rows_kept
from qmedoid.schema import MODERATE, RefusedError, RowNumbers, Values

# Numbers of a block of rows, so that a table of any length is scored in bounded memory.
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class RowCells:
    """N rows in S cells, each around one of them."""

    centers: Annotated[Codes, Values("S", below="N", length=(1, 2**62))]  # places of the rows in the middle
    members: Annotated[Codes, Values("N", below="S")]  # cell of every row

    def validate(self) -> None:
        """Refuse stored cells so small that a record might find too few neighbors."""
        if np.bincount(self.members, minlength=len(self.centers)).min(initial=LEAST_IN_CELL) < LEAST_IN_CELL:
            raise RefusedError(f"a cell holds fewer than {LEAST_IN_CELL} neighbors")


@dataclass(frozen=True, eq=False)
class NeighborsPart(Part):
    """N training rows with their votes, over M encoded columns, with C classes.

    Attributes
    ----------
    records : ndarray of shape (N, M)
        Raw columns.
    row_numbers, row_classes : ndarray of shape (N,)
        Training row and class code of each.
    votes : ndarray of shape (N, C)
        v.
    rank_scaling : RankScaling
    column_weights : ndarray of shape (M,)
        u; 0 ignores a column.
    length : float
        τ, above 0.
    n_nearest : int
        k.
    cells : RowCells, optional
        Where neighbors are looked for; None looks at all rows.
    """

    records: Annotated[Array, Values("N M", length=(1, 2**62))]
    row_numbers: Annotated[Codes, RowNumbers("N")]
    row_classes: Annotated[Codes, Values("N", below="C")]
    votes: Annotated[Array, Values("N C", least=-1, most=1)]
    rank_scaling: RankScaling
    column_weights: Annotated[Array, Values("M", least=0, most=MODERATE)]
    length: Annotated[float, Values(least=1 / MODERATE, most=MODERATE)]
    n_nearest: Annotated[int, Values(least=1, most=MOST_NEAREST)]
    cells: RowCells | None = None

    name: ClassVar[str] = "neighbors"

    @cached_property
    def columns(self) -> Codes:
        """Encoded columns that distances look at, rising."""
        return np.flatnonzero(self.column_weights > 0)

    @property
    def rows(self) -> KeptRows:
        """The rows that are kept as neighbors."""
        return KeptRows(self.row_numbers, self.row_classes, neighbors=self.records)

    @property
    def facts(self) -> PartFacts:
        """What it says of itself: how many rows are kept, and how many of them, the nearest, have a vote."""
        return {
            "description": "votes of the nearest training rows",
            "groups": (),
            "kept": (rows_kept(len(self.row_numbers), "n_neighbors=0"),),
            "vector_length": len(self.columns),
            "numbers": {"rows": len(self.row_numbers), "nearest": self.n_nearest},
        }

    def landmarks(self, column: int) -> Array:
        """The knots of the scaling by rank."""
        offsets = self.rank_scaling.offsets
        return self.rank_scaling.values[offsets[column] : offsets[column + 1]]

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Score records by the votes of the nearest rows."""
        del channels  # none without medoids
        return Scored(self._by_block(X, lambda rows: self._nearest(rows, threads)))

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """Score records by measured distances to the rows that the closed form finds nearest."""

        def nearest(rows: Array) -> tuple[Array, Codes]:
            _, found = self._nearest(rows, 1)
            return measured_nearest(backend, self.points(rows), self._points, found), found

        return Scored(self._by_block(X, nearest))

    def _by_block(self, X: Table, nearest: Callable[[Array], tuple[Array, Codes]]) -> Array:
        """Dissimilarities by distances and indices of the nearest rows, which are found block by block."""
        parts = [np.zeros((0, self.votes.shape[1]))]
        for place in row_slices(X, max(1, _BLOCK_NUMBERS // self.records.shape[1])):
            parts.append(-averaged(*nearest(row_block(X, place)), self.length, self.votes))
        return np.concatenate(parts)

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """The votes of the nearest rows for one of two classes, for one row of shape (1, M)."""
        distances, places = self._nearest(row, 1)
        shares = _shares(distances, self.length)[0]
        votes = self.votes[places[0], winner] - self.votes[places[0], other]
        rows, codes = self.row_numbers[places[0]].tolist(), self.row_classes[places[0]].tolist()
        neighbors = largest_first(rows, codes, distances[0].tolist(), (shares * votes).tolist())
        total = float(sum(one.contribution for one in neighbors))
        return Contributions(np.zeros(row.shape[1]), (), {self.name: total}, neighbors)

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """Nothing, shape (n, M): what neighbors add depends on all columns at once, and is a term."""
        del winners, others
        return np.zeros(X.shape)

    def with_columns(self, columns: Codes) -> Self:
        """A copy where column i is column ``columns[i]`` of the table."""
        back = np.argsort(columns)
        records, weights = np.ascontiguousarray(self.records[:, back]), self.column_weights[back]
        return replace(self, records=records, rank_scaling=self.rank_scaling.take(back), column_weights=weights)

    def points(self, rows: Array) -> Array:
        """Raw rows in the space where Euclidean distances are D, shape (n, columns that are read)."""
        scaled = self.rank_scaling.apply(rows)[:, self.columns] * np.sqrt(self.column_weights[self.columns])
        return np.ascontiguousarray(scaled)

    @cached_property
    def _points(self) -> Array:
        return self.points(self.records)

    @cached_property
    def _search(self) -> CellSearch | None:
        if self.cells is None or not len(self.columns):
            return None
        return CellSearch(self._points, self.cells.centers, self.cells.members)

    def _nearest(self, rows: Array, threads: int | None) -> tuple[Array, Codes]:
        k, x = min(self.n_nearest, len(self.row_numbers)), self.points(rows)
        if self._search is None:
            squared, places = nearest_squared(x, self._points, k=k, threads=threads)
        else:
            squared, places = self._search.nearest_squared(x, k=k, threads=threads)
        return np.sqrt(squared), places


def averaged(distances: Array, places: Codes, length: float, votes: Array) -> Array:
    """Votes (N, C) of the nearest rows, weighted by their distances (n, k), shape (n, C)."""
    return np.asarray(np.einsum("nk,nkc->nc", _shares(distances, length), votes[places]))


def _shares(distances: Array, length: float) -> Array:
    """The softmax of −D/τ over the nearest rows, the first of which is nearest."""
    weights = np.exp((distances[:, :1] - distances) / length)
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares
