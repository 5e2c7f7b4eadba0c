"""The nearest flips: the smallest changes of one column that change a decision.

Cells that a column might hold instead are enumerated and scored all at once, and the nearest that turn the decision are
moved as near as they still turn it. Every flip that is reported was scored as a record with the changed cell.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Flags
from qmedoid.model.contract import Column, Dates, Levels
from qmedoid.model.importance import column_contributions
from qmedoid.model.model import Model
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import with_missing_values_out
from qmedoid.tables.encode import encode_batch, encode_column

OTHER_LEVEL = 0.5
"""What another level or truth value counts, in shares of the training rows that a number passes."""
MOST_COLUMNS, MOST_LEVELS, N_FLIPS = 30, 64, 3
"""Columns that are tried, those that contribute most; levels that are tried of each; and flips that are reported."""
_FEWEST, _MOST_CELLS = 16, 256
# Records that are scored for one column at a time, for each medoid.
_WORK = 2**18
# Even steps between the smallest and the largest value, and between a cell and one that turns the decision.
_STEPS = 64
_MICROSECONDS_PER_DAY = 86_400_000_000


def known_values(model: Model, encoded: int) -> Array | None:
    """Smallest and largest training value of an encoded column, and the edges of its bins; None where not known."""
    novelty = model.novelty
    if novelty is None or encoded not in novelty.limited:
        return None
    limited = int(np.searchsorted(novelty.limited, encoded))
    values = [np.array([novelty.lowest[limited], novelty.highest[limited]])]
    if encoded in novelty.binned:
        binned = int(np.searchsorted(novelty.binned, encoded))
        values.append(novelty.edges[novelty.offsets[binned] : novelty.offsets[binned + 1]])
    held = np.clip(np.concatenate(values), novelty.lowest[limited], novelty.highest[limited])
    return np.asarray(np.unique(held))


def sizes(model: Model, encoded: int, start: float | None, values: Array) -> Array:
    """Shares of the training rows between the start and each value; one half where the start is missing."""
    known = known_values(model, encoded)
    novelty = model.novelty
    if start is None or known is None or novelty is None:
        return np.full(len(values), OTHER_LEVEL)
    if encoded not in novelty.binned:
        return np.minimum(_in_widths(known, start, values), 1.0)
    place = int(np.searchsorted(novelty.binned, encoded))
    counts = novelty.counts[novelty.offsets[place] + place : novelty.offsets[place + 1] + place + 1]
    shares = np.concatenate([[0.0], np.cumsum(counts) / max(int(counts.sum()), 1)])
    # The first edge may be the smallest value itself: its bin below is empty then.
    heights = shares if len(known) == len(shares) else shares[-len(known) :]
    between = np.abs(np.interp(values, known, heights) - np.interp(start, known, heights))
    # Within one bin, and beyond the outer values, the distance breaks ties, however far a cell lies outside.
    away = _in_widths(known, start, values)
    return np.asarray(between + 1e-6 * away / (1.0 + away))


def _in_widths(known: Array, start: float, values: Array) -> Array:
    """Distances in units of the width of the training values."""
    width = float(known[-1] - known[0])
    return np.asarray(np.abs(values - start) / (width if width > 0 else 1.0))


class _FlipSearch:
    """One record, its decision, and what becomes of it with another cell."""

    def __init__(self, model: Model, record: pa.Table) -> None:
        self.model, self.record = model, record
        self.encoded = encode_batch(record, model.contract, model.encodings)
        self.decided = model.decide(self.encoded)
        self.code = int(self.decided.codes[0])
        self.starts = np.searchsorted(model.source, np.arange(len(model.encodings))).tolist()
        known = [name for name in model.contract.names if name in record.column_names]
        self.plain = plain_records(record.select(known))[0] if known else {}

    def value_of(self, place: int) -> int:
        """The encoded column that has the value of a column: itself, or the days of a date."""
        outputs = self.model.encodings[place].outputs
        return int(self.starts[place]) + (outputs.index(": days") if ": days" in outputs else 0)

    def cell(self, place: int) -> Any:
        """The cell of a column: a number, whole days since 1970, a level or a truth value; None where it is missing."""
        column, encoding = self.model.contract.columns[place], self.model.encodings[place]
        cell, outputs = self.plain.get(column.name), encoding.outputs
        if isinstance(encoding, Levels):
            return None if cell is None else str(cell).strip() or None
        absent = cell is None
        if outputs[-1] == " is missing":
            absent = float(self.encoded[self.starts[place] + len(outputs) - 1][0]) == 1.0
        value = float(self.encoded[self.value_of(place)][0])
        return None if absent else bool(value) if column.kind == "boolean" else value

    def turned(self, cells: Mapping[int, list[Any]]) -> list[Flags]:
        """For each column which of these cells lead to another class, one at a time."""
        lengths = [len(values) for values in cells.values()]
        columns = [np.repeat(np.asarray(column, dtype=np.float64), sum(lengths)) for column in self.encoded]
        ends = np.cumsum(lengths)
        for (place, values), length, end in zip(cells.items(), lengths, ends.tolist(), strict=True):
            column, encoding = self.model.contract.columns[place], self.model.encodings[place]
            for offset, encoded in enumerate(encode_column(_array(column, values), column, encoding)):
                columns[self.starts[place] + offset][end - length : end] = encoded
        return list(np.split(self.model.decide(columns).codes != self.code, ends[:-1])) if lengths else []


def nearest_flips(model: Model, record: pa.Table, *, fixed: Collection[str] = ()) -> list[dict[str, Any]]:
    """The smallest changes of one column that change the decision, each of another column.

    Parameters
    ----------
    model : Model
    record : pyarrow.Table
        One row, under the names of the contract.
    fixed : collection of str
        Columns that cannot change.

    Returns
    -------
    list of dict
        The smallest first; empty where no change that was tried leads to another class: the ``"column"``, its
        ``"cell"`` as it is, and ``"to"``, as it would be. That leads to the class ``"prediction"`` with a ``"margin"``
        and a ``"probability"`` (None without probabilities). ``"size"`` is how large the change is: the share of the
        training rows between the cells, or one half for another level.
    """
    search = _FlipSearch(model, with_missing_values_out(record, model.contract.columns))
    columns = [place for place in model.layout.used if model.contract.names[place] not in fixed]
    if len(columns) > MOST_COLUMNS and model.medoids is not None:
        other = model.decision.runners_up(search.decided.scores, search.decided.codes)
        added = np.abs(column_contributions(model, search.encoded, search.decided.codes, other)[0])
        columns = sorted(columns, key=lambda place: -added[place])[:MOST_COLUMNS]
    work = _WORK // max(64, 0 if model.medoids is None else len(model.medoids.numbers))
    most = min(_MOST_CELLS, max(_FEWEST, work // max(1, len(columns))))
    tried = {place: cells for place in columns if (cells := _cells(search, place, most))}
    nearest = list[tuple[float, int, Any]]()
    for (place, cells), turns in zip(tried.items(), search.turned(tried), strict=True):
        turning = [cell for cell, turn in zip(cells, turns.tolist(), strict=True) if turn]
        if turning:
            far = _sizes(search, place, turning)
            nearest.append((float(far.min()), place, turning[int(far.argmin())]))
    # Those that are moved nearer may change their order.
    first = {place: cell for _, place, cell in sorted(nearest, key=lambda one: one[:2])[: 2 * N_FLIPS]}
    flips = [_flip(search, place, cell) for place, cell in _moved_near(search, first).items()]
    found = sorted((one for one in flips if one), key=lambda one: (one["size"], one["column"]))
    return found[:N_FLIPS]


def _sizes(search: _FlipSearch, place: int, cells: list[Any]) -> Array:
    """How large the changes to these cells of a column are."""
    start, kind = search.cell(place), search.model.contract.columns[place].kind
    if start is None or kind in ("category", "boolean"):
        return np.full(len(cells), OTHER_LEVEL)
    return sizes(search.model, search.value_of(place), start, np.array(cells, dtype=np.float64))


def _moved_near(search: _FlipSearch, cells: dict[int, Any]) -> dict[int, Any]:
    """For each number or date that turns the decision the nearest that still does, with the fewest digits."""
    far, near, bounds = dict(cells), dict[int, Any](), dict[int, tuple[float, float]]()
    for place, value in cells.items():
        if search.model.contract.columns[place].kind in ("number", "date"):
            known, cell = known_values(search.model, search.value_of(place)), search.cell(place)
            assert known is not None, "its cells were tried"
            bounds[place] = low, high = float(known[0]), float(known[-1])
            # A cell is held between the smallest and the largest number that training rows reach.
            near[place] = value if cell is None else min(max(cell, low), high)
    for _ in range(2):
        steps = dict[int, list[Any]]()
        for place, start in near.items():
            values = np.linspace(start, far[place], _STEPS + 1)[1:-1].tolist()
            if isinstance(far[place], int):
                values = list(dict.fromkeys(map(round, values)))
            steps[place] = [value for value in values if value not in (start, far[place])]
        steps = {place: values for place, values in steps.items() if values}
        for (place, values), turns in zip(steps.items(), search.turned(steps), strict=True):
            first = int(turns.argmax()) if turns.any() else len(values)
            near[place] = values[first - 1] if first else near[place]
            far[place] = values[first] if first < len(values) else far[place]
    shorter = dict[int, list[Any]]()
    for place, (low, high) in bounds.items():
        cell = search.cell(place)
        if not isinstance(far[place], int) and far[place] != (start := low if cell is None else cell):
            shorter[place] = [one for one in _shorter(start, far[place]) if low <= one <= high] or [far[place]]
    for (place, values), turns in zip(shorter.items(), search.turned(shorter), strict=True):
        far[place] = next((value for value, turn in zip(values, turns, strict=True) if turn), far[place])
    return far


def _shorter(cell: float, value: float) -> list[float]:
    """A value rounded away from the cell, with more and more digits."""
    away, power = (math.ceil if value > cell else math.floor), math.floor(math.log10(abs(value - cell)))
    steps = [10.0**exponent for exponent in range(power - 1, power - 9, -1)]
    return [one for step in steps if (one := float(f"{away(value / step) * step:.12g}")) != cell]


def _flip(search: _FlipSearch, place: int, value: Any) -> dict[str, Any] | None:
    """A flip, after it was scored as a record with the changed cell; None where it does not turn the decision."""
    model, changed, column = search.model, search.record, search.model.contract.columns[place]
    name, cells, at = column.name, _array(column, [value]), search.record.schema.get_field_index(column.name)
    if with_missing_values_out(pa.table({name: cells}), [column]).column(0).null_count:
        return None  # rounded to a value that is read as missing
    if at >= 0 and pa.types.is_string(changed.schema.field(at).type):
        cells = _spelled(search, place, value) or cells
    changed = changed.append_column(name, cells) if at < 0 else changed.set_column(at, name, cells)
    after = value if pa.types.is_floating(cells.type) else plain_records(pa.table({name: cells}))[0][name]
    if pa.types.is_timestamp(cells.type):  # whole days are tried
        after = str(after).removesuffix("T00:00:00")
    decided = model.decide(encode_batch(changed, model.contract, model.encodings))
    code = int(decided.codes[0])
    if code == search.code:
        return None
    chances = model.decision.probabilities(decided.scores) if model.decision.probabilistic else None
    return {
        "column": name,
        "cell": search.plain.get(name),
        "to": after,
        "prediction": model.decision.classes[code],
        "margin": float(abs(decided.margins[0])),
        "probability": None if chances is None else float(chances[0, code]),
        "size": float(_sizes(search, place, [value])[0]),
    }


def _cells(search: _FlipSearch, place: int, most: int) -> list[Any]:
    """Cells to try in a column, at most `most`; none where nothing is known."""
    model, cell, encoded = search.model, search.cell(place), search.value_of(place)
    column, encoding = model.contract.columns[place], model.encodings[place]
    if isinstance(encoding, Levels):
        return [level for level in encoding.levels if level != cell][:MOST_LEVELS]
    if column.kind == "boolean":
        return [value for value in (False, True) if value not in (cell, *column.missing_numbers)]
    known = None if isinstance(encoding, Dates) and "days" not in encoding.parts else known_values(model, encoded)
    if known is None:
        return []
    low, high = float(known[0]), float(known[-1])
    # Values from the smallest to the largest that is known, even steps among them.
    landmarks = np.concatenate([part.landmarks(encoded) for part in model.parts])
    inner = landmarks[(landmarks > low) & (landmarks < high)]
    values = np.unique(np.concatenate([known, inner, np.linspace(low, high, min(_STEPS + 1, most))]))
    if len(values) > most:
        values = values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.intp))]
    is_whole = isinstance(encoding, Dates) or bool((known == np.round(known)).all())
    values = np.unique(np.round(values)) if is_whole else values
    missing = np.array(column.missing_numbers) / (_MICROSECONDS_PER_DAY if isinstance(encoding, Dates) else 1)
    values = values[(values >= low) & (values <= high) & (values != cell) & ~np.isin(values, missing)]
    return [round(value) for value in values.tolist()] if is_whole else list(values.tolist())


def _array(column: Column, cells: list[Any]) -> pa.Array:
    """Cells of a column as Arrow has them; dates are whole days since 1970."""
    if column.kind == "date":
        return pa.array([round(cell * _MICROSECONDS_PER_DAY) for cell in cells], pa.timestamp("us"))
    types = {"number": pa.float64(), "boolean": pa.bool_(), "category": pa.string()}
    return pa.array(cells, types[column.kind])


def _spelled(search: _FlipSearch, place: int, value: Any) -> pa.Array | None:
    """A number or date as its column spells it, such as 12.5 % or 15.03.2020; None where it would not be read so.

    Next to cells that are shown as they are in the table another unit or order would mislead.
    """
    from qmedoid.tables.numbers import spell

    column = search.model.contract.columns[place]
    if not column.spelling:
        return None
    if column.kind == "date":
        year, month, day = str(np.datetime64(value, "D")).split("-")
        form = "ymd" if column.spelling == "yyyymmdd" else column.spelling
        parts = {"y": year, "m": month, "d": day}
        text = "".join(parts.get(letter, letter) for letter in form.replace("yy", year[2:]))
    else:
        text = spell(value, column.spelling)
    read = encode_column(pa.array([text]), column, search.model.encodings[place])
    is_same = np.allclose(read[search.value_of(place) - search.starts[place]], value, rtol=1e-9, atol=0.0)
    return pa.array([text]) if is_same else None
