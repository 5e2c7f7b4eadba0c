r"""Row groups, and an order of the rows that depends on what they hold alone.

A group is an int for every row. Equal rows are one group, whatever their labels: a row whose copy stays among the
others is not left out. There is one exception. In a coarse table, such as one of three columns of two values each,
equal rows are no copies of a record: new rows are equal to training rows, too, and leaving out all of them would ask
for more than new rows do. There only copies of the whole table are undone.

Random draws go by the places of rows, and sums round by their order. So every fit begins with its rows in an order of
their own: that of a hash of their cells and class,

.. math:: h(r) = \operatorname{mix}\Bigl(c_{y(r)} + \sum_j \operatorname{mix}(t_j(x_{rj}) + s_j)\Bigr).

The token t of a number is its rank in the column, so that units and last digits do not matter. The signature s of a
column, the token of a level and the token c of a class are hashes of the rows that hold them: the order of the columns
and the names of levels and classes play no part. They are made in rounds, each from the hashes of the last one, as
colors of a graph are refined. Copies of a row change nothing: all sums go over different rows.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.exceptions import DataError

Bits = npt.NDArray[np.uint64]

# A table is coarse if at least this share of its rows would be equal to another if its columns were independent.
_COARSE = 0.5
# Rows that have an equal one before them are worth a note from this share on.
_WORTH_A_NOTE = 0.01
# An odd number with well-mixed bits.
_MIX, _HALF = np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)
# Shifts and factors of SplitMix64's finalizer.
_START = np.uint64(0x9E3779B97F4A7C15)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
# Rounds after which columns and levels that play different parts have different signatures.
_ROUNDS = 2


def equal_rows(values: npt.NDArray[Any]) -> Codes:
    """Group of every row of a table (n, M) of numbers: equal rows have the same, numbered as they first occur."""
    wide = np.ascontiguousarray(values, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    bits = (wide + 0.0 if wide.dtype.kind == "f" else wide).view(np.uint64)  # no two zeros
    hashes = _hashed(bits)
    order = np.argsort(hashes, kind="stable")
    starts = np.append(True, hashes[order][1:] != hashes[order][:-1])[: len(order)]
    first = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    again = np.flatnonzero(~starts)
    if not np.array_equal(bits[order[again]], bits[first[again]]):  # two rows of one hash: compare all cells
        return numbered(np.unique(bits, axis=0, return_inverse=True)[1].ravel())
    groups = np.empty(len(order), dtype=np.intp)
    groups[order] = first
    return numbered(groups)


def numbered(labels: npt.NDArray[Any]) -> Codes:
    """Labels of rows as numbers from 0 up, in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse.ravel()]


def row_groups(values: npt.NDArray[Any], codes: Codes) -> Codes | None:
    """Groups of the equal rows of a table (n, M) of numbers or codes; None where no two rows belong together.

    Classes (n,) matter for copies of a coarse table alone.
    """
    groups = equal_rows(values)
    sizes = np.bincount(groups)
    if len(sizes) in (1, len(groups)):  # rows that are all the same show nothing that leaving them out could spoil
        return None
    if not is_coarse(values, groups):
        return groups
    # Copies of a whole table: equal rows of one class, as many at a time as the table occurs.
    cells = numbered(groups * (int(codes.max()) + 1) + codes)
    n_copies = math.gcd(*np.bincount(cells).tolist())
    if n_copies == 1:
        return None
    order, copies = np.argsort(cells, kind="stable"), np.empty(len(cells), dtype=np.intp)
    copies[order] = np.arange(len(cells)) // n_copies
    return numbered(copies)


def given_groups(labels: Any, n_rows: int) -> Codes | None:
    """Groups that were given, one label for every row; None where every row has another."""
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) != n_rows:
        raise DataError(f"X has {n_rows} rows and groups has shape {values.shape}: pass one label for every row.")
    if values.dtype.kind == "O":
        values = np.array(["" if one is None or one != one else str(one) for one in values.tolist()])
    if (values.dtype.kind == "f" and np.isnan(values).any()) or (values.dtype.kind == "U" and (values == "").any()):
        raise DataError("groups contains missing labels: fill them in, such as with a different label for each row.")
    groups = numbered(values)
    if n_rows and groups.max() == 0:
        label = np.asarray(labels).tolist()[0]
        raise DataError(f"groups holds one group only, {label!r}: at least 2 are needed to leave one out.")
    return None if groups.max() + 1 == n_rows else groups


def first_rows(groups: Codes) -> Codes:
    """The first row of every group, in the order of the groups."""
    return np.unique(groups, return_index=True)[1].astype(np.intp)


def part_of(groups: Codes | None, rows: Codes) -> Codes | None:
    """Groups of some of the rows; None where no two of them belong together."""
    if groups is None:
        return None
    part = numbered(groups[rows])
    return part if len(part) and part.max() + 1 < len(part) else None


def draws_per_row(groups: Codes | None, weights: Array | None = None) -> float:
    """Groups for each row: a group is one draw, however many rows it has.

    Of groups of unequal weights u it is the effective number of draws, (Σu)² / Σu².
    """
    if weights is not None:
        by_draw = group_sums(weights, groups)
        return float(by_draw.sum() ** 2 / (by_draw**2).sum() / len(weights))
    return 1.0 if groups is None else (int(groups.max()) + 1) / len(groups)


def group_sums(values: Array, groups: Codes | None) -> Array:
    """Sum of the values of every group."""
    return values if groups is None else np.bincount(groups, weights=values).astype(np.float64)


def group_classes(groups: Codes, codes: Codes) -> Codes:
    """Class of every group: of those in it, the one with the fewest rows in the table."""
    rarest = np.argsort(np.argsort(np.bincount(codes), kind="stable"), kind="stable")
    order = np.lexsort((rarest[codes], groups))
    return codes[order[np.unique(groups[order], return_index=True)[1]]]


def group_folds(groups: Codes, codes: Codes, n_folds: int, rng: np.random.Generator) -> Codes:
    """Fold of every row, groups kept together: of every class, about the same share of the groups in each."""
    groups = numbered(groups)
    classes = group_classes(groups, codes)
    sizes, fold = np.bincount(groups), np.empty(len(classes), dtype=np.intp)
    for code in np.unique(classes):
        of_class = rng.permutation(np.flatnonzero(classes == code))
        fold[of_class[np.argsort(-sizes[of_class], kind="stable")]] = (
            np.arange(len(of_class)) + rng.integers(n_folds)
        ) % n_folds
    return fold[groups]


def is_clear_gain(gains: Array, groups: Codes | None, n_errors: float, least: float = 0.0) -> bool:
    """Whether gains in log-likelihood by row add up to more than a number of standard errors, and than a least gain.

    Rows of one group count as one draw.
    """
    by_draw = draws_per_row(groups) * group_sums(gains, groups)
    return bool(by_draw.sum() > max(n_errors * by_draw.std() * np.sqrt(len(by_draw)), least))


def draw_rows(rows: Codes, most: int, rng: np.random.Generator) -> Codes:
    """At most `most` of the rows, drawn without replacement and in rising order; all of them where they are fewer."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def equal_rows_note(groups: Codes, *, is_near: bool = False) -> str | None:
    """How many rows are equal to another, or nearly so, where that is worth a note."""
    n_copies = len(groups) - int(groups.max()) - 1
    if n_copies < max(1, _WORTH_A_NOTE * len(groups)):
        return None
    if is_near:
        return (
            f"{n_copies:,} of {len(groups):,} rows are equal to another but for one cell, or for tiny differences of "
            "numbers, and share its class: such rows are held out together, and count as one in the intervals of "
            "expected figures"
        )
    return (
        f"{n_copies:,} of {len(groups):,} rows are equal to an earlier row in all columns that are learned from: equal "
        "rows are left out together, and count as one in the intervals of expected figures"
    )


def _hashed(bits: Bits) -> Bits:
    """One number for every row: the sum of its cells, each with its halves mixed, times an odd number of its column."""
    hashes = np.zeros(len(bits), dtype=np.uint64)
    for columns in column_slices(*bits.shape):
        numbers = np.arange(columns.start + 1, columns.stop + 1, dtype=np.uint64) * _MIX
        factors = (numbers ^ (numbers >> _HALF)) * _MIX | np.uint64(1)
        block = bits[:, columns] ^ (bits[:, columns] >> _HALF)
        hashes += (block * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def is_coarse(values: npt.NDArray[Any], groups: Codes | None = None) -> bool:
    """Whether equal rows of a table are no copies: most rows have an equal one where all columns are shuffled."""
    groups = equal_rows(values) if groups is None else groups
    sizes = np.bincount(groups)
    # Columns that depend on each other make more rows equal, not fewer.
    if not len(groups) or np.mean(sizes[groups] > 1) < _COARSE:
        return False
    distinct, rng = values[first_rows(groups)], np.random.default_rng(0)
    # Rows are drawn as often as they occur, but no more of them than there would be without copies of the whole table.
    rows = np.repeat(np.arange(len(distinct)), np.maximum(sizes // max(1, math.gcd(*sizes.tolist())), 1))
    shuffled = np.column_stack([distinct[rng.permutation(rows), column] for column in range(distinct.shape[1])])
    counts = np.bincount(by_chance := equal_rows(shuffled))
    return bool(np.mean(counts[by_chance] > 1) >= _COARSE)


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
    """The rows in an order that depends on them alone, with their classes and groups.

    Equal rows of one class stay in the order in which they are given; of those with weights the lighter ones come
    first. Cells (n, M) are ranks of numbers, and numbers of levels in the order of their names, from 0 up; `is_level`
    says which columns have levels. The numbers of groups play no part.
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
        tokens = _mix(self.tokens + np.repeat(self.signatures, self.sizes))
        sums: Bits = tokens[self.cells + self.starts].sum(axis=1, dtype=np.uint64)
        return sums


def _sums(values: Bits, places: Codes) -> Bits:
    """Sum of the values at each place, modulo 2⁶⁴."""
    sums = np.zeros(int(places.max()) + 1, dtype=np.uint64)
    np.add.at(sums, places, values)
    return sums


def _mix(values: npt.NDArray[np.integer]) -> Bits:
    return mixed(values.astype(np.uint64) + _START)


def mixed(bits: Bits, shifted: Bits | None = None) -> Bits:
    """SplitMix64's finalizer, in place: every bit of a number moves half of the bits of its hash.

    `shifted` is memory of the same shape for what is computed on the way.
    """
    for shift, factor in _MIXING:
        bits ^= np.right_shift(bits, shift, out=shifted)
        bits *= factor
    bits ^= np.right_shift(bits, _LAST_SHIFT, out=shifted)
    return bits
