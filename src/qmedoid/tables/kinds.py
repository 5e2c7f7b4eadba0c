"""What the columns of a table are: numbers, categories, truth values, dates, or nothing to learn from."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, some_of
from qmedoid.model.contract import Column, Kind
from qmedoid.tables import cells
from qmedoid.tables.arrow import DECIMAL, ENOUGH_ROWS, number_blocks, shortened, words_among
from qmedoid.tables.roles import (
    Role,
    Sentinels,
    quoted,
    sentinels_of,
    with_missing_values,
)

EXACT = 2**53
"""Whole numbers from which on different ones can be one and the same float."""
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231
DateOrder = Literal["day-first", "month-first"]
Hints: TypeAlias = tuple[str | None, DateOrder | None, Codes | None]
"""The decimal sign, and the order of day and month, of columns that do not show theirs; and the numbers of rows."""
_FIRST, _MOSTLY_DAYS = 256, 0.9
_DIFFERENT_DAYS = 10
"""Different days from which on whole numbers such as 20240131 are dates."""
_NEARLY = 0.95
"""Share of different cells from which on a column that is kept may be an identifier, or free text."""
_WORDS_OF_TEXT = 3


EMPTY, CONSTANT = "every cell is missing", "every cell is "
"""Reasons to leave a column out; the second goes on with the cell."""


@dataclass(frozen=True)
class Inferred:
    """How the columns of a table are read.

    Columns are drafts, in the order of the table, without levels. Those left out have a reason, others maybe a note,
    and maybe values that look as if they stood for missing cells.
    """

    columns: tuple[Column, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    sentinels: dict[str, Sentinels] = field(default_factory=dict)


def kind_of_type(kind: pa.DataType) -> Kind | None:
    """What columns of an Arrow type are by default; None for lists, structs, bytes and columns without a type."""
    if pa.types.is_dictionary(kind) or kind in cells.TEXT_TYPES:
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
    roles: Mapping[str, Role] | None = None,
    decimal: str | None = None,
    date_order: DateOrder | None = None,
    n_rows: int | None = None,
    missing: Mapping[str, Collection[Any]] | None = None,
    rows: Codes | None = None,
    notes: Mapping[str, str] | None = None,
) -> Inferred:
    """Infer the kinds of all columns but those named in `skip`, such as the target.

    Columns are left out that number or name the rows, that are empty or the same everywhere, or that hold lists. Roles
    win over what cells look like. `decimal` and `date_order` are for texts that do not show them; without them a
    `DataError` says where nothing shows how texts are to be read. `n_rows` are the rows of which
    those of the table are a sample. `missing` are values that stand for missing cells, by column; `rows` are the
    numbers of the rows in their source, and `notes` what is known of columns already.
    """
    if missing:
        how: dict[str, Any] = {"skip": skip, "roles": roles, "decimal": decimal, "date_order": date_order}
        how |= {"n_rows": n_rows, "rows": rows, "notes": notes}
        return _with_missing_values(table, missing, how)
    columns, left_out, said = [], {}, dict[str, str]()
    roles = roles or {}
    if decimal is None and (shown := (table.schema.metadata or {}).get(DECIMAL)) is not None:
        decimal = shown.decode()
    plain = _plain_columns(table, [name for name in table.column_names if not (name in skip or name in roles)])
    for name in table.column_names:
        if name in skip:
            continue
        role = roles.get(name)
        found: tuple[Column, str | None] | str = "it was to be ignored"
        if name in plain:
            found = plain[name], None
        elif role != "ignore":
            found = _look_at(name, table.column(name), (decimal, date_order, rows), role, n_rows)
        if isinstance(found, str):
            left_out[name] = found
            continue
        columns.append(found[0])
        if parts := [one for one in ((notes or {}).get(name), found[1]) if one]:
            said[name] = "; ".join(parts)
    return Inferred(tuple(columns), left_out, said, sentinels_of(table, columns, is_sample=n_rows is not None))


def _with_missing_values(table: pa.Table, missing: Mapping[str, Collection[Any]], how: Mapping[str, Any]) -> Inferred:
    """Infer the columns of a table without the cells that a user says are missing."""
    decimal = how["decimal"] or (table.schema.metadata or {}).get(DECIMAL, b"").decode()
    settled: tuple[Column, ...] = ()
    is_sample, rows = how["n_rows"] is not None, "rows" if how["n_rows"] is None else "sampled rows"
    # The kind says which cells are equal to a value, and without these the kind may be another one.
    for _ in range(3):
        inferred = infer_columns(cells.with_missing_values_out(table, settled), **how)
        drafts = {column.name: column for column in inferred.columns}
        before, settled = settled, ()
        for name, texts in missing.items():
            draft = drafts.get(name) or Column(name, kind_of_type(table.schema.field(name).type) or "category")
            settled += (with_missing_values(draft, texts, table.column(name), decimal, is_sample=is_sample),)
        if before == settled:
            break
    own = {column.name: column.missing_values for column in settled}
    columns = tuple(replace(column, missing_values=own.get(column.name, ())) for column in inferred.columns)
    notes = dict(inferred.notes)
    for column in columns:
        if column.missing_values:
            given = table.column(column.name)
            held = cells.without_missing_values(given, column).null_count - given.null_count
            values = column.missing_values
            said = f"no cell is {' or '.join(values)}, which is read as missing"
            if held:
                said = f"{held:,} of {len(given):,} {rows} hold {' and '.join(values)}, read as missing"
            said = f"column {column.name!r}: {said}"
            notes[column.name] = "; ".join([said, *([notes[column.name]] if column.name in notes else [])])
    return replace(inferred, columns=columns, notes=notes)


def infer_alike(table: pa.Table, settled: Inferred) -> Inferred:
    """Read rows of a table as other rows of it were read, so that a sample of rows reads no column in another way.

    Columns keep their kind or stay left out; whether cells are missing is found anew, and so is whether a column is
    empty or the same everywhere, and to be left out for that.
    """
    columns, left_out = [], dict(settled.left_out)
    numbers = [column.name for column in settled.columns if column.kind == "number"]
    plain = _plain_columns(table, numbers)
    for column in settled.columns:
        if column.name in plain:
            columns.append(replace(column, missing=plain[column.name].missing))
            continue
        array = table.column(column.name)
        if column.kind == "category":
            found = _category_column(column.name, array, keep=True)
        else:
            read = cells.read(array, column.kind, column.spelling)
            found = _number_column(column.name, column.kind, read, array, settled=True)
        if isinstance(found, str):
            left_out[column.name] = found
        else:
            columns.append(replace(column, missing=found[0].missing))
    return Inferred(tuple(columns), left_out, settled.notes, settled.sentinels)


def with_levels_of(columns: tuple[Column, ...], table: pa.Table) -> tuple[Column, ...]:
    """Columns with the names of all levels in a table, where categories are closed; no encoding learns of them."""
    made, table = [], cells.with_missing_values_out(table, columns)
    names = set(table.column_names)
    for column in columns:
        if column.levels and column.name in names:
            levels = cells.texts(table.column(column.name)).drop_null().unique().to_pylist()
            column = replace(column, levels=tuple(sorted({*column.levels, *levels})))
        made.append(column)
    return tuple(made)


def _plain_columns(table: pa.Table, names: Sequence[str]) -> dict[str, Column]:
    """The drafts of those columns of numbers about which there is nothing to say.

    Not one of them is constant, or has cells that are no numbers of a model, or may hold dates, name or number the
    rows, or lose digits; columns that may are left to a closer look.
    """
    found, schema = dict[str, Column](), table.schema
    for places, values in number_blocks(table, names):
        is_number, is_whole = cells.is_usable(values), schema.field(names[places[0]]).type != pa.float64()
        counts = is_number.sum(axis=0)
        least = np.where(is_number, values, np.inf).min(axis=0)
        most = np.where(is_number, values, -np.inf).max(axis=0)
        missing = np.isnan(values).sum(axis=0)
        plain = (counts > 0) & (counts + missing == len(values)) & ((least < most) | (missing > 0))
        plain &= ((values >= _FIRST_DAY) & (values <= _LAST_DAY)).sum(axis=0) < _MOSTLY_DAYS * counts
        if is_whole:
            plain &= np.maximum(-least, most) < EXACT
        rising = np.sort(values, axis=0)
        is_own = is_whole & ~(rising[1:] == rising[:-1]).any(axis=0)
        may_name = (counts >= ENOUGH_ROWS) & ((values == np.trunc(values)) | ~is_number).all(axis=0)
        for number in np.flatnonzero(plain).tolist():
            name = names[places[number]]
            if not (may_name[number] and (is_own[number] or is_identifier_name(name))):
                found[name] = Column(name, "number", bool(missing[number]))
    return found


def _look_at(
    name: str, array: pa.Array, hints: Hints, role: Role | None, n_rows: int | None
) -> tuple[Column, str | None] | str:
    """The draft of a column and a note about it, or the reason to leave it out."""
    if array.null_count == len(array):
        return EMPTY
    kind = kind_of_type(array.type)
    if kind is None:
        such = f"cells of type {shortened(str(array.type))} are not read"
        if role is not None:
            raise DataError(f"Column {name!r} has the role {role!r}, but {such}.")
        return such
    if role == "category":
        return _category_column(name, array, keep=True)
    # Truth values are numbers already, and words for them are read at scoring.
    if role == "date" or (role == "number" and kind != "boolean"):
        return _in_role(name, array, kind, role, hints)
    if kind != "category":
        is_kept, is_settled = role == "keep", role == "number"
        return _number_column(
            name, kind, cells.read(array, kind), array, hints[2], keep=is_kept, settled=is_settled, n_rows=n_rows
        )
    if array.type not in cells.TEXT_TYPES:
        return _category_column(name, array, keep=role == "keep")
    return _text_column(name, array, hints, keep=role == "keep")


def _in_role(
    name: str, array: pa.Array, kind: Kind, role: Literal["number", "date"], hints: Hints
) -> tuple[Column, str | None] | str:
    """Numbers or dates as the user says; a column without a single cell that can be read so is refused."""
    array = cells.texts(array) if kind == "category" else array
    if array.null_count == len(array):
        return EMPTY
    spelling, read, note = "", cells.read(array, role), None
    if array.type in cells.TEXT_TYPES:
        from qmedoid.tables.text_kinds import read_durations, read_text

        found = read_text(name, array, *hints[:2])
        if found.kind == "date" and role == "number":
            found = read_durations(name, array)
        if found.kind == role and found.read is not None:
            spelling, read, note = found.spelling, found.read, found.note
    elif role == "number" and pa.types.is_time(array.type):
        spelling = "h:mm[:ss]"
        read = cells.read(array, role, spelling)
    if role == "date" and np.isnat(read.values).all():
        days = cells.read(array, "date", "yyyymmdd")
        if not np.isnat(days.values).all():
            spelling, read = "yyyymmdd", days
    if len(read.wrong) and pa.array(read.values, from_pandas=True).null_count == len(array):
        raise DataError(
            f"Column {name!r} has the role {role!r}, but none of its cells is a {role}, such as "
            f"{read.wrong[0].as_py()!r}. Correct the cells, or give it another role."
        )
    draft = _number_column(name, role, read, array, hints[2], settled=True)
    if isinstance(draft, str):
        return draft
    column, other = draft
    if len(read.wrong) and (role == "number" or kind != "date"):
        other = _wrong_note(name, read, array, f"not {role}s", hints[2])
    column = replace(column, is_open=column.is_open or kind == "category", spelling=spelling)
    return column, "; ".join(part for part in (note, other) if part) or None


def _text_column(name: str, array: pa.Array, hints: Hints, *, keep: bool) -> tuple[Column, str | None] | str:
    from qmedoid.tables.text_kinds import read_text

    text = cells.texts(array)
    if text.null_count == len(text):
        return EMPTY
    kind, spelling, read, note = read_text(name, text, *hints[:2])
    if read is None:
        found = _category_column(name, text, keep=keep, note=note)
        if found == OWN_TEXT and note and (problem := note.partition(" is taken as texts, not as ")[2]):
            return f"every text is different, and they are not read as {problem}"
        # A guess that the user can overrule keeps its words.
        if isinstance(found, str) and found not in IDENTIFIERS and note:
            return f"{found} ({note.partition(': ')[2]})"
        return found
    found = _number_column(name, kind, read, text, hints[2], keep=keep)
    if isinstance(found, str):
        return found
    notes = [part for part in (note, found[1]) if part]
    if len(read.wrong) and kind == "number":
        notes.append(_wrong_note(name, read, text, "not numbers", hints[2]))
    # The table may hold cells of another kind, be it in rows that are held out.
    column = replace(found[0], is_open=True, spelling=spelling or found[0].spelling)
    return column, "; ".join(notes) or None


def _wrong_note(name: str, read: cells.Cells, given: pa.Array, what: str, rows: Codes | None) -> str:
    """A note on cells that are not of the kind of their column, with the row of the first of them (from 0)."""
    import pyarrow.compute as pc

    place = pc.index(cells.texts(given), read.wrong[0].as_py()).as_py()
    first = "" if place < 0 else f", the first in row {place if rows is None else rows[place]:,} (from 0)"
    such = f"such as {read.wrong[0].as_py()!r}: taken as missing{first}"
    return f"column {name!r}: {len(read.wrong):,} of {len(given):,} cells are {what}, {such}"


def _number_column(
    name: str,
    kind: Kind,
    read: cells.Cells,
    given: pa.Array,
    rows: Codes | None = None,
    *,
    keep: bool = False,
    settled: bool = False,
    n_rows: int | None = None,
) -> tuple[Column, str | None] | str:
    """The draft of a column of numbers, truth values or dates; `given` are its cells as they stand in the table.

    One to `keep` is no identifier; of one that is `settled` to be numbers nothing else is guessed either.
    """
    if kind == "date":
        absent = np.isnat(read.values)
        days = read.values[~absent]
        if len(days) == 0:
            return EMPTY
        if days.min() == days.max() and not absent.any():
            return f"{CONSTANT}{days[0]}"
        what = (
            "not dates" if given.type in cells.TEXT_TYPES or pa.types.is_integer(given.type) else "beyond the calendar"
        )
        beyond = _wrong_note(name, read, given, what, rows) if len(read.wrong) else None
        return Column(name, "date", bool(absent.any()), is_open=bool(len(read.wrong))), beyond
    usable = cells.is_usable(read.values)
    values = read.values[usable]
    if len(values) == 0:
        return EMPTY
    missing = len(values) < len(usable)
    # Whether different whole numbers are one and the same float.
    loses_digits = (
        kind == "number" and not pa.types.is_floating(given.type) and max(-values.min(), values.max()) >= EXACT
    )
    loses_digits = loses_digits and len(given.drop_null().unique()) > len(np.unique(values))
    if values.min() == values.max() and not missing:
        but = " but for digits beyond the sixteenth, which no number holds" if loses_digits else ""
        return f"{CONSTANT}{values[0]:g}{but}"
    if kind == "number" and not settled and _are_days(values):
        days = cells.read(given, "date", "yyyymmdd")
        found = _number_column(name, "date", days, given, rows)
        if isinstance(found, str):
            return found
        note = f"column {name!r}: whole numbers such as {values[0]:.0f} are read as dates (year, month, day)"
        note = "; ".join(one for one in (note, found[1]) if one)
        return replace(found[0], spelling="yyyymmdd"), note
    is_whole = pa.types.is_integer(given.type)
    notes = []
    if kind == "number" and not (keep or settled) and len(values) >= ENOUGH_ROWS:
        n_different = len(given.unique()) if loses_digits else None
        reason = None if missing else id_reason(name, values, is_whole, n_different, n_rows)
        if reason:
            return reason
        # Numbers with a fraction are measured, whatever their name.
        if is_identifier_name(name) and (values == np.trunc(values)).all():
            notes += _if_nearly(n_different or len(np.unique(values)), len(values), "number")
    huge = int((~usable & ~np.isnan(read.values)).sum())
    if huge:
        notes.append(f"{huge:,} of {len(usable):,} cells are infinite or beyond 1e150: taken as missing")
    if loses_digits:
        notes.append("whole numbers beyond 2^53 lose their last digits as numbers, so that different ones may be equal")
    return Column(name, kind, missing), f"column {name!r}: {'; '.join(notes)}" if notes else None


def _are_days(values: Array) -> bool:
    """Whether numbers are days such as 20240131, enough of them different: all but one in ten."""
    for part in (values[:_FIRST], values):  # the first show of most columns that they are none
        if ((part >= _FIRST_DAY) & (part <= _LAST_DAY)).sum() < _MOSTLY_DAYS * len(part):
            return False
    different, counts = np.unique(values, return_counts=True)
    is_day = ~np.isnat(cells.read(pa.array(different), "date", "yyyymmdd").values)
    return bool(is_day.sum() >= _DIFFERENT_DAYS and counts[is_day].sum() >= _MOSTLY_DAYS * len(values))


def _category_column(
    name: str, array: pa.Array, *, keep: bool, note: str | None = None
) -> tuple[Column, str | None] | str:
    import pyarrow.compute as pc

    text = cells.texts(array)
    given = len(text) - text.null_count
    different = text.drop_null().unique()
    levels = len(different)
    if given == 0:
        return EMPTY
    if levels == 1 and not text.null_count:
        return f"{CONSTANT}{text[0].as_py()!r}"
    if given >= ENOUGH_ROWS and not keep:
        if levels == given:
            return FREE_TEXT if _is_free_text(different) else OWN_TEXT
        nearly = _if_nearly(levels, given, "text", is_free=levels >= _NEARLY * given and _is_free_text(different))
        note = note or (f"column {name!r}: {nearly[0]}" if nearly else None)
    if words := words_among(different):
        held = " and ".join(f"{word!r} in {pc.sum(pc.equal(text, word)).as_py():,}" for word in words)
        options = " ".join(f"--missing {quoted(f'{name}={word}')}" for word in words)
        said = (
            f"{held} of {len(text):,} rows: read as a level, not as a missing cell ({options} says that it is missing)"
        )
        note = "; ".join(one for one in (note, f"column {name!r}: {said}") if one)
    return Column(name, "category", bool(text.null_count)), note


def alike_levels(name: str, different: pa.Array | pa.ChunkedArray) -> str | None:
    """What is said of levels, texts, that differ by case or blanks only; None where no two do."""
    import pyarrow.compute as pc

    if different.type not in cells.TEXT_TYPES:
        return None
    levels = pc.utf8_trim_whitespace(different.unique().cast(pa.string())).unique().drop_null()
    keys, groups = pc.replace_substring_regex(pc.utf8_lower(levels), r"\s+", " "), dict[str, list[str]]()
    if len(keys.unique()) == len(keys):
        return None
    for key, level in zip(keys.to_pylist(), levels.to_pylist(), strict=True):
        groups.setdefault(key, []).append(level)
    alike = [" and ".join(map(repr, group[:4])) for group in groups.values() if len(group) > 1]
    such = f"levels differ by case or blanks only: {some_of(alike, 3)}"
    return f"column {name!r}: {such}; they are different levels in a fit"


def _if_nearly(n_different: int, n_given: int, what: str, *, is_free: bool = False) -> list[str]:
    """A note where nearly every row has its own cell: what a model learns there holds for no other row."""
    if n_different < _NEARLY * n_given:
        return []
    count = f"{n_different:,} different {what}s in {n_given:,} cells"
    if is_free:
        return [f"{count}: free text is a level as a whole, its words are not read, and hardly any level comes again"]
    return [f"{count}: if it is an identifier, it is better ignored"]


def _is_free_text(different: pa.Array) -> bool:
    """Whether at least half of different texts have three words or more."""
    import pyarrow.compute as pc

    words = pc.count_substring_regex(different, r"(?:^|[\s(])\pL{2,}")
    return bool(2 * (pc.sum(pc.greater_equal(words, _WORDS_OF_TEXT)).as_py() or 0) >= len(different))


def are_times_of_day(values: npt.NDArray[np.datetime64]) -> bool:
    """Whether moments are times such as 07:13, which name no day: these stand on the first one."""
    known = values[~np.isnat(values)]
    return bool(len(known)) and bool((known.astype("M8[D]") == np.datetime64(0, "D")).all())


NUMBERS_ROWS = "it numbers the rows"
OWN_NUMBER = "every row has a different number, as an identifier has"
OWN_TEXT = "every row has a different text, as an identifier has"
FREE_TEXT = "every row has a different text of several words, and words are not read"
IDENTIFIERS = frozenset((NUMBERS_ROWS, OWN_NUMBER, OWN_TEXT, FREE_TEXT))
"""Reasons to leave a column out that are a guess; a user who knows better keeps the column."""
_REPEATS = 8.0
"""Pairs of equal cells from which on it is no chance that there is none."""
# Between "customer" and "Id", and between "URL" and "Key".
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_LAST_WORDS = frozenset(("id", "ids", "uuid", "guid", "key", "nr", "no", "number", "rowid", "pk"))
_BEFORE_INDEX = frozenset(("", "row", "record", "sample", "unnamed", "line"))
_THINGS = (
    "account|case|client|customer|cust|device|doc|document|employee|emp|event|household|invoice|item|member|object|"
    "order|passenger|patient|person|policy|product|record|row|sample|serial|session|student|subject|trans|transaction|"
    "trip|txn|unique|user|visit"
)
# Words that are written together in small letters, as in "userid"; "paid" and "grid" are none.
_THING = re.compile(rf"(?:{_THINGS}|name|hash|email|phone|plate|machine|driver|student)s?")
_GROWN_TOGETHER = re.compile(rf"({_THINGS})id")


def is_identifier_name(name: str) -> bool:
    """Whether a name is one that is given to columns of row numbers and keys: whole words, ``paid`` is none."""
    if name.strip().lower() in ("column 1", "unnamed: 0"):
        return True
    words = [word.lower() for word in _WORD.findall(_HUMP.sub(" ", name))]
    if not words:
        return False
    if words[-1] in _LAST_WORDS or words[0] == "id" or _GROWN_TOGETHER.fullmatch(words[-1]):
        return True
    before = words[-2] if len(words) > 1 else ""
    return words[-1] in ("index", "row") and before in _BEFORE_INDEX


def names_things(name: str) -> bool:
    """Whether a name is one of people or things that may come back: ``customer``, ``patient_id``, ``Driver name``."""
    words = [word.lower() for word in _WORD.findall(_HUMP.sub(" ", name))]
    return is_identifier_name(name) or any(_THING.fullmatch(word) for word in words[-1:])


def id_reason(
    name: str, values: Array, is_whole: bool, n_different: int | None = None, n_rows: int | None = None
) -> str | None:
    """Why a column of numbers is taken for one that numbers or names the rows, or None.

    `n_different` are the different numbers, where floats are too coarse to count them; `n_rows` the rows of the table
    of which the values are a sample.
    """
    # The rows of a fit are a share of those of the file, so that there are gaps between their numbers. Of n numbers
    # drawn by chance from a range of R, about n²/2R pairs would be equal.
    n, spread = len(values), values.max() - values.min() + 1
    is_run = spread == n or (spread <= 4 * (n_rows or n) and n * n / (2 * spread) >= _REPEATS)
    in_sequence = is_whole and is_run
    if not (in_sequence or is_identifier_name(name)) or not (values == np.trunc(values)).all():
        return None
    if (len(np.unique(values)) if n_different is None else n_different) < len(values):
        return None
    return NUMBERS_ROWS if in_sequence else OWN_NUMBER
