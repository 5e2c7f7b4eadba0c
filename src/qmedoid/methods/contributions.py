"""Contributions: what rows, groups and columns add to the difference of two dissimilarities."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array
from qmedoid.kernels.ties import stable_order


class RowContribution(NamedTuple):
    """Contribution of the distance to one training row."""

    row: int  # training row
    code: int
    distance: float  # to it, over the columns of the group
    contribution: float


@dataclass(frozen=True)
class GroupContribution:
    """Contribution of a group of columns."""

    columns: tuple[int, ...]
    contribution: float  # above 0 is for the class that won
    name: str | None = None  # what is looked at in these columns, where they have several contributions
    records: tuple[RowContribution, ...] = ()  # the contribution by medoid, where there are several
    value: float | None = None  # of the group's feature, where the group has one
    # Of the same feature in the medoids, by class code.
    medoid_values: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions that add up to the difference of two dissimilarities, in two ways."""

    columns: Array  # what each encoded column adds; with `terms` they add up to the difference, (M,)
    # The same, group of columns by group of columns: they add up to what `columns` add up to.
    groups: tuple[GroupContribution, ...]
    terms: Mapping[str, float]  # what belongs to no column, by name
    neighbors: tuple[RowContribution, ...] = ()  # the neighbors that the term ``"neighbors"`` is the sum of

    def times(self, factor: float) -> "Contributions":
        """All contributions in another unit."""
        groups = tuple(
            [
                GroupContribution(
                    one.columns,
                    factor * one.contribution,
                    one.name,
                    _times(one.records, factor),
                    one.value,
                    one.medoid_values,
                )
                for one in self.groups
            ]
        )
        terms = {name: factor * value for name, value in self.terms.items()}
        return Contributions(factor * self.columns, groups, terms, _times(self.neighbors, factor))

    def plus(self, other: "Contributions") -> "Contributions":
        """The sum of both."""
        terms = {name: self.terms.get(name, 0.0) + other.terms.get(name, 0.0) for name in {**self.terms, **other.terms}}
        return Contributions(
            self.columns + other.columns, self.groups + other.groups, terms, self.neighbors + other.neighbors
        )


def _times(records: tuple[RowContribution, ...], factor: float) -> tuple[RowContribution, ...]:
    # Explanations have thousands of them: a copy by `_replace` takes three times as long.
    return tuple([RowContribution(row, code, far, factor * amount) for row, code, far, amount in records])


def largest_first(
    rows: Iterable[int], codes: Iterable[int], distances: Iterable[float], contributions: Iterable[float]
) -> tuple[RowContribution, ...]:
    """Contributions of training rows by size; equal ones stand in the order of the rows, whatever rounding says."""
    found = sorted(zip(rows, codes, distances, contributions, strict=True))
    order = stable_order(-np.abs(np.array([contribution for *_, contribution in found])))
    return tuple([RowContribution(*found[place]) for place in order.tolist()])
