"""Values that stand for "not measured": one number in many rows, far from all others, such as 0, -1 or 999.

A value is one if it is the smallest or the largest of its column, stands in at least `FEWEST_ROWS` rows and in
`LEAST_SHARE` of them, and

- is *isolated*: its distance to the nearest other value is at least `STEPS` times the largest step between the next
  values, and at least `REACH` of the median distance of all others; it stands in `SPIKE` times as many rows as each of
  the next values does in the mean; and in less than half of the rows, as a zero in most rows is the usual case; or
- is an *impossible negative*: a code such as -1, -99 or -999, and all other values are 0 or more; or
- is all *nines*, such as 99 or 9999, and isolated by its distance, in however many rows.

The first part depends on neither the order of the rows nor the unit and origin of the column.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Flags
from qmedoid.model.contract import Kind
from qmedoid.tables.cells import is_usable

FEWEST_ROWS, LEAST_SHARE = 5, 0.005
STEPS, REACH, SPIKE = 3.0, 0.1, 3.0
_NEXT, _STEPS = 10, 20
"""Different values next to the one in question whose rows and whose steps are looked at; `_NEXT` must be there."""
_FEW_OTHERS, _MOST = 20, 3
"""Rows with other values at least, and sentinels of a column at most."""
_CODES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 77, 88, 99, 777, 888, 999, 8888, 9999, 99999, 999999)


class Sentinel(NamedTuple):
    """A value that may stand for "not measured": its rows, and the nearest of all others."""

    value: float
    rows: int
    nearest: float


class Sentinels(NamedTuple):
    """What was found in a column of a kind, of so many rows that are not missing."""

    kind: Kind
    found: tuple[Sentinel, ...]
    n_rows: int
    rows: str = "rows"

    def as_dicts(self) -> list[dict[str, Any]]:
        """Each value with its rows and the nearest other value, fit for JSON."""
        return [
            {"value": cell_text(one.value, self.kind), "rows": one.rows, "nearest": cell_text(one.nearest, self.kind)}
            for one in self.found
        ]

    def message(self, name: str) -> str:
        """The note that ``check`` and ``fit`` print."""
        parts, texts = [], [cell_text(one.value, self.kind) for one in self.found]
        for one, text in zip(self.found, texts, strict=True):
            bound = cell_text(one.nearest, self.kind)
            beyond = "or more" if one.value < one.nearest else "or less"
            if self.kind == "date":
                beyond = "or later" if one.value < one.nearest else "or earlier"
            parts.append(f"{text} in {one.rows:,} of {self.n_rows:,} {self.rows}, and {bound} {beyond} in all others")
        it, values = ("it", texts[0]) if len(texts) == 1 else ("them", " and ".join(texts))
        options = " ".join(f"--missing {_quoted(f'{name}={text}')}" for text in texts)
        listed = ", ".join(text if self.kind == "number" else repr(text) for text in texts)
        return (
            f"{name!r} is {'; '.join(parts)}: {values} may mean 'not measured'. Read {it} as missing: {options} "
            f"(in Python missing={{{name!r}: [{listed}]}})"
        )


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text) if text.isprintable() else "NAME=VALUE"


def cell_text(value: float, kind: Kind) -> str:
    """A number as it is written in a table; a date, in microseconds since 1970, in the ISO format."""
    if kind == "date":
        return str(np.datetime64(int(value), "us")).removesuffix("T00:00:00.000000")
    return f"{value:.0f}" if value == np.trunc(value) and abs(value) < 2**53 else repr(float(value))


def find_sentinels(values: npt.NDArray[Any], kind: Kind) -> Sentinels | None:
    """Look for sentinels among the cells of a column as `cells.read` has them.

    Columns both ends of which stand in few rows, as those of most do, are passed over without sorting.
    """
    if kind == "date":
        values = np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64).astype(np.float64))
    known = is_usable(values)
    values = values if known.all() else values[known]
    least = _least_rows(len(values))
    if len(values) < least + _FEW_OTHERS or not may_hold_sentinels(values[:, None])[0]:
        return None
    different, rows = np.unique(values.astype(np.float64), return_counts=True)
    found = list[Sentinel]()
    while len(found) < _MOST and (one := _of_an_end(different, rows, least, kind)) is not None:
        found.append(one)
        kept = different != one.value
        different, rows = different[kept], rows[kept]
    # The bound that is shown is that of the cells that are left.
    left = [one._replace(nearest=float(different[0] if one.value < different[0] else different[-1])) for one in found]
    return Sentinels(kind, tuple(left), len(values)) if found else None


def _least_rows(n_rows: Any) -> Any:
    return np.maximum(FEWEST_ROWS, np.ceil(LEAST_SHARE * n_rows)).astype(np.intp)


def may_hold_sentinels(values: npt.NDArray[Any]) -> Flags:
    """Which columns of a block of numbers, shape (n, k), have an end that stands in rows enough."""
    known = is_usable(values)
    least = _least_rows(known.sum(axis=0))
    lowest = values.min(axis=0, where=known, initial=np.inf)
    highest = values.max(axis=0, where=known, initial=-np.inf)
    rows = np.maximum((values == lowest).sum(axis=0), (values == highest).sum(axis=0))
    return np.asarray(rows >= least)


def _of_an_end(different: Array, rows: npt.NDArray[np.intp], least: int, kind: Kind) -> Sentinel | None:
    """The sentinel at one of the ends of the different values, in order, if there is one."""
    for sign in (1.0, -1.0):
        values, counts = (different, rows) if sign > 0 else (-different[::-1], rows[::-1])
        if len(values) < 4 or counts[0] < least or counts[1:].sum() < _FEW_OTHERS:
            continue
        end = sign * float(values[0])
        is_negative = kind == "number" and sign > 0 and -end in _CODES and (values[1:] >= 0).sum() >= _NEXT
        if (is_negative and _are_codes(values[values < 0])) or _is_isolated(values, counts, end, kind):
            return Sentinel(end, int(counts[0]), sign * float(values[1]))
    return None


def _are_codes(negative: Array) -> bool:
    return len(negative) <= _MOST and bool(np.isin(-negative, _CODES).all())


def _is_isolated(values: Array, counts: npt.NDArray[np.intp], end: float, kind: Kind) -> bool:
    """Whether the first of some values in order is far from the others; `end` is how the table has it."""
    nines = kind == "number" and end > 9 and set(cell_text(end, kind)) == {"9"}
    others, n_others = values[1:], counts[1:].sum()
    gap = others[0] - values[0]
    if len(others) < _NEXT:
        return nines and bool(gap >= STEPS * (others[-1] - others[0]))
    middle = others[np.searchsorted(np.cumsum(counts[1:]), n_others / 2.0)]
    step = np.diff(others[:_STEPS]).max()
    if gap < STEPS * step or gap < REACH * (middle - values[0]):
        return False
    return nines or bool(counts[0] < n_others and counts[0] >= SPIKE * counts[1 : 1 + _NEXT].mean())
