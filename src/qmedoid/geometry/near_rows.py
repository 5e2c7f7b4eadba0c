"""Rows that are nearly equal, and how much rows of one group have in common.

Nearly equal rows differ in one cell, or in floats by far less than a step of a fine grid. A row without one of its
cells has the hash of all cells minus that cell's part, so that rows which differ there alone have the same. Floats go
to the cells of several shifted grids. No two rows are compared with each other.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import Bits, first_rows, mixed, numbered, ranks, row_groups

_FEWEST_ROWS, _FEWEST_GROUPS, _FEWEST_COLUMNS = 50, 12, 3
# Columns that are looked at, of more every second, third, ... one.
_MOST_COLUMNS = 200
# Nearly equal rows are worth a word from this share of the different rows on, and none where one group has too many.
_LEAST_SHARE, _LARGEST_SHARE = 0.05, 0.25
# Of a table that mostly repeats itself, equal rows say enough.
_LEAST_DIFFERENT = 0.4
# How much more often than by chance nearly equal rows have the same class, from 0 to 1.
_LEAST_EXCESS = 0.7
# Floats after which rows without an equal one are left out.
_FIRST_FLOATS = 6
# Steps of a grid in spreads of a column, and in its typical number; grids; a wider one finds no more than this of a
# fine one where rows are copies.
_STEP, _RELATIVE, _N_GRIDS, _WIDER, _GROWTH = 1e-4, 1e-5, 4, 8.0, 1.5
# Columns are dealt to blocks: rows that differ in one cell agree in all blocks but one. Of the rows that agree in all
# parts but two this share differs in one cell where they are copies: where chance makes them, most differ in more.
_N_BLOCKS, _N_PARTS, _LEAST_OF_PARTS = 3, 6, 0.6
# Rows of a group from which on it counts no more.
_MOST_WEIGHT = 10


Link: TypeAlias = tuple[Codes, Bits]
"""Rows, and a key of each; those of one key are nearly equal."""


def class_agreement(groups: Codes, codes: Codes) -> tuple[float, int, int, int]:
    r"""How much more often than by chance two rows of a group have the same class: 0 is chance, 1 always.

    With the number of groups of two rows or more, of those that hold one class alone, and of those that hold one which
    is not the class of most of them.

    With :math:`n_{gc}` rows of class c in the group g of :math:`n_g` rows and weights :math:`w_g = \min(n_g - 1, 10)`,

    .. math:: \frac{a - e}{1 - e}, \quad a = \overline{\sum_c \frac{n_{gc}(n_{gc} - 1)}{n_g(n_g - 1)}}, \quad
        e = \sum_c \Bigl(\overline{n_{gc} / n_g}\Bigr)^2.
    """
    n_classes = int(codes.max(initial=0)) + 1
    sizes = np.bincount(groups)
    cells, counts = np.unique(groups * n_classes + codes, return_counts=True)
    of_cell, class_of = cells // n_classes, cells % n_classes
    kept = sizes[of_cell] > 1
    of_cell, class_of, counts = of_cell[kept], class_of[kept], counts[kept]
    if not len(of_cell):
        return 0.0, 0, 0, 0
    n = sizes[of_cell]
    weights = np.minimum(n - 1, _MOST_WEIGHT)
    total = float(np.minimum(sizes[sizes > 1] - 1, _MOST_WEIGHT).sum())
    same = float((weights * counts * (counts - 1) / (n * (n - 1))).sum()) / total
    shares = np.bincount(class_of, weights * counts / n) / total
    chance = float(shares @ shares)
    pure = np.bincount(class_of[counts == n], minlength=1)
    excess = 0.0 if chance >= 1.0 else (same - chance) / (1.0 - chance)
    return excess, int((sizes > 1).sum()), int(pure.sum()), int(pure.sum() - pure.max())


def rows_together(values: Array, codes: Codes) -> tuple[Codes | None, bool]:
    """Groups of the rows of a table (n, M) of numbers that are nearly equal, else equal; and which of these they are.

    None where no two rows belong together.
    """
    places = ranks(values)
    with np.errstate(invalid="ignore"):
        whole = ((values == np.trunc(values)) | ~np.isfinite(values)).all(axis=0)
    columns = [places[:, place] if whole[place] else values[:, place] for place in range(values.shape[1])]
    near = near_groups(columns, codes)
    return (row_groups(values, codes), False) if near is None else (near, True)


def near_groups(columns: Sequence[npt.NDArray[Any]], codes: Codes) -> Codes | None:
    """Groups of rows that are nearly equal and share a class; None where these are few, or no copies.

    Nearly equal are rows that differ in one cell, or in floats by far less than 1e-4 of the spread of their columns.
    Columns (n,) are floats, NaN where they are missing, or ranks of cells, which are equal or not. Rows are no copies
    where many more agree in two thirds of the columns alone, or on a wider grid.
    """
    n, some = len(codes), columns[:: -(-len(columns) // _MOST_COLUMNS) or 1]
    if n < _FEWEST_ROWS or len(columns) < _FEWEST_COLUMNS:
        return None
    hashes = row_hashes(some, range(len(some)))
    is_part = len(some) < len(columns) and bool(_repeats(hashes).any())
    equal = numbered(row_hashes(columns, range(len(columns))) if is_part else hashes)
    rows = first_rows(equal)
    if len(rows) < max(_FEWEST_ROWS, _LEAST_DIFFERENT * n):
        return None
    different = [column[rows] for column in some]
    links = [*_links_by_one_cell(different, hashes[rows]), *_links_by_grids(different, hashes[rows])]
    links += [(np.arange(len(rows)), hashes[rows])] if is_part else []
    if not links:
        return None
    groups = _joined(links, len(rows))
    sizes = np.bincount(groups)
    near = sizes[groups] > 1
    if near.mean() < _LEAST_SHARE or len(sizes) < _FEWEST_GROUPS or sizes.max() > _LARGEST_SHARE * len(rows):
        return None
    excess = class_agreement(groups, codes[rows])[0]
    return numbered(groups[equal]) if excess >= _LEAST_EXCESS else None


def _links_by_one_cell(columns: Sequence[npt.NDArray[Any]], hashes: Bits) -> list[Link]:
    """Rows with keys, equal where rows differ in one cell; none where these are no copies."""
    # Ranks are dense; hardly a float comes twice.
    different = [len(one) if one.dtype.kind == "f" else int(one.max(initial=0)) + 1 for one in columns]
    order = sorted(range(len(columns)), key=lambda place: -different[place])
    links, near = list[Link](), np.zeros(len(hashes), dtype=np.bool_)
    for start in range(_N_BLOCKS):
        block = order[start::_N_BLOCKS]
        rows = np.flatnonzero(_repeats(hashes - row_hashes(columns, block)))
        for place in block if len(rows) else ():
            keys = hashes[rows] - _token(columns[place][rows], place)
            shared = _repeats(keys)
            links.append((rows[shared], keys[shared]))
            near[rows[shared]] = True
    if near.mean() < _LEAST_SHARE:
        return []
    parts = [row_hashes(columns, order[start::_N_PARTS]) for start in range(_N_PARTS)]
    agree = np.zeros(len(hashes), dtype=np.bool_)
    for some, other in combinations(parts, 2):
        agree |= _repeats(hashes - some - other)
    return links if near.sum() >= _LEAST_OF_PARTS * agree.sum() else []


def _links_by_grids(columns: Sequence[npt.NDArray[Any]], hashes: Bits) -> list[Link]:
    """Rows with keys, equal where all floats of rows fall in the same cells of a grid; none where chance does that."""
    floats = [place for place, column in enumerate(columns) if column.dtype.kind == "f"]
    if len(floats) < 2:
        return []
    exact = hashes - row_hashes(columns, floats)
    rows = np.flatnonzero(_repeats(exact))
    if not len(rows):
        return []
    step_of = lru_cache(maxsize=None)(lambda place: _step(columns[place]))
    links, counts = list[Link](), [0, 0]
    for grid in range(_N_GRIDS):
        shared = rows
        for factor in (_WIDER, 1.0):
            # A wide grid without two rows in a cell has none in those of a fine one, but at edges.
            shared, keys = (rows, exact[rows]) if len(shared) else (shared, exact[shared])
            # After a few columns hardly a row is left that has an equal one.
            for places in (floats[:_FIRST_FLOATS], floats[_FIRST_FLOATS:]):
                for place in places if len(shared) else ():
                    # Each column has offsets of its own, so that a row lies near an edge in few of them.
                    offset = math.modf((grid + 1) * 0.6180339887 + place * 0.7548776662)[0]
                    with np.errstate(invalid="ignore"):
                        cells = np.floor(columns[place][shared] / (factor * step_of(place)) + offset)
                    keys = keys + _token(cells, place)
                left = _repeats(keys)
                shared, keys = shared[left], keys[left]
            counts[factor > 1.0] += len(shared)
        links.append((shared, keys))
    return links if counts[0] and counts[1] <= _GROWTH * counts[0] else []


def _step(column: Array) -> float:
    """The step of the grid of a column of floats."""
    known = column[np.isfinite(column)]
    if not len(known):
        return 1.0
    low, middle, high = np.quantile(known, (0.05, 0.5, 0.95))
    spread = high - low if high > low else np.ptp(known)
    return max(_STEP * float(spread), _RELATIVE * abs(float(middle))) or 1.0


def _joined(links: Sequence[Link], n: int) -> Codes:
    """Groups of n rows, joined where they have a key in common: every row takes the lowest label that it can see."""
    shared = [(rows, np.unique(keys, return_inverse=True)[1]) for rows, keys in links if len(rows)]
    labels, before = np.arange(n), np.empty(0, dtype=np.intp)
    while not np.array_equal(labels, before):
        before = labels.copy()
        for rows, place in shared:
            lowest = np.full(int(place.max()) + 1, n)
            np.minimum.at(lowest, place, labels[rows])
            # The row that had the label takes the lower one as well, and so do all that point to it.
            np.minimum.at(labels, labels[rows], lowest[place])
            labels[rows] = np.minimum(labels[rows], lowest[place])
        labels = labels[labels]
    return numbered(labels)


def row_hashes(columns: Sequence[npt.NDArray[Any]], places: Sequence[int]) -> Bits:
    """Hash of some cells of every row: the sum of what each column adds."""
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for place in places:
        total += _token(columns[place], place)
    return total


def _token(column: npt.NDArray[Any], place: int) -> Bits:
    """The part of a column in the hash of each row."""
    plain = np.where(np.isnan(column), np.nan, column + 0.0) if column.dtype.kind == "f" else column.astype(np.int64)
    salt = mixed(np.array([place + 1], dtype=np.uint64))
    return mixed(mixed(np.ascontiguousarray(plain).view(np.uint64).copy()) + salt)


def _repeats(keys: Bits) -> Flags:
    """Which keys occur more than once."""
    order = np.argsort(keys)
    rising = keys[order]
    same = rising[1:] == rising[:-1]
    found = np.zeros(len(keys), dtype=np.bool_)
    found[order] = np.append(same, False) | np.append(False, same)
    return found
