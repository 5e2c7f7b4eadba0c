"""Rows for a fit: read in the roles of their columns, and split into training, validation and test."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.cli._output import note
from qmedoid.cli.options import TableOptions, TrainingOptions
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.geometry.row_groups import given_groups, group_classes, row_groups
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import shortened
from qmedoid.tables.cells import cell_codes, read
from qmedoid.tables.kinds import DateOrder, kind_of_type
from qmedoid.tables.roles import ROLES, Role, check_roles, find_units, in_roles, read_roles_file
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.source import TableSource, open_table
from qmedoid.tables.targets import class_labels, refuse_quantity

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions

Rows = npt.NDArray[np.int64]
MOST_ROWS = 5_000_000
"""Rows that are read as a whole at most, where no number is asked for."""
# Rows among which the names of the columns are looked for, below a title.
_TITLES = 5


def asked_roles(options: TableOptions) -> dict[str, Role]:
    """The column roles of all options about them."""
    parts: list[tuple[str, Mapping[str, Role]]] = []
    if options.roles is not None:
        parts.append((options.roles.name, read_roles_file(options.roles)))
    parts += [(f"--{role}", dict.fromkeys(getattr(options, role) or (), role)) for role in ROLES]
    return check_roles(*parts, target=options.target)


def asked_missing(options: TableOptions, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Values that are read as missing, by column; a name may hold an equals sign itself."""
    found: dict[str, list[str]] = {}
    for text in options.missing or ():
        places = [place for place, sign in enumerate(text) if sign == "="]
        if not places:
            raise ParameterError(f"--missing takes a column and a value, such as Cholesterol=0. Got {text!r} instead.")
        name, value = next(
            ((text[:place], text[place + 1 :]) for place in reversed(places) if text[:place] in names),
            (text[: places[0]], text[places[0] + 1 :]),
        )
        found.setdefault(name, []).append(value)
    return check_missing("--missing", found, names=names, target=options.target)


class ReadRows(NamedTuple):
    """A table, the numbers of its rows in the file, the roles of its columns, and notes on how it was read.

    The role is "ignore" where a column orders, groups or weighs the rows: it is not learnt from. `first_row` says where
    the first row is.
    """

    table: pa.Table
    rows: Rows
    roles: dict[str, Role]
    notes: list[str]
    first_row: str


def with_used_columns(options: TableOptions, asked: Mapping[str, Role]) -> dict[str, Role]:
    """The roles of all columns: those that order, group or weigh the rows are not learnt from."""
    roles = dict(asked)
    for option, does in {"time_column": "orders", "group_column": "groups", "weight_column": "weighs"}.items():
        name = getattr(options, option, None)
        if name is None:
            continue
        if roles.get(name) in ("category", "keep"):
            raise ParameterError(
                f"--{option.replace('_', '-')} {name!r} {does} the rows and is not learnt from, but has the role "
                f"{roles[name]!r}: leave one out."
            )
        roles[name] = "ignore"
    return check_roles(("The options", roles), target=options.target)


def fit_roles(options: TableOptions) -> dict[str, Role]:
    """The roles of all columns of the table of a fit."""
    return with_used_columns(options, asked_roles(options))


def check_names(
    names: Sequence[str], description: str, needed: Sequence[str], hint: Callable[[str], str] | None = None
) -> None:
    """Refuse a table that lacks a column."""
    for name in needed:
        if name not in names:
            way_out = did_you_mean(name, names) if hint is None else hint(name)
            has = some_of([repr(one) for one in names])
            raise DataError(f"There is no column {name!r} in {description}.{way_out} It has {has}.")


def read_rows(options: TableOptions, asked: Mapping[str, Role], other: str | None = None) -> ReadRows:
    """Read the table of a command as a fit takes it, or another one; of too many rows a sample."""
    roles = with_used_columns(options, asked)
    needed = [*([] if options.target is None else [options.target]), *(roles if other is None else ())]
    source = open_table(other or options.table, delimiter=options.delimiter, decimal=options.decimal)
    with closing(source):
        check_names(source.names, source.description, needed, lambda name: _way_out(name, source))
        # A number would lose part of the cells of these.
        texts = [name for name, role in roles.items() if role in ("category", "date")]
        table, rows = source.read(options.max_rows or MOST_ROWS, np.random.default_rng(options.seed), texts=texts)
        notes, known, first_row = source.notes, source.n_rows, source.first_row
    if len(rows) and rows[-1] >= len(rows):  # of a text it is not known how many there are
        of = "" if known is None else f" of {known:,}"
        notes.append(f"a random sample of {len(table):,}{of} rows is used (--max-rows).")
    return ReadRows(in_roles(table, roles), rows, roles, notes, first_row)


def _way_out(name: str, source: TableSource) -> str:
    """What may be meant by a column that is not there: several, one below a title, or one of a similar name."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and set(parts) <= set(source.names):
        return " Give an option for each column, not names with commas between."
    hint = did_you_mean(name, source.names)
    if not hint and source.is_text and source.n_bytes is not None:
        first = next(iter(source.batches(types=dict.fromkeys(source.names, pa.string()))), None)
        rows = [] if first is None else first.slice(0, _TITLES).to_pylist()
        if any(name in row.values() for row in rows):
            return f" A row holds {name!r}: if it has the names of the columns, remove the lines above it."
    return hint


class Labeled(NamedTuple):
    """A table and its target column, rows without a class left out; `rows` are their places in the file.

    `roles` are those of the columns in a fit. `read` is the table with all rows that were read: it is asked for the
    names of levels, and for nothing else.
    """

    table: pa.Table
    target: pa.ChunkedArray
    rows: Rows
    roles: dict[str, Role]
    read: pa.Table


def takes_numbers(options: TrainingOptions) -> bool:
    """Whether many numbers in the target are classes all the same: that was said, or one of them is asked for."""
    return options.classes or options.positive is not None


def read_labeled(options: TrainingOptions, asked: Mapping[str, Role], other: str | None = None) -> Labeled:
    """Read a table with its target, as `read_rows` does; rows without a class are left out with a note."""
    read, rows, roles, notes, first_row = read_rows(options, asked, other)
    for one in notes:
        note(one)
    units = find_units(read, roles) if len(rows) and not rows[0] else None
    if units is not None:
        units.refuse_or_warn(first_row)
    target = str(options.target)
    table, (labeled, labels) = read, class_labels(read[target], target)
    if len(labeled) < len(table):
        missing = len(table) - len(labeled)
        note(f"{missing:,} of {len(table):,} rows have no class in {target!r} and are left out.")
        table, rows = table.take(labeled), rows[labeled]
    if len(table) == 0:
        raise DataError(f"No row of {other or options.table} has a class in {target!r}: there is nothing to fit.")
    merged = len(table[target].unique()) - len(labels.unique())
    if len(labels.unique()) == 1 and other is None:
        raise DataError(
            f"The target {target!r} holds one class only, {labels[0].as_py()!r}: a fit needs at least 2. "
            "Give another column as --target, or a table with other rows as well."
        )
    if other is None and not takes_numbers(options):
        found = labels.value_counts()
        refuse_quantity(target, found.field("values").to_pylist(), found.field("counts").to_pylist())
    if merged > 0:
        note(f"{merged:,} of the classes in {target!r} differ from another by blanks around them only.")
    return Labeled(table, labels, rows, roles, read)


class Parts(NamedTuple):
    """Row numbers of the three parts; empty where there is none."""

    train: Rows
    valid: Rows
    test: Rows


def split_rows(
    labels: Codes, valid: float, test: float, *, order: Rows | None, seed: int, groups: Codes | None = None
) -> Parts:
    """Split rows by shares: in an order, where one is given (the last rows are the test), else by chance and class.

    Of every class the same share goes to each part, rounded; a class of one row stays in training. Rows of one group
    go to one part, except in an order.
    """
    if valid + test >= 1:
        raise ParameterError(f"--valid and --test take {valid + test:.3g} of the rows: nothing is left to train on.")
    if order is not None:
        n_test, n_valid = round(test * len(labels)), round(valid * len(labels))
        rest = len(labels) - n_test - n_valid
        return Parts(order[:rest], order[rest : rest + n_valid], order[rest + n_valid :])
    rng = np.random.default_rng(seed)
    use = np.zeros(len(labels) if groups is None else groups.max() + 1, dtype=np.intp)
    # Whole groups by chance, each as one of its rarest class; the shares are those of the rows.
    classes = labels if groups is None else group_classes(groups, labels)
    for code in np.unique(classes):
        members = rng.permutation(np.flatnonzero(classes == code))
        if groups is None:
            n_test, n_valid = round(test * len(members)), round(valid * len(members))
            use[members[len(members) - n_test - n_valid :]] = 1
            use[members[len(members) - n_test :]] = 2
        elif len(members) > 1:  # one group alone stays in training
            # A group goes where its middle row would go.
            sizes = np.bincount(groups)[members]
            middles = (np.cumsum(sizes) - sizes / 2.0) / sizes.sum()
            use[members] = (middles > 1.0 - valid - test).astype(np.intp) + (middles > 1.0 - test)
    use = use if groups is None else use[groups]
    return Parts(*(np.flatnonzero(use == part).astype(np.int64) for part in range(3)))


def time_order(column: pa.ChunkedArray, name: str, date_order: DateOrder | None = None) -> Rows:
    """Row numbers in the order of a time column; rows of one time keep their order."""
    import pyarrow.compute as pc

    from qmedoid.tables.text_kinds import moments_of_text

    if column.null_count:
        raise DataError(f"The time column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    kind = kind_of_type(column.type)
    if kind is None:
        of_type = shortened(str(column.type))
        raise DataError(f"The time column {name!r} is of type {of_type}. Give a column of dates, times or numbers.")
    if kind == "category":
        column = moments_of_text(column, name, date_order)
    order: Rows = pc.sort_indices(pa.table({"time": column}), sort_keys=[("time", "ascending")]).to_numpy()
    return order.astype(np.int64)


def given_row_groups(data: Labeled, name: str) -> Any:
    """Groups of rows with the same value in a column."""
    column = data.table[name]
    check_group_type(name, column.type)
    if column.null_count:
        raise DataError(f"The group column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    return given_groups(cell_codes(data.table, [name])[:, 0], len(data.table))


def check_group_type(name: str, kind: pa.DataType) -> None:
    """Refuse a group column whose cells cannot be compared."""
    if pa.types.is_nested(kind):
        of_type = shortened(str(kind))
        raise DataError(f"The group column {name!r} is of type {of_type}. Give a column of names or whole numbers.")


def row_weights(data: Labeled, name: str) -> Array:
    """Weights of rows in a column: numbers from 0 up; any other cell is refused with its row of the file."""
    values, _ = read(data.table[name], "number")
    weights = values.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        cell = data.table[name][int(bad[0])].as_py()
        raise DataError(
            f"The weight column {name!r} holds {'nothing' if cell is None else repr(cell)} in row "
            f"{data.rows[bad[0]]:,} ({len(bad):,} of {len(weights):,} rows). A weight says how many rows a row stands "
            "for: give numbers from 0 up."
        )
    return weights


def split_table(
    data: Labeled, options: "FitOptions", learnt: Sequence[str], valid: float, test: float
) -> tuple[Labeled, Labeled | None, Labeled | None, Any]:
    """Split a table by shares into training, validation and test rows, with the groups of the training rows, if given.

    Rows of one group stay together, and, without a group column, rows that are equal in all columns learnt from.
    """
    classes = data.target.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.intp)
    given = options.group_column
    groups = row_groups(cell_codes(data.table, learnt), classes) if given is None else given_row_groups(data, given)
    order = None
    if options.time_column is not None:
        order = time_order(data.table[options.time_column], options.time_column, options.date_order)
    parts = split_rows(classes, valid, test, order=order, seed=options.seed, groups=groups)
    if order is not None and groups is not None:
        known = int(np.isin(groups[np.append(parts.valid, parts.test)], groups[parts.train]).sum())
        if known:
            what = "are equal to one" if given is None else f"have the {given!r} of one"
            note(f"{known:,} of the rows that are held out by time {what} of the training rows.")
    taken = [
        data._replace(table=data.table.take(rows), target=data.target.take(rows), rows=data.rows[rows])
        for rows in parts
    ]
    validation, held_out = (part if len(part.rows) else None for part in taken[1:])
    return taken[0], validation, held_out, None if given is None or groups is None else groups[parts.train]
