"""How a table differs from the one a model was fitted on, as a diff that people and programs can read."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from qmedoid.exceptions import ContractError, warn
from qmedoid.model.contract import Column, Contract, Kind
from qmedoid.tables._types import shortened
from qmedoid.tables.encode import EXAMPLES, NAMED_LEVELS, ColumnFound, Found
from qmedoid.tables.kinds import ENOUGH_ROWS, kind_of_type

OnMismatch = Literal["error", "warn"]

_NO_FILL = (
    "This model has nothing to put in place of such cells, so on_mismatch='warn' cannot go on either. Fill them in "
    "first, or fit with TableClassifier or the command 'qmedoid fit', which fill in missing cells."
)
_SHOWN = 20
_OPEN = re.compile(r"[+-]?\d{1,3}\.\d{3}")
_CLOSE = 0.8
_ARTICLES: dict[str, str] = {"number": "a number", "category": "a category", "boolean": "a boolean", "date": "a date"}


class BrokenContractError(ContractError):
    """A table that was refused, with how it differs for programs."""

    def __init__(self, message: str, difference: dict[str, Any]) -> None:
        super().__init__(message)
        self.difference = difference


@dataclass(frozen=True)
class Difference:
    """What is not as it was.

    Attributes
    ----------
    contract : Contract
    missing : tuple of str
        Columns of the contract that the table lacks, the renamed ones apart.
    extra : tuple of str
        Columns that no model knows; they are ignored.
    repeated : tuple of str
        Columns of the contract that the table has more than once.
    renames : mapping of str to str
        From a name in the table to the one of the contract that differs from it in case, spaces or punctuation alone.
    suggestions : mapping of str to str
        From a missing column to one of the table that has a similar name and the same kind.
    kinds : mapping of str to str
        Columns whose type cannot be read as their kind, with what they are.
    cells : Found or None
        What was found in the cells, once they were read.
    tolerate_unseen : bool
        Whether new levels of closed categories are a note and break nothing.
    """

    contract: Contract
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    suggestions: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    cells: Found | None = None
    tolerate_unseen: bool = False

    def with_cells(self, found: Found, *, tolerate_unseen: bool = False) -> "Difference":
        """The same with what was found in the cells."""
        return replace(self, cells=found, tolerate_unseen=tolerate_unseen)

    @property
    def breaks(self) -> bool:
        """Whether the table breaks the contract."""
        return bool(self._breaking_lines())

    @property
    def leaves_holes(self) -> bool:
        """Whether cells are missing that nothing stands in for, so that no decision can be taken."""
        return self.cells is not None and any(found.refused for found in self.cells.columns.values())

    def lines(self) -> list[str]:
        """The diff, a line for each difference; what breaks the contract comes first."""
        return self._breaking_lines() + self._notes()

    def as_dict(self) -> dict[str, Any]:
        """The diff for JSON."""
        return {
            "breaks": self.breaks,
            "missing": list(self.missing),
            "extra": list(self.extra),
            "repeated": list(self.repeated),
            "renamed": dict(self.renames),
            "suggestions": dict(self.suggestions),
            "kinds": dict(self.kinds),
            "rows": None if self.cells is None else self.cells.rows,
            "cells": {name: _counts(found) for name, found in self._found()},
        }

    def renamed(self, table: Any) -> Any:
        """A table or batch with its renamed columns under the names of the contract."""
        if not self.renames:
            return table
        return table.rename_columns([self.renames.get(name, name) for name in table.schema.names])

    def raise_or_warn(self, on_mismatch: OnMismatch, *, way_out: str | None = None) -> None:
        """Raise `BrokenContractError` with the diff if the contract is broken, or warn and go on; notes are warnings.

        Cells that nothing stands in for are an error in any case. `way_out` ends the message: what can be done.
        """
        lines = self.lines()
        if not lines:
            return
        shown = lines[:_SHOWN] + ([f"… and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])
        message = "The table is not like the one that the model was fitted on:\n" + "\n".join(shown)
        if self.leaves_holes or (self.breaks and on_mismatch == "error"):
            raise BrokenContractError(f"{message}\n{way_out or self._way_out()}", self.as_dict())
        if self.breaks or self._notes(with_extra=False):
            warn(message)

    def _way_out(self) -> str:
        if self.leaves_holes:
            return _NO_FILL
        after = ": columns that are not there then count as missing." if self.missing else "."
        return f"Make it so, or go on with on_mismatch='warn'{after}"

    def _breaking_lines(self) -> list[str]:
        by_name = {column.name: column for column in self.contract.columns}
        lines = [f"- missing: {name!r} ({by_name[name].kind}){self._hint(name)}" for name in self.missing]
        lines += [f"~ renamed: {new!r} is called {old!r} here" for old, new in self.renames.items()]
        lines += [f"~ repeated: {name!r} is there more than once" for name in self.repeated]
        lines += [
            f"~ kind: {name!r} was {_ARTICLES[by_name[name].kind]}, and is {now}" for name, now in self.kinds.items()
        ]
        for name, found in self._found():
            if found.respelt:
                lines.append(self._respelt_line(by_name[name], found))
            elif found.wrong and not self._is_expected(by_name[name], found):
                lines.append(self._wrong_line(by_name[name], found))
            if found.refused > found.huge + found.wrong:
                count = found.refused - found.huge - found.wrong
                lines.append(f"~ missing cells: {name!r} has {self._count(count)}, and nothing stands in for them")
            if found.refused and found.huge:
                lines.append(
                    f"~ huge: {name!r} has {self._count(found.huge)} cells beyond 1e150, and nothing stands in for them"
                )
            if found.unseen and not (by_name[name].is_open or self.tolerate_unseen):
                lines.append(_unseen_line(name, found.unseen, found.unseen_levels))
        return lines

    def _notes(self, *, with_extra: bool = True) -> list[str]:
        by_name = {column.name: column for column in self.contract.columns}
        lines = []
        for name, found in self._found():
            if found.unseen and (by_name[name].is_open or self.tolerate_unseen):
                lines.append(_unseen_line(name, found.unseen, found.unseen_levels))
            if found.untrained:
                lines.append(_unseen_line(name, found.untrained, found.untrained_levels))
            if found.wrong and not found.respelt and self._is_expected(by_name[name], found):
                lines.append(self._wrong_line(by_name[name], found) + ": taken as missing")
            if found.grouped and not found.respelt:
                lines.append(_grouped_line(name, found.grouped))
            if found.missing > found.refused:
                lines.append(f"~ missing cells: {name!r} has {found.missing:,}, and had none in the training rows")
            # Where the training rows had cells to fill in as well, these are nothing new.
            if found.huge and not found.refused and not by_name[name].missing:
                lines.append(f"~ huge: {name!r} has {self._count(found.huge)} cells beyond 1e150: taken as missing")
        return lines + ([f"+ extra: {name!r} (ignored)" for name in self.extra] if with_extra else [])

    def _found(self) -> list[tuple[str, ColumnFound]]:
        if self.cells is None:
            return []
        # Columns that are not there, or of another kind, have their own lines, which say it better.
        return [
            (column.name, self.cells.columns[column.name])
            for column in self.contract.columns
            if column.name in self.cells.columns and column.name not in {*self.missing, *self.kinds}
        ]

    def _is_expected(self, column: Column, found: ColumnFound) -> bool:
        """Whether cells of another kind are no more than the file of the fit may have had as well."""
        return column.is_open and not found.refused and (self._rows < ENOUGH_ROWS or 2 * found.wrong <= self._rows)

    @property
    def _rows(self) -> int:
        return 0 if self.cells is None else self.cells.rows

    def _count(self, count: int) -> str:
        return f"{count:,} of {self._rows:,}"

    def _hint(self, name: str) -> str:
        return f"; did you mean {self.suggestions[name]!r}?" if name in self.suggestions else ""

    def _respelt_line(self, column: Column, found: ColumnFound) -> str:
        are = "is" if found.respelt == 1 else "are"
        doubt = ""
        if not column.spelling and any(_OPEN.fullmatch(text) for text in found.respelt_examples[:1]):
            doubt = ", which may have a point between thousands (--decimal . says that it is a decimal point)"
        return (
            f"~ spelling: {column.name!r} was written {_as_spelt(column)}, {self._count(found.respelt)} cells {are} "
            f"not, such as {_quoted(found.respelt_examples[:1])}{doubt}"
        )

    def _wrong_line(self, column: Column, found: ColumnFound) -> str:
        are = "is" if found.wrong == 1 else "are"
        return (
            f"~ kind: {column.name!r} was {_ARTICLES[column.kind]}, {self._count(found.wrong)} cells {are} not, "
            f"such as {_quoted(found.wrong_examples[:1])}"
        )


def _as_spelt(column: Column) -> str:
    """How a column was written in the table of the fit, by example."""
    if column.kind == "date":
        return f"like {column.spelling}" if column.spelling else "with the year first"
    return f"like {column.spelling}" if column.spelling else "as plain numbers"


def compare_columns(contract: Contract, given: Sequence[str] | pa.Schema) -> Difference:
    """Compare the columns of a table with a contract, by their names and, where a schema is given, their types."""
    names = list(given.names) if isinstance(given, pa.Schema) else list(given)
    types = dict(zip(given.names, given.types, strict=True)) if isinstance(given, pa.Schema) else {}
    present, known = set(names), {*contract.names, *contract.left_out, contract.target}
    missing = [column for column in contract.columns if column.name not in present]
    extra = [name for name in dict.fromkeys(names) if name not in known]
    renames = _renames([column.name for column in missing], extra)
    missing = [column for column in missing if column.name not in renames.values()]
    extra = [name for name in extra if name not in renames]
    new_names = {new: old for old, new in renames.items()}
    kinds = {}
    for column in contract.columns:
        kind = types.get(new_names.get(column.name, column.name))
        if kind is not None and not _can_be_read(column, kind):
            kinds[column.name] = _ARTICLES.get(kind_of_type(kind) or "", f"of type {shortened(str(kind))}")
    return Difference(
        contract,
        missing=tuple(column.name for column in missing),
        extra=tuple(extra),
        repeated=tuple(name for name in contract.names if names.count(name) > 1),
        renames=renames,
        suggestions=_suggestions(missing, extra, types),
        kinds=kinds,
    )


def _can_be_read(column: Column, kind: pa.DataType) -> bool:
    """Whether cells of a type may be of the column's kind; those of texts are judged one by one."""
    if pa.types.is_null(kind):
        return True
    value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    now = kind_of_type(value_type)
    if now is None:
        return False
    if column.kind == "category":
        # Numbers are levels as they are written; of dates there is more than one way to write them.
        return now != "date"
    if column.spelling.endswith(" %") and now != "category":
        # 20.6 may be 20.6 % or 2060 %: the sign must be there.
        return False
    if column.spelling == "yyyymmdd" and now == "number":
        return True
    readable: dict[Kind, tuple[Kind, ...]] = {
        "number": ("number", "boolean", "category"),
        "boolean": ("boolean", "number", "category"),
        "date": ("date", "category"),
    }
    return now in readable[column.kind]


def _renames(missing: Sequence[str], extra: Sequence[str]) -> dict[str, str]:
    """Extra columns that are missing ones but for case, spaces and punctuation, where there is one of each."""
    renames = {}
    for name in missing:
        alike = [other for other in extra if _plain(other) == _plain(name)]
        rivals = [other for other in missing if _plain(other) == _plain(name)]
        if len(alike) == 1 and len(rivals) == 1 and _plain(name):
            renames[alike[0]] = name
    return renames


def _suggestions(missing: Sequence[Column], extra: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, str]:
    suggestions = {}
    for column in missing:
        fitting = [name for name in extra if name not in types or _can_be_read(column, types[name])]
        close = difflib.get_close_matches(_plain(column.name), [_plain(name) for name in fitting], 1, _CLOSE)
        if close:
            suggestions[column.name] = next(name for name in fitting if _plain(name) == close[0])
    return suggestions


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _unseen_line(name: str, n_rows: int, found: Mapping[str, None]) -> str:
    levels = list(found)
    more = ", …" if len(levels) > EXAMPLES else ""
    count = f"{len(levels):,} level" + ("s" if len(levels) > 1 else "")
    if len(levels) >= NAMED_LEVELS:
        count = f"more than {NAMED_LEVELS - 1:,} levels"
    rows = f"{n_rows:,} row" + ("s" if n_rows > 1 else "")
    return (
        f"~ unseen: {name!r} has {count} that the training rows did not, in {rows}: {_quoted(levels[:EXAMPLES])}{more}"
    )


def _grouped_line(name: str, example: str) -> str:
    whole = example.replace(".", "")
    return (
        f"~ spelling: {name!r} is read with a decimal point, {example!r} as {float(example):g}, and the training rows "
        f"had numbers more like {whole}: if the point parts thousands, write {whole} in the table; --decimal . says "
        "that it is a decimal point"
    )


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in texts)


def _counts(found: ColumnFound) -> dict[str, Any]:
    return {
        "missing": found.missing,
        "refused": found.refused,
        "unseen": found.unseen,
        "unseen_levels": list(found.unseen_levels)[:EXAMPLES],
        "untrained": found.untrained,
        "untrained_levels": list(found.untrained_levels)[:EXAMPLES],
        "wrong": found.wrong,
        "wrong_examples": found.wrong_examples,
        "huge": found.huge,
        "respelt": found.respelt,
        "respelt_examples": found.respelt_examples,
        "grouped": found.grouped or None,
    }
