"""Shares of groups of columns, and of real records, in the difference of two classes' dissimilarities."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class RecordShare(NamedTuple):
    """What the distance to one real record adds.

    Attributes
    ----------
    row, code : int
        Its training row, and its class.
    distance : float
        To it, over the columns of the group.
    contribution : float
    """

    row: int
    code: int
    distance: float
    contribution: float


@dataclass(frozen=True)
class GroupShare:
    """What a group of columns adds.

    Attributes
    ----------
    columns : tuple of int
    contribution : float
        Above 0 speaks for the class that won.
    name : str or None
        What is looked at in these columns, where they have more than one share.
    records : tuple of RecordShare
        The contribution by medoid, or by known record, where there are several.
    value : float or None
        Of the group's feature, where the group has one.
    medoid_values : mapping of int to float
        Of the same feature in the medoids, by class code.
    """

    columns: tuple[int, ...]
    contribution: float
    name: str | None = None
    records: tuple[RecordShare, ...] = ()
    value: float | None = None
    medoid_values: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Shares:
    """Groups, and other terms by name, that add up to the difference of two dissimilarities."""

    groups: tuple[GroupShare, ...]
    terms: dict[str, float]

    def times(self, factor: float) -> "Shares":
        """All shares in another unit."""
        groups = tuple(
            replace(
                group,
                contribution=factor * group.contribution,
                records=tuple(one._replace(contribution=factor * one.contribution) for one in group.records),
            )
            for group in self.groups
        )
        return Shares(groups, {name: factor * value for name, value in self.terms.items()})
