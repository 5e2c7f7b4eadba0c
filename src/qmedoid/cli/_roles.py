"""Column roles as the options of a command give them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from qmedoid.exceptions import ParameterError
from qmedoid.tables.roles import Role, check_role_names, merged_roles, read_roles_file


def asked_roles(
    category: Sequence[str] | None,
    number: Sequence[str] | None,
    date: Sequence[str] | None,
    keep: Sequence[str] | None,
    ignore: Sequence[str] | None,
    file: Path | None,
) -> dict[str, Role]:
    """The roles of ``--category``, ``--number``, ``--date``, ``--keep``, ``--ignore`` and ``--roles`` together."""
    parts: list[tuple[str, Mapping[str, Role]]] = [] if file is None else [(file.name, read_roles_file(file))]
    given: dict[Role, Sequence[str] | None] = {
        "category": category, "number": number, "date": date, "keep": keep, "ignore": ignore,
    }  # fmt: skip
    parts += [(f"--{role}", dict.fromkeys(names or (), role)) for role, names in given.items()]
    return merged_roles(parts)


def roles_of_fit(roles: Mapping[str, Role], target: str, time_column: str | None = None) -> dict[str, Role]:
    """Roles in a fit: none for the target, and a column that orders the rows is not learnt from."""
    check_role_names(roles, [*roles], target)
    if time_column is None:
        return dict(roles)
    role = roles.get(time_column)
    if role in ("category", "keep"):
        raise ParameterError(
            f"--time-column {time_column!r} orders the rows and is not learnt from, but has the role {role!r}: "
            "leave one out."
        )
    return {**roles, time_column: "ignore"}
