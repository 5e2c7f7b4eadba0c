"""The rows of a fit as one table: kinds of its columns, classes, groups and weights, made once.

Estimators make one of what they are given, the command line of a file, and a fit in passes of a sample. Everything that
is fitted again, to folds, to bootstrap samples or beside baselines, is fitted to a part of one (`Dataset.take`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.geometry.row_groups import group_classes, group_folds, numbered, part_of, ranks, row_groups
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.arrow import WORDS, kept_words, shortened
from qmedoid.tables.kinds import DateOrder, Inferred, are_times_of_day, infer_alike, infer_columns, kind_of_type
from qmedoid.tables.repeats import Repeat, find_repeats
from qmedoid.tables.roles import ROLES, Role
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import Target, refuse_quantity, unlabeled_note

_TARGET_NAME = "it has the name of the target: rename it, or the target, to keep it"
# What is done with the columns that are not learned from, and the reason that a model gives for leaving them out.
_USES = {
    "times": ("orders", "it orders the rows in time"),
    "groups": ("groups", "it says which rows belong together"),
    "weights": ("weighs", "it weighs the rows"),
}

Folds: TypeAlias = list[tuple[Codes, Codes]]
"""Rows to fit and rows to judge by of each fold."""


@dataclass(frozen=True, kw_only=True)
class DatasetSettings:
    """How a table becomes a dataset: its target, roles, values that are read as missing, and how texts are read.

    The columns `groups`, `weights` and `times` keep rows together, weigh and order them; none of them is learned from.
    With `takes_numbers`, many numbers in the target are classes all the same. Where rows are `alone`, nobody looks for
    people who come back.
    """

    target: str | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    decimal: str | None = None
    date_order: DateOrder | None = None
    missing: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    groups: str | None = None
    weights: str | None = None
    times: str | None = None
    takes_numbers: bool = False
    alone: bool = False

    @cached_property
    def all_roles(self) -> dict[str, Role]:
        """Roles of all columns that have one: those that order, group or weigh the rows are ignored."""
        roles = dict(self.roles)
        for use, (does, _) in _USES.items():
            name = getattr(self, use)
            if name is None:
                continue
            if roles.get(name) in ("category", "keep"):
                raise ParameterError(
                    f"Column {name!r} {does} the rows and is not learned from, but has the role {roles[name]!r}: leave "
                    "one out."
                )
            roles[name] = "ignore"
        return check_roles(("The options", roles), target=self.target)

    @property
    def unread(self) -> set[str]:
        """The target, and columns that no model reads."""
        return {str(self.target), *(name for name, role in self.all_roles.items() if role == "ignore")}

    def infer(
        self,
        table: pa.Table,
        n_rows: int | None = None,
        rows: Codes | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Inferred:
        """The kinds of the columns of a table; one without a column to learn from is refused.

        `n_rows` are the rows of which those of the table are a sample, `rows` their numbers in the source; `notes` tell
        what is known of columns already.
        """
        found = infer_columns(
            table,
            skip=set() if self.target is None else {self.target},
            roles=self.all_roles,
            decimal=self.decimal,
            date_order=self.date_order,
            missing={name: values for name, values in self.missing.items() if name != self.target},
            n_rows=n_rows,
            rows=rows,
            notes=notes,
        )
        _check_any(found)
        used = {getattr(self, use): why for use, (_, why) in _USES.items()}
        return replace(found, left_out={name: used.get(name, why) for name, why in found.left_out.items()})


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows for a fit: a table with null for what stands for missing cells, how its columns are read, and classes."""

    table: pa.Table
    kinds: Inferred
    target: Target
    settings: DatasetSettings
    rows: Codes  # number of every row in its source
    n_source: int  # rows of the source, as far as is known
    groups: Codes | None = None  # those that were given; where there are none, equal rows belong together
    weights: Array | None = None
    times: pa.ChunkedArray | None = None  # moments or numbers that order the rows
    notes: tuple[str, ...] = ()  # how the rows were read
    whole: pa.Table | None = None  # rows without a class as well, for the names of levels
    is_part: bool = False  # whether the kinds were inferred from more rows than these

    @classmethod
    def of(
        cls,
        table: pa.Table,
        target: Target,
        settings: DatasetSettings,
        *,
        groups: Codes | None = None,
        weights: Array | None = None,
        rows: Codes | None = None,
        n_source: int | None = None,
        kinds: Inferred | None = None,
    ) -> "Dataset":
        """The rows of a table in memory; `kinds` says how columns are read, if that was inferred from more rows."""
        table = in_roles(table, settings.all_roles)
        found = kinds
        table, alike = cells.in_one_look(table, settings.unread)
        if found is None:
            found = settings.infer(table, rows=rows, notes=alike)
            if target.name in table.column_names:
                found = replace(found, left_out={str(target.name): _TARGET_NAME, **found.left_out})
        rows = np.arange(table.num_rows) if rows is None else rows
        n_source = int(rows.max(initial=-1)) + 1 if n_source is None else n_source
        read = cells.with_missing_values_out(table, found.columns)
        return cls(read, found, target, settings, rows, n_source, groups, weights, is_part=kinds is not None)

    @classmethod
    def read(
        cls,
        source: TableSource,
        settings: DatasetSettings,
        most_rows: int,
        rng: np.random.Generator,
        like: "Dataset | None" = None,
    ) -> "Dataset":
        """The rows of a file that have a class; of too many rows a random sample.

        Their columns are read as those of another dataset, if there is one that they are `like`: rows that validate or
        test a fit. Then the table may lack columns, and may hold a single class.
        """
        needed = () if like is not None else tuple(settings.all_roles)
        name = str(settings.target)
        words = None
        if like is not None:
            labels = {name: tuple(str(label) for label in like.target.classes if str(label) in WORDS)}
            words = kept_words(like.table if like.whole is None else like.whole.drop_columns([name])) | labels
        whole, rows, notes = read_rows(source, settings, most_rows, rng, needed, words)
        whole, alike = cells.in_one_look(whole, settings.unread)
        labeled, target = Target.of_column(whole[name], name, missing=settings.missing.get(name, ()))
        table, why = whole, ""
        if len(labeled) < len(table):
            why = unlabeled_note(whole[name], labeled, name)
            notes.append(f"{why}.")
            table, rows = table.take(pa.array(labeled)), rows[labeled]
        why = f" ({why})" if why else ""
        if len(table) == 0:
            raise DataError(f"No row of {source.description} has a class in {name!r}: there is nothing to fit{why}.")
        if like is None:
            labels = target.classes.tolist()
            if len(labels) == 1:
                raise DataError(
                    f"The target {name!r} holds one class only, {labels[0]!r}{why}: a fit needs at least 2. "
                    "Give another column as --target, or a table with other rows as well."
                )
            if not settings.takes_numbers:
                notes += refuse_quantity(name, labels, target.counts.tolist())
        merged = len(table[name].unique()) - len(target.classes)
        if merged > 0:
            notes.append(f"{merged:,} of the classes in {name!r} differ from another by blanks or odd letters only.")
        groups, weights, times = None, None, None
        if settings.groups is not None and settings.groups in table.column_names:
            groups = groups_in(table, settings.groups)
        if settings.weights is not None and like is None:
            weights = _weights_in(table, settings.weights, rows)
        if settings.times is not None and like is None:
            times = _times_in(table, settings.times)
            if kind_of_type(times.type) == "date" and are_times_of_day(cells.read(times, "date").values):
                notes.append(f"{clock_note(settings.times)}.")
        kinds = settings.infer(table, rows=rows, notes=alike) if like is None else like.kinds
        table, whole = (cells.with_missing_values_out(one, kinds.columns) for one in (table, whole))
        return cls(
            table, kinds, target, settings, rows, int(rows.max()) + 1, groups, weights, times, tuple(notes),
            whole, is_part=like is not None,
        )  # fmt: skip

    @cached_property
    def own_kinds(self) -> Inferred:
        """How the columns are read, without those that hold nothing to learn from in these rows."""
        return _check_any(infer_alike(self.table, self.kinds)) if self.is_part else self.kinds

    @cached_property
    def cells(self) -> Codes:
        """Ranks of the cells of the columns of `kinds`, shape (n, c): equal for equal cells, dense in each column."""
        return cells.cell_ranks(self.table, self.kinds.columns)[0]

    @cached_property
    def repeats(self) -> list[Repeat]:
        """What says that rows belong together, where no groups were given; that of a part was found in all rows."""
        if self.groups is not None or self.settings.alone or self.is_part:
            return []
        name = None if self.target.name is None else str(self.target.name)
        return find_repeats(self.table, self.kinds.columns, self.cells, self.target.codes, name, self.rows)

    @cached_property
    def near(self) -> Codes | None:
        """Groups of rows that are nearly equal and share a class, if there are some."""
        return next((one.groups for one in self.repeats if one.kind == "near_rows"), None)

    def together(self) -> Codes | None:
        """Groups of the rows: those that were given, or rows that are equal, or nearly so, in what is learned from.

        None where every row is a group.
        """
        given = self.groups if self.groups is not None else self.near
        if given is not None:
            return part_of(given, np.arange(len(self.rows)))
        return row_groups(self.cells, self.target.codes)

    def grouped(self, by: Repeat) -> "Dataset":
        """The same rows, where those belong together that were found to; a column that says it is not learned from."""
        name, settings, kinds = by.column, self.settings, self.kinds
        if name is not None:
            roles = {column: role for column, role in settings.roles.items() if column != name}
            settings = replace(settings, roles=roles, groups=name)
            columns = tuple(column for column in kinds.columns if column.name != name)
            kinds = replace(kinds, columns=columns, left_out={**kinds.left_out, name: _USES["groups"][1]})
        return replace(self, settings=settings, kinds=_check_any(kinds), groups=by.groups)

    def take(self, rows: Codes) -> "Dataset":
        """Some of the rows: of the same kinds, with their numbers in the source."""
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        times = None if self.times is None else self.times.take(pa.array(rows))
        table, target, known = self.table.take(pa.array(rows)), self.target.take(rows), self.rows[rows]
        part = replace(
            self, table=table, target=target, rows=known, groups=groups, weights=weights, times=times, notes=(),
            is_part=True,
        )  # fmt: skip
        if "cells" in vars(self):
            vars(part)["cells"] = ranks(self.cells[rows])
        vars(part)["repeats"] = [one._replace(groups=one.groups[rows]) for one in self.repeats]
        return part

    def time_order(self) -> Codes | None:
        """Rows in the order of time, rows of one time in their own; None where nothing says it."""
        if self.times is None:
            return None
        import pyarrow.compute as pc

        order = pc.sort_indices(pa.table({"time": self.times}), sort_keys=[("time", "ascending")]).to_numpy()
        return np.asarray(order, dtype=np.intp)

    def split(self, test: float, seed: int) -> tuple["Dataset", "Dataset | None"]:
        """Training and test rows, by the share of these; None where there are none.

        In the order of time, if there is one (the last rows are the test), else by chance. Rows that belong together
        stay together. The notes of the training rows say of how many that is not so.
        """
        groups, order = self.together(), self.time_order()
        rows, others = split_rows(self.target.codes, test, order=order, seed=seed, groups=groups)
        if not len(rows):
            raise ParameterError(f"--test takes {test:.3g} of the rows: nothing is left to train on.")
        train, held_out = self.take(rows), self.take(others) if len(others) else None
        known = 0 if order is None or groups is None else int(np.isin(groups[others], groups[rows]).sum())
        if known:
            what = "are equal to one" if self.groups is None else f"have the {self.settings.groups!r} of one"
            said = f"{known:,} of the rows that are held out by time {what} of the training rows."
            train = replace(train, notes=(said,))
        return train, held_out

    def folds(self, n_folds: int, seed: int) -> Folds:
        """Rows to fit and rows to judge by of each fold of ``--cv``, split as `split` does.

        In an order of time the rows are cut into one block more than there are folds, and every block but the first is
        judged by a fit of all blocks before it.
        """
        codes, order = numbered(self.target.codes), self.time_order()
        if order is not None:
            blocks = np.array_split(order, n_folds + 1)
            folds = [(np.concatenate(blocks[:place]), blocks[place]) for place in range(1, n_folds + 1)]
        else:
            together = self.together()
            groups = np.arange(len(codes)) if together is None else together
            fold = group_folds(groups, codes, n_folds, np.random.default_rng(seed))
            folds = [(np.flatnonzero(fold != place), np.flatnonzero(fold == place)) for place in range(n_folds)]
        for place, (fit, judged) in enumerate(folds, 1):
            if len(judged) == 0 or len(np.unique(codes[fit])) < 2:
                lacks = "no row to judge by" if len(judged) == 0 else "rows of one class only to fit"
                raise ParameterError(f"--cv {n_folds}: fold {place} has {lacks}. Give fewer folds, or more rows.")
        return folds


def _check_any(found: Inferred) -> Inferred:
    """Refuse a table that has no column to learn from."""
    if not found.columns:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(found.left_out.items())[:5])
        why = f" ({reasons})" if reasons else ": the table has no column besides the target"
        raise DataError(f"No column is left to learn from{why}.")
    return found


def read_rows(
    source: TableSource,
    settings: DatasetSettings,
    most_rows: int,
    rng: np.random.Generator,
    needed: Sequence[str],
    words: Mapping[str, Collection[str]] | None = None,
) -> tuple[pa.Table, Codes, list[str]]:
    """The rows of a file in the roles of their columns, or a sample of them, with their places and with notes.

    A table without its target, or without a column that is needed, is refused. Words for missing cells are read as
    others were, where `words` say which of them are levels.
    """
    roles = settings.all_roles
    wanted = [*([] if settings.target is None else [settings.target]), *needed]
    check_names(source.names, source.description, wanted)
    # A number would lose part of the cells of these.
    texts = [name for name, role in roles.items() if role in ("category", "date")]
    how: Any = {"target": settings.target, "missing": settings.missing, "words": words}
    table, rows = source.read(most_rows, rng, texts=texts, **how)
    notes = [*source.notes]
    if len(rows) and rows[-1] >= len(rows):  # of a text it is not known how many there are
        of = "" if source.n_rows is None else f" of {source.n_rows:,}"
        notes.append(f"a random sample of {len(table):,}{of} rows is used (--max-rows).")
    return in_roles(table, roles), rows, notes


def check_names(names: Sequence[str], description: str, needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column."""
    for name in needed:
        if name not in names:
            has = some_of([repr(one) for one in names])
            raise DataError(f"There is no column {name!r} in {description}.{did_you_mean(name, names)} It has {has}.")


def groups_in(table: pa.Table, name: str) -> Codes:
    """Groups of rows with the same value in a column."""
    column = table[name]
    check_group_type(name, column.type)
    if column.null_count:
        raise DataError(f"The group column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    column = cells.one_chunk(column)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return numbered(column.indices.to_numpy(zero_copy_only=False))


def check_group_type(name: str, kind: pa.DataType) -> None:
    """Refuse a group column whose cells cannot be compared."""
    if pa.types.is_nested(kind):
        of_type = shortened(str(kind))
        raise DataError(f"The group column {name!r} is of type {of_type}. Give a column of names or whole numbers.")


def clock_note(name: str) -> str:
    """A note on a time column that names no day."""
    return f"the time column {name!r} holds times of day, such as 07:13: rows of several days are not in their order"


def _times_in(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A time column, texts of ISO dates as moments."""
    column = table[name]
    if column.null_count:
        raise DataError(f"The time column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    kind = kind_of_type(column.type)
    if kind is None:
        of_type = shortened(str(column.type))
        raise DataError(f"The time column {name!r} is of type {of_type}. Give a column of dates, times or numbers.")
    if kind != "category":
        return column
    moments = cells.read(column, "date").values
    if np.isnat(moments).any():
        raise DataError(
            f"The time column {name!r} holds texts, such as {column[0].as_py()!r}. Write times as ISO dates "
            "(2024-01-31, or 2024-01-31 12:00:00) or as numbers."
        )
    return pa.chunked_array([pa.array(moments)])


def _weights_in(table: pa.Table, name: str, rows: Codes) -> Array:
    """Weights of rows in a column: numbers from 0 up; any other cell is refused with its row of the file."""
    weights = cells.read(table[name], "number").values.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        cell = table[name][int(bad[0])].as_py()
        raise DataError(
            f"The weight column {name!r} holds {'nothing' if cell is None else repr(cell)} in row "
            f"{rows[bad[0]]:,} ({len(bad):,} of {len(weights):,} rows). A weight says how many rows a row stands "
            "for: give numbers from 0 up."
        )
    return weights


def split_rows(
    classes: Codes, test: float, *, order: Codes | None, seed: int, groups: Codes | None = None
) -> tuple[Codes, Codes]:
    """Rows that train and test, by the share of these: in an order, if there is one, else by chance and class.

    Of every class the same share goes to each part, rounded; a class of one row stays in training. Rows of one group
    go to one part, except in an order, of which the last rows are the test.
    """
    if order is not None:
        rest = len(classes) - round(test * len(classes))
        return order[:rest], order[rest:]
    rng = np.random.default_rng(seed)
    classes = numbered(classes)  # a split does not depend on the names of the classes
    is_test = np.zeros(len(classes) if groups is None else groups.max() + 1, dtype=np.bool_)
    # Whole groups by chance, each as one of its rarest class; the shares are those of the rows.
    classes = classes if groups is None else group_classes(groups, classes)
    for code in np.unique(classes):
        members = rng.permutation(np.flatnonzero(classes == code))
        if groups is None:
            is_test[members[len(members) - round(test * len(members)) :]] = True
        elif len(members) > 1:  # one group alone stays in training
            # A group goes where its middle row would go.
            sizes = np.bincount(groups)[members]
            middles = (np.cumsum(sizes) - sizes / 2.0) / sizes.sum()
            is_test[members] = middles > 1.0 - test
    is_test = is_test if groups is None else is_test[groups]
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


_LARGEST_FILE = 1 << 20
_WHOLE = r"^(\s*-?(?:0|[1-9]\d{0,14}))\.0*(\s*)$"


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
