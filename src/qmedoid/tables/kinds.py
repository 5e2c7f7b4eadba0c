"""What the columns of a table are: numbers, categories, truth values, dates, or nothing to learn from."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.models.contract import Column, Kind
from qmedoid.tables import cells
from qmedoid.tables._types import DECIMAL, shortened

if TYPE_CHECKING:
    from qmedoid.tables._text_kinds import Hints

DateOrder = Literal["day-first", "month-first"]

ENOUGH_ROWS = 20
"""Rows from which on it says something that all cells of a column are different."""
_REPEATS = 8.0
"""Pairs of equal cells from which on it is no chance that there is none."""
_DIFFERENT_DAYS = 10
"""Different days from which on whole numbers such as 20240131 are dates."""
_EXACT = 2**53
"""Whole numbers from which on different ones can be one and the same float."""

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


def infer_columns(
    table: pa.Table,
    *,
    skip: Collection[str] = (),
    decimal: str | None = None,
    date_order: DateOrder | None = None,
) -> Inferred:
    """Find the kinds of all columns but those named in `skip`, such as the target.

    Columns are left out that number or name the rows, that are empty or the same everywhere, or that hold lists.

    Parameters
    ----------
    decimal : {".", ","} or None
        The decimal sign of texts that do not show it; None looks at the other columns.
    date_order : {"day-first", "month-first"} or None
        The order of dates that do not show it; None looks at the other columns.

    Raises
    ------
    DataError
        If texts can be numbers or dates in two ways, and nothing shows in which.
    """
    columns, left_out, notes = [], {}, []
    hints = _hints(table, decimal or _decimal_of(table), date_order, skip)
    for name in table.column_names:
        if name in skip:
            continue
        found = _look_at(name, cells.one_chunk(table.column(name)), hints)
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


def _decimal_of(table: pa.Table) -> str | None:
    """The decimal sign that the file of a table showed, or was said to have."""
    shown = (table.schema.metadata or {}).get(DECIMAL)
    return None if shown is None else shown.decode()


def _hints(table: pa.Table, decimal: str | None, date_order: DateOrder | None, skip: Collection[str]) -> "Hints | None":
    """What decides about texts, where there are any: Arrow's functions on them are slow to import."""
    if not any(cells.is_text(field.type) for field in table.schema):
        return None
    from qmedoid.tables._text_kinds import Hints

    return Hints(table, decimal, date_order, skip)


def _look_at(name: str, array: pa.Array, hints: "Hints | None") -> tuple[Column, str | None] | str:
    """The draft of a column and a note about it, or the reason to leave it out."""
    if array.null_count == len(array):
        return "every cell is missing"
    kind = kind_of_type(array.type)
    if kind is None:
        return f"cells of type {shortened(str(array.type))} are not read"
    if kind in ("number", "boolean"):
        return _number_column(name, kind, cells.numbers(array), array)
    if kind == "date":
        return _date_column(name, cells.dates(array))
    if hints is None or not cells.is_text(array.type):
        return _category_column(name, array)
    return _text_column(name, array, hints)


def _text_column(name: str, array: pa.Array, hints: "Hints") -> tuple[Column, str | None] | str:
    from qmedoid.tables._text_kinds import read_text

    text = cells.texts(array)
    if text.null_count == len(text):
        return "every cell is missing"
    kind, spelling, read, note = read_text(name, text, hints)
    if read is None:
        found = _category_column(name, text)
        if isinstance(found, str):
            return f"{found} ({note.partition(': ')[2]})" if note else found
        return found[0], note
    found = _number_column(name, "number", read, text) if kind == "number" else _date_column(name, read)
    if isinstance(found, str):
        return found
    notes = [part for part in (note, found[1]) if part]
    if len(read.wrong) and kind == "number":
        notes.append(
            f"column {name!r}: {len(read.wrong):,} of {len(text):,} cells are not numbers, such as "
            f"{read.wrong[0].as_py()!r}: taken as missing"
        )
    # The table may hold cells of another kind, be it in rows that are held out.
    column = replace(found[0], is_open=True, spelling=spelling or found[0].spelling)
    return column, "; ".join(notes) or None


def _number_column(name: str, kind: Kind, read: cells.Cells, given: pa.Array) -> tuple[Column, str | None] | str:
    """The draft of a column of numbers; `given` are its cells as they stand in the table."""
    with np.errstate(invalid="ignore"):
        usable = np.abs(read.values) <= cells.LARGEST
    values = read.values[usable]
    if len(values) == 0:
        return "every cell is missing"
    missing = len(values) < len(usable)
    loses_digits = kind == "number" and not pa.types.is_floating(given.type) and _loses_digits(values, given)
    if values.min() == values.max() and not missing:
        shown = f"every cell is {values[0]:g}"
        return f"{shown} but for digits beyond the sixteenth, which no number holds" if loses_digits else shown
    if kind == "number" and _are_days(values):
        note = f"column {name!r}: whole numbers such as {values[0]:.0f} are read as dates (year, month, day)"
        return Column(name, "date", missing, spelling="yyyymmdd"), note
    is_whole = pa.types.is_integer(given.type)
    if kind == "number" and not missing and len(values) >= ENOUGH_ROWS:
        reason = _id_reason(name, values, is_whole, n_different=len(given.unique()) if loses_digits else None)
        if reason:
            return reason
    notes = []
    huge = int((~usable & ~np.isnan(read.values)).sum())
    if huge:
        notes.append(f"{huge:,} of {len(usable):,} cells are infinite or beyond 1e150: taken as missing")
    if loses_digits:
        notes.append("whole numbers beyond 2^53 lose their last digits as numbers, so that different ones may be equal")
    return Column(name, kind, missing), f"column {name!r}: {'; '.join(notes)}" if notes else None


def _loses_digits(values: npt.NDArray[np.float64], given: pa.Array) -> bool:
    """Whether different whole numbers are one and the same float."""
    largest = max(-values.min(), values.max())
    return bool(largest >= _EXACT) and len(given.drop_null().unique()) > len(np.unique(values))


def _are_days(values: npt.NDArray[np.float64]) -> bool:
    """Whether all numbers are days such as 20240131; the first tells of most columns that they are not."""
    if not 19_000_101 <= values[0] <= 21_001_231:
        return False
    from qmedoid.tables._date_spelling import are_days_in_digits

    return are_days_in_digits(values, _DIFFERENT_DAYS)


def _id_reason(
    name: str, values: npt.NDArray[np.float64], is_whole: bool, n_different: int | None = None
) -> str | None:
    """Why a column of whole numbers is taken for one that numbers the rows, or None.

    `n_different` are the different numbers, where floats are too coarse to count them.
    """
    in_sequence = is_whole and _are_of_a_run(values)
    named = _ID_NAME.search(name.strip().lower()) is not None
    if not (in_sequence or named) or not (values == np.trunc(values)).all():
        return None
    if (len(np.unique(values)) if n_different is None else n_different) < len(values):
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
