"""How a table differs from the one a model was fitted on, as a diff that people and programs can read."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import pyarrow as pa

from qmedoid.exceptions import ContractError, warn
from qmedoid.model.contract import Column, Contract, Kind
from qmedoid.spelling import look
from qmedoid.tables.arrow import ENOUGH_ROWS, shortened
from qmedoid.tables.documents import DifferenceDict, OddCellsDict
from qmedoid.tables.kinds import kind_of_type

EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered; of more it is not known how many there are."""
_LEVELS: tuple[Literal["unseen_levels", "untrained_levels"], ...] = ("unseen_levels", "untrained_levels")
_KEPT = {"wrong_examples": EXAMPLES, "respelt_examples": EXAMPLES}


@dataclass
class Issues:
    """What cells held that the training rows did not, by column; it grows from batch to batch.

    Missing cells of a column that had none, of which `refused` cannot be filled in; cells with a level that neither
    encoding nor contract know (unseen), or that the contract knows and the encoding does not (untrained); cells that
    are not of the kind (wrong), infinite or too large (huge), or wrong as they are numbers or dates in another spelling
    (respelt), so that it is not known what the others mean.

    With `trusts_points` the decimal sign was given, so that a point in a plain number is no doubtful one; in columns of
    `shows_points` points were seen to be decimal points.
    """

    rows: int = 0
    columns: dict[str, OddCellsDict] = field(default_factory=dict)
    trusts_points: bool = False
    shows_points: set[str] = field(default_factory=set)

    def column(self, name: str) -> OddCellsDict:
        """The counts of a column."""
        nothing: OddCellsDict = {
            "missing": 0,
            "refused": 0,
            "unseen": 0,
            "unseen_levels": [],
            "untrained": 0,
            "untrained_levels": [],
            "wrong": 0,
            "wrong_examples": [],
            "huge": 0,
            "respelt": 0,
            "respelt_examples": [],
        }
        return self.columns.setdefault(name, nothing)

    def count(self, name: str, **found: Any) -> None:
        """Add numbers of cells of a column, and different texts, of which some are kept."""
        known = cast("dict[str, Any]", self.column(name))
        for what, value in found.items():
            if isinstance(value, int):
                known[what] += value
            else:
                most = _KEPT.get(what, NAMED_LEVELS)
                if len(known[what]) < most:
                    known[what] = list(dict.fromkeys([*known[what], *value]))[:most]

    def merge(self, other: "Issues") -> None:
        """Add what another part of the table held."""
        self.rows += other.rows
        self.shows_points |= other.shows_points
        for name, issues in other.columns.items():
            self.count(name, **issues)


OnMismatch = Literal["error", "warn"]

_NO_FILL = (
    "This model has nothing to put in place of such cells, so on_mismatch='warn' cannot go on either. Fill them in "
    "first, or fit with MedoidClassifier or the command 'qmedoid fit', which fill in missing cells."
)
_SUBJECT = "The table is not like the one that the model was fitted on"
_SHOWN = 20
_OPEN = re.compile(r"[+-]?\d{1,3}\.\d{3}")
_CLOSE = 0.8
# Pairs of names that are compared at most; of more, another table was given.
_MOST_PAIRS = 100_000
_UNSPELT = {"date": "with the year first", "number": "as plain numbers"}
_ARTICLES: dict[str, str] = {"number": "a number", "category": "a category", "boolean": "a boolean", "date": "a date"}


class BrokenContractError(ContractError):
    """A table that was refused, with how it differs for programs."""

    def __init__(self, message: str, difference: DifferenceDict) -> None:
        super().__init__(message)
        self.difference = difference

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.difference)


@dataclass(frozen=True)
class Difference:
    """How a table differs from a contract.

    Columns are missing, extra (ignored), or of kinds that cannot be read, with what they are. Suggestions lead from a
    missing column to one of a similar name and the same kind. `issues` are what cells hold
    that the training rows did not; with `tolerate_unseen` new levels of closed categories break nothing. Lines of a
    text that are `left_out`, as they are no records, are noted.
    """

    contract: Contract
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    suggestions: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    issues: Issues | None = None
    tolerate_unseen: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether the table breaks the contract."""
        return bool(self._lines()[0])

    @property
    def has_refused_cells(self) -> bool:
        """Whether cells are missing that the model cannot fill in, so that no decision can be taken."""
        return self.issues is not None and any(column["refused"] for column in self.issues.columns.values())

    def lines(self) -> list[str]:
        """The diff, a line for each difference; what breaks the contract comes first."""
        breaking, notes = self._lines()
        return breaking + notes + [f"+ extra: {name!r} (ignored)" for name in self.extra]

    def deviations(self) -> list[str]:
        """The lines about columns and cells that the model reads otherwise than in training; extra columns aside."""
        return [line for part in self._lines() for line in part]

    def as_dict(self) -> DifferenceDict:
        """The diff for JSON."""
        return {
            "breaks": self.breaks,
            "missing": list(self.missing),
            "extra": list(self.extra),
            "suggestions": dict(self.suggestions),
            "kinds": dict(self.kinds),
            "rows": None if self.issues is None else self.issues.rows,
            "cells": {
                column.name: cast("OddCellsDict", issues | {name: issues[name][:EXAMPLES] for name in _LEVELS})
                for column, issues in self._column_issues()
            },
        }

    def merged(self, other: "Difference") -> "Difference":
        """How a table of several parts differs, of which these are two."""
        issues = Issues()
        for one in (self, other):
            if one.issues is not None:
                issues.merge(one.issues)
        changes: dict[str, Any] = {"issues": issues}
        for name in ("missing", "extra", "left_out"):
            changes[name] = tuple(dict.fromkeys([*getattr(self, name), *getattr(other, name)]))
        for name in ("suggestions", "kinds"):
            changes[name] = {**getattr(self, name), **getattr(other, name)}
        return replace(self, **changes)

    def raise_or_warn(
        self, on_mismatch: OnMismatch, *, way_out: str | None = None, subject: str = _SUBJECT, warns: bool = True
    ) -> list[str]:
        """Raise `BrokenContractError` with the diff if the contract is broken, or warn and go on; notes are warnings.

        Cells that the model cannot fill in are an error in any case. `way_out` ends the message: what can be done;
        `subject` begins it: which rows are not like which. Without `warns` it is the caller who warns. Returns
        `deviations`.
        """
        breaking, notes = self._lines()
        if not (lines := self.lines()):
            return []
        shown = lines[:_SHOWN] + ([f"… and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])
        message = f"{subject}:\n" + "\n".join(shown)
        if self.has_refused_cells or (breaking and on_mismatch == "error"):
            after = ", with cells of absent columns as missing" if self.missing else ""
            go_on = f"Change the table accordingly, or use it as it is with on_mismatch='warn'{after}."
            go_on = _NO_FILL if self.has_refused_cells else go_on
            raise BrokenContractError(f"{message}\n{way_out or go_on}", self.as_dict())
        if warns and (breaking or notes):
            warn(message)
        return breaking + notes

    def _lines(self) -> tuple[list[str], list[str]]:
        """What breaks the contract, and what is only noted; without extra columns."""
        kinds = {column.name: column.kind for column in self.contract.columns}
        hints = {name: f"; did you mean {other!r}?" for name, other in self.suggestions.items()}
        for name, other in self.suggestions.items():
            if look(name) == look(other) and not (name + other).isascii():
                hints[name] = f"; did you mean {other!r}, which looks the same and has other letters?"
        breaking = [f"- missing: {name!r} ({kinds[name]}){hints.get(name, '')}" for name in self.missing]
        breaking += [f"~ kind: {name!r} was {_ARTICLES[kinds[name]]}, and is {now}" for name, now in self.kinds.items()]
        notes = [f"~ lines: {one}" for one in self.left_out]
        rows = 0 if self.issues is None else self.issues.rows
        for column, issues in self._column_issues():
            name, may_be_new = f"{column.name!r}", column.is_open or self.tolerate_unseen
            refused = issues["refused"] - issues["huge"] - issues["wrong"]
            unseen = [_unseen_line(name, issues["unseen"], issues["unseen_levels"])] if issues["unseen"] else []
            if issues["respelt"]:
                breaking.append(_respelt_line(column, issues, rows))
            elif issues["wrong"]:
                are = "is" if issues["wrong"] == 1 else "are"
                line = (
                    f"~ kind: {name} was {_ARTICLES[column.kind]}, {issues['wrong']:,} of {rows:,} cells {are} not, "
                    f"such as {_quoted(issues['wrong_examples'][:1])}"
                )
                # No more than the file of the fit may have had as well.
                is_expected = (
                    column.is_open and not issues["refused"] and (rows < ENOUGH_ROWS or 2 * issues["wrong"] <= rows)
                )
                (notes if is_expected else breaking).append(line + (": taken as missing" if is_expected else ""))
            if refused > 0:
                breaking.append(f"~ missing cells: {name} has {refused:,} of {rows:,}, and they cannot be filled in")
            huge = f"~ huge: {name} has {issues['huge']:,} of {rows:,} cells beyond 1e150"
            if issues["refused"] and issues["huge"]:
                breaking.append(f"{huge}, and they cannot be filled in")
            (notes if may_be_new else breaking).extend(unseen)
            if issues["untrained"]:
                notes.append(_unseen_line(name, issues["untrained"], issues["untrained_levels"]))
            if issues["missing"] > issues["refused"]:
                notes.append(f"~ missing cells: {name} has {issues['missing']:,}, and had none in the training rows")
            # Where the training rows had cells to fill in as well, these are nothing new.
            if issues["huge"] and not issues["refused"] and not column.missing:
                notes.append(f"{huge}: taken as missing")
        return breaking, notes

    def _column_issues(self) -> list[tuple[Column, OddCellsDict]]:
        if self.issues is None:
            return []
        # Columns that are not there, or of another kind, have their own lines, which say it better.
        return [
            (column, self.issues.columns[column.name])
            for column in self.contract.columns
            if column.name in self.issues.columns and column.name not in {*self.missing, *self.kinds}
        ]


def compare_columns(contract: Contract, given: Sequence[str] | pa.Schema) -> Difference:
    """Compare the columns of a table with a contract, by their names and, where a schema is given, their types."""
    names = list(given.names) if isinstance(given, pa.Schema) else list(given)
    types = dict(zip(given.names, given.types, strict=True)) if isinstance(given, pa.Schema) else {}
    present, known = set(names), {*(one.name for one in contract.columns), *contract.left_out, contract.target}
    missing = [column for column in contract.columns if column.name not in present]
    extra = [name for name in names if name not in known]
    kinds = {}
    for column in contract.columns:
        kind = types.get(column.name)
        if kind is not None and not _can_be_read(column, kind):
            kinds[column.name] = _ARTICLES.get(kind_of_type(kind) or "", f"of type {shortened(str(kind))}")
    suggestions = {}
    for column in missing if len(missing) * len(extra) <= _MOST_PAIRS else ():
        fitting = [name for name in extra if name not in types or _can_be_read(column, types[name])]
        close = difflib.get_close_matches(_plain(column.name), [_plain(name) for name in fitting], 1, _CLOSE)
        if close:
            suggestions[column.name] = next(name for name in fitting if _plain(name) == close[0])
    return Difference(
        contract,
        missing=tuple(column.name for column in missing),
        extra=tuple(extra),
        suggestions=suggestions,
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
    if column.spelling and column.kind == "number" and now != "category":
        from qmedoid.tables.numbers import needs_unit

        # 20.6 may be 20.6 % or 2060 %, 84 pounds or kilograms: the unit must be there.
        is_clock = column.spelling == "h:mm[:ss]" and pa.types.is_time(value_type)
        return is_clock or (now in ("number", "boolean") and not needs_unit(column.spelling))
    if column.spelling == "yyyymmdd" and now == "number":
        return True
    readable: dict[Kind, tuple[Kind, ...]] = {
        "number": ("number", "boolean", "category"),
        "boolean": ("boolean", "number", "category"),
        "date": ("date", "category"),
    }
    return now in readable[column.kind]


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", look(name).casefold())


def _unseen_line(name: str, n_rows: int, levels: list[str]) -> str:
    more = ", …" if len(levels) > EXAMPLES else ""
    count = f"{len(levels):,} level" + ("s" if len(levels) > 1 else "")
    if len(levels) >= NAMED_LEVELS:
        count = f"more than {NAMED_LEVELS - 1:,} levels"
    rows = f"{n_rows:,} row" + ("s" if n_rows > 1 else "")
    return f"~ unseen: {name} has {count} that the training rows did not, in {rows}: {_quoted(levels[:EXAMPLES])}{more}"


def _respelt_line(column: Column, issues: OddCellsDict, rows: int) -> str:
    are = "is" if issues["respelt"] == 1 else "are"
    spelt = f"like {column.spelling}" if column.spelling else _UNSPELT[column.kind]
    example, doubt = issues["respelt_examples"][:1], ""
    if not column.spelling and any(_OPEN.fullmatch(text) for text in example):
        doubt = ", which may have a point between thousands (--decimal . says that it is a decimal point)"
    return (
        f"~ spelling: {column.name!r} was written {spelt}, {issues['respelt']:,} of {rows:,} cells {are} not, such as "
        f"{_quoted(example)}{doubt}"
    )


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in texts)
