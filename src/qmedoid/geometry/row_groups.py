"""Row groups: rows that belong together and are left out together, such as copies of one record.

A group is an int for every row. Equal rows are one group, whatever their labels: a row whose copy stays among the
others is not left out. There is one exception. In a coarse table, such as one of three columns of two values each,
equal rows are no copies of a record: new rows are equal to training rows, too, and leaving out all of them would ask
for more than new rows do. There only copies of the whole table are undone.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, column_slices
from qmedoid.exceptions import DataError

Bits = npt.NDArray[np.uint64]

# A table is coarse if at least this share of its rows would be equal to another if its columns were independent.
_COARSE = 0.5
# Rows that have an equal one before them are worth a note from this share on.
_WORTH_A_NOTE = 0.01
# An odd number with well-mixed bits (of splitmix64).
_MIX, _HALF = np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


def equal_rows(values: npt.NDArray[Any]) -> Codes:
    """Group of every row of a table (n, M) of numbers: equal rows have the same, numbered as they first occur."""
    bits = _bits(values)
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
    """Groups of equal rows; None where no two rows belong together.

    Parameters
    ----------
    values : ndarray of shape (n, M)
        Numbers, or codes of cells.
    codes : ndarray of shape (n,)
        Classes. They matter for copies of a coarse table alone.
    """
    groups = equal_rows(values)
    sizes = np.bincount(groups)
    if len(sizes) in (1, len(groups)):  # rows that are all the same show nothing that leaving them out could spoil
        return None
    return _copies(groups, codes) if is_coarse(values, groups) else groups


def given_groups(labels: Any, n_rows: int) -> Codes | None:
    """Groups that were given, one label for every row; None where every row has another."""
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) != n_rows:
        raise DataError(f"X has {n_rows} rows and groups has shape {values.shape}: pass one label for every row.")
    if values.dtype.kind == "O":
        values = np.array([_text(value) for value in values.tolist()])
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
    """Whether gains in log-likelihood by row add up to more than so many standard errors, and than a least gain.

    Rows of one group count as one draw.
    """
    by_draw = draws_per_row(groups) * group_sums(gains, groups)
    return bool(by_draw.sum() > max(n_errors * by_draw.std() * np.sqrt(len(by_draw)), least))


def draw_rows(rows: Codes, most: int, rng: np.random.Generator) -> Codes:
    """At most `most` of the rows, drawn without replacement and in rising order; all of them where they are fewer."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def equal_rows_note(groups: Codes) -> str | None:
    """How many rows are equal to another, where that is worth a note."""
    n_copies = len(groups) - int(groups.max()) - 1
    if n_copies < max(1, _WORTH_A_NOTE * len(groups)):
        return None
    return (
        f"{n_copies:,} of {len(groups):,} rows are equal to an earlier row in all columns that are learned from: equal "
        "rows are left out together, and count as one in the intervals of expected figures"
    )


def _bits(values: npt.NDArray[Any]) -> Bits:
    wide = np.ascontiguousarray(values, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    return (wide + 0.0 if wide.dtype.kind == "f" else wide).view(np.uint64)  # no two zeros


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


def _copies(groups: Codes, codes: Codes) -> Codes | None:
    """Groups of the copies of a whole table: equal rows of one class, as many at a time as the table occurs."""
    cells = numbered(groups * (int(codes.max()) + 1) + codes)
    n_copies = math.gcd(*np.bincount(cells).tolist())
    if n_copies == 1:
        return None
    order = np.argsort(cells, kind="stable")
    found = np.empty(len(cells), dtype=np.intp)
    found[order] = np.arange(len(cells)) // n_copies
    return numbered(found)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)
