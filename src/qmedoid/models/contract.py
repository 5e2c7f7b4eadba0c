"""What a table must look like to be scored: the columns a model was fitted on, and their kinds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["number", "category", "boolean", "date"]
KINDS: tuple[Kind, ...] = ("number", "category", "boolean", "date")
Label = str | int | float | bool
"""A class as it stands in the target column."""


@dataclass(frozen=True)
class Column:
    """A column that a model was fitted on.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "boolean", "date"}
    missing : bool
        Whether cells were missing in the training rows.
    levels : tuple of str
        Of a closed category: all that the training rows held, and names that were seen beside them (in held-out rows
        of the same file), which no encoding knows. Another level breaks the contract.
    is_open : bool
        Of a category: whether there are so many levels that new ones are expected. Of a number or a date: whether it
        stood in a column of texts, so that a few cells of another kind are expected; they count as missing.
    """

    name: str
    kind: Kind
    missing: bool = False
    levels: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class Contract:
    """Columns, target and what was left out.

    Attributes
    ----------
    columns : tuple of Column
        In the order of the training table.
    target : str or None
        The column that held the classes, where it had a name.
    left_out : mapping of str to str
        Columns of the training table that no model reads, each with the reason.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)
