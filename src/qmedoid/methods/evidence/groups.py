r"""Groups of columns of an evidence model, and the terms of a bag within a budget.

Groups are pairs and triples of columns that explain what single columns do not.

Columns are cut at quantiles. Crossing the cells of two columns explains

.. math:: \sum_{\text{cells}} \Bigl(\frac{(\sum_{i\in\text{cell}} r_i)^2}{n_\text{cell}} - \bar{r^2}\Bigr)

of the residuals r that single columns leave; what chance alone would explain is taken off cell by cell, and so is what
either column explains by itself. All crossings together are a few matrix products.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.ties import stable_order, tolerance
from qmedoid.methods.evidence.bag import Columns, DesignPart, Scaled, linear_part, near_part, single_part
from qmedoid.methods.evidence.settings import Block, EvidenceSettings

_PAIR_CELLS = 6
_TRIPLE_CELLS = 4
# Pairs that are tried with every third column, at least.
_MIN_STEMS = 8
# Directions of the residuals of many classes that are looked at.
_MAX_RESIDUALS = 8


def chosen_groups(Z: Array, residuals: Array, n_pairs: int, n_triples: int) -> list[Columns]:
    """The pairs and triples of the columns of Z that explain most of the residuals, of shape (n, K)."""
    residuals = _main_directions(residuals - residuals.mean(axis=0))
    cells = [_cells(column, _PAIR_CELLS) for column in Z.T]
    explained = _crossing_gains(cells, cells, residuals)
    alone = np.maximum(np.diag(explained), 0.0)
    gains = explained - alone[:, None] - alone[None, :]
    first, second = np.triu_indices(len(cells), 1)
    order = stable_order(-gains[first, second], float(np.abs(explained).max()))
    pairs: list[Columns] = [(int(first[place]), int(second[place])) for place in order]
    triples = _chosen_triples(Z, residuals, pairs[: max(_MIN_STEMS, n_triples)]) if n_triples else []
    return pairs[:n_pairs] + triples[:n_triples]


def drawn_groups(n_columns: int, n_pairs: int, n_triples: int, rng: np.random.Generator) -> list[Columns]:
    """Pairs and triples without regard to the classes."""
    groups: list[Columns] = []
    for size, wanted in ((2, n_pairs), (3, n_triples)):
        if n_columns <= 16:
            every = list(combinations(range(n_columns), size))
            groups += [every[place] for place in rng.permutation(len(every))[:wanted]]
        else:
            drawn = (tuple(sorted(rng.choice(n_columns, size, replace=False).tolist())) for _ in range(wanted))
            groups += list(dict.fromkeys(drawn))
    return groups


def _chosen_triples(Z: Array, residuals: Array, stems: list[Columns]) -> list[Columns]:
    if Z.shape[1] < 3:
        return []
    cells = [_cells(column, _TRIPLE_CELLS) for column in Z.T]
    gains = _crossing_gains([_crossed(cells[f], cells[g]) for f, g in stems], cells, residuals)
    best: dict[Columns, float] = {}
    for stem, (f, g) in enumerate(stems):
        for h in range(len(cells)):
            if h not in (f, g):
                triple = tuple(sorted((f, g, h)))
                best[triple] = max(best.get(triple, -np.inf), float(gains[stem, h]))
    triples = sorted(best)
    return [triples[place] for place in stable_order(np.array([-best[triple] for triple in triples]))]


def _cells(column: Array, n_cells: int) -> Array:
    """Membership of every row in the cells between quantiles, shape (n, cells); cells without rows are left out."""
    # An edge that is a value of the column is so up to rounding.
    edges = np.unique(np.quantile(column, np.arange(1, n_cells) / n_cells)) - tolerance(column)
    _, cell = np.unique(np.searchsorted(edges, column, side="right"), return_inverse=True)
    return np.asarray(cell[:, None] == np.arange(cell.max() + 1), dtype=np.float64)


def _crossed(left: Array, right: Array) -> Array:
    both = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    return both[:, both.any(axis=0)]


def _crossing_gains(left: list[Array], right: list[Array], residuals: Array) -> Array:
    """What crossing each of `left` with each of `right` explains, shape (len(left), len(right))."""
    rows, columns = np.hstack(left), np.hstack(right)
    counts = rows.T @ columns
    squares = np.zeros_like(counts)
    for residual in residuals.T:
        squares += ((rows * residual[:, None]).T @ columns) ** 2
    by_chance = float((residuals**2).sum(axis=1).mean())
    gains = np.where(counts > 0, squares / np.maximum(counts, 1.0) - by_chance, 0.0)
    of_rows = np.add.reduceat(gains, _starts(left), axis=0)
    return np.asarray(np.add.reduceat(of_rows, _starts(right), axis=1))


def _starts(cells: list[Array]) -> Codes:
    return np.concatenate([[0], np.cumsum([part.shape[1] for part in cells])[:-1]]).astype(np.intp)


def _main_directions(residuals: Array) -> Array:
    if residuals.shape[1] <= _MAX_RESIDUALS:
        return residuals
    _, vectors = np.linalg.eigh(residuals.T @ residuals)
    return np.asarray(residuals @ vectors[:, -_MAX_RESIDUALS:])


# Medoids of a single column at least and at most, and their share of the terms.
_FEWEST_SINGLE, _MOST_SINGLE = 3, 8
_SINGLE_SHARE = 0.4
# Medoids of a pair or triple at least.
_FEWEST_GROUP = 8
# Share of the rows that a bag chooses its groups on: so bags differ, and the other rows can judge what was chosen.
_GROUP_ROWS = 0.6


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows, medoids and columns that the terms of all bags are made from.

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

    def columns_alone(self, places: Codes) -> list[DesignPart]:
        """The blocks that look at one column at a time, with some of the medoids."""
        parts: list[DesignPart] = []
        if "linear" in self.settings.blocks:
            # All bags share it, with the medoids of the widest gap among those of all.
            parts += [linear_part(column, self.rows, self.medoids) for column in self.varying]
        if "single" in self.settings.blocks and self.many_valued:
            share = _SINGLE_SHARE * self.settings.n_terms / (self.n_bags * len(self.many_valued))
            wanted = int(np.clip(share, _FEWEST_SINGLE, _MOST_SINGLE))
            found = (single_part(column, self.by_rank, places, wanted, self.medoids) for column in self.many_valued)
            parts += [part for part in found if part is not None]
        return parts

    def columns_together(self, places: Codes, alone: list[DesignPart], groups: list[Columns]) -> list[DesignPart]:
        """The blocks that look at several columns at a time: the groups, and all columns."""
        parts: list[DesignPart] = []
        if groups:
            spent = sum(len(part.medoids) for part in alone) + len(places)
            left = self.settings.n_terms / self.n_bags - spent
            few = places[: int(np.clip(left / len(groups), _FEWEST_GROUP, len(places)))]
            parts += [self._near("group", group, few) for group in groups]
        if "full" in self.settings.blocks or not (alone or parts):
            parts.append(self._near("full", self.varying or (0,), places))
        return parts

    def groups(self, residuals: Array, rng: np.random.Generator) -> tuple[list[Columns], Codes | None]:
        """Pairs and triples of a bag, from the residuals of single columns, shape (n, K).

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

    def _near(self, block: Block, columns: Columns, places: Codes) -> DesignPart:
        return near_part(block, columns, self.by_rank, places, self.rows, self.medoids)
