"""Column roles: what a user says that columns are, which wins over what is guessed from their cells."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.tables import cells

Role = Literal["category", "number", "date", "keep", "ignore"]
ROLES: tuple[Role, ...] = get_args(Role)
KINDS_BY_ROLE: tuple[Role, ...] = ("category", "number", "date")
"""Roles that say how cells are read; such a column is used even if it looks like an identifier."""

_LARGEST_FILE = 1 << 20
_WHOLE = r"^(\s*-?(?:0|[1-9]\d{0,14}))\.0*(\s*)$"
_ROLES_IN_WORDS = "'category', 'number', 'date', 'keep' or 'ignore'"


def check_roles(roles: Any, what: str = "The 'roles' parameter") -> dict[str, Role]:
    """A mapping of column names to roles, or a `ParameterError` that says what is wrong with it."""
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise ParameterError(f"{what} must map column names to roles, such as {{'zip': 'category'}}. Got {roles!r}.")
    for name, role in roles.items():
        if not isinstance(name, str):
            raise ParameterError(f"{what} must name columns by texts. Got {name!r} instead.")
        if role not in ROLES:
            raise ParameterError(f"{what} gives column {name!r} the role {role!r}. Allowed are {_ROLES_IN_WORDS}.")
    return dict(roles)


def merged_roles(parts: Iterable[tuple[str, Mapping[str, Role]]]) -> dict[str, Role]:
    """Roles from several places, each with the words that name it; a column that is given two roles is refused.

    `keep` goes together with a role that says how cells are read, as such a column is kept anyway.
    """
    merged: dict[str, Role] = {}
    origins: dict[str, str] = {}
    for origin, roles in parts:
        for name, role in roles.items():
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
    return check_roles(content, str(path))


def check_role_names(roles: Mapping[str, Role], names: Collection[str], target: str | None = None) -> None:
    """Refuse roles of columns that are not there, and of the target."""
    for name, role in roles.items():
        if name == target:
            raise ParameterError(f"Column {name!r} is the target and cannot have the role {role!r}: leave one out.")
        if name not in names:
            close = difflib.get_close_matches(name, list(names), 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ParameterError(
                f"Column {name!r} has the role {role!r}, but is not a column.{hint} "
                f"The columns are {some_of([repr(one) for one in names])}."
            )


def read_as_text(roles: Mapping[str, Role]) -> list[str]:
    """Columns whose cells are taken from a text file as they are written, as a number would lose part of them."""
    return [name for name, role in roles.items() if role in ("category", "date")]


def in_roles(table: pa.Table, roles: Mapping[str, Role]) -> pa.Table:
    """The table with categories by role as texts: whole numbers without ``.0``, as scoring looks them up."""
    for name, role in roles.items():
        if role != "category" or name not in table.column_names:
            continue
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            made = _level_texts(name, cells.one_chunk(column))
            table = table.set_column(table.column_names.index(name), name, made)
    return table


def _level_texts(name: str, array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        raise DataError(
            f"Column {name!r} has the role 'category', but holds dates ({kind}), which can be written in many ways. "
            "Turn them into texts first, or give it the role 'date'."
        )
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise DataError(f"Column {name!r} has the role 'category', but cells of type {kind} are not read.")
    import pyarrow.compute as pc

    # Blanks around a text stay: it is shown as it stands in the table, and looked up without them.
    return pc.replace_substring_regex(cells.as_text(array), _WHOLE, r"\1\2")
