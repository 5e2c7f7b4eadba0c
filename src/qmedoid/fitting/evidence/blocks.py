"""Which terms a bag of an evidence model has: its blocks, within a budget of terms."""

import math
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.evidence.design import Columns, Part, Scaled, linear_part, near_part, single_part
from qmedoid.fitting.evidence.groups import chosen_groups, drawn_groups
from qmedoid.fitting.evidence.settings import Block, EvidenceSettings

# Medoids of a single column at least and at most, and their share of the terms.
_FEWEST_SINGLE, _MOST_SINGLE = 3, 8
_SINGLE_SHARE = 0.4
# Medoids of a pair or triple at least.
_FEWEST_GROUP = 8
# Share of the rows that a bag chooses its groups on: so bags differ, and the other rows can judge what was chosen.
_GROUP_ROWS = 0.6


@dataclass(frozen=True, eq=False)
class Blocks:
    """What the terms of all bags are made from.

    Attributes
    ----------
    settings : EvidenceSettings
    rows, medoids : Scaled
        Training rows, and the medoids of all bags.
    varying, many_valued : tuple of int
        Columns of more than one and of more than two values.
    n_bags : int
    groups_of_rows : ndarray of shape (n,) or None
        Rows that belong together.
    """

    settings: EvidenceSettings
    rows: Scaled
    medoids: Scaled
    varying: Columns
    many_valued: Columns
    n_bags: int
    groups_of_rows: Codes | None = None

    @property
    def by_rank(self) -> bool:
        """Whether distances are measured on ranks."""
        return self.settings.scaling == "rank"

    def columns_alone(self, places: Codes) -> list[Part]:
        """The blocks that look at one column at a time, with some of the medoids."""
        parts: list[Part] = []
        if "linear" in self.settings.blocks:
            # All bags share it, with the medoids that lie farthest apart among those of all.
            parts += [linear_part(column, self.rows, self.medoids) for column in self.varying]
        if "single" in self.settings.blocks and self.many_valued:
            share = _SINGLE_SHARE * self.settings.n_terms / (self.n_bags * len(self.many_valued))
            wanted = int(np.clip(share, _FEWEST_SINGLE, _MOST_SINGLE))
            found = (single_part(column, self.by_rank, places, wanted, self.medoids) for column in self.many_valued)
            parts += [part for part in found if part is not None]
        return parts

    def columns_together(self, places: Codes, alone: list[Part], groups: list[Columns]) -> list[Part]:
        """The blocks that look at several columns at a time: the groups, and all columns."""
        parts: list[Part] = []
        if groups:
            spent = sum(len(part.medoids) for part in alone) + len(places)
            left = self.settings.n_terms / self.n_bags - spent
            few = places[: int(np.clip(left / len(groups), _FEWEST_GROUP, len(places)))]
            parts += [self._near("group", group, few) for group in groups]
        if "full" in self.settings.blocks or not (alone or parts):
            parts.append(self._near("full", self.varying or (0,), places))
        return parts

    def groups(self, residuals: Array, rng: np.random.Generator) -> tuple[list[Columns], Codes | None]:
        """Pairs and triples of a bag, from what the columns alone leave unsaid, shape (n, K).

        Also the rows by which they were not chosen; None if they were not chosen by any.
        """
        columns, settings = self.varying, self.settings
        if "group" not in settings.blocks or len(columns) < 2:
            return [], None
        if not settings.targeted:
            return self._named(drawn_groups(len(columns), settings.n_pairs, settings.n_triples, rng)), None
        together = self.groups_of_rows
        order = rng.permutation(len(residuals) if together is None else int(together.max()) + 1)
        some, others = np.split(order, [math.ceil(_GROUP_ROWS * len(order))])
        if together is not None:
            some, others = (np.flatnonzero(np.isin(together, part)) for part in (some, others))
        values = self.rows.ranks[some][:, list(columns)]
        found = chosen_groups(values, residuals[some], settings.n_pairs, settings.n_triples)
        return self._named(found), np.sort(others) if len(others) else None

    def _named(self, places: list[Columns]) -> list[Columns]:
        return [tuple(self.varying[place] for place in group) for group in places]

    def _near(self, block: Block, columns: Columns, places: Codes) -> Part:
        return near_part(block, columns, self.by_rank, places, self.rows, self.medoids)
