"""Cells that a column might hold instead: those that are tried to turn a decision."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.methods.base import Method, Part
from qmedoid.methods.sum.model import SumModel
from qmedoid.model.contract import Dates, Levels, split_spelling
from qmedoid.model.table import TableModel
from qmedoid.tables.encode import encode_column

_LEVEL_SIZE = 0.5
"""What another level or truth value counts, in shares of the training rows that a number passes."""
MOST_LEVELS = 64
_EVEN_STEPS = 65
_MICROSECONDS_PER_DAY = 86_400_000_000


class Candidates(NamedTuple):
    """Cells to try in one column.

    Attributes
    ----------
    place : int
        Of the column in the contract.
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
    cells: list[Any]
    sizes: Array
    ordered: bool
    whole: bool = False


def column_candidates(model: TableModel, place: int, cell: Any, most: int) -> Candidates | None:
    """Cells to try instead of `cell` (None where it is missing), at most `most`; None where nothing is known."""
    column, encoding = model.contract.columns[place], model.encodings[place]
    if isinstance(encoding, Levels):
        levels: list[Any] = [level for level in encoding.levels if level != cell][:MOST_LEVELS]
        return Candidates(place, levels, np.full(len(levels), _LEVEL_SIZE), ordered=False) if levels else None
    if column.kind == "boolean":
        others: list[Any] = [value for value in (False, True) if value != cell]
        return Candidates(place, others, np.full(len(others), _LEVEL_SIZE), ordered=False)
    first = int(np.searchsorted(model.source, place))
    if isinstance(encoding, Dates):
        if "days" not in encoding.parts:
            return None
        first += encoding.parts.index("days")
    known = known_values(model, first)
    if known is None:
        return None
    whole = bool((known == np.round(known)).all()) or isinstance(encoding, Dates)
    values = _tried(known, _landmarks(model, first), most)
    values = np.unique(np.round(values)) if whole else _few_digits(values, float(known[-1] - known[0]))
    # No value that a training row did not reach, not by its last digit either.
    values = values[(values >= known[0]) & (values <= known[-1])]
    start = None if cell is None else float(cell)
    values = values[values != start]
    if not len(values):
        return None
    cells = [round(value) for value in values.tolist()] if whole else values.tolist()
    return Candidates(place, cells, sizes(model, first, start, values), ordered=True, whole=whole)


def _few_digits(values: Array, width: float) -> Array:
    """Different values with few digits each, which people can read: six, and more where all lie close together."""
    largest = float(np.abs(values).max())
    digits = 6 if width <= 0 or largest <= width else min(6 + math.floor(math.log10(largest / width)), 12)
    return np.unique([float(f"{value:.{digits}g}") for value in values.tolist()])


def known_values(model: TableModel, encoded: int) -> Array | None:
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


def _landmarks(model: TableModel, encoded: int) -> Array:
    """Where scores change their course along an encoded column: knots of scalings, and both sides of thresholds."""
    found = [np.zeros(0)]
    for part in _parts(model.method):
        scaling, trees = getattr(part, "rank_scaling", None), getattr(part, "trees", None)
        if scaling is not None:
            found.append(scaling.values[scaling.offsets[encoded] : scaling.offsets[encoded + 1]])
        if trees is not None:
            near = trees.thresholds[(trees.columns == encoded) & np.isfinite(trees.thresholds)]
            found += [near, np.nextafter(near, np.inf)]
    return np.concatenate(found)


def _parts(method: Method | None) -> Iterable[Method | Part]:
    if isinstance(method, SumModel):
        return (method.base, *method.parts)
    return () if method is None else (method,)


def _tried(known: Array, landmarks: Array, most: int) -> Array:
    """Values from the smallest to the largest that is known, even steps among them; at most `most`."""
    low, high = known[0], known[-1]
    inner = landmarks[(landmarks > low) & (landmarks < high)]
    values: Array = np.unique(np.concatenate([known, inner, np.linspace(low, high, min(_EVEN_STEPS, most))]))
    if len(values) <= most:
        return values
    return values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.intp))]


def sizes(model: TableModel, encoded: int, start: float | None, values: Array) -> Array:
    """Shares of the training rows between the start and each value; one half where the start is missing."""
    known = known_values(model, encoded)
    novelty = model.novelty
    if start is None or known is None or novelty is None:
        return np.full(len(values), _LEVEL_SIZE)
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


def cell_array(model: TableModel, place: int, cells: list[Any]) -> pa.Array:
    """Cells of a column as Arrow has them; dates are whole days since 1970."""
    kind = model.contract.columns[place].kind
    if kind == "date":
        micros = [round(cell * _MICROSECONDS_PER_DAY) for cell in cells]
        return pa.array(micros, pa.timestamp("us"))
    types = {"number": pa.float64(), "boolean": pa.bool_(), "category": pa.string()}
    return pa.array(cells, types[kind])


def spelt_cell(model: TableModel, place: int, value: Any) -> pa.Array | None:
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


def encoded_cells(model: TableModel, place: int, cells: list[Any]) -> list[Array]:
    """The numbers that cells of a column are encoded by."""
    return encode_column(cell_array(model, place, cells), model.contract.columns[place], model.encodings[place])
