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
from qmedoid.tables.similar import OTHER_LEVEL, known_values, sizes

MOST_LEVELS = 64
_EVEN_STEPS = 65
_MICROSECONDS_PER_DAY = 86_400_000_000


class Candidates(NamedTuple):
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


def column_candidates(model: TableModel, place: int, cell: Any, most: int) -> Candidates | None:
    """Cells to try instead of `cell` (None where it is missing), at most `most`; None where nothing is known."""
    column, encoding = model.contract.columns[place], model.encodings[place]
    first = int(np.searchsorted(model.source, place))
    if isinstance(encoding, Levels) or column.kind == "boolean":
        if isinstance(encoding, Levels):
            others: list[Any] = [level for level in encoding.levels if level != cell][:MOST_LEVELS]
        else:
            others = [value for value in (False, True) if value not in (cell, *column.missing_numbers)]
        return Candidates(place, first, others, np.full(len(others), OTHER_LEVEL), ordered=False) if others else None
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
    missing = np.array(column.missing_numbers) / (_MICROSECONDS_PER_DAY if isinstance(encoding, Dates) else 1)
    values = values[(values != start) & ~np.isin(values, missing)]
    if not len(values):
        return None
    cells = [round(value) for value in values.tolist()] if whole else values.tolist()
    return Candidates(place, first, cells, sizes(model, first, start, values), ordered=True, whole=whole)


def _few_digits(values: Array, width: float) -> Array:
    """Different values with few digits each, which people can read: six, and more where all lie close together."""
    largest = float(np.abs(values).max())
    digits = 6 if width <= 0 or largest <= width else min(6 + math.floor(math.log10(largest / width)), 12)
    return np.unique([float(f"{value:.{digits}g}") for value in values.tolist()])


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
