"""What the columns of a table are: numbers, categories, truth values, dates, or nothing to learn from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.models.contract import Column, Kind
from qmedoid.tables import cells
from qmedoid.tables._identifiers import NEARLY, OWN_TEXT, code_among_numbers, id_reason, is_identifier_name
from qmedoid.tables.roles import KINDS_BY_ROLE, Role

MOSTLY = 0.9
"""A text column is one of numbers if at least this share of its cells are."""
ENOUGH_ROWS = 20
"""Rows from which on it says something that all cells of a column are different."""


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

    def check_any(self) -> None:
        """Refuse a table that has no column to learn from."""
        if not self.columns:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(self.left_out.items())[:5])
            raise DataError(f"No column is left to learn from ({reasons}).")


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


def infer_columns(table: pa.Table, *, skip: Collection[str] = (), roles: Mapping[str, Role] | None = None) -> Inferred:
    """Find the kinds of all columns but those named in `skip`, such as the target.

    Columns are left out that number or name the rows, that are empty or the same everywhere, or that hold lists.

    Parameters
    ----------
    roles : mapping of str to str, optional
        What the user says that columns are, which wins over what their cells look like; see `qmedoid.tables.roles`.
    """
    roles = roles or {}
    columns, left_out, notes = [], {}, []
    for name in table.column_names:
        if name in skip:
            continue
        role = roles.get(name)
        if role == "ignore":
            left_out[name] = "it was to be ignored"
            continue
        found = _look_at(name, cells.one_chunk(table.column(name)), role)
        if isinstance(found, str):
            left_out[name] = found
            continue
        column, note = found
        columns.append(column)
        if note:
            notes.append(note)
    return Inferred(tuple(columns), left_out, notes)


def infer_alike(table: pa.Table, settled: Inferred) -> Inferred:
    """Read rows of a table as other rows of it were read, so that a sample of rows reads no column in another way.

    Columns keep their kind or stay left out; whether cells are missing is found anew, and so is whether a column is
    empty or the same everywhere, and to be left out for that.
    """
    columns, left_out = [], dict(settled.left_out)
    for column in settled.columns:
        found = _read_again(column, cells.one_chunk(table.column(column.name)))
        if isinstance(found, str):
            left_out[column.name] = found
        else:
            columns.append(replace(column, missing=found[0].missing))
    return Inferred(tuple(columns), left_out, settled.notes)


def _read_again(column: Column, array: pa.Array) -> tuple[Column, str | None] | str:
    if column.kind == "category":
        return _category_column(column.name, array, keep=True)
    if column.kind == "date":
        return _date_column(column.name, cells.dates(array))
    read = cells.truths(array) if column.kind == "boolean" else cells.numbers(array)
    return _number_column(column.name, column.kind, read, is_whole=False, keep=True)


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


def _look_at(name: str, array: pa.Array, role: Role | None) -> tuple[Column, str | None] | str:
    """The draft of a column and a note about it, or the reason to leave it out."""
    if array.null_count == len(array):
        return "every cell is missing"
    kind = kind_of_type(array.type)
    if kind is None:
        if role is not None:
            raise DataError(f"Column {name!r} has the role {role!r}, but cells of type {array.type} are not read.")
        return f"cells of type {array.type} are not read"
    if role in KINDS_BY_ROLE:
        return _in_role(name, array, kind, role)
    keep = role == "keep"
    if kind in ("number", "boolean"):
        is_whole = pa.types.is_integer(array.type)
        return _number_column(name, kind, cells.numbers(array), is_whole=is_whole, keep=keep)
    if kind == "date":
        return _date_column(name, cells.dates(array))
    if not cells.is_text(array.type):
        return _category_column(name, array, keep=keep)
    return _text_column(name, array, keep=keep)


def _in_role(name: str, array: pa.Array, kind: Kind, role: Role) -> tuple[Column, str | None] | str:
    """A column read as the user says; one without a single cell that can be read so is refused."""
    if role == "category":
        return _category_column(name, array, keep=True)
    # Truth values are numbers already, and words for them are read at scoring.
    if role == "number" and kind == "boolean":
        return _number_column(name, kind, cells.numbers(array), is_whole=False, keep=True)
    array = cells.texts(array) if kind == "category" else array
    if array.null_count == len(array):
        return "every cell is missing"
    read = cells.numbers(array) if role == "number" else cells.dates(array)
    n_read = int((~(np.isnan if role == "number" else np.isnat)(read.values)).sum())
    if len(read.wrong) and not n_read:
        raise DataError(
            f"Column {name!r} has the role {role!r}, but none of its cells is a {role}, such as "
            f"{read.wrong[0].as_py()!r}. Correct the cells, or give it another role."
        )
    if role == "number":
        found = _number_column(name, "number", read, is_whole=False, keep=True)
    else:
        found = _date_column(name, read)
    if isinstance(found, str):
        return found
    column, note = found
    if len(read.wrong) and (role == "number" or kind != "date"):
        note = _wrong_note(name, read, len(array), f"{role}s")
    return replace(column, is_open=column.is_open or kind == "category"), note


def _text_column(name: str, array: pa.Array, *, keep: bool) -> tuple[Column, str | None] | str:
    text = cells.texts(array)
    given = len(text) - text.null_count
    if given == 0:
        return "every cell is missing"
    read = cells.numbers(text)
    if given - len(read.wrong) >= MOSTLY * given and np.isfinite(read.values).any():
        padded = _zero_padded(text)
        if len(padded):
            such = f"cells such as {padded[0].as_py()!r} begin with zeros"
            return _category_column(name, text, keep=keep, note=f"column {name!r}: {such}: taken as texts")
        code = code_among_numbers(text, read.wrong) if len(read.wrong) else None
        if code is not None:
            note = f"column {name!r}: cells such as {code!r} look like codes: taken as texts, numbers among them too"
            return _category_column(name, text, keep=keep, note=note)
        found = _number_column(name, "number", read, is_whole=False, keep=keep)
        if isinstance(found, str):
            return found
        # The table may hold cells that are no numbers, be it in rows that are held out.
        column, note_of_numbers = replace(found[0], is_open=True), found[1]
        return column, _wrong_note(name, read, len(text), "numbers") if len(read.wrong) else note_of_numbers
    # One look at the first cell spares most texts the search for dates.
    if len(cells.dates(text.drop_null().slice(0, 1)).wrong) == 0:
        day = cells.dates(text)
        if not len(day.wrong):
            found = _date_column(name, day)
            return found if isinstance(found, str) else (replace(found[0], is_open=True), found[1])
    return _category_column(name, text, keep=keep)


def _wrong_note(name: str, read: cells.Cells, n_rows: int, what: str) -> str:
    return (
        f"column {name!r}: {len(read.wrong):,} of {n_rows:,} cells are not {what}, such as "
        f"{read.wrong[0].as_py()!r}: taken as missing"
    )


def _zero_padded(text: pa.Array) -> pa.Array:
    from qmedoid.tables._text_cells import zero_padded

    return zero_padded(text)


def _number_column(
    name: str, kind: Kind, read: cells.Cells, *, is_whole: bool, keep: bool
) -> tuple[Column, str | None] | str:
    with np.errstate(invalid="ignore"):
        usable = np.abs(read.values) <= cells.LARGEST
    values = read.values[usable]
    if len(values) == 0:
        return "every cell is missing"
    missing = len(values) < len(usable)
    if values.min() == values.max() and not missing:
        return f"every cell is {values[0]:g}"
    note = None
    if kind == "number" and not keep and len(values) >= ENOUGH_ROWS:
        reason = None if missing else id_reason(name, values, is_whole)
        if reason:
            return reason
        # Numbers with a fraction are measured, whatever their name.
        if is_identifier_name(name) and (values == np.trunc(values)).all():
            note = _note_if_nearly(name, len(np.unique(values)), len(values), "number")
    huge = int((~usable & ~np.isnan(read.values)).sum())
    if huge:
        note = f"column {name!r}: {huge:,} of {len(usable):,} cells are infinite or beyond 1e150: taken as missing"
    return Column(name, kind, missing), note


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


def _category_column(
    name: str, array: pa.Array, *, keep: bool, note: str | None = None
) -> tuple[Column, str | None] | str:
    text = cells.texts(array)
    given = len(text) - text.null_count
    levels = len(text.drop_null().unique())
    if given == 0:
        return "every cell is missing"
    if levels == 1 and not text.null_count:
        return f"every cell is {text[0].as_py()!r}"
    if given >= ENOUGH_ROWS and not keep:
        if levels == given:
            return OWN_TEXT
        note = note or _note_if_nearly(name, levels, given, "text")
    return Column(name, "category", bool(text.null_count)), note


def _note_if_nearly(name: str, n_different: int, n_given: int, what: str) -> str | None:
    """A note where nearly every row has its own cell: what a model learns there holds for no other row."""
    if n_different < NEARLY * n_given:
        return None
    count = f"{n_different:,} different {what}s in {n_given:,} cells"
    return f"column {name!r}: {count}: it may name rows, and is better ignored if it does"
