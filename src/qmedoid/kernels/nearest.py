r"""The k nearest prototypes of every row, as if every distance had been measured in double precision.

.. math:: D_{ip}^2 = \sum_j (x_{ij} - p_{pj})^2

Most prototypes are ruled out by an approximate distance whose error is bounded, and the others are measured. So a
result depends on its row and the prototypes alone, bit for bit: not on the rows beside it or the number of threads.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.backend import compiled, in_chunks
from qmedoid.kernels.ties import SAME_PLACE, TIE

#: The largest number of neighbors that can be asked for.
MOST_NEAREST = 16
# Rows per call of the compiled kernel, and multiply-adds that are worth another thread.
_CHUNK_ROWS = 1200
_WORTH_A_THREAD = 2**23
# With fewer prototypes or rows, to measure all distances is quicker than to prepare a screen.
_PROTOTYPES_WORTH_A_SCREEN = 96
_ROWS_WORTH_A_SCREEN = 4
# A screen that rounds by more than this share rules out nothing.
_COARSEST_SCREEN = 0.01
# Distances of a block of the twin, and prototypes of a stream at most.
_BLOCK_NUMBERS = 2**19
_STREAM_LENGTH = 16


def nearest_squared(
    rows: Array, prototypes: Array, *, k: int, own: Codes | None = None, threads: int | None = None
) -> tuple[Array, Codes]:
    """Squared distances to the k nearest prototypes and their indices, each of shape (n, k), in ascending order.

    Parameters
    ----------
    rows : C-contiguous array of shape (n, d)
    prototypes : array of shape (P, d)
    k : int
        Between 1 and ``MOST_NEAREST``.
    own : array of shape (n,), or None
        The prototype that is the row itself and is left out, −1 for none.
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on; small tables take one.

    Returns
    -------
    squared, indices : arrays of shape (n, k)
        Of distances that are equal up to rounding the smaller index comes first. Where fewer than k prototypes are
        left, rows are filled up with inf and −1; prototypes at a distance that is not finite are never found.
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
    kernel = compiled("nearest")
    if kernel is None:
        fill, chunk = partial(numpy_nearest, centered=centered), max(1, _BLOCK_NUMBERS // len(prototypes))
    else:
        unit = (prototypes.shape[1] + 8) * 2.0**-24
        worth_it = len(prototypes) >= _PROTOTYPES_WORTH_A_SCREEN and len(rows) >= _ROWS_WORTH_A_SCREEN
        can_screen = unit <= _COARSEST_SCREEN and np.isfinite(scale) and np.isfinite(centered).all()
        panels = _panels(centered, kernel.PANEL) if worth_it and can_screen else None
        fill, chunk = partial(kernel.nearest, panels=panels, unit=unit), _CHUNK_ROWS
    in_chunks(
        partial(fill, prototypes=prototypes, center=center, scale=scale),
        rows,
        chunk_rows=chunk,
        rows_per_thread=_WORTH_A_THREAD // prototypes.size,
        threads=threads,
        own=own,
        squared=squared,
        indices=indices,
    )
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


def _panels(centered: Array, width: int) -> NDArray[np.float32]:
    """Prototypes side by side, |p|²/2 above their columns, shape (ceil(P / width), d + 1, width)."""
    n, d = centered.shape
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
    rows: Array,
    prototypes: Array,
    centered: Array,
    center: Array,
    scale: float,
    own: Codes | None,
    squared: Array,
    indices: Codes,
) -> None:
    """Fill `squared` and `indices`, as the compiled kernel does."""
    with np.errstate(over="ignore", invalid="ignore"):  # such rows measure every distance
        x = (rows - center) * scale
        screen = 0.5 * np.einsum("ij,ij->i", centered, centered) - x @ centered.T
        if own is not None:
            left_out = np.flatnonzero(own >= 0)
            screen[left_out, own[left_out]] = np.inf
        same = SAME_PLACE * np.einsum("ij,ij->i", rows, rows)
        row, prototype = np.nonzero(_passing(screen, x, same * scale * scale, squared.shape[1]))
        difference = rows[row] - prototypes[prototype]
        measured = np.einsum("ij,ij->i", difference, difference)
    found = np.isfinite(measured)
    if own is not None:
        found &= prototype != own[row]
    write_nearest(row[found], prototype[found], measured[found], same[row[found]], squared, indices)


def _passing(screen: Array, x: Array, same: Array, k: int) -> Flags:
    """Which prototypes may be among the k nearest, by (|x − p|² − |x|²)/2 and the bound of its rounding."""
    n, count = screen.shape
    if count <= k:
        return np.ones((n, count), dtype=np.bool_)
    # The k-th smallest of the minima of many streams is at least the k-th smallest of all, and sooner found.
    length = min(_STREAM_LENGTH, count // k)
    streams = screen[:, : count // length * length].reshape(n, length, -1).min(axis=1)
    kth = np.partition(streams, k - 1, axis=1)[:, k - 1]
    unit = (x.shape[1] + 8) * 2.0**-53
    square = np.einsum("ij,ij->i", x, x)
    # A prototype that is as near as the k-th is no longer than this.
    reach = (np.sqrt(square) + np.sqrt(np.maximum(square + 2.0 * kth, 0.0))) / (1.0 - 2.0 * np.sqrt(unit))
    limit = kth + 2.1 * unit * (np.sqrt(square) * reach + 0.5 * reach**2) + unit * np.abs(kth) + 2.0**-900
    limit += TIE * (np.sqrt(square) + reach) ** 2 + same
    passing: Flags = (screen <= limit[:, None]) | ~np.isfinite(limit)[:, None]
    return passing


def write_nearest(row: Codes, prototype: Codes, measured: Array, same: Array, squared: Array, indices: Codes) -> None:
    """Write the first k of each row in order of distance, of equal ones of index; the rest stays as it is."""
    order = np.lexsort((prototype, measured, row))
    row, prototype, measured = row[order], prototype[order], measured[order]
    farther = np.diff(measured, prepend=0.0) > TIE * measured + same[order]
    order = np.lexsort((prototype, np.cumsum(farther | (np.diff(row, prepend=-1) > 0))))
    prototype, measured = prototype[order], measured[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    kept = place < squared.shape[1]
    squared[row[kept], place[kept]] = measured[kept]
    indices[row[kept], place[kept]] = prototype[kept]
