"""What breaks the contract in the cells of a table, counted column by column."""

from dataclasses import dataclass, field

import pyarrow as pa

from qmedoid.tables.documents import OddCellsDict

EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered, at the least; of more it is not known how many there are."""


@dataclass
class ColumnIssues:
    """Counts of cells of one column that the training rows did not have.

    Missing cells of a column that had none, of which `refused` cannot be filled in; cells with a level that neither
    encoding nor contract know (unseen, up to a bound), or that the contract knows and the encoding does not
    (untrained); cells that are not of the kind (wrong), infinite or too large (huge), or wrong as they are numbers or
    dates in another spelling (respelt), so that it is not known what the others mean. `grouped` is a cell, where every
    point may part thousands and the training numbers are nearer to what that would mean.
    """

    missing: int = 0
    refused: int = 0
    unseen: int = 0
    unseen_levels: dict[str, None] = field(default_factory=dict)
    untrained: int = 0
    untrained_levels: dict[str, None] = field(default_factory=dict)
    wrong: int = 0
    wrong_examples: list[str] = field(default_factory=list)
    huge: int = 0
    respelt: int = 0
    respelt_examples: list[str] = field(default_factory=list)
    grouped: str = ""

    def add_wrong(self, found: pa.Array, respelt: pa.Array | None) -> None:
        """Count cells that are not of the kind, and those of them that are in another spelling."""
        self.wrong += len(found)
        if len(self.wrong_examples) < EXAMPLES:
            _add_examples(self.wrong_examples, found.unique())
        if respelt is not None:
            self.respelt += len(respelt)
            _add_examples(self.respelt_examples, respelt)

    def as_dict(self) -> OddCellsDict:
        """The counts, and the first levels and cells, fit for JSON."""
        return {
            "missing": self.missing,
            "refused": self.refused,
            "unseen": self.unseen,
            "unseen_levels": list(self.unseen_levels)[:EXAMPLES],
            "untrained": self.untrained,
            "untrained_levels": list(self.untrained_levels)[:EXAMPLES],
            "wrong": self.wrong,
            "wrong_examples": self.wrong_examples,
            "huge": self.huge,
            "respelt": self.respelt,
            "respelt_examples": self.respelt_examples,
            "grouped": self.grouped or None,
        }

    def merge(self, other: "ColumnIssues") -> None:
        """Add the counts of more rows."""
        for name in ("missing", "refused", "unseen", "untrained", "wrong", "huge", "respelt"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("unseen_levels", "untrained_levels"):
            levels = getattr(self, name)
            for level in getattr(other, name):
                if len(levels) < NAMED_LEVELS:
                    levels[level] = None
        for name in ("wrong_examples", "respelt_examples"):
            _add_examples(getattr(self, name), pa.array(getattr(other, name), pa.string()))
        self.grouped = self.grouped or other.grouped


def _add_examples(examples: list[str], found: pa.Array) -> None:
    new = [text for text in found.slice(0, EXAMPLES).to_pylist() if text not in examples]
    examples.extend(new[: EXAMPLES - len(examples)])


@dataclass
class Issues:
    """What cells held that the training rows did not, by column; it grows from batch to batch.

    With `trusts_points` the decimal sign was given, so that a point in a plain number is no doubtful one; in columns of
    `shows_points` points were seen to be decimal points.
    """

    rows: int = 0
    columns: dict[str, ColumnIssues] = field(default_factory=dict)
    trusts_points: bool = False
    shows_points: set[str] = field(default_factory=set)

    def column(self, name: str) -> ColumnIssues:
        """The counts of a column."""
        return self.columns.setdefault(name, ColumnIssues())

    def merge(self, other: "Issues") -> None:
        """Add what another part of the table held."""
        self.rows += other.rows
        self.shows_points |= other.shows_points
        for name, issues in other.columns.items():
            self.column(name).merge(issues)
