"""Stability of the groups and of the medoids of a classifier when its rows change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import GroupStabilityDict, MedoidStabilityDict, StableMedoidDict
from qmedoid.metrics.agreement import (
    best_matches,
    group_agreement,
    mean_agreement,
    pair_frequencies,
)

# Pairs of columns that text and JSON list.
_LISTED_PAIRS = 50


@dataclass(frozen=True, eq=False)
class GroupStability:
    """Groups of more than one and not all columns.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns by their numbers.
    groups : tuple of tuple of int
        The G groups of the fit of all rows.
    kept, best_match : ndarray of shape (G,)
        Share of the refits that have exactly this group, and mean Jaccard index with the most similar group of each.
    pairs : mapping of (int, int) to float
        Share of the refits that have two columns in one group, the most frequent first; other pairs never were.
    with_full_fit, between_refits : float
        Mean agreement of the groups of a refit with those of the fit of all rows, and of two refits: the mean Jaccard
        index of each group with its best match on the other side. 1 is the same groups, 0 no column in common.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    kept: Array
    best_match: Array
    pairs: Mapping[tuple[int, int], float]
    with_full_fit: float
    between_refits: float

    @classmethod
    def of(cls, found: Sequence[frozenset[frozenset[int]] | None], columns: Sequence[str]) -> "GroupStability | None":
        """The groups of the fit of all rows, which come first, compared with those of the refits."""
        sets = [groups for groups in found if groups is not None]
        if len(sets) < len(found) or not any(sets):
            return None
        full, refits = sets[0], sets[1:]
        ordered = sorted(full, key=sorted)
        return cls(
            columns=tuple(columns),
            groups=tuple(tuple(sorted(group)) for group in ordered),
            kept=np.array([np.mean([group in groups for groups in refits]) for group in ordered]),
            best_match=np.array([best_matches(ordered, groups) for groups in refits]).mean(axis=0),
            pairs=pair_frequencies(refits),
            with_full_fit=float(np.mean([group_agreement(full, groups) for groups in refits])),
            between_refits=mean_agreement(refits),
        )

    @property
    def pairs_kept(self) -> float:
        """How often two columns that share a group in the fit of all rows share one in a refit; NaN without groups."""
        own = {pair for group in self.groups for pair in combinations(group, 2)}
        return float(np.mean([self.pairs.get(pair, 0.0) for pair in own])) if own else float("nan")

    @property
    def pairs_by_chance(self) -> float:
        """How often any two columns share a group in a refit."""
        return sum(self.pairs.values()) / comb(len(self.columns), 2)

    def names(self, group: tuple[int, ...]) -> list[str]:
        """The names of some columns."""
        return [self.columns[column] for column in group]

    def as_dict(self) -> GroupStabilityDict:
        """The groups as plain values."""
        described = zip(self.groups, self.kept.tolist(), self.best_match.tolist(), strict=True)
        return {
            "with_full_fit": self.with_full_fit,
            "between_refits": self.between_refits,
            "pairs_kept": number(self.pairs_kept),
            "pairs_by_chance": self.pairs_by_chance,
            "groups": [
                {"columns": self.names(group), "kept": kept, "best_match": match} for group, kept, match in described
            ],
            "pairs": [
                {"columns": self.names(pair), "frequency": frequency}
                for pair, frequency in list(self.pairs.items())[:_LISTED_PAIRS]
            ],
        }


@dataclass(frozen=True, eq=False)
class MedoidStability:
    """Medoids of the fit of all rows, or a random sample of them where they are many.

    Attributes
    ----------
    n_medoids : int
        How many there are.
    rows, classes : ndarray of shape (P,)
        Row and class of those that were looked at.
    present : ndarray of shape (P,)
        Number of refits whose sample held the row.
    kept : ndarray of shape (P,)
        Share of these refits that chose it again; NaN where there was none.
    moved : ndarray of shape (P,)
        Where they did not: mean distance to the nearest medoid of its class that they chose instead, over standardized
        columns, as a share of the median distance between two rows of the class; NaN where it was always chosen.
    by_chance : ndarray of shape (P,)
        The same distance for as many medoids of the class as there are, drawn at random.
    """

    n_medoids: int
    rows: Codes
    classes: npt.NDArray[Any]
    present: npt.NDArray[np.int64]
    kept: Array
    moved: Array
    by_chance: Array

    @property
    def mean_kept(self) -> float:
        """Share of the medoids in a sample that are chosen again."""
        return mean(self.kept, self.present)

    @property
    def mean_moved(self) -> float:
        """Mean relative distance to the nearest new medoid where one is not chosen again; NaN where all are."""
        return mean(self.moved, np.rint(self.present * (1.0 - np.nan_to_num(self.kept))))

    def as_dict(self) -> MedoidStabilityDict:
        """The medoids as plain values."""
        whole: MedoidStabilityDict = {
            "medoids": self.n_medoids,
            "kept": number(self.mean_kept),
            "moved": number(self.mean_moved),
            "by_chance": number(float(self.by_chance.mean())),
        }
        if len(self.rows) < self.n_medoids:
            return whole
        each = {
            "row": self.rows.tolist(),
            "class": self.classes.tolist(),
            "present": self.present.tolist(),
            "kept": map(number, self.kept),
            "moved": map(number, self.moved),
            "by_chance": self.by_chance.tolist(),
        }
        listed = [dict(zip(each, one, strict=True)) for one in zip(*each.values(), strict=True)]
        return whole | {"each": cast("list[StableMedoidDict]", listed)}


def mean(values: Array, weights: npt.NDArray[Any]) -> float:
    """Weighted mean of the values that are known; NaN where there is none."""
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else float("nan")


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
