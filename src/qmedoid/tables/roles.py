"""Column roles, and what may not be learned from: columns that number or name rows, and rows of units.

A role is what a user says that a column is; it wins over what is guessed from the cells. Rows of units below the
header, such as ``years,kg``, are no records.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError, some_of, warn
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells

Role = Literal["category", "number", "date", "keep", "ignore"]
ROLES: tuple[Role, ...] = get_args(Role)
_LARGEST_FILE = 1 << 20
_WHOLE = r"^(\s*-?(?:0|[1-9]\d{0,14}))\.0*(\s*)$"


def is_number_type(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are numbers."""
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
    return any(holds(kind) for holds in numeric)


def check_roles(
    *parts: tuple[str, Any], names: Collection[str] | None = None, target: str | None = None
) -> dict[str, Role]:
    """Roles of columns by what several places say, each with the words that name it; what is wrong is refused.

    So are roles of columns that are not among `names` (None allows all), and of the target. A column has one role, but
    `keep` goes together with one that says how cells are read, as such a column is kept anyway.
    """
    merged: dict[str, Role] = {}
    origins: dict[str, str] = {}
    for origin, roles in parts:
        if roles is not None and not isinstance(roles, Mapping):
            such = "such as {'zip': 'category'}"
            raise ParameterError(f"{origin} must map column names to roles, {such}. Got {roles!r}.")
        for name, role in (roles or {}).items():
            if not isinstance(name, str):
                raise ParameterError(f"{origin} must name columns by texts. Got {name!r} instead.")
            if role not in ROLES:
                allowed = "'category', 'number', 'date', 'keep' or 'ignore'"
                raise ParameterError(f"{origin} gives column {name!r} the role {role!r}. Allowed are {allowed}.")
            if name == target:
                raise ParameterError(f"Column {name!r} is the target and cannot have the role {role!r}: leave one out.")
            if names is not None and name not in names:
                raise ParameterError(
                    f"Column {name!r} has the role {role!r}, but is not a column.{did_you_mean(name, names)} "
                    f"The columns are {some_of([repr(one) for one in names])}."
                )
            before = merged.get(name, role)
            pair = {before, role}
            if len(pair) > 1 and not ("keep" in pair and "ignore" not in pair):
                raise ParameterError(
                    f"Column {name!r} has two roles: {before!r} by {origins[name]} and {role!r} by {origin}. "
                    "Give it one."
                )
            if name not in merged or before == "keep":
                merged[name], origins[name] = role, origin
    return merged


def read_roles_file(path: Path) -> dict[str, Role]:
    """Roles from a TOML file of lines such as ``zip = "category"``."""
    import tomllib

    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise DataError(f"{path} has more than {_LARGEST_FILE:,} bytes: that is no file of column roles.")
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"The file of roles {str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f'{path} is no TOML file of column roles: {error}. Write a line such as zip = "category" for each column, '
            "and quotes around a name with blanks or points."
        ) from error
    # A name with a point that has no quotes is a table within a table.
    inner = next((name for name, role in content.items() if isinstance(role, Mapping)), None)
    if inner is not None:
        raise ParameterError(f"{path}: {inner!r} holds a table, not a role. Put names with points into quotes.")
    return check_roles((str(path), content))


def in_roles(table: pa.Table, roles: Mapping[str, Role]) -> pa.Table:
    """The table with categories by role as texts: whole numbers without ``.0``, as scoring looks them up."""
    for name, role in roles.items():
        if role != "category" or name not in table.column_names or pa.types.is_dictionary(table[name].type):
            continue
        array = cells.one_chunk(table[name])
        kind = array.type
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            raise DataError(
                f"Column {name!r} has the role 'category', but holds dates ({kind}), which can be written in many "
                "ways. Turn them into texts first, or give it the role 'date'."
            )
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise DataError(f"Column {name!r} has the role 'category', but cells of type {kind} are not read.")
        import pyarrow.compute as pc

        # Blanks around a text stay: it is shown as it stands in the table, and looked up without them.
        made = pc.replace_substring_regex(cells.as_text(array), _WHOLE, r"\1\2")
        table = table.set_column(table.column_names.index(name), name, made)
    return table


NUMBERS_ROWS = "it numbers the rows"
OWN_NUMBER = "every row has a different number, as an identifier has"
OWN_TEXT = "every row has a different text, as an identifier has"
TARGET_NAME = "it has the name of the target: rename it, or the target, to keep it"
IDENTIFIERS = frozenset((NUMBERS_ROWS, OWN_NUMBER, OWN_TEXT))
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


def id_reason(
    name: str, values: Array, is_whole: bool, n_different: int | None = None, n_rows: int | None = None
) -> str | None:
    """Why a column of numbers is taken for one that numbers or names the rows, or None.

    `n_different` are the different numbers, where floats are too coarse to count them; `n_rows` the rows of the table
    of which the values are a sample.
    """
    in_sequence = is_whole and _are_of_a_run(values, n_rows or len(values))
    if not (in_sequence or is_identifier_name(name)) or not (values == np.trunc(values)).all():
        return None
    if (len(np.unique(values)) if n_different is None else n_different) < len(values):
        return None
    return NUMBERS_ROWS if in_sequence else OWN_NUMBER


def _are_of_a_run(values: Array, n_rows: int) -> bool:
    """Whether whole numbers, all different, are too close together for anything but numbered rows.

    The rows of a fit are a share of those of the file, so that there are gaps between their numbers. Of n numbers
    drawn by chance from a range of R, about n²/2R pairs would be equal.
    """
    n, spread = len(values), values.max() - values.min() + 1
    return bool(spread == n or (spread <= 4 * n_rows and n * n / (2 * spread) >= _REPEATS))


# Rows below the header that may be no records.
_MOST = 3
# Cells that a column has below these rows at least, and the share of them that are numbers.
_FEWEST, _MOSTLY = 5, 0.9
# Cells that show of most columns of texts that they are none of numbers.
_FEW = 100
# Roles that settle what a column is.
_SETTLED = ("number", "category", "date", "ignore")
# What a text has that says something, and words that say that a cell is missing: neither - nor n/a is a unit.
_SIGNS = r"[\pL%°$€£¥]"
_ABSENT = r"^(?i:unknown|missing|none|null|nan|na|n/a|n\.a\.|nil|not available|not known|error|undefined)$"


def units_message(n_rows: int, texts: Mapping[str, str], first: str) -> str:
    """What is said of rows that look like units, with texts by column; the `first` of them is called so."""
    such = some_of([f"{text!r} in {name!r}" for name, text in texts.items()], 3)
    name = next(iter(texts))
    rows = f"{first} and the {'next' if n_rows == 2 else 'next two'} look" if n_rows > 1 else f"{first} looks"
    record = "they are records" if n_rows > 1 else "it is a record"
    return (
        f"{rows} like units, not like {'records' if n_rows > 1 else 'a record'}: {such}, above cells that are "
        f"numbers. Remove {'them' if n_rows > 1 else 'it'}; or, if {record}, say --number {name!r} "
        f"(roles={{{name!r}: 'number'}} in Python), and so on: then such cells are missing"
    )


def refuse_units(table: pa.Table, roles: Mapping[str, Role], first: str) -> None:
    """Refuse a table that surely begins with units, and warn where it may be a record with a mistyped cell."""
    n_rows, texts = find_units(table, roles)
    if n_rows:
        text = f"{units_message(n_rows, texts, first)}."
        text = text[0].upper() + text[1:]
        if len(texts) > 1:
            raise DataError(text)
        warn(text)


def find_units(table: pa.Table, roles: Mapping[str, Role]) -> tuple[int, dict[str, str]]:
    """With how many rows of units a table begins, none where that is a record; and texts of the first, by column.

    Such a row has texts in more of the columns that hold numbers below than it has numbers, and the texts do not occur
    again. Columns whose role settles what they are do not count.
    """
    if not any(cells.is_text(field.type) for field in table.schema):
        return 0, {}
    texts, numbers = [dict[str, str]() for _ in range(_MOST)], _MOST * [0]
    for name, column in zip(table.column_names, table.columns, strict=True):
        if roles.get(name) in _SETTLED:
            continue
        if is_number_type(column.type):
            for row, cell in enumerate(column.slice(0, _MOST).is_valid().to_pylist()):
                numbers[row] += cell
        elif cells.is_text(column.type):
            for row, (text, is_number) in enumerate(_head_of_numbers(column)):
                numbers[row] += is_number
                if text is not None:
                    texts[row][name] = text
    n_rows = next((row for row in range(_MOST) if len(texts[row]) <= numbers[row]), _MOST)
    return n_rows, texts[0] if n_rows else {}


def _head_of_numbers(column: pa.ChunkedArray) -> list[tuple[str | None, bool]]:
    """Of the first cells of a column of numbers the text, if one is no number, and whether it is; else nothing."""
    import pyarrow.compute as pc

    from qmedoid.tables.numbers import look_like_numbers

    if not _are_numbers(_texts(column.slice(_MOST, _FEW)).drop_null(), fewest=0):
        return []
    head = _texts(column.slice(0, _MOST))
    are_numbers = look_like_numbers(head)
    says = pc.and_(pc.match_substring_regex(head, _SIGNS), pc.invert(pc.match_substring_regex(head, _ABSENT)))
    is_unit = pc.and_(pc.fill_null(says, False), pc.invert(are_numbers))
    if pc.any(is_unit).as_py():
        # All other cells are looked at where it matters only: that takes its time.
        below = _texts(column.slice(_MOST)).drop_null()
        if not _are_numbers(below, fewest=_FEWEST):
            return []
        is_unit = pc.and_(is_unit, pc.invert(pc.is_in(head, value_set=below.unique())))
    parts = zip(head.to_pylist(), is_unit.to_pylist(), are_numbers.to_pylist(), strict=True)
    return [(text if unit else None, bool(number)) for text, unit, number in parts]


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return cells.texts(column).cast(pa.string())


def _are_numbers(given: pa.Array, *, fewest: int) -> bool:
    """Whether there are enough cells, and nearly all of them are numbers in any spelling."""
    import pyarrow.compute as pc

    from qmedoid.tables.numbers import look_like_numbers

    return len(given) >= fewest and (pc.sum(look_like_numbers(given)).as_py() or 0) >= _MOSTLY * len(given)
