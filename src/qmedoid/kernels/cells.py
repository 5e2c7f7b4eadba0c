"""The k nearest prototypes of every row among those of the cells whose centers are nearest to it.

A cell holds the prototypes that are nearer to its center, which is one of them, than to any other center. A row looks
at the `N_VISITS` cells with the nearest centers: with about √P cells, the cost grows as √P.
"""

from functools import partial

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.backend import compiled, in_chunks
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared, write_nearest
from qmedoid.kernels.ties import SAME_PLACE, stable_order

N_VISITS = MOST_NEAREST
"""Cells that a row looks at."""
# Cells for the square root of the prototypes; prototypes for each cell that place the centers; rounds that move them.
_CELLS_PER_ROOT, _SAMPLE, _ROUNDS = 2.0, 40, 3
LEAST_IN_CELL = 4
"""Prototypes of a cell at least."""
_CHUNK_ROWS = 2000
_ROWS_PER_THREAD = 500


def cell_centers(prototypes: Array, rng: np.random.Generator) -> Codes:
    """Prototypes (P, d) that are centers of cells: those nearest to the means of k-means, in rising order."""
    count = max(1, int(_CELLS_PER_ROOT * np.sqrt(len(prototypes))))
    rows = np.sort(rng.choice(len(prototypes), min(len(prototypes), _SAMPLE * count), replace=False))
    some = np.ascontiguousarray(prototypes[rows])
    means = np.ascontiguousarray(some[np.sort(rng.choice(len(some), min(len(some), count), replace=False))])
    for _ in range(_ROUNDS):
        places = nearest_squared(some, means, k=1)[1][:, 0]
        sizes = np.bincount(places, minlength=len(means))[:, None]
        sums = np.column_stack([np.bincount(places, column, len(means)) for column in some.T])
        means = np.where(sizes > 0, sums / np.maximum(sizes, 1), means)
    centers = rows[np.unique(nearest_squared(means, some, k=1)[1])]
    # A center that few prototypes are nearest to is given up: theirs are others then.
    sizes = np.bincount(cells_of(prototypes, centers), minlength=len(centers))
    return centers[sizes >= LEAST_IN_CELL] if (sizes >= LEAST_IN_CELL).any() else centers[:1]


def cells_of(prototypes: Array, centers: Codes) -> Codes:
    """The cell of every prototype, shape (P,)."""
    return nearest_squared(prototypes, prototypes[centers], k=1)[1][:, 0]


class CellSearch:
    """Prototypes (P, d) laid out cell by cell, with their centers (K,) and the cell of each (P,)."""

    def __init__(self, prototypes: Array, centers: Codes, cells: Codes) -> None:
        # Columns that vary most come first: they show soonest that a prototype is far away.
        self.columns = stable_order(-prototypes.var(axis=0))
        self.names = np.argsort(cells, kind="stable")
        self.prototypes = np.ascontiguousarray(prototypes[self.names][:, self.columns])
        self.centers = np.ascontiguousarray(prototypes[centers][:, self.columns])
        self.starts = np.searchsorted(cells[self.names], np.arange(len(centers) + 1)).astype(np.intp)
        apart = self.prototypes - self.centers[cells[self.names]]
        self.radii = np.sqrt(np.maximum.reduceat(np.einsum("ij,ij->i", apart, apart), self.starts[:-1]))

    def nearest_squared(
        self, rows: Array, *, k: int, own: Codes | None = None, threads: int | None = None
    ) -> tuple[Array, Codes]:
        """As `kernels.nearest.nearest_squared`, of the prototypes of the cells with the nearest centers."""
        rows = np.ascontiguousarray(rows[:, self.columns])
        squared, indices = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, dtype=np.intp)
        visits_k = min(N_VISITS, len(self.centers))
        to_centers, visits = nearest_squared(rows, self.centers, k=visits_k, threads=threads)
        if not len(rows):
            return squared, indices
        kernel = compiled("cells")
        fill = numpy_nearest_in_cells if kernel is None else partial(kernel.nearest_in_cells, radii=self.radii)
        in_chunks(
            partial(fill, prototypes=self.prototypes, names=self.names, starts=self.starts),
            rows,
            chunk_rows=_CHUNK_ROWS,
            rows_per_thread=_ROWS_PER_THREAD,
            threads=threads,
            own=None if own is None else np.ascontiguousarray(own, dtype=np.intp),
            visits=visits,
            to_centers=to_centers,
            squared=squared,
            indices=indices,
        )
        return squared, indices


def numpy_nearest_in_cells(
    rows: Array,
    prototypes: Array,
    names: Codes,
    starts: Codes,
    own: Codes | None,
    visits: Codes,
    to_centers: Array,
    squared: Array,
    indices: Codes,
) -> None:
    """Fill `squared` and `indices`, as the compiled kernel does; no cell is ruled out."""
    del to_centers
    for i, row in enumerate(rows):
        looked_at = [np.arange(starts[cell], starts[cell + 1]) for cell in visits[i] if cell >= 0]
        places = np.concatenate([np.zeros(0, dtype=np.intp), *looked_at])
        if own is not None:
            places = places[names[places] != own[i]]
        difference = row - prototypes[places]
        measured = np.einsum("ij,ij->i", difference, difference)
        places, measured = places[np.isfinite(measured)], measured[np.isfinite(measured)]
        first = np.zeros(len(places), dtype=np.intp)
        same = np.full(len(places), SAME_PLACE * float(row @ row))
        write_nearest(first, names[places], measured, same, squared[i : i + 1], indices[i : i + 1])
