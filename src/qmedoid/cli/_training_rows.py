"""Rows for a fit: read in the roles of their columns, and split into training, validation and test."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.cli._output import tell
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.geometry.row_groups import given_groups, group_classes, row_groups
from qmedoid.tables.arrow import shortened
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.kinds import DateOrder, kind_of_type
from qmedoid.tables.roles import ROLES, Role, check_roles, in_roles, read_roles_file
from qmedoid.tables.source import open_table
from qmedoid.tables.targets import class_labels, labeled_rows

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is read, as the options of all commands that read rows for a fit are called."""

    table: str
    seed: int
    max_rows: int
    delimiter: str | None = None
    decimal: str | None = None
    date_order: DateOrder | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)


def with_roles(asked: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """The options of a command without `others`, and with all options about column roles as one."""
    options = {name: value for name, value in asked.items() if name not in others}
    file: Path | None = options.pop("roles")
    parts: list[tuple[str, Mapping[str, Role]]] = [] if file is None else [(file.name, read_roles_file(file))]
    parts += [(f"--{role}", dict.fromkeys(options.pop(role) or (), role)) for role in ROLES]
    return options | {"roles": check_roles(*parts)}


def roles_of_fit(roles: Mapping[str, Role], target: str, time_column: str | None = None) -> dict[str, Role]:
    """Roles in a fit: none for the target, and a column that orders the rows is not learnt from."""
    check_roles(("The options", roles), target=target)
    if time_column is None:
        return dict(roles)
    role = roles.get(time_column)
    if role in ("category", "keep"):
        raise ParameterError(
            f"--time-column {time_column!r} orders the rows and is not learnt from, but has the role {role!r}: "
            "leave one out."
        )
    return {**roles, time_column: "ignore"}


class Parts(NamedTuple):
    """Row numbers of the three parts; empty where there is none."""

    train: Rows
    valid: Rows
    test: Rows


def share_or_file(option: str, value: str | None) -> float | str:
    """A share of the rows as a number, or the name of a file; None and 0 are no rows at all."""
    if value is None:
        return 0.0
    try:
        share = float(value)
    except ValueError:
        return value
    if not 0 <= share < 1:
        raise ParameterError(f"{option} must be a file or a share of at least 0 and below 1. Got {value} instead.")
    return share


def split_rows(
    labels: Codes,
    valid: float,
    test: float,
    *,
    order: Rows | None,
    seed: int,
    groups: Codes | None = None,
) -> Parts:
    """Split rows by shares: in an order, where one is given (the last rows are the test), else by chance and class.

    Of every class the same share goes to each part, rounded; a class of one row stays in training. Rows of one group
    go to one part, except in an order.
    """
    if valid + test >= 1:
        raise ParameterError(f"--valid and --test take {valid + test:.3g} of the rows: nothing is left to train on.")
    n = len(labels)
    if order is not None:
        n_test, n_valid = round(test * n), round(valid * n)
        rest = n - n_test - n_valid
        return Parts(order[:rest], order[rest : rest + n_valid], order[rest + n_valid :])
    rng = np.random.default_rng(seed)
    if groups is not None:
        return _split_groups(labels, groups, valid, test, rng)
    parts: tuple[list[Rows], list[Rows], list[Rows]] = ([], [], [])
    for code in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == code))
        n_test, n_valid = round(test * len(own)), round(valid * len(own))
        for part, rows in zip(parts, np.split(own, [len(own) - n_test - n_valid, len(own) - n_test]), strict=True):
            part.append(rows)
    return Parts(*(np.sort(np.concatenate(part)).astype(np.int64) for part in parts))


def _split_groups(labels: Codes, groups: Codes, valid: float, test: float, rng: np.random.Generator) -> Parts:
    """Whole groups by chance, each as one of its rarest class; the shares are those of the rows."""
    classes, sizes, use = group_classes(groups, labels), np.bincount(groups), np.zeros(groups.max() + 1, dtype=np.intp)
    for code in np.unique(classes):
        own = rng.permutation(np.flatnonzero(classes == code))
        # A group goes where its middle row would go; one group alone has its middle at a half, and stays in training.
        middles = (np.cumsum(sizes[own]) - sizes[own] / 2.0) / sizes[own].sum()
        use[own] = 0 if len(own) == 1 else (middles > 1.0 - valid - test).astype(np.intp) + (middles > 1.0 - test)
    return Parts(*(np.flatnonzero(use[groups] == part).astype(np.int64) for part in range(3)))


def time_order(column: pa.ChunkedArray, name: str, date_order: DateOrder | None = None) -> Rows:
    """Row numbers in the order of a time column; rows of one time keep their order."""
    import pyarrow.compute as pc

    from qmedoid.tables._text_kinds import moments_of_text

    if column.null_count:
        raise DataError(f"The time column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    if kind_of_type(column.type) is None:
        raise DataError(
            f"The time column {name!r} is of type {shortened(str(column.type))}. Give a column of dates, times or "
            "numbers."
        )
    if kind_of_type(column.type) == "category":
        column = moments_of_text(column, name, date_order)
    order: Rows = pc.sort_indices(pa.table({"time": column}), sort_keys=[("time", "ascending")]).to_numpy()
    return order.astype(np.int64)


class Labeled(NamedTuple):
    """A table and its target column, rows without a class left out; `rows` are their places in the file.

    `read` is the table with all rows that were read: it is asked for the names of levels, and for nothing else.
    """

    table: pa.Table
    target: pa.ChunkedArray
    rows: Rows
    read: pa.Table


def read_rows(
    where: str, options: TableOptions, needed: Sequence[str], time_column: str | None = None
) -> tuple[pa.Table, Rows, list[str]]:
    """A table as a fit takes it: columns in their roles, of too many rows a sample; with row numbers and notes."""
    dialect = {"delimiter": options.delimiter, "decimal": options.decimal}
    with closing(open_table(where, **dialect)) as source:
        for name in needed:
            if name not in source.names:
                raise DataError(f"There is no column {name!r} in {source.description}: it has {some_of(source.names)}.")
        roles = {name: role for name, role in options.roles.items() if name != time_column}
        rng = np.random.default_rng(options.seed)
        # A number would lose part of the cells of these.
        texts = [name for name, role in roles.items() if role in ("category", "date")]
        table, rows = source.read(options.max_rows, rng, texts=texts)
        notes, known = source.notes, source.n_rows
    if len(rows) and rows[-1] >= len(rows):  # of a text it is not known how many there are
        of = "" if known is None else f" of {known:,}"
        notes.append(f"a random sample of {len(table):,}{of} rows is used (--max-rows).")
    return in_roles(table, roles), rows, notes


def read_labeled(
    where: str, options: TableOptions, target: str, needed: Sequence[str] = (), time_column: str | None = None
) -> Labeled:
    """A table with its target and what else is needed; rows without a class are left out with a note."""
    table, rows, notes = read_rows(where, options, [target, *needed], time_column)
    for note in notes:
        tell(f"note: {note}")
    read, labeled = table, labeled_rows(table[target])
    if len(labeled) < len(table):
        missing = len(table) - len(labeled)
        tell(f"note: {missing:,} of {len(table):,} rows have no class in {target!r} and are left out.")
        table, rows = table.take(labeled), rows[labeled]
    if len(table) == 0:
        raise DataError(f"No row of {where} has a class in {target!r}: there is nothing to fit.")
    labels = class_labels(table[target], target)
    merged = len(table[target].unique()) - len(labels.unique())
    if merged > 0:
        tell(f"note: {merged:,} of the classes in {target!r} differ from another by blanks around them only.")
    return Labeled(table, labels, rows, read)


def row_groups_of(data: Labeled, group_column: str | None, learnt: Sequence[str] = ()) -> Any:
    """Groups of rows by a column, or of rows that are equal in all columns that are learnt from; None for none."""
    if group_column is not None:
        column = data.table[group_column]
        if column.null_count:
            raise DataError(
                f"The group column {group_column!r} is missing in {column.null_count:,} rows: fill in or drop them."
            )
        return given_groups(cell_codes(data.table, [group_column])[:, 0], len(data.table))
    return row_groups(cell_codes(data.table, learnt), class_numbers(data))


def class_numbers(data: Labeled) -> Any:
    """Classes of the rows as codes, in the order in which they appear."""
    return data.target.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.intp)
