"""What breaks the contract in the cells of a table, counted column by column."""

from dataclasses import dataclass, field
from typing import Any, cast

from qmedoid.tables.documents import OddCellsDict

EXAMPLES = 5
"""Cells that are shown for each column."""
NAMED_LEVELS = 1000
"""New levels of a column that are remembered; of more it is not known how many there are."""
_KEPT = {"wrong_examples": EXAMPLES, "respelt_examples": EXAMPLES}


@dataclass
class Issues:
    """What cells held that the training rows did not, by column; it grows from batch to batch.

    Missing cells of a column that had none, of which `refused` cannot be filled in; cells with a level that neither
    encoding nor contract know (unseen), or that the contract knows and the encoding does not (untrained); cells that
    are not of the kind (wrong), infinite or too large (huge), or wrong as they are numbers or dates in another spelling
    (respelt), so that it is not known what the others mean. `grouped` is a cell, where every point may part thousands
    and the training numbers are nearer to what that would mean.

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
            "grouped": None,
        }
        return self.columns.setdefault(name, nothing)

    def count(self, name: str, **found: Any) -> None:
        """Add numbers of cells of a column, and different texts, of which some are kept."""
        known = cast("dict[str, Any]", self.column(name))
        for what, value in found.items():
            if isinstance(value, int):
                known[what] += value
            elif isinstance(value, list):
                most = _KEPT.get(what, NAMED_LEVELS)
                if len(known[what]) < most:
                    known[what] = list(dict.fromkeys([*known[what], *value]))[:most]
            else:
                known[what] = known[what] or value

    def merge(self, other: "Issues") -> None:
        """Add what another part of the table held."""
        self.rows += other.rows
        self.shows_points |= other.shows_points
        for name, issues in other.columns.items():
            self.count(name, **issues)
