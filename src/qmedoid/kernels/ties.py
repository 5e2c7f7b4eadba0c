"""Choices between numbers that are equal up to rounding, made so that rounding has no part in them.

Another processor adds in another order, and a sum then differs in its last digits. Where two candidates are equal in
exact arithmetic (columns that are copies of each other, rows at equal distances), those digits must not choose: of
candidates within a tolerance of the best the first is taken. Rounding moves the numbers that are compared here by 1e-15
to 1e-11 of the largest of them, and numbers that are not equal next to never lie nearer than 1e-9.
"""

from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, column_slices

TIE = 1e-9
"""Numbers that differ by no more than this share of the largest of them count as equal."""
SAME_PLACE = 1e-24
"""Squared distances that differ by no more than this share of a row's squared length are equal."""
SAME_CELL = 2.0**-48
"""Cells of a column that differ by no more than this share of themselves, 16 units in the last place, are one value."""

# Sixteen of the smallest numbers there are: what 0 can be moved to.
_NOTHING = 16 * 5e-324
# Rows that nearly always differ between two columns that differ at all.
_FIRST = 4096


def first_smallest(values: Any, size: float | None = None) -> int:
    """Place of the first value that is the smallest up to rounding; see `stable_order` for `size`."""
    numbers = np.asarray(values, dtype=np.float64)
    return int(np.argmax(numbers <= numbers.min() + tolerance(numbers, size)))


def first_largest(values: Any, size: float | None = None) -> int:
    """Place of the first value that is the largest up to rounding; see `stable_order` for `size`."""
    return first_smallest(-np.asarray(values, dtype=np.float64), size)


def stable_order(values: Array, size: float | None = None) -> Codes:
    """Places in rising order of the values; those that are equal up to rounding stay in the order of their places.

    `size` is that of the numbers that the values were made from, where they are differences; None takes the largest of
    the values.
    """
    order = np.argsort(values, kind="stable")
    rising = values[order]
    steps = np.concatenate([[False], rising[1:] > rising[:-1] + tolerance(values, size)])
    if steps[1:].all():
        return order
    return order[np.lexsort((order, np.cumsum(steps)))]


def merged(values: Array) -> Array:
    """Values of which those that are equal up to rounding are equal."""
    order = np.argsort(values, kind="stable")
    rising = values[order]
    starts = np.concatenate([[True], rising[1:] > rising[:-1] + tolerance(values)])[: len(values)]
    equal = np.empty_like(values)
    equal[order] = rising[starts][np.cumsum(starts) - 1]
    return equal


def tolerance(values: Array, size: float | None = None) -> float:
    """What values may differ by and count as equal: a share of the largest that is finite, or of a `size`."""
    if size is None:
        size = float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))
    return TIE * size


def first_smallest_of_rows(values: Array) -> Codes:
    """Of every row (n, k) the place of the first value that is the smallest up to rounding, shape (n,)."""
    least = values.min(axis=1, keepdims=True)
    return np.asarray((values <= least + TIE * np.abs(least)).argmax(axis=1))


def first_largest_of_rows(values: Array) -> Codes:
    """Of every row (n, k) the place of the first value that is the largest up to rounding, shape (n,)."""
    return first_smallest_of_rows(-values)


def with_equal_cells(X: Array) -> Array:
    """X with cells of a column that are equal up to their last digits made equal; X itself where there are none.

    Ranks and numbers of different values do not depend on digits that a file format or a sum has cost then. A run of
    cells that are each near the next but not all near each other is a column of such numbers, and is left as it is.
    NaN stays NaN.
    """
    near = np.zeros(X.shape[1], dtype=np.bool_)
    for block in column_slices(*X.shape):
        rising = np.array(X[:, block].T, order="C")
        rising.sort(axis=1)
        reach = SAME_CELL * np.abs(rising[:, 1:]) + _NOTHING
        gaps = rising[:, 1:] - rising[:, :-1]
        near[block] = ((gaps > 0) & (gaps <= reach)).any(axis=1)
    found = X
    for column in np.flatnonzero(near).tolist():
        cells = X[:, column]
        rising = np.sort(cells[~np.isnan(cells)])
        reach = SAME_CELL * np.abs(rising) + _NOTHING
        gaps = rising[1:] - rising[:-1]
        starts = np.flatnonzero(np.concatenate([[True], gaps > reach[1:]]))
        first, last = rising[starts], rising[np.append(starts[1:], len(rising)) - 1]
        run = np.searchsorted(first, cells, side="right") - 1
        narrow = last - first <= SAME_CELL * np.abs(last) + _NOTHING
        found = X.copy() if found is X else found
        found[:, column] = np.where(narrow[run] & ~np.isnan(cells), first[run], cells)
    return found


def order_by_content(X: Array) -> Codes:
    """Places of the columns of X (n, M) in an order that depends on their values alone.

    Sums round differently in another order, and of equally good choices the first is taken: either can make another
    model. So models are fitted to columns in this order. Values are compared in single precision, so that the last
    digits of a double do not matter.
    """
    with np.errstate(over="ignore", under="ignore"):
        for n in (_FIRST, len(X)):
            columns = np.ascontiguousarray(X[:n].T, dtype=np.float32)
            keys = [column.tobytes() for column in columns]
            if len(set(keys)) == len(keys):
                break
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
