"""The nearest flips: the smallest changes of one or two columns that change a decision.

Cells that a column might hold instead are enumerated and scored all at once, and the nearest that turn the decision are
moved as near as they still turn it. Every flip that is reported was scored as a record with the changed cells.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.explain.documents import CellChangeDict, FlipDict
from qmedoid.model.contract import Column, Dates, Levels, split_spelling
from qmedoid.model.importance import column_contributions
from qmedoid.model.model import Model
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import is_text, with_missing_values_out, without_missing_values
from qmedoid.tables.encode import encode_batch, encode_column

OTHER_LEVEL = 0.5
"""What another level or truth value counts, in shares of the training rows that a number passes."""
MOST_COLUMNS = 30
"""Columns that are tried, those that contribute most."""
_FEWEST, _MOST_CELLS = 16, 256
# Records that are scored for one column at a time, for each medoid.
_WORK = 2**18
_STEPS = 12
_PAIRED_COLUMNS = 8
_PAIRED_SIZES = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
_N_SINGLE = 3
MOST_LEVELS = 64
_EVEN_STEPS = 65
_MICROSECONDS_PER_DAY = 86_400_000_000


def known_values(model: Model, encoded: int) -> Array | None:
    """Smallest and largest training value of an encoded column, and the edges of its bins; None where not known."""
    novelty = model.novelty
    if novelty is None or encoded not in novelty.limited:
        return None
    limited = int(np.searchsorted(novelty.limited, encoded))
    values = [np.array([novelty.lowest[limited], novelty.highest[limited]])]
    if encoded in novelty.binned:
        values.append(novelty.bin_edges(int(np.searchsorted(novelty.binned, encoded))))
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
    edges = np.unique(np.concatenate([known[:1], novelty.bin_edges(place), known[-1:]]))
    counts = novelty.counts[novelty.offsets[place] + place : novelty.offsets[place + 1] + place + 1]
    shares = np.concatenate([[0.0], np.cumsum(counts) / max(int(counts.sum()), 1)])
    # The first edge may be the smallest value itself: its bin below is empty then.
    heights = shares if len(edges) == len(shares) else shares[-len(edges) :]
    between = np.abs(np.interp(values, edges, heights) - np.interp(start, edges, heights))
    # Within one bin, and beyond the outer values, the distance breaks ties, however far a cell lies outside.
    away = _in_widths(known, start, values)
    return np.asarray(between + 1e-6 * away / (1.0 + away))


def _in_widths(known: Array, start: float, values: Array) -> Array:
    """Distances in units of the width of the training values."""
    width = float(known[-1] - known[0])
    return np.asarray(np.abs(values - start) / (width if width > 0 else 1.0))


class CellChoices(NamedTuple):
    """Cells to try in one column.

    Attributes
    ----------
    place, encoded : int
        Of the column in the contract, and of the encoded column that is changed.
    cell : object
        The one of the record: a number, whole days since 1970, a level or a truth value; None where it is missing.
    cells : list
        Others; numbers and dates in rising order.
    sizes : ndarray of shape (k,)
        How large each change is: the share of the training rows that lie between, or one half for another level.
    is_ordered : bool
        Whether a cell between two of them, or between one and that of the record, can be tried as well.
    is_whole : bool
        Of numbers, whether all that is known of the column are whole numbers.
    """

    place: int
    encoded: int
    cell: Any
    cells: list[Any]
    sizes: Array
    is_ordered: bool = False
    is_whole: bool = False


class _FlipSearch:
    """One record, its decision, and what becomes of it with other cells."""

    def __init__(self, model: Model, record: pa.Table) -> None:
        self.model, self.record = model, record
        self.encoded = encode_batch(record, model.contract, model.encodings)
        self.decided = model.decide(self.encoded)
        self.starts = np.searchsorted(model.source, np.arange(len(model.encodings))).tolist()
        known = [name for name in model.contract.names if name in record.column_names]
        self.plain = plain_records(record.select(known))[0] if known else {}

    def cell(self, place: int) -> Any:
        """The cell of a column of the contract, as `CellChoices` has it."""
        column, encoding = self.model.contract.columns[place], self.model.encodings[place]
        cell, outputs, start = self.plain.get(column.name), encoding.outputs, self.starts[place]
        if isinstance(encoding, Levels):
            return None if cell is None else str(cell).strip() or None
        value = float(self.encoded[start + (outputs.index(": days") if ": days" in outputs else 0)][0])
        absent = cell is None
        if outputs[-1] == " is missing":
            absent = float(self.encoded[start + len(outputs) - 1][0]) == 1.0
        return None if absent else bool(value) if column.kind == "boolean" else value

    def tried(self, blocks: Sequence[Mapping[int, list[Any]]]) -> tuple[list[Flags], list[Array]]:
        """Which copies of the record are decided otherwise, block by block, and how far ahead the class of now is.

        A block has other cells in some columns.
        """
        if not blocks:
            return [], []
        lengths = [len(next(iter(block.values()))) for block in blocks]
        columns = [np.repeat(np.asarray(column, dtype=np.float64), sum(lengths)) for column in self.encoded]
        ends = np.cumsum(lengths)
        for block, length, end in zip(blocks, lengths, ends.tolist(), strict=True):
            for place, cells in block.items():
                column, encoding = self.model.contract.columns[place], self.model.encodings[place]
                for offset, values in enumerate(encode_column(_array(column, cells), column, encoding)):
                    columns[self.starts[place] + offset][end - length : end] = values
        decided, code = self.model.decide(columns), int(self.decided.codes[0])
        scores = self.model.decision.biased(decided.scores)
        ahead = scores[:, code] - np.delete(scores, code, axis=1).max(axis=1)
        return list(np.split(decided.codes != code, ends[:-1])), list(np.split(ahead, ends[:-1]))


def nearest_flips(model: Model, record: pa.Table, *, fixed: Collection[str] = ()) -> list[FlipDict]:
    """The smallest changes of one column, and of two where these are smaller, that change the decision.

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
        The smallest first; empty where no change that was tried leads to another class. ``"changes"`` are one or two of
        ``"column"``, ``"cell"`` as it is, and ``"to"``, as it would be. They lead to the class ``"prediction"`` with a
        ``"margin"`` and a ``"probability"`` (None without probabilities). ``"size"`` is how large they are: of each the
        share of the training rows between the cells, or one half for another level.
    """
    search = _FlipSearch(model, with_missing_values_out(record, model.contract.columns))
    columns = [place for place in model.layout.used if model.contract.names[place] not in fixed]
    if len(columns) > MOST_COLUMNS and model.medoids is not None:
        # Those that contribute most.
        other = model.decision.runners_up(search.decided.scores, search.decided.codes)
        added = np.abs(column_contributions(model, search.encoded, search.decided.codes, other)[0])
        columns = sorted(columns, key=lambda place: -added[place])[:MOST_COLUMNS]
    work = _WORK // max(64, 0 if model.medoids is None else len(model.medoids.numbers))
    most = min(_MOST_CELLS, max(_FEWEST, work // max(1, len(columns))))
    choices = [one for place in columns if (one := _choices(search, place, most)) is not None]
    if not choices:
        return []
    turned, against = search.tried([{one.place: one.cells} for one in choices])
    singles = _singles(search, choices, turned)
    pairs = _paired(search, list(zip(choices, against, strict=True)), singles[0]["size"] if singles else math.inf)
    return sorted([*singles, *pairs], key=_by_size)


def _by_size(flip: FlipDict) -> tuple[float, int, list[str]]:
    return flip["size"], len(flip["changes"]), [change["column"] for change in flip["changes"]]


def _singles(search: _FlipSearch, choices: list[CellChoices], turned: list[Flags]) -> list[FlipDict]:
    """The nearest changes of one column, each of another one: on either side of a number, else the next level."""
    found: list[tuple[float, int, CellChoices, Any]] = []
    for number, (one, turns) in enumerate(zip(choices, turned, strict=True)):
        places = np.flatnonzero(turns)
        if one.is_ordered:
            values = np.array(one.cells, dtype=np.float64)[places]
            places = np.concatenate([places[values < one.cell][-1:], places[values > one.cell][:1]])
        found += [(float(one.sizes[place]), number, one, one.cells[place]) for place in places]
    nearest = sorted(found, key=lambda one: one[:2])[: 2 * _N_SINGLE]
    moved = _moved_near(search, [(one, value) for _, _, one, value in nearest])
    flips = []
    for (size, _, one, before), value in zip(nearest, moved, strict=True):
        if value != before:
            size = float(sizes(search.model, one.encoded, one.cell, np.array([value]))[0])
        flips.append(_flip(search, [(one, value, size)]))
    each: dict[str, FlipDict] = {}
    for flip in sorted((flip for flip in flips if flip is not None), key=_by_size):
        each.setdefault(flip["changes"][0]["column"], flip)
    return list(each.values())[:_N_SINGLE]


def _moved_near(search: _FlipSearch, flips: list[tuple[CellChoices, Any]]) -> list[Any]:
    """For each value that turns the decision the one nearest to the cell that still does, with the fewest digits.

    All are halved at once; levels stay as they are.
    """
    # A cell is held between the smallest and the largest number that training rows reach.
    near: list[Any] = [
        min(max(one.cell, one.cells[0]), one.cells[-1]) if one.is_ordered else one.cell for one, _ in flips
    ]
    far: list[Any] = [value for _, value in flips]
    for _ in range(_STEPS):
        middles = {}
        for place, (one, _value) in enumerate(flips):
            if one.is_ordered:
                middle = 0.5 * (near[place] + far[place])
                middle = round(middle) if one.is_whole else middle
                if middle not in (near[place], far[place]):
                    middles[place] = middle
        turns, _ = search.tried([{flips[place][0].place: [middle]} for place, middle in middles.items()])
        for (place, middle), turn in zip(middles.items(), turns, strict=True):
            (far if turn[0] else near)[place] = middle
    tries = {}
    for place, (one, _value) in enumerate(flips):
        if one.is_ordered and not one.is_whole and far[place] != one.cell:
            # Rounding away from the cell must not leave what training rows reach.
            low, high = min(*one.cells, far[place]), max(*one.cells, far[place])
            shorter = [value for value in _shorter(float(one.cell), float(far[place])) if low <= value <= high]
            tries[place] = shorter or [far[place]]
    turns, _ = search.tried([{flips[place][0].place: shorter} for place, shorter in tries.items()])
    for (place, shorter), turn in zip(tries.items(), turns, strict=True):
        far[place] = next((value for value, does in zip(shorter, turn, strict=True) if does), far[place])
    return far


def _shorter(cell: float, value: float) -> list[float]:
    """A value rounded away from the cell, with more and more digits."""
    away, power = (math.ceil if value > cell else math.floor), math.floor(math.log10(abs(value - cell)))
    steps = [10.0**exponent for exponent in range(power - 1, power - 9, -1)]
    return [one for step in steps if (one := float(f"{away(value / step) * step:.12g}")) != cell]


def _paired(search: _FlipSearch, reached: list[tuple[CellChoices, Array]], smallest: float) -> list[FlipDict]:
    """The smallest change of two columns, where it is smaller than that of one."""
    picks: list[tuple[CellChoices, Codes]] = []
    for one, against in sorted(reached, key=lambda one: float(one[1].min()))[:_PAIRED_COLUMNS]:
        # Up to each of some sizes the cell that goes farthest against the decision.
        within = [np.flatnonzero(one.sizes <= size) for size in _PAIRED_SIZES]
        picks.append((one, np.unique([near[against[near].argmin()] for near in within if len(near)]).astype(np.intp)))
    tries: list[tuple[float, CellChoices, int, CellChoices, int]] = []
    blocks: list[dict[int, list[Any]]] = []
    for (a, of_a), (b, of_b) in combinations(picks, 2):
        pairs = [(i, j) for i in of_a.tolist() for j in of_b.tolist() if a.sizes[i] + b.sizes[j] < smallest]
        if pairs:
            tries += [(float(a.sizes[i] + b.sizes[j]), a, i, b, j) for i, j in pairs]
            blocks.append({a.place: [a.cells[i] for i, _ in pairs], b.place: [b.cells[j] for _, j in pairs]})
    turned = np.concatenate([np.zeros(0, dtype=np.bool_), *search.tried(blocks)[0]])
    found = sorted((tries[place] for place in np.flatnonzero(turned)), key=lambda one: one[0])
    for _, a, i, b, j in found[:3]:
        flip = _flip(search, [(one, one.cells[k], float(one.sizes[k])) for one, k in ((a, i), (b, j))])
        if flip is not None:
            return [flip]
    return []


def _flip(search: _FlipSearch, changes: Sequence[tuple[CellChoices, Any, float]]) -> FlipDict | None:
    """A flip, after it was scored as a record with the changed cells; None where it does not turn the decision."""
    model, changed, said = search.model, search.record, list[CellChangeDict]()
    for one, value, _ in changes:
        column = model.contract.columns[one.place]
        name, cells = column.name, _array(column, [value])
        if without_missing_values(cells, column).null_count:
            return None  # rounded to a value that is read as missing
        if name in changed.column_names and is_text(changed.schema.field(name).type):
            cells = _spelt(model, one.place, value) or cells
        place = changed.schema.get_field_index(name)
        changed = changed.append_column(name, cells) if place < 0 else changed.set_column(place, name, cells)
        is_whole = one.is_whole and pa.types.is_floating(cells.type)
        after = int(value) if is_whole else plain_records(pa.table({name: cells}))[0][name]
        if pa.types.is_timestamp(cells.type):  # whole days are tried
            after = str(after).removesuffix("T00:00:00")
        said.append({"column": name, "cell": search.plain.get(name), "to": after})
    decided = model.decide(encode_batch(changed, model.contract, model.encodings))
    code = int(decided.codes[0])
    if code == int(search.decided.codes[0]):
        return None
    chances = model.decision.probabilities(decided.scores) if model.decision.probabilistic else None
    return {
        "changes": said,
        "prediction": model.decision.classes[code],
        "margin": float(abs(decided.margins[0])),
        "probability": None if chances is None else float(chances[0, code]),
        "size": float(sum(size for *_, size in changes)),
    }


def _choices(search: _FlipSearch, place: int, most: int) -> CellChoices | None:
    """Cells to try in a column, at most `most`; None where nothing is known."""
    model, cell, first = search.model, search.cell(place), search.starts[place]
    column, encoding = model.contract.columns[place], model.encodings[place]
    if isinstance(encoding, Levels) or column.kind == "boolean":
        if isinstance(encoding, Levels):
            others: list[Any] = [level for level in encoding.levels if level != cell][:MOST_LEVELS]
        else:
            others = [value for value in (False, True) if value not in (cell, *column.missing_numbers)]
        return CellChoices(place, first, cell, others, np.full(len(others), OTHER_LEVEL)) if others else None
    if isinstance(encoding, Dates):
        if "days" not in encoding.parts:
            return None
        first += encoding.parts.index("days")
    known = known_values(model, first)
    if known is None:
        return None
    low, high = float(known[0]), float(known[-1])
    # Values from the smallest to the largest that is known, even steps among them.
    landmarks = np.concatenate([part.landmarks(first) for part in model.parts])
    inner = landmarks[(landmarks > low) & (landmarks < high)]
    values: Array = np.unique(np.concatenate([known, inner, np.linspace(low, high, min(_EVEN_STEPS, most))]))
    if len(values) > most:
        values = values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.intp))]
    is_whole = bool((known == np.round(known)).all()) or isinstance(encoding, Dates)
    if is_whole:
        values = np.unique(np.round(values))
    else:
        # Few digits each, which people can read: six, and more where all lie close together.
        largest, width = float(np.abs(values).max()), high - low
        digits = 6 if width <= 0 or largest <= width else min(6 + math.floor(math.log10(largest / width)), 12)
        values = np.unique([float(f"{value:.{digits}g}") for value in values.tolist()])
    # No value that a training row did not reach, not by its last digit either.
    values = values[(values >= low) & (values <= high)]
    missing = np.array(column.missing_numbers) / (_MICROSECONDS_PER_DAY if isinstance(encoding, Dates) else 1)
    values = values[(values != cell) & ~np.isin(values, missing)]
    if not len(values):
        return None
    cells = [round(value) for value in values.tolist()] if is_whole else values.tolist()
    return CellChoices(place, first, cell, cells, sizes(model, first, cell, values), cell is not None, is_whole)


def _array(column: Column, cells: list[Any]) -> pa.Array:
    """Cells of a column as Arrow has them; dates are whole days since 1970."""
    if column.kind == "date":
        return pa.array([round(cell * _MICROSECONDS_PER_DAY) for cell in cells], pa.timestamp("us"))
    types = {"number": pa.float64(), "boolean": pa.bool_(), "category": pa.string()}
    return pa.array(cells, types[column.kind])


def _spelt(model: Model, place: int, value: Any) -> pa.Array | None:
    """A number as its column spells it, such as 12.5 % or 1.234,5; None where it has no spelling, or it is not read so.

    Next to cells that are shown as they are in the table another unit would mislead.
    """
    column = model.contract.columns[place]
    if column.kind != "number" or not column.spelling:
        return None
    form, unit = split_spelling(column.spelling)
    before, _, after = form.partition("234")
    group, point = before[1:], after[:1] or ("," if before[1:] == "." else ".")
    shown = float(f"{value * (100.0 if unit == '%' else 1.0):.12g}")
    digits = f"{shown:,}".removesuffix(".0").translate({ord(","): group, ord("."): point})
    text = pa.array([f"{digits} {unit}".rstrip()])
    read = encode_column(text, column, model.encodings[place])[0]
    return text if np.allclose(read, value, rtol=1e-9, atol=0.0) else None
