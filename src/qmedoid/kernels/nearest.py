r"""The k nearest prototypes of every row, as if every distance had been measured in double precision.

.. math:: D_{ip}^2 = \sum_j (x_{ij} - p_{pj})^2

Most prototypes are ruled out by an approximate distance whose error is bounded, and the others are measured. So a
result depends on its row and the prototypes alone, bit for bit: not on the rows beside it or the number of threads.

Of very many prototypes those of some cells are looked at. A cell holds the prototypes that are nearer to its center,
which is one of them, than to any other center. A row looks at the `N_VISITS` cells with the nearest centers: with about
√P cells, the cost grows as √P.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.backend import in_chunks
from qmedoid.kernels.ties import SAME_PLACE, TIE, stable_order

#: The largest number of neighbors that can be requested.
MOST_NEAREST = 16
# Rows per call of the compiled kernel, and multiply-adds that are worth another thread.
_CHUNK_ROWS = 1200
_WORTH_A_THREAD = 2**23
# With fewer prototypes or rows, to measure all distances is quicker than to prepare a screen.
_PROTOTYPES_WORTH_A_SCREEN = 96
_ROWS_WORTH_A_SCREEN = 4
# A screen that rounds by more than this share rules out nothing.
_COARSEST_SCREEN = 0.01
# Distances of a block of the twin.
_BLOCK_NUMBERS = 2**19
# Prototypes that lie side by side for the compiled kernel.
_PANEL = 16


# Cells for the square root of the prototypes; prototypes for each cell that decide the centers; rounds that move them.
_CELLS_PER_ROOT, _SAMPLE, _ROUNDS = 2.0, 40, 3
N_VISITS = MOST_NEAREST
"""Cells that a row looks at."""
LEAST_IN_CELL = 4
"""Prototypes of a cell at least."""
# Rows of a chunk, and rows that are worth a thread.
_CELL_SIZES = 2000, 500


def nearest_squared(
    rows: Array, prototypes: Array, *, k: int, own: Codes | None = None, threads: int | None = None
) -> tuple[Array, Codes]:
    """Squared distances to the k nearest prototypes (P, d) of rows (n, d), and their indices, each of shape (n, k).

    They ascend; of distances that are equal up to rounding the smaller index comes first. `own` (n,) is the prototype
    that is the row itself and is left out, −1 for none. Where fewer than k prototypes are left, rows are filled up with
    inf and −1; prototypes at a distance that is not finite are never found. k is ``MOST_NEAREST`` at most.
    """
    rows, prototypes, own = _checked(rows, prototypes, k, own)
    squared, indices = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, dtype=np.intp)
    if not len(rows) or not len(prototypes):
        return squared, indices
    if not prototypes.shape[1]:  # no columns: all distances are zero
        rows, prototypes = np.zeros((len(rows), 1)), np.zeros((len(prototypes), 1))
    center = prototypes.mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # a screen that is not finite is not used
        centered = prototypes - center
        scale = float(np.ldexp(1.0, min(-int(np.frexp(np.abs(centered).max())[1]), 1000)))
        centered *= scale
    unit = (prototypes.shape[1] + 8) * 2.0**-24
    worth_it = len(prototypes) >= _PROTOTYPES_WORTH_A_SCREEN and len(rows) >= _ROWS_WORTH_A_SCREEN
    can_screen = unit <= _COARSEST_SCREEN and np.isfinite(scale) and np.isfinite(centered).all()
    panels = _panels(centered) if worth_it and can_screen else None
    screen = {"prototypes": prototypes, "panels": panels, "center": center, "scale": scale, "unit": unit}
    sizes = _CHUNK_ROWS, _WORTH_A_THREAD // prototypes.size
    results = {"own": own, "squared": squared, "indices": indices}
    in_chunks("nearest.nearest", numpy_nearest, rows, sizes, threads, screen, results)
    return squared, indices


def _checked(rows: Array, prototypes: Array, k: int, own: Codes | None) -> tuple[Array, Array, Codes | None]:
    """The arguments as contiguous arrays, once their shapes fit together."""
    if not 1 <= k <= MOST_NEAREST:
        raise ParameterError(f"The 'k' parameter must be an int between 1 and {MOST_NEAREST}. Got {k!r} instead.")
    if rows.ndim != 2 or prototypes.ndim != 2 or rows.shape[1] != prototypes.shape[1]:
        raise DataError(
            f"Rows have shape {rows.shape} and prototypes {prototypes.shape}: "
            "pass two 2-D arrays with the same number of columns."
        )
    if own is not None:
        if own.shape != (len(rows),):
            raise DataError(f"'own' has shape {own.shape}: pass one prototype index for each of {len(rows)} rows.")
        if own.max(initial=-1) >= len(prototypes):
            raise DataError(f"'own' holds {own.max()}, but there are {len(prototypes)} prototypes; −1 stands for none.")
        own = np.ascontiguousarray(own, dtype=np.intp)
    as_numbers = [np.require(array, np.float64, ["C", "ALIGNED"]) for array in (rows, prototypes)]
    return as_numbers[0], as_numbers[1], own


def _panels(centered: Array) -> NDArray[np.float32]:
    """Prototypes side by side, |p|²/2 above their columns, shape (ceil(P / width), d + 1, width)."""
    (n, d), width = centered.shape, _PANEL
    count = -(-n // width)
    lined_up = np.zeros((count * width, d + 1))
    lined_up[:, 0] = np.inf
    lined_up[:n, 0] = 0.5 * np.einsum("ij,ij->i", centered, centered)
    lined_up[:n, 1:] = centered
    # Vectors of a panel are loaded fastest when they do not straddle cache lines.
    room = np.empty(lined_up.size + 16, dtype=np.float32)
    start = -room.ctypes.data // 4 % 16
    panels = room[start : start + lined_up.size].reshape(count, d + 1, width)
    panels[...] = lined_up.reshape(count, width, d + 1).transpose(0, 2, 1)
    return panels


def numpy_nearest(
    rows: Array, prototypes: Array, own: Codes | None, squared: Array, indices: Codes, **_screen: Any
) -> None:
    """Fill `squared` and `indices`, as the compiled kernel does; all distances are measured."""
    k = min(squared.shape[1], len(prototypes))
    for part in row_slices(rows, max(1, _BLOCK_NUMBERS // len(prototypes))):
        measured = np.zeros((len(rows[part]), len(prototypes)))
        with np.errstate(over="ignore", invalid="ignore"):
            for x, p in zip(rows[part].T, prototypes.T, strict=True):
                measured += (x[:, None] - p) ** 2
            same = SAME_PLACE * np.einsum("ij,ij->i", rows[part], rows[part])
        if own is not None:
            left_out = np.flatnonzero(own[part] >= 0)
            measured[left_out, own[part][left_out]] = np.inf
        measured[np.isnan(measured)] = np.inf
        limit = np.partition(measured, k - 1, axis=1)[:, k - 1] * (1.0 + 2.0 * TIE) + 2.0 * same
        row, prototype = np.nonzero(np.isfinite(measured) & ~(measured > limit[:, None]))
        # In order of distance, of equal ones of index; what is left over stays as it is.
        measured = measured[row, prototype]
        order = np.lexsort((prototype, measured, row))
        row, prototype, measured = row[order], prototype[order], measured[order]
        farther = np.diff(measured, prepend=0.0) > TIE * measured + same[row]
        order = np.lexsort((prototype, np.cumsum(farther | (np.diff(row, prepend=-1) > 0))))
        prototype, measured = prototype[order], measured[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = rank < squared.shape[1]
        squared[part][row[kept], rank[kept]] = measured[kept]
        indices[part][row[kept], rank[kept]] = prototype[kept]


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
        """As the function `nearest_squared`, of the prototypes of the cells with the nearest centers."""
        rows = np.ascontiguousarray(rows[:, self.columns])
        squared, indices = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, dtype=np.intp)
        visits_k = min(N_VISITS, len(self.centers))
        to_centers, visits = nearest_squared(rows, self.centers, k=visits_k, threads=threads)
        if not len(rows):
            return squared, indices
        cells = {"prototypes": self.prototypes, "names": self.names, "starts": self.starts, "radii": self.radii}
        left_out = None if own is None else np.ascontiguousarray(own, dtype=np.intp)
        results = {"own": left_out, "visits": visits, "to_centers": to_centers, "squared": squared, "indices": indices}
        in_chunks("cells.nearest_in_cells", numpy_nearest_in_cells, rows, _CELL_SIZES, threads, cells, results)
        return squared, indices


def numpy_nearest_in_cells(
    rows: Array,
    prototypes: Array,
    names: Codes,
    starts: Codes,
    own: Codes | None,
    visits: Codes,
    squared: Array,
    indices: Codes,
    **_bounds: Any,
) -> None:
    """Fill `squared` and `indices`, as the compiled kernel does; no cell is ruled out."""
    for i, row in enumerate(rows):
        visited = [np.arange(starts[cell], starts[cell + 1]) for cell in visits[i] if cell >= 0]
        some = np.concatenate([np.zeros(0, dtype=np.intp), *visited])
        some = some[np.argsort(names[some])]
        if own is not None:
            some = some[names[some] != own[i]]
        found, nearest = nearest_squared(row[None], prototypes[some], k=squared.shape[1], threads=1)
        squared[i], indices[i] = found[0], np.append(names[some], -1)[nearest[0]]
