"""How a table differs from the one a model was fitted on, as a diff that people and programs can read."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from qmedoid.exceptions import ContractError, warn
from qmedoid.model.contract import Column, Contract, Kind
from qmedoid.tables.arrow import shortened
from qmedoid.tables.encode import EXAMPLES, NAMED_LEVELS, ColumnIssues, Issues
from qmedoid.tables.kinds import ENOUGH_ROWS, kind_of_type

OnMismatch = Literal["error", "warn"]

_NO_FILL = (
    "This model has nothing to put in place of such cells, so on_mismatch='warn' cannot go on either. Fill them in "
    "first, or fit with MedoidClassifier or the command 'qmedoid fit', which fill in missing cells."
)
_SHOWN = 20
_OPEN = re.compile(r"[+-]?\d{1,3}\.\d{3}")
_CLOSE = 0.8
_UNSPELT = {"date": "with the year first", "number": "as plain numbers"}
_ARTICLES: dict[str, str] = {"number": "a number", "category": "a category", "boolean": "a boolean", "date": "a date"}


class BrokenContractError(ContractError):
    """A table that was refused, with how it differs for programs."""

    def __init__(self, message: str, difference: dict[str, Any]) -> None:
        super().__init__(message)
        self.difference = difference


@dataclass(frozen=True)
class Difference:
    """How a table differs from a contract.

    Columns are missing (the renamed ones not counted), extra (ignored), repeated, renamed (from the name in the table
    to one that differs in case, spaces or punctuation alone), or of kinds that cannot be read, with what they are.
    Suggestions lead from a missing column to one of a similar name and the same kind. `issues` are what cells hold
    that the training rows did not; with `tolerate_unseen` new levels of closed categories break nothing.
    """

    contract: Contract
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    suggestions: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    issues: Issues | None = None
    tolerate_unseen: bool = False

    @property
    def breaks(self) -> bool:
        """Whether the table breaks the contract."""
        return bool(self._breaking_lines())

    @property
    def has_refused_cells(self) -> bool:
        """Whether cells are missing that the model cannot fill in, so that no decision can be taken."""
        return self.issues is not None and any(column.refused for column in self.issues.columns.values())

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
            "rows": None if self.issues is None else self.issues.rows,
            "cells": {
                name: vars(issues)
                | {key: list(getattr(issues, key))[:EXAMPLES] for key in ("unseen_levels", "untrained_levels")}
                | {"grouped": issues.grouped or None}
                for name, issues in self._column_issues()
            },
        }

    def renamed(self, table: Any) -> Any:
        """A table or batch with its renamed columns under the names of the contract."""
        if not self.renames:
            return table
        return table.rename_columns([self.renames.get(name, name) for name in table.schema.names])

    def raise_or_warn(self, on_mismatch: OnMismatch, *, way_out: str | None = None) -> None:
        """Raise `BrokenContractError` with the diff if the contract is broken, or warn and go on; notes are warnings.

        Cells that the model cannot fill in are an error in any case. `way_out` ends the message: what can be done.
        """
        lines = self.lines()
        if not lines:
            return
        shown = lines[:_SHOWN] + ([f"… and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])
        message = "The table is not like the one that the model was fitted on:\n" + "\n".join(shown)
        if self.has_refused_cells or (self.breaks and on_mismatch == "error"):
            raise BrokenContractError(f"{message}\n{way_out or self._way_out()}", self.as_dict())
        if self.breaks or self._notes(with_extra=False):
            warn(message)

    def _way_out(self) -> str:
        if self.has_refused_cells:
            return _NO_FILL
        after = ": columns that are not there then count as missing." if self.missing else "."
        return f"Make it so, or go on with on_mismatch='warn'{after}"

    def _breaking_lines(self) -> list[str]:
        by_name = {column.name: column for column in self.contract.columns}
        hints = {name: f"; did you mean {other!r}?" for name, other in self.suggestions.items()}
        lines = [f"- missing: {name!r} ({by_name[name].kind}){hints.get(name, '')}" for name in self.missing]
        lines += [f"~ renamed: {new!r} is called {old!r} here" for old, new in self.renames.items()]
        lines += [f"~ repeated: {name!r} is there more than once" for name in self.repeated]
        lines += [
            f"~ kind: {name!r} was {_ARTICLES[by_name[name].kind]}, and is {now}" for name, now in self.kinds.items()
        ]
        for name, issues in self._column_issues():
            if issues.respelt:
                lines.append(self._respelt_line(by_name[name], issues))
            elif issues.wrong and not self._is_expected(by_name[name], issues):
                lines.append(self._wrong_line(by_name[name], issues))
            if issues.refused > issues.huge + issues.wrong:
                count = issues.refused - issues.huge - issues.wrong
                lines.append(f"~ missing cells: {name!r} has {self._count(count)}, and they cannot be filled in")
            if issues.refused and issues.huge:
                lines.append(
                    f"~ huge: {name!r} has {self._count(issues.huge)} cells beyond 1e150, and they cannot be filled in"
                )
            if issues.unseen and not (by_name[name].is_open or self.tolerate_unseen):
                lines.append(_unseen_line(name, issues.unseen, issues.unseen_levels))
        return lines

    def _notes(self, *, with_extra: bool = True) -> list[str]:
        by_name = {column.name: column for column in self.contract.columns}
        lines = []
        for name, issues in self._column_issues():
            if issues.unseen and (by_name[name].is_open or self.tolerate_unseen):
                lines.append(_unseen_line(name, issues.unseen, issues.unseen_levels))
            if issues.untrained:
                lines.append(_unseen_line(name, issues.untrained, issues.untrained_levels))
            if issues.wrong and not issues.respelt and self._is_expected(by_name[name], issues):
                lines.append(self._wrong_line(by_name[name], issues) + ": taken as missing")
            if issues.grouped and not issues.respelt:
                lines.append(_grouped_line(name, issues.grouped))
            if issues.missing > issues.refused:
                lines.append(f"~ missing cells: {name!r} has {issues.missing:,}, and had none in the training rows")
            # Where the training rows had cells to fill in as well, these are nothing new.
            if issues.huge and not issues.refused and not by_name[name].missing:
                lines.append(f"~ huge: {name!r} has {self._count(issues.huge)} cells beyond 1e150: taken as missing")
        return lines + ([f"+ extra: {name!r} (ignored)" for name in self.extra] if with_extra else [])

    def _column_issues(self) -> list[tuple[str, ColumnIssues]]:
        if self.issues is None:
            return []
        # Columns that are not there, or of another kind, have their own lines, which say it better.
        return [
            (column.name, self.issues.columns[column.name])
            for column in self.contract.columns
            if column.name in self.issues.columns and column.name not in {*self.missing, *self.kinds}
        ]

    def _is_expected(self, column: Column, issues: ColumnIssues) -> bool:
        """Whether cells of another kind are no more than the file of the fit may have had as well."""
        return column.is_open and not issues.refused and (self._rows < ENOUGH_ROWS or 2 * issues.wrong <= self._rows)

    @property
    def _rows(self) -> int:
        return 0 if self.issues is None else self.issues.rows

    def _count(self, count: int) -> str:
        return f"{count:,} of {self._rows:,}"

    def _respelt_line(self, column: Column, issues: ColumnIssues) -> str:
        are = "is" if issues.respelt == 1 else "are"
        spelt = f"like {column.spelling}" if column.spelling else _UNSPELT[column.kind]
        doubt = ""
        if not column.spelling and any(_OPEN.fullmatch(text) for text in issues.respelt_examples[:1]):
            doubt = ", which may have a point between thousands (--decimal . says that it is a decimal point)"
        return (
            f"~ spelling: {column.name!r} was written {spelt}, {self._count(issues.respelt)} cells {are} not, "
            f"such as {_quoted(issues.respelt_examples[:1])}{doubt}"
        )

    def _wrong_line(self, column: Column, issues: ColumnIssues) -> str:
        are = "is" if issues.wrong == 1 else "are"
        return (
            f"~ kind: {column.name!r} was {_ARTICLES[column.kind]}, {self._count(issues.wrong)} cells {are} not, "
            f"such as {_quoted(issues.wrong_examples[:1])}"
        )


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


def _unseen_line(name: str, n_rows: int, unseen: Mapping[str, None]) -> str:
    levels = list(unseen)
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
