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
from qmedoid.exceptions import ParameterError
from qmedoid.explain.documents import CellChangeDict, FlipDict
from qmedoid.explain.explaining import OTHER_LEVEL, known_values, sizes
from qmedoid.model.contract import Dates, Levels, split_spelling
from qmedoid.model.explanation import column_contributions
from qmedoid.model.model import Model
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import is_text, with_missing_values_out, without_missing_values
from qmedoid.tables.encode import encode_batch, encode_column

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


class CellChoices(NamedTuple):
    """Cells to try in one column.

    Attributes
    ----------
    place, encoded : int
        Of the column in the contract, and of the encoded column that is changed.
    cells : list
        Numbers, texts, truth values or dates (as whole days); numbers and dates in rising order.
    sizes : ndarray of shape (k,)
        How large each change is: the share of the training rows that lie between, or one half for another level.
    ordered : bool
        Whether a cell between two of them can be tried as well.
    whole : bool
        Of numbers, whether all that is known of the column are whole numbers.
    """

    place: int
    encoded: int
    cells: list[Any]
    sizes: Array
    ordered: bool
    whole: bool = False


class _FlipSearch:
    """One record, its decision, and what becomes of it with other cells."""

    def __init__(self, model: Model, record: pa.Table) -> None:
        self.model, self.record = model, record
        self.encoded = encode_batch(record, model.contract, model.encodings)
        self.decided = model.decide(self.encoded)
        self.starts = np.searchsorted(model.source, np.arange(len(model.encodings)))

    def cells(self) -> list[Any]:
        """Cells by column of the contract: numbers, days since 1970, levels, truth values; None where missing."""
        known = [name for name in self.model.contract.names if name in self.record.column_names]
        plain = plain_records(self.record.select(known))[0] if known else {}
        found: list[Any] = []
        for column, encoding, start in zip(
            self.model.contract.columns, self.model.encodings, self.starts.tolist(), strict=True
        ):
            cell, outputs = plain.get(column.name), encoding.outputs
            if isinstance(encoding, Levels):
                found.append(None if cell is None else str(cell).strip() or None)
                continue
            value = float(self.encoded[start + (outputs.index(": days") if ": days" in outputs else 0)][0])
            absent = cell is None
            if outputs[-1] == " is missing":
                absent = float(self.encoded[start + len(outputs) - 1][0]) == 1.0
            found.append(None if absent else bool(value) if column.kind == "boolean" else value)
        return found

    def tried(self, blocks: Sequence[Mapping[int, list[Any]]]) -> tuple[list[Flags], list[Array]]:
        """Which copies of the record are decided otherwise, block by block, and how far ahead the class of now is.

        A block has other cells in some columns.
        """
        lengths = [len(next(iter(block.values()))) for block in blocks]
        columns = [np.repeat(np.asarray(column, dtype=np.float64), sum(lengths)) for column in self.encoded]
        first = 0
        for block, length in zip(blocks, lengths, strict=True):
            for place, cells in block.items():
                start = int(self.starts[place])
                for offset, values in enumerate(_encoded(self.model, place, cells)):
                    columns[start + offset][first : first + length] = values
            first += length
        if not blocks:
            return [], []
        decided, code, ends = self.model.decide(columns), int(self.decided.codes[0]), np.cumsum(lengths)[:-1]
        scores = self.model.decision.biased(decided.scores)
        ahead = scores[:, code] - np.delete(scores, code, axis=1).max(axis=1)
        return list(np.split(decided.codes != code, ends)), list(np.split(ahead, ends))


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
    record = with_missing_values_out(record, model.contract.columns)
    search = _FlipSearch(model, record)
    cells = search.cells()
    columns = _columns(search, fixed)
    work = _WORK // max(64, 0 if model.medoids is None else len(model.medoids.numbers))
    most = min(_MOST_CELLS, max(_FEWEST, work // max(1, len(columns))))
    tried = [one for place in columns if (one := _candidates(model, place, cells[place], most)) is not None]
    if not tried:
        return []
    turned, against = search.tried([{one.place: one.cells} for one in tried])
    singles = _singles(search, tried, cells, turned)
    pairs = _paired(search, list(zip(tried, against, strict=True)), singles[0]["size"] if singles else math.inf)
    return sorted([*singles, *pairs], key=_by_size)


def check_fixed(model: Model, fixed: Collection[str]) -> None:
    """Refuse names that are no columns of the contract."""
    names = model.contract.names
    for name in fixed:
        if name not in names:
            raise ParameterError(f"There is no column {name!r} that could be fixed.{did_you_mean(name, names)}")


def _columns(search: _FlipSearch, fixed: Collection[str]) -> list[int]:
    """Columns to try: those that the model reads and that may change, the largest contributions first."""
    model = search.model
    names, held = model.contract.names, set(fixed)
    free = [place for place in model.layout.used if names[place] not in held]
    if len(free) <= MOST_COLUMNS or model.medoids is None:
        return free
    other = model.decision.runners_up(search.decided.scores, search.decided.codes)
    sizes = np.abs(column_contributions(model, search.encoded, search.decided.codes, other)[0])
    return sorted(free, key=lambda place: -sizes[place])[:MOST_COLUMNS]


def _singles(search: _FlipSearch, tried: list[CellChoices], cells: list[Any], turned: list[Flags]) -> list[FlipDict]:
    """The nearest changes of one column, each of another one: on either side of a number, else the next level."""
    found: list[tuple[float, int, CellChoices, int]] = []
    for number, (one, turns) in enumerate(zip(tried, turned, strict=True)):
        places, cell = np.flatnonzero(turns), cells[one.place]
        if one.ordered and cell is not None:
            values = np.array(one.cells, dtype=np.float64)
            places = np.concatenate([places[values[places] < cell][-1:], places[values[places] > cell][:1]])
        found += [(float(one.sizes[place]), number, one, int(place)) for place in places]
    nearest = sorted(found, key=lambda one: (one[0], one[1]))[: 2 * _N_SINGLE]
    moved = _moved_near(search, [(one, cells[one.place], one.cells[place]) for _, _, one, place in nearest])
    flips = []
    for (size, _, one, place), value in zip(nearest, moved, strict=True):
        if value != one.cells[place]:
            size = float(sizes(search.model, one.encoded, cells[one.place], np.array([value]))[0])
        flips.append(_flip(search, [(one, value, size)]))
    each: dict[str, FlipDict] = {}
    for flip in sorted((flip for flip in flips if flip is not None), key=_by_size):
        each.setdefault(flip["changes"][0]["column"], flip)
    return list(each.values())[:_N_SINGLE]


def _moved_near(search: _FlipSearch, flips: list[tuple[CellChoices, Any, Any]]) -> list[Any]:
    """For each change of a cell to a value that turns the decision the value nearest to the cell that still does.

    All are halved at once; levels stay as they are.
    """
    # A cell is held between the smallest and the largest number that training rows reach.
    near: list[Any] = [
        min(max(cell, one.cells[0]), one.cells[-1]) if one.ordered and cell is not None else cell
        for one, cell, _ in flips
    ]
    far: list[Any] = [value for *_, value in flips]
    for _ in range(_STEPS):
        middles = {}
        for place, (one, cell, _value) in enumerate(flips):
            if one.ordered and cell is not None:
                middle = 0.5 * (near[place] + far[place])
                middle = round(middle) if one.whole else middle
                if middle not in (near[place], far[place]):
                    middles[place] = middle
        if not middles:
            break
        turns, _ = search.tried([{flips[place][0].place: [middle]} for place, middle in middles.items()])
        for (place, middle), turn in zip(middles.items(), turns, strict=True):
            (far if turn[0] else near)[place] = middle
    return _shortened(search, flips, far)


def _shortened(search: _FlipSearch, flips: list[tuple[CellChoices, Any, Any]], values: list[Any]) -> list[Any]:
    """The values with the fewest digits that still turn the decision, rounded away from the cells."""
    tries = {}
    for place, (one, cell, _value) in enumerate(flips):
        if one.ordered and not one.whole and cell is not None and values[place] != cell:
            shorter = _shorter(float(cell), float(values[place]))
            # Rounding away from the cell must not leave what training rows reach.
            low, high = min(*one.cells, values[place]), max(*one.cells, values[place])
            tries[place] = [value for value in shorter if low <= value <= high] or [values[place]]
    turns, _ = search.tried([{flips[place][0].place: shorter} for place, shorter in tries.items()])
    short = list(values)
    for (place, shorter), turn in zip(tries.items(), turns, strict=True):
        short[place] = next((value for value, does in zip(shorter, turn, strict=True) if does), values[place])
    return short


def _shorter(cell: float, value: float) -> list[float]:
    """A value rounded away from the cell, with more and more digits."""
    away, power = (math.ceil if value > cell else math.floor), math.floor(math.log10(abs(value - cell)))
    rounded = [
        float(f"{away(value / 10.0**exponent) * 10.0**exponent:.12g}") for exponent in range(power - 1, power - 9, -1)
    ]
    return [one for one in rounded if one != cell] or [value]


def _paired(search: _FlipSearch, reached: list[tuple[CellChoices, Array]], smallest: float) -> list[FlipDict]:
    """The smallest change of two columns, where it is smaller than that of one."""
    best = sorted(reached, key=lambda one: float(one[1].min()))[:_PAIRED_COLUMNS]
    picks = [(one, _steps(one, against)) for one, against in best]
    tries: list[tuple[float, CellChoices, int, CellChoices, int]] = []
    blocks: list[dict[int, list[Any]]] = []
    for (a, of_a), (b, of_b) in combinations(picks, 2):
        own = [
            (float(a.sizes[i] + b.sizes[j]), a, int(i), b, int(j))
            for i in of_a
            for j in of_b
            if a.sizes[i] + b.sizes[j] < smallest
        ]
        if own:
            tries += own
            blocks.append({a.place: [a.cells[i] for *_, i, _, _ in own], b.place: [b.cells[j] for *_, j in own]})
    turned = np.concatenate([np.zeros(0, dtype=np.bool_), *search.tried(blocks)[0]])
    found = sorted((tries[place] for place in np.flatnonzero(turned)), key=lambda one: one[0])
    for _, a, i, b, j in found[:3]:
        flip = _flip(search, [(one, one.cells[k], float(one.sizes[k])) for one, k in ((a, i), (b, j))])
        if flip is not None:
            return [flip]
    return []


def _steps(one: CellChoices, against: Array) -> Codes:
    """A few candidates of a column: up to each of some sizes the one that goes farthest against the decision."""
    within = [np.flatnonzero(one.sizes <= size) for size in _PAIRED_SIZES]
    return np.unique(np.array([near[against[near].argmin()] for near in within if len(near)], dtype=np.intp))


def _flip(search: _FlipSearch, changes: Sequence[tuple[CellChoices, Any, float]]) -> FlipDict | None:
    """A flip, after it was scored as a record with the changed cells; None where it does not turn the decision."""
    model, changed, said = search.model, search.record, list[CellChangeDict]()
    for one, value, _ in changes:
        name = model.contract.columns[one.place].name
        cells = _array(model, one.place, [value])
        if without_missing_values(cells, model.contract.columns[one.place]).null_count:
            return None  # rounded to a value that is read as missing
        if name in changed.column_names and is_text(changed.schema.field(name).type):
            cells = _spelt(model, one.place, value) or cells
        before = plain_records(changed.select([name]))[0][name] if name in changed.column_names else None
        field = pa.field(name, cells.type)
        place = changed.schema.get_field_index(name)
        changed = changed.append_column(field, cells) if place < 0 else changed.set_column(place, field, cells)
        is_whole = one.whole and pa.types.is_floating(cells.type)
        after = int(value) if is_whole else plain_records(pa.table({name: cells}))[0][name]
        if pa.types.is_timestamp(cells.type):  # whole days are tried
            after = str(after).removesuffix("T00:00:00")
        said.append({"column": name, "cell": before, "to": after})
    decided = model.decide(encode_batch(changed, model.contract, model.encodings))
    code = int(decided.codes[0])
    if code == int(search.decided.codes[0]):
        return None
    chances = model.decision.probabilities(decided.scores) if model.decision.probabilistic else None
    return {
        "changes": said, "prediction": model.decision.classes[code], "margin": float(abs(decided.margins[0])),
        "probability": None if chances is None else float(chances[0, code]),
        "size": float(sum(size for *_, size in changes)),
    }  # fmt: skip


def _by_size(flip: FlipDict) -> tuple[float, int, list[str]]:
    return flip["size"], len(flip["changes"]), [change["column"] for change in flip["changes"]]


def _candidates(model: Model, place: int, cell: Any, most: int) -> CellChoices | None:
    """Cells to try instead of `cell` (None where it is missing), at most `most`; None where nothing is known."""
    column, encoding = model.contract.columns[place], model.encodings[place]
    first = int(np.searchsorted(model.source, place))
    if isinstance(encoding, Levels) or column.kind == "boolean":
        if isinstance(encoding, Levels):
            others: list[Any] = [level for level in encoding.levels if level != cell][:MOST_LEVELS]
        else:
            others = [value for value in (False, True) if value not in (cell, *column.missing_numbers)]
        return CellChoices(place, first, others, np.full(len(others), OTHER_LEVEL), ordered=False) if others else None
    if isinstance(encoding, Dates):
        if "days" not in encoding.parts:
            return None
        first += encoding.parts.index("days")
    known = known_values(model, first)
    if known is None:
        return None
    whole = bool((known == np.round(known)).all()) or isinstance(encoding, Dates)
    values = _tried(known, np.concatenate([part.landmarks(first) for part in model.parts]), most)
    values = np.unique(np.round(values)) if whole else _few_digits(values, float(known[-1] - known[0]))
    # No value that a training row did not reach, not by its last digit either.
    values = values[(values >= known[0]) & (values <= known[-1])]
    start = None if cell is None else float(cell)
    missing = np.array(column.missing_numbers) / (_MICROSECONDS_PER_DAY if isinstance(encoding, Dates) else 1)
    values = values[(values != start) & ~np.isin(values, missing)]
    if not len(values):
        return None
    cells = [round(value) for value in values.tolist()] if whole else values.tolist()
    return CellChoices(place, first, cells, sizes(model, first, start, values), ordered=True, whole=whole)


def _few_digits(values: Array, width: float) -> Array:
    """Different values with few digits each, which people can read: six, and more where all lie close together."""
    largest = float(np.abs(values).max())
    digits = 6 if width <= 0 or largest <= width else min(6 + math.floor(math.log10(largest / width)), 12)
    return np.unique([float(f"{value:.{digits}g}") for value in values.tolist()])


def _tried(known: Array, landmarks: Array, most: int) -> Array:
    """Values from the smallest to the largest that is known, even steps among them; at most `most`."""
    low, high = known[0], known[-1]
    inner = landmarks[(landmarks > low) & (landmarks < high)]
    values: Array = np.unique(np.concatenate([known, inner, np.linspace(low, high, min(_EVEN_STEPS, most))]))
    if len(values) <= most:
        return values
    return values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.intp))]


def _array(model: Model, place: int, cells: list[Any]) -> pa.Array:
    """Cells of a column as Arrow has them; dates are whole days since 1970."""
    kind = model.contract.columns[place].kind
    if kind == "date":
        micros = [round(cell * _MICROSECONDS_PER_DAY) for cell in cells]
        return pa.array(micros, pa.timestamp("us"))
    types = {"number": pa.float64(), "boolean": pa.bool_(), "category": pa.string()}
    return pa.array(cells, types[kind])


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


def _encoded(model: Model, place: int, cells: list[Any]) -> list[Array]:
    """The numbers that cells of a column are encoded by."""
    return encode_column(_array(model, place, cells), model.contract.columns[place], model.encodings[place])
