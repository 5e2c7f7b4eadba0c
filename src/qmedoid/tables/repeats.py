"""People who come back: columns and rows that give rows of one person away, before any fit.

Rows of one customer, machine or patient share their class, and mostly much else. Where some of them are held out and
others are not, figures are those of customers that are known, not those of new ones.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.near_rows import class_agreement, near_groups
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, first_rows, numbered, ranks
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables.kinds import names_things
from qmedoid.tables.roles import quoted

# Values of a column that repeat, at least; fewer where its name is one of people or things; some for each class; and
# those that hold one class which is not the most frequent one.
_FEWEST, _FEWEST_NAMED, _FEWEST_PER_CLASS, _OTHERS = 20, 12, 3, 4
# Rows that repeat a value, at least, as a share.
_LEAST_ROWS = 0.1
# How much more often than by chance rows of one value share their class, by two signs: a name of people or things, and
# other columns that resemble each other within a value.
_BARS = {(False, False): 0.9, (True, False): 0.85, (False, True): 0.75, (True, True): 0.5}
_RESEMBLES = 0.15
# Where numbers next to each other have in common at least this share of what equal ones have, they say something.
_SMOOTH = 0.75
# Values whose rows are all of one class, as a share, from which on rows of one value "share" their class.
_NEARLY_ALL = 0.9
# Columns that are compared between rows; of more every second, third, ... one.
_MOST_COLUMNS = 200
# Pairs of neighboring rows that are compared; what they share with each other, and their distance as a share of that
# of other rows of their class; changes of the class at least.
_PAIRS, _SAME, _NEARER, _CHANGES = 100_000, 0.6, 0.8, 20
_SORTED, _KEYS, _FEW_PAIRS = 0.99, 3, 100


class Repeat(NamedTuple):
    """What says that rows belong together: a column, or None for rows that are nearly equal or next to each other."""

    kind: Literal["shared_class", "near_rows", "runs"]
    groups: Codes
    column: str | None = None
    n_values: int = 0
    n_pure: int = 0
    is_sure: bool = True  # not of runs, and not of a column that may as well give the class away

    def words(self, *, python: bool = False) -> tuple[str, str]:
        """What was found, and what to do about it."""
        if self.kind == "near_rows":
            found, _, done = str(equal_rows_note(self.groups, is_near=True)).partition(": ")
            return found, done
        if self.kind == "shared_class":
            name = str(self.column)
            how = f"groups=X[{name!r}]" if python else f"--group-column {quoted(name)}"
            share = "share" if self.n_pure >= _NEARLY_ALL * self.n_values else "mostly share"
            other = "" if self.is_sure else ", or ignore it if it is not known before the class is"
            return (
                f"rows of one {name!r} {share} their class (all rows of {self.n_pure:,} of the {self.n_values:,} "
                "values that repeat)",
                f"hold them out together with {how}{other}",
            )
        how = "groups=, or pass later rows as X_val"
        how = how if python else "--group-column, or hold out the last rows with --time-column"
        return (
            "neighboring rows of the table resemble each other far more than other rows of their class, and share it, "
            "as runs of one machine or visits of one person do",
            f"say which rows belong together with {how}",
        )

    def message(self, *, python: bool = False) -> str:
        """Both in one sentence."""
        return ": ".join(self.words(python=python))


def find_repeats(
    table: pa.Table,
    columns: Sequence[Column],
    places: Codes,
    codes: Codes,
    target: str | None,
    order: Codes | None = None,
) -> list[Repeat]:
    """What in a table says that its rows belong together, and share their class.

    `columns` are learned from, `places` (n, M) the ranks of their cells, and `codes` those of the classes; `order` of
    the rows is that of the file. Columns come first, those that say it best before others.
    """
    if len(codes) < 2 * _FEWEST_NAMED or codes.max() == 0:
        return []
    found, plain = list[Repeat](), list[npt.NDArray[Any]]([*places.T])
    for block, values in cells.value_blocks(table, columns):
        # Numbers with fractions as they are, all else as ranks.
        for number in np.flatnonzero((np.abs(values - np.trunc(values)) > 0).any(axis=0)).tolist():
            plain[block[number]] = values[:, number]
    near = near_groups(plain, codes)
    copies = equal_rows(places) if near is None else near
    first = first_rows(copies)
    for rows, named_only in ((first, False), (np.arange(len(codes)), True)):
        if found or (named_only and len(first) == len(codes)):
            break
        found = _columns(table, columns, plain, codes, rows, target, named_only=named_only)
    if near is not None:
        found.append(Repeat("near_rows", near))
    elif not found:
        step = -(-len(columns) // _MOST_COLUMNS)
        runs = _runs(plain[::step], [one.kind == "category" for one in columns[::step]], codes, copies, order)
        found += [] if runs is None else [runs]
    return found


def _columns(
    table: pa.Table,
    columns: Sequence[Column],
    plain: Sequence[npt.NDArray[Any]],
    codes: Codes,
    rows: Codes,
    target: str | None,
    *,
    named_only: bool,
) -> list[Repeat]:
    """Columns whose values repeat, and within which the class hardly ever changes, by some of the rows."""
    drafts, found = {column.name: column for column in columns}, []
    measured = {column.name for column, cells_of in zip(columns, plain, strict=True) if cells_of.dtype.kind == "f"}
    step = -(-len(columns) // _MOST_COLUMNS)
    for name in (name for name in table.column_names if name != target and name not in measured):
        named, draft = names_things(name), drafts.get(name)
        if (named_only and not named) or (draft is not None and draft.kind not in ("number", "category")):
            continue
        values, is_rising = _values(table.column(name), draft)
        known = rows[values[rows] >= 0]
        groups, classes = values[known], codes[known]
        excess, n_groups, n_pure, n_others = class_agreement(groups, classes)
        sizes = np.bincount(groups, minlength=1)
        fewest = max(_FEWEST_NAMED if named else _FEWEST, _FEWEST_PER_CLASS * (int(codes.max()) + 1))
        enough = n_groups >= fewest and n_others >= _OTHERS
        if not enough or sizes[sizes > 1].sum() < _LEAST_ROWS * len(rows) or excess < _BARS[named, True]:
            continue
        pairs = zip(plain[::step], columns[::step], strict=True)
        others = [(one[known], column) for one, column in pairs if column.name != name]
        alike, is_smooth = _resemblance(groups, classes, others), False
        if is_rising and class_agreement(groups // 2, classes)[0] > _SMOOTH * excess:
            is_smooth = alike < _RESEMBLES or _resemblance(groups // 2, classes, others) > _SMOOTH * alike
        if not is_smooth and excess >= _BARS[named, alike >= _RESEMBLES]:
            whole = np.where(values >= 0, values, values.max() + 1 + np.arange(len(values)))
            is_sure = named or alike >= _RESEMBLES
            rank = (not named, -round(excess, 2), n_groups)
            found.append((rank, Repeat("shared_class", numbered(whole), name, n_groups, n_pure, is_sure)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _values(column: pa.ChunkedArray, draft: Column | None) -> tuple[Codes, bool]:
    """Values that may name people as numbers from 0 up, -1 where there is none; and whether they rise with numbers."""
    kind, nothing = column.type, (np.full(len(column), -1), False)
    is_text = pa.types.is_dictionary(kind) or kind in cells.TEXT_TYPES
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return nothing
    array = cells.texts(column) if is_text else cells.one_chunk(column)
    encoded = array.dictionary_encode()
    if not _FEWEST_NAMED <= len(encoded.dictionary) < len(column):
        return nothing
    if is_text and (draft is None or draft.kind == "category"):
        return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp), False
    numbers = cells.floats(cells.read(column, draft or "number").values)
    known = cells.is_usable(numbers)
    if (numbers[known] != np.trunc(numbers[known])).any():
        return nothing
    return np.where(known, ranks(np.where(known, numbers, np.nan)[:, None])[:, 0], -1), True


def _resemblance(groups: Codes, classes: Codes, others: Sequence[tuple[npt.NDArray[Any], Column]]) -> float:
    """How much nearer to each other rows of one group are than rows of one class: a mean over columns, 1 if equal."""
    found = []
    for column, draft in others:
        is_level = draft.kind == "category"
        values = column if is_level else ranks(column[:, None])[:, 0].astype(np.float64)
        of_class = _spread(classes, values, is_level=is_level)
        if of_class > 0:
            found.append(1.0 - _spread(groups, values, is_level=is_level) / of_class)
    return float(np.mean(found)) if found else 0.0


def _spread(groups: Codes, values: npt.NDArray[Any], *, is_level: bool) -> float:
    """Mean squared distance of rows from the mean of their group; of levels, of their indicators."""
    sizes = np.bincount(groups)
    if is_level:
        cells_of, counts = np.unique(groups * (int(values.max()) + 1) + values, return_counts=True)
        left = len(values) - float((counts**2 / sizes[cells_of // (int(values.max()) + 1)]).sum())
    else:
        sums = np.bincount(groups, values - values.mean())
        left = float(((values - values.mean()) ** 2).sum() - (sums**2 / np.maximum(sizes, 1)).sum())
    return max(left, 0.0) / max(len(values) - int((sizes > 0).sum()), 1)


def _runs(
    plain: Sequence[npt.NDArray[Any]], is_level: Sequence[bool], codes: Codes, copies: Codes, order: Codes | None
) -> Repeat | None:
    """Whether neighbors in a file resemble each other, beyond what the columns that it is sorted by explain."""
    rows = first_rows(copies)
    rows = rows if order is None else rows[np.argsort(order[rows], kind="stable")]
    some = np.arange(len(rows) - 1)[:: -(-len(rows) // _PAIRS)]
    before, after = rows[some], rows[some + 1]
    same = codes[before] == codes[after]
    shares = np.bincount(codes[rows]) / max(len(rows), 1)
    chance = float(shares @ shares)
    if len(some) < _FEW_PAIRS or (~same).sum() < _CHANGES or same.mean() - chance < _SAME * (1.0 - chance):
        return None
    known, other, rng = before[same], after[same], np.random.default_rng(0)
    random = np.empty_like(other)
    for code in np.unique(codes[known]):
        members = np.flatnonzero(codes[known] == code)
        random[members] = other[rng.permutation(members)]
    scaled = [column if level else _scaled(column) for column, level in zip(plain, is_level, strict=True)]
    keys = _sort_keys([one[other] - one[known] for one in scaled])
    near, far = (
        np.array([_steps(one, known, to, level).mean() for one, level in zip(scaled, is_level, strict=True)])
        for to in (other, random)
    )
    kept = (far > 0) & ~np.isin(np.arange(len(far)), keys)
    if not kept.any() or np.mean(near[kept] / far[kept]) > _NEARER:
        return None
    # A run ends where the class changes, or at a step that is more like one to any row of the class.
    lengths = np.zeros(len(rows) - 1)
    for place in np.flatnonzero(kept).tolist():
        lengths += _steps(scaled[place], rows[:-1], rows[1:], is_level[place]) / kept.sum()
    ends = (codes[rows[1:]] != codes[rows[:-1]]) | (lengths > (near[kept].mean() + far[kept].mean()) / 2.0)
    of_copy = np.empty(len(rows), dtype=np.intp)
    of_copy[copies[rows]] = np.append(0, np.cumsum(ends))
    return Repeat("runs", numbered(of_copy[copies]), is_sure=False)


def _scaled(column: npt.NDArray[Any]) -> Array:
    places = ranks(column[:, None])[:, 0]
    return np.asarray(places / max(int(places.max()), 1))


def _steps(column: npt.NDArray[Any], some: Codes, others: Codes, is_level: bool) -> Array:
    """Distances of the cells of some rows from those of others."""
    different = column[some] != column[others] if is_level else np.abs(column[some] - column[others])
    return np.asarray(different, dtype=np.float64)


def _sort_keys(steps: Sequence[npt.NDArray[Any]]) -> list[int]:
    """Columns that a file is sorted by, one within the other, by the steps from row to row."""
    keys, same = list[int](), np.ones(len(steps[0]), dtype=np.bool_)
    for _ in range(_KEYS):
        if same.sum() < _FEW_PAIRS:
            break
        new = []
        for place in (place for place in range(len(steps)) if place not in keys):
            step = steps[place][same]
            if max((step >= 0).mean(), (step <= 0).mean()) >= _SORTED:
                new.append(place)
        if not new:
            break
        keys += new
        for place in new:
            same &= steps[place] == 0
    return keys
