"""What the columns of a table are: numbers, categories, truth values, dates, or nothing to learn from."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.models.contract import Column, Kind
from qmedoid.tables import cells

MOSTLY = 0.9
"""A text column is one of numbers if at least this share of its cells are."""
ENOUGH_ROWS = 20
"""Rows from which on it says something that all cells of a column are different."""
_REPEATS = 8.0
"""Pairs of equal cells from which on it is no chance that there is none."""

# Names that are given to columns of row numbers and keys; whole words, but for "id", which is often grown on.
_ID_NAME = re.compile(r"(^|[^a-z])(index|row|key|uuid|guid|nr|no|number)$|id$|^(column 1|unnamed: 0)$")


@dataclass(frozen=True)
class Inferred:
    """What was found.

    Attributes
    ----------
    columns : tuple of Column
        Drafts, in the order of the table; the levels of categories are found when they are encoded.
    left_out : dict of str to str
        Columns that say nothing about a record, each with the reason.
    notes : list of str
        What a reader should know about columns that were kept.
    """

    columns: tuple[Column, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def kind_of_type(kind: pa.DataType) -> Kind | None:
    """What columns of an Arrow type are by default; None for lists, structs, bytes and columns without a type."""
    if pa.types.is_dictionary(kind) or cells.is_text(kind):
        return "category"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return "date"
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
    return "number" if any(holds(kind) for holds in numeric) else None


def infer_columns(table: pa.Table, *, skip: Collection[str] = ()) -> Inferred:
    """Find the kinds of all columns but those named in `skip`, such as the target.

    Columns are left out that number or name the rows, that are empty or the same everywhere, or that hold lists.
    """
    columns, left_out, notes = [], {}, []
    for name in table.column_names:
        if name in skip:
            continue
        found = _look_at(name, cells.one_chunk(table.column(name)))
        if isinstance(found, str):
            left_out[name] = found
            continue
        column, note = found
        columns.append(column)
        if note:
            notes.append(note)
    return Inferred(tuple(columns), left_out, notes)


def with_levels_of(columns: tuple[Column, ...], table: pa.Table) -> tuple[Column, ...]:
    """Columns with the names of all levels in a table, where categories are closed; no encoding learns of them."""
    return tuple(
        replace(column, levels=tuple(sorted({*column.levels, *_levels(table.column(column.name))})))
        if column.levels and column.name in table.column_names
        else column
        for column in columns
    )


def _levels(column: pa.ChunkedArray) -> list[str]:
    found: list[str] = cells.texts(column).drop_null().unique().to_pylist()
    return found


def _look_at(name: str, array: pa.Array) -> tuple[Column, str | None] | str:
    """The draft of a column and a note about it, or the reason to leave it out."""
    if array.null_count == len(array):
        return "every cell is missing"
    kind = kind_of_type(array.type)
    if kind is None:
        return f"cells of type {array.type} are not read"
    if kind in ("number", "boolean"):
        return _number_column(name, kind, cells.numbers(array), is_whole=pa.types.is_integer(array.type))
    if kind == "date":
        return _date_column(name, cells.dates(array))
    if not cells.is_text(array.type):
        return _category_column(name, array)
    return _text_column(name, array)


def _text_column(name: str, array: pa.Array) -> tuple[Column, str | None] | str:
    text = cells.texts(array)
    given = len(text) - text.null_count
    if given == 0:
        return "every cell is missing"
    read = cells.numbers(text)
    if given - len(read.wrong) >= MOSTLY * given and np.isfinite(read.values).any():
        padded = _zero_padded(text)
        if len(padded):
            found = _category_column(name, text)
            such = f"cells such as {padded[0].as_py()!r} begin with zeros"
            return found if isinstance(found, str) else (found[0], f"column {name!r}: {such}: taken as texts")
        found = _number_column(name, "number", read, is_whole=False)
        if isinstance(found, str):
            return found
        # The table may hold cells that are no numbers, be it in rows that are held out.
        found = replace(found[0], is_open=True), found[1]
        if not len(read.wrong):
            return found
        note = (
            f"column {name!r}: {len(read.wrong):,} of {len(text):,} cells are not numbers, such as "
            f"{read.wrong[0].as_py()!r}: taken as missing"
        )
        return found[0], note
    # One look at the first cell spares most texts the search for dates.
    if len(cells.dates(text.drop_null().slice(0, 1)).wrong) == 0:
        day = cells.dates(text)
        if not len(day.wrong):
            found = _date_column(name, day)
            return found if isinstance(found, str) else (replace(found[0], is_open=True), found[1])
    return _category_column(name, text)


def _zero_padded(text: pa.Array) -> pa.Array:
    from qmedoid.tables._text_cells import zero_padded

    return zero_padded(text)


def _number_column(name: str, kind: Kind, read: cells.Cells, *, is_whole: bool) -> tuple[Column, str | None] | str:
    with np.errstate(invalid="ignore"):
        usable = np.abs(read.values) <= cells.LARGEST
    values = read.values[usable]
    if len(values) == 0:
        return "every cell is missing"
    missing = len(values) < len(usable)
    if values.min() == values.max() and not missing:
        return f"every cell is {values[0]:g}"
    if kind == "number" and not missing and len(values) >= ENOUGH_ROWS:
        reason = _id_reason(name, values, is_whole)
        if reason:
            return reason
    note = None
    huge = int((~usable & ~np.isnan(read.values)).sum())
    if huge:
        note = f"column {name!r}: {huge:,} of {len(usable):,} cells are infinite or beyond 1e150: taken as missing"
    return Column(name, kind, missing), note


def _id_reason(name: str, values: npt.NDArray[np.float64], is_whole: bool) -> str | None:
    """Why a column of whole numbers is taken for one that numbers the rows, or None."""
    in_sequence = is_whole and _are_of_a_run(values)
    named = _ID_NAME.search(name.strip().lower()) is not None
    if not (in_sequence or named) or not (values == np.trunc(values)).all():
        return None
    if len(np.unique(values)) < len(values):
        return None
    return "it numbers the rows" if in_sequence else "every row has its own number: it names rows"


def _are_of_a_run(values: npt.NDArray[np.float64]) -> bool:
    """Whether so many whole numbers, all different, are too close together for anything but numbered rows.

    The rows of a fit are a share of those of the file, so that there are gaps between their numbers. Of n numbers
    drawn by chance from a range of R, about n²/2R pairs would be equal.
    """
    n, spread = len(values), values.max() - values.min() + 1
    return bool(spread == n or (spread <= 4 * n and n * n / (2 * spread) >= _REPEATS))


def _date_column(name: str, read: cells.Cells) -> tuple[Column, str | None] | str:
    missing = np.isnat(read.values)
    values = read.values[~missing]
    if len(values) == 0:
        return "every cell is missing"
    if values.min() == values.max() and not missing.any():
        return f"every cell is {values[0]}"
    note = None
    if len(read.wrong):
        such = f"such as {read.wrong[0].as_py()!r}: taken as missing"
        note = f"column {name!r}: {len(read.wrong):,} of {len(missing):,} cells are beyond the calendar, {such}"
    return Column(name, "date", bool(missing.any()), is_open=bool(len(read.wrong))), note


def _category_column(name: str, array: pa.Array) -> tuple[Column, str | None] | str:
    text = cells.texts(array)
    given = len(text) - text.null_count
    levels = len(text.drop_null().unique())
    if given == 0:
        return "every cell is missing"
    if levels == 1 and not text.null_count:
        return f"every cell is {text[0].as_py()!r}"
    if levels == given and given >= ENOUGH_ROWS:
        return "every row has its own text: it names rows"
    return Column(name, "category", bool(text.null_count)), None
