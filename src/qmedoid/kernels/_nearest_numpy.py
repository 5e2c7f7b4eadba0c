"""The NumPy twin of the nearest prototypes: the same answer up to rounding, one block of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels.ties import SAME_PLACE, TIE

if TYPE_CHECKING:
    from qmedoid.kernels.nearest import Fill


# Numbers of one block.
_BLOCK_NUMBERS = 2**19
# Prototypes of a stream at most.
_STREAM_LENGTH = 16


def filler(prototypes: Array, center: Array, centred: Array, scale: float) -> tuple[Fill, int]:
    """What fills the results of some rows, and how many rows to hand it at a time."""
    half_squares = 0.5 * np.einsum("ij,ij->i", centred, centred)

    def fill(rows: Array, own: Codes | None, squared: Array, indices: Codes) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # such rows measure every distance
            x = (rows - center) * scale
            screen = half_squares - x @ centred.T
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
        _write_nearest(row[found], prototype[found], measured[found], same[row[found]], squared, indices)

    return fill, max(1, _BLOCK_NUMBERS // len(prototypes))


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


def _write_nearest(row: Codes, prototype: Codes, measured: Array, same: Array, squared: Array, indices: Codes) -> None:
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
