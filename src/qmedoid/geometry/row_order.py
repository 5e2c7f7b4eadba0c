r"""An order of the rows that depends on what they hold alone, so that a fit is the same for rows in any order.

Random draws go by the places of rows, and sums round by their order. So every fit begins with its rows in an order of
their own: that of a hash of their cells and class,

.. math:: h(r) = \operatorname{mix}\Bigl(c_{y(r)} + \sum_j \operatorname{mix}(t_j(x_{rj}) + s_j)\Bigr).

The token t of a number is its rank in the column, so that units and last digits do not matter. The signature s of a
column, the token of a level and the token c of a class are hashes of the rows that hold them: the order of the columns
and the names of levels and classes play no part. They are made in rounds, each from the hashes of the last one, as
colors of a graph are refined. Copies of a row change nothing: all sums go over different rows.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.geometry.row_groups import Bits, equal_rows, first_rows

# Shifts and factors of SplitMix64's finalizer: every bit of a number moves half of the bits of the hash.
_START = np.uint64(0x9E3779B97F4A7C15)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
# Rounds after which columns and levels that play different parts have different signatures.
_ROUNDS = 2


def ranks(X: Array | Codes) -> Codes:
    """Place of every cell among the different values of its column, shape (n, M); missing cells come last."""
    places = np.empty(X.shape, dtype=np.intp)
    for block in column_slices(*X.shape):
        columns = np.ascontiguousarray(X[:, block].T)
        order = np.argsort(columns, axis=1)
        rising = np.take_along_axis(columns, order, axis=1)
        steps = rising[:, 1:] != rising[:, :-1]
        if X.dtype.kind == "f":
            steps &= ~np.isnan(rising[:, :-1])  # NaN comes last, and differs from itself
        of_rank = np.zeros(columns.shape, dtype=np.intp)
        np.cumsum(steps, axis=1, out=of_rank[:, 1:])
        found = np.empty_like(of_rank)
        np.put_along_axis(found, order, of_rank, axis=1)
        places[:, block] = found.T
    return places


def row_order(
    cells: Codes,
    codes: Codes,
    groups: Codes | None = None,
    weights: Array | None = None,
    *,
    is_level: Sequence[bool] | None = None,
) -> Codes:
    """Places of the rows in an order that depends on the rows alone, with their classes and groups.

    Equal rows of one class stay in the order in which they are given.

    Parameters
    ----------
    cells : ndarray of shape (n, M)
        Ranks of numbers, and numbers of levels in the order of their names, from 0 up.
    codes : ndarray of shape (n,)
        Classes.
    groups : ndarray of shape (n,), optional
        Groups that are given, from 0 up; their numbers play no part.
    weights : ndarray of shape (n,), optional
        Of equal rows the lighter ones come first.
    is_level : sequence of bool, optional
        Whether each column has levels instead of numbers; none by default.
    """
    same = equal_rows(np.column_stack([cells, codes]))
    first = first_rows(same)
    hashes, signatures = _hashes(cells[first], codes[first], [False] * cells.shape[1] if is_level is None else is_level)
    # Rows of one hash are mirror images of each other: any order of them that does not come from their places will do.
    keys = [hashes] if len(np.unique(hashes)) == len(hashes) else [*cells[first][:, np.argsort(signatures)].T, hashes]
    place = np.empty(len(first), dtype=np.intp)
    place[np.lexsort(keys)] = np.arange(len(first))
    if groups is None:
        return np.argsort(place[same], kind="stable") if weights is None else np.lexsort((weights, place[same]))
    of_group = _sums(_mix(place.astype(np.uint64)[same]), groups)
    last = [] if weights is None else [weights]
    return np.lexsort((*last, groups, of_group[groups], place[same]))


def _hashes(cells: Codes, codes: Codes, is_level: Sequence[bool]) -> tuple[Bits, Bits]:
    """Hash of every row of different rows, and signature of every column."""
    named = np.asarray(is_level, dtype=np.bool_)
    parts = [_Columns(cells[:, block], named[block]) for block in column_slices(*cells.shape)]
    of_class = _mix(np.bincount(codes))
    hashes = _row_hashes(parts, codes, of_class)
    for _ in range(_ROUNDS):
        of_class = _mix(_sums(hashes, codes))
        for part in parts:
            part.go_on(hashes)
        hashes = _row_hashes(parts, codes, of_class)
    return hashes, np.concatenate([part.signatures for part in parts])


def _row_hashes(parts: "Sequence[_Columns]", codes: Codes, of_class: Bits) -> Bits:
    hashes = of_class[codes]
    for part in parts:
        hashes += part.sums()
    return _mix(hashes)


class _Columns:
    """Some columns (n, M), with the tokens of their different cells column after column, and signatures (M,).

    Before the first round tokens are ranks of numbers, and how frequent levels are.
    """

    def __init__(self, cells: Codes, is_level: Flags) -> None:
        # Where the tokens of each column start, and how many it has.
        self.sizes: Codes = cells.max(axis=0) + 1
        self.starts: Codes = np.cumsum(self.sizes) - self.sizes
        self.cells, self.is_level = cells, is_level
        tokens = np.arange(self.sizes.sum()) - np.repeat(self.starts, self.sizes)
        if is_level.any():
            counts = np.bincount((cells + self.starts).ravel(), minlength=len(tokens))
            tokens = np.where(np.repeat(is_level, self.sizes), counts, tokens)
        self.tokens, self.signatures = _mix(tokens), np.zeros(len(self.sizes), dtype=np.uint64)

    def go_on(self, hashes: Bits) -> None:
        """Make signatures, and tokens of levels, of the hashes of the rows that hold each cell."""
        rows_of = np.zeros(len(self.tokens), dtype=np.uint64)
        np.add.at(rows_of, (self.cells + self.starts).ravel(), np.repeat(hashes, self.cells.shape[1]))
        rows_of = _mix(rows_of + self.tokens)
        self.tokens = np.where(np.repeat(self.is_level, self.sizes), rows_of, self.tokens)
        self.signatures = np.add.reduceat(rows_of, self.starts)

    def sums(self) -> Bits:
        """What the cells add to the hash of each row, shape (n,)."""
        mixed = _mix(self.tokens + np.repeat(self.signatures, self.sizes))
        sums: Bits = mixed[self.cells + self.starts].sum(axis=1, dtype=np.uint64)
        return sums


def _sums(values: Bits, places: Codes) -> Bits:
    """Sum of the values at each place, modulo 2⁶⁴."""
    sums = np.zeros(int(places.max()) + 1, dtype=np.uint64)
    np.add.at(sums, places, values)
    return sums


def _mix(values: npt.NDArray[np.integer]) -> Bits:
    mixed = values.astype(np.uint64) + _START
    for shift, factor in _MIXING:
        mixed ^= mixed >> shift
        mixed *= factor
    return mixed ^ (mixed >> _LAST_SHIFT)
