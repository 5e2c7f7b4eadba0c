"""The nearest flips: the smallest changes of one or two columns that change a decision.

Candidates are enumerated, scored all at once, and the nearest that turn the decision are moved as near as they still
turn it. Every flip that is reported was scored as a record with the changed cells.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError
from qmedoid.model.contract import Levels
from qmedoid.model.explanation import column_contributions
from qmedoid.model.table import Decisions, TableModel
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.encode import encode_batch
from qmedoid.explanations.candidates import Candidates, cell_array, column_candidates, encoded_cells

MOST_COLUMNS = 30
"""Columns that are tried, those that contribute most."""
_FEWEST, _MOST_CELLS = 24, 256
# Records that are scored for one column at a time, for each medoid.
_WORK = 2**18
_STEPS = 24
_PAIRED_COLUMNS = 8
_PAIRED_SIZES = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
_N_SINGLE = 3


class Change(NamedTuple):
    """A cell that is changed: the column, the cell as it is and as it would be."""

    column: str
    cell: Any
    to: Any


@dataclass(frozen=True)
class Flip:
    """Changes that lead to another decision.

    Attributes
    ----------
    changes : tuple of Change
        One or two.
    prediction : label
        The class that would be decided for.
    margin : float
        By how much.
    probability : float or None
        Of that class.
    size : float
        How large the changes are: of each the share of the training rows between the cells, or one half for another
        level.
    """

    changes: tuple[Change, ...]
    prediction: Any
    margin: float
    probability: float | None
    size: float

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, fit for JSON."""
        return {**vars(self), "changes": [change._asdict() for change in self.changes]}


class _Search:
    """One record, its decision, and what becomes of it with other cells."""

    def __init__(self, model: TableModel, record: pa.Table) -> None:
        self.model, self.record = model, record
        self.encoded = encode_batch(record, model.contract, model.encodings)
        self.decided = model.decide(self.encoded)
        self.starts = np.searchsorted(model.source, np.arange(len(model.encodings)))

    def tried(self, changes: Sequence[tuple[int, list[Any]]], n: int) -> Decisions:
        """Decisions about n copies of the record, in which some columns have other cells."""
        columns = [np.repeat(np.asarray(column, dtype=np.float64), n) for column in self.encoded]
        for place, cells in changes:
            start = int(self.starts[place])
            for offset, values in enumerate(encoded_cells(self.model, place, cells)):
                columns[start + offset] = np.asarray(values, dtype=np.float64)
        return self.model.decide(columns)

    def turned(self, decided: Decisions) -> Any:
        """Which of the copies are decided otherwise."""
        return decided.codes != self.decided.codes[0]


def nearest_flips(model: TableModel, record: pa.Table, *, fixed: Collection[str] = ()) -> list[Flip]:
    """The smallest changes of one column, and of two where these are smaller, that change the decision.

    Parameters
    ----------
    model : TableModel
    record : pyarrow.Table
        One row, under the names of the contract.
    fixed : collection of str
        Columns that cannot change.

    Returns
    -------
    list of Flip
        The smallest first; empty where no change that was tried leads to another class.
    """
    check_fixed(model, fixed)
    search = _Search(model, record)
    cells = plain_cells(model, record)
    columns = _columns(search, fixed)
    work = _WORK // max(64, 0 if model.method is None else len(model.method.medoid_rows))
    most = min(_MOST_CELLS, max(_FEWEST, work // max(1, len(columns))))
    candidates = [one for place in columns if (one := column_candidates(model, place, cells[place], most)) is not None]
    singles, reached = [], []
    for one in candidates:
        decided = search.tried([(one.place, one.cells)], len(one.cells))
        singles += _nearest_of(search, one, cells[one.place], search.turned(decided))
        reached.append((one, _against(search, decided)))
    singles = sorted(singles, key=_by_size)
    pairs = _paired(search, reached, cells, singles[0].size if singles else math.inf)
    return sorted([*_one_each(singles)[:_N_SINGLE], *pairs], key=_by_size)


def check_fixed(model: TableModel, fixed: Collection[str]) -> None:
    """Refuse names that are no columns of the contract."""
    for name in fixed:
        if name not in model.contract.names:
            hint = did_you_mean(name, model.contract.names)
            raise ParameterError(f"There is no column {name!r} that could be fixed.{hint}")


def plain_cells(model: TableModel, record: pa.Table) -> list[Any]:
    """Cells by column of the contract: numbers, dates as days since 1970, levels, truth values; None where missing."""
    encoded = encode_batch(record, model.contract, model.encodings)
    known = [name for name in model.contract.names if name in record.column_names]
    plain = plain_records(record.select(known))[0] if known else {}
    cells: list[Any] = []
    for place, (column, encoding) in enumerate(zip(model.contract.columns, model.encodings, strict=True)):
        start = int(np.searchsorted(model.source, place))
        if isinstance(encoding, Levels):
            cells.append(_level(encoding, plain.get(column.name)))
            continue
        outputs = encoding.outputs
        absent = plain.get(column.name) is None
        if outputs[-1] == " is missing":
            absent = float(encoded[start + len(outputs) - 1][0]) == 1.0
        value = float(encoded[start + (outputs.index(": days") if ": days" in outputs else 0)][0])
        cells.append(None if absent else bool(value) if column.kind == "boolean" else value)
    return cells


def _level(encoding: Levels, cell: Any) -> str | None:
    return None if cell is None else str(cell).strip() or None


def _columns(search: _Search, fixed: Collection[str]) -> list[int]:
    """Columns to try: those that the model reads and that may change, the largest contributions first."""
    model = search.model
    free = [place for place in model.layout.used if model.contract.names[place] not in fixed]
    if len(free) <= MOST_COLUMNS or model.method is None:
        return free
    other = model.decision.runners_up(search.decided.scores, search.decided.codes)
    sizes = np.abs(column_contributions(model, search.encoded, search.decided.codes, other)[0])
    return sorted(free, key=lambda place: -sizes[place])[:MOST_COLUMNS]


def _against(search: _Search, decided: Decisions) -> Array:
    """By how much the class that is decided for now is ahead of the best other one, for every copy."""
    code = int(search.decided.codes[0])
    scores = search.model.decision.biased(decided.scores)
    others = np.delete(scores, code, axis=1).max(axis=1)
    return np.asarray(scores[:, code] - others)


def _nearest_of(search: _Search, one: Candidates, cell: Any, turned: Any) -> list[Flip]:
    """The nearest candidates that turn the decision: on either side of a number, else the first level of each class."""
    places = np.flatnonzero(turned)
    if not len(places):
        return []
    if not one.ordered or cell is None:
        found = [_flip(search, [(one, one.cells[place], float(one.sizes[place]))]) for place in places[:MOST_COLUMNS]]
        return [flip for flip in found if flip is not None]
    flips = []
    values = np.array(one.cells)
    for side in (places[values[places] < cell][-1:], places[values[places] > cell][:1]):
        for place in side:
            value = _moved_near(search, one, float(cell), float(values[place]))
            flip = _flip(search, [(one, value, _size(search, one, float(cell), value))])
            flips += [] if flip is None else [flip]
    return flips


def _size(search: _Search, one: Candidates, cell: float, value: float) -> float:
    from qmedoid.explanations.candidates import sizes

    first = int(search.starts[one.place])
    encoding: Any = search.model.encodings[one.place]
    outputs = encoding.outputs
    first += outputs.index(": days") if ": days" in outputs else 0
    return float(sizes(search.model, first, cell, np.array([value]))[0])


def _moved_near(search: _Search, one: Candidates, cell: float, value: float) -> float:
    """A value between the cell and one that turns the decision, as near to the cell as it still turns it, and short."""
    near, far = cell, value
    for _ in range(_STEPS):
        middle = 0.5 * (near + far)
        if one.whole:
            middle = float(np.round(middle))
        if middle in (near, far):
            break
        if search.turned(search.tried([(one.place, [middle])], 1))[0]:
            far = middle
        else:
            near = middle
    return _shortened(search, one, cell, far)


def _shortened(search: _Search, one: Candidates, cell: float, value: float) -> float:
    """The value with the fewest digits that still turns the decision, rounded away from the cell."""
    if one.whole:
        return value
    up = value > cell
    for digits in range(1, 16):
        step = 10.0 ** (math.floor(math.log10(abs(value - cell))) + 2 - digits) if value != cell else 1.0
        rounded = (math.ceil if up else math.floor)(value / step) * step
        rounded = float(f"{rounded:.12g}")
        if rounded != cell and search.turned(search.tried([(one.place, [rounded])], 1))[0]:
            return rounded
    return value


def _paired(
    search: _Search, reached: list[tuple[Candidates, Array]], cells: list[Any], smallest: float
) -> list[Flip]:
    """The smallest change of two columns, where it is smaller than that of one."""
    best = sorted(reached, key=lambda one: float(one[1].min()))[:_PAIRED_COLUMNS]
    picks = [(one, _steps(one, against)) for one, against in best]
    tries = [
        ((a, i), (b, j))
        for (a, of_a), (b, of_b) in combinations(picks, 2)
        for i in of_a
        for j in of_b
        if a.sizes[i] + b.sizes[j] < smallest
    ]
    by_columns: dict[tuple[int, int], list[Any]] = {}
    for pair in tries:
        by_columns.setdefault((pair[0][0].place, pair[1][0].place), []).append(pair)
    found: list[tuple[float, Any]] = []
    for (p, q), own in by_columns.items():
        first = [a.cells[i] for (a, i), _ in own]
        second = [b.cells[j] for _, (b, j) in own]
        turned = search.turned(search.tried([(p, first), (q, second)], len(own)))
        found += [(float(own[k][0][0].sizes[own[k][0][1]] + own[k][1][0].sizes[own[k][1][1]]), own[k]) for k in np.flatnonzero(turned)]
    for _, pair in sorted(found, key=lambda one: one[0])[:3]:
        flip = _flip(search, [(one, one.cells[i], float(one.sizes[i])) for one, i in pair])
        if flip is not None:
            return [flip]
    return []


def _steps(one: Candidates, against: Array) -> Codes:
    """A few candidates of a column: up to each of some sizes the one that goes farthest against the decision."""
    picked = []
    for size in _PAIRED_SIZES:
        within = np.flatnonzero(one.sizes <= size)
        if len(within):
            picked.append(int(within[against[within].argmin()]))
    return np.unique(np.array(picked, dtype=np.intp))


def _flip(search: _Search, changes: Sequence[tuple[Candidates, Any, float]]) -> Flip | None:
    """A flip, after it was scored as a record with the changed cells; None where it does not turn the decision."""
    model, changed, said = search.model, search.record, []
    for one, value, _ in changes:
        name = model.contract.columns[one.place].name
        cells = cell_array(model, one.place, [value])
        before = plain_records(changed.select([name]))[0][name] if name in changed.column_names else None
        field = pa.field(name, cells.type)
        place = changed.schema.get_field_index(name)
        changed = changed.append_column(field, cells) if place < 0 else changed.set_column(place, field, cells)
        after = value if one.whole and not isinstance(cells.type, pa.TimestampType) else None
        after = plain_records(pa.table({name: cells}))[0][name] if after is None else int(after)
        said.append(Change(name, before, after))
    decided = model.decide(encode_batch(changed, model.contract, model.encodings))
    code = int(decided.codes[0])
    if code == int(search.decided.codes[0]):
        return None
    probability = None
    if model.decision.probabilistic:
        probability = float(model.decision.probabilities(decided.scores)[0, code])
    margin = float(abs(decided.margins[0]))
    total = float(sum(size for *_, size in changes))
    return Flip(tuple(said), model.decision.classes[code], margin, probability, total)


def _by_size(flip: Flip) -> tuple[float, int, tuple[str, ...]]:
    return flip.size, len(flip.changes), tuple(change.column for change in flip.changes)


def _one_each(flips: list[Flip]) -> list[Flip]:
    """The first flip of every column."""
    found: dict[str, Flip] = {}
    for flip in flips:
        found.setdefault(flip.changes[0].column, flip)
    return list(found.values())
