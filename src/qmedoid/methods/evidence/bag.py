r"""The bags of an evidence model: groups of columns, weights of the terms of each design, and leave-one-out outputs.

Groups are pairs and triples of columns that explain what single columns do not. Columns are cut at quantiles. Crossing
the cells of two columns explains

.. math:: \sum_{\text{cells}} \Bigl(\frac{(\sum_{i\in\text{cell}} r_i)^2}{n_\text{cell}} - \bar{r^2}\Bigr)

of the residuals r that single columns leave; what chance alone would explain is taken off cell by cell, and so is what
either column explains by itself. All crossings together are a few matrix products.

Weights are those of a ridge regression; of three or more classes they may be refitted by a multinomial one.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels.ties import TIE, stable_order
from qmedoid.methods.evidence.design import Blocks, Columns, Design
from qmedoid.methods.evidence.long_table import LongTable, kept_directions, part_of_progress
from qmedoid.methods.evidence.multinomial import deal_folds, fit_multinomial, is_likelier
from qmedoid.methods.evidence.ridge import Ridge, RidgePath, RowGroups, fit_ridge

_PAIR_CELLS = 6
_TRIPLE_CELLS = 4
# Pairs that are tried with every third column, at least.
_MIN_STEMS = 8
# Directions of the residuals of many classes that are looked at.
_MAX_RESIDUALS = 8
# Share of the rows that a bag chooses its groups on: so bags differ, and the other rows can judge what was chosen.
_GROUP_ROWS = 0.6


def bag_groups(
    blocks: Blocks, residuals: Array, rng: np.random.Generator, together: Codes | None
) -> tuple[list[Columns], Codes | None]:
    """Pairs and triples of a bag, from the residuals of single columns, shape (n, K); groups of rows stay together.

    Also the rows by which they were not chosen; None if they were not chosen by any.
    """
    columns, settings = blocks.varying, blocks.settings
    if len(columns) < 2:
        return [], None
    order = rng.permutation(len(residuals) if together is None else int(together.max()) + 1)
    some, others = np.split(order, [math.ceil(_GROUP_ROWS * len(order))])
    if together is not None:
        some, others = (np.flatnonzero(np.isin(together, part)) for part in (some, others))
    values = blocks.rows.ranks[some][:, list(columns)]
    found = chosen_groups(values, residuals[some], settings.n_pairs, settings.n_triples)
    return [tuple(columns[place] for place in group) for group in found], np.sort(others) if len(others) else None


def chosen_groups(Z: Array, residuals: Array, n_pairs: int, n_triples: int) -> list[Columns]:
    """The pairs and triples of the columns of Z that explain most of the residuals, of shape (n, K)."""
    residuals = residuals - residuals.mean(axis=0)
    if residuals.shape[1] > _MAX_RESIDUALS:
        residuals = residuals @ np.linalg.eigh(residuals.T @ residuals)[1][:, -_MAX_RESIDUALS:]
    cells = [_cells(column, _PAIR_CELLS) for column in Z.T]
    explained = _crossing_gains(cells, cells, residuals)
    alone = np.maximum(np.diag(explained), 0.0)
    gains = explained - alone[:, None] - alone[None, :]
    first, second = np.triu_indices(len(cells), 1)
    order = stable_order(-gains[first, second], float(np.abs(explained).max()))
    pairs: list[Columns] = [(int(first[place]), int(second[place])) for place in order]
    triples = _chosen_triples(Z, residuals, pairs[: max(_MIN_STEMS, n_triples)]) if n_triples else []
    return pairs[:n_pairs] + triples[:n_triples]


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
    edges = np.unique(np.quantile(column, np.arange(1, n_cells) / n_cells)) - TIE * np.abs(column).max()
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


# The curvature of a logistic loss is a quarter at most, and less where a row is predicted with confidence: its λ is
# this share of the one that would be the same ridge at the quarter.
_LOGISTIC_SHARE = 0.8


# Progress of a bag when its ridge is fitted, where a refit follows.
_RIDGE_SHARE = 0.7


MayBegin = Callable[[str, float], bool]
"""Whether a part with this name, which takes about so many seconds, may begin."""


def always(what: str, seconds: float) -> bool:  # noqa: ARG001
    """Every part may begin."""
    return True


class Bag(NamedTuple):
    """A design with the weights of its terms.

    Attributes
    ----------
    design : Design
    weights : list of ndarray of shape (q, K)
        Weights of the terms of each part.
    intercepts : ndarray of shape (K,)
    out_of_fold : ndarray of shape (n, K)
        Leave-one-out outputs.
    penalty : float
        The λ that was chosen.
    path : RidgePath
    unseen : ndarray of shape (n,) or None
        Rows by which no column was chosen; None where all columns have terms.
    """

    design: Design
    weights: list[Array]
    intercepts: Array
    out_of_fold: Array
    penalty: float
    path: RidgePath
    unseen: Flags | None = None


class BagFits:
    """Bags of an evidence model as they are fitted, and those of more classes refitted by multinomial regression.

    Where the rows of the `blocks` are the sample of a long table, weights are fitted on all of its rows.
    """

    def __init__(
        self,
        blocks: Blocks,
        targets: Array,
        together: RowGroups | None,
        rng: np.random.Generator,
        table: LongTable | None,
    ) -> None:
        self.settings, self.medoids = blocks.settings, blocks.medoids
        self.together, self.table, self.rng = together, table, rng
        self.targets, self.groups, self.row_weights = (
            (targets, None if together is None else together.groups, blocks.row_weights)
            if table is None
            else (table.targets, table.groups, table.row_weights)
        )
        self.codes = self.targets.argmax(axis=1)
        refits = self.settings.multinomial and targets.shape[1] > 1
        self.folds = deal_folds(self.codes, self.groups, rng) if refits else None
        self.bags, self.refits = list[Bag](), list[Bag]()

    def add(
        self,
        blocks: Blocks,
        places: Codes,
        groups: list[Columns],
        judged: Codes | None,
        progress: Callable[[float], None],
        path: RidgePath | None = None,
        unseen: Flags | None = None,
    ) -> None:
        """Fit a bag with medoids at these places; rows that have not chosen its groups are `judged`, to find λ.

        Where a `path` is given, its λ is taken. `unseen` rows have chosen no columns.
        """
        of_ridge = part_of_progress(progress, 0.0, 1.0 if self.folds is None else _RIDGE_SHARE)
        if self.table is None:
            design = blocks.design(places, groups)
            ridge = fit_ridge(
                design.features, self.targets, judged, None if path is None else path.penalties[[path.place]],
                self.together, same_intercept=True, row_weights=self.row_weights, progress=of_ridge,
            )  # fmt: skip
        else:
            parts = blocks.parts(places, groups)
            design, ridge = self.table.fit_ridge(parts, self.medoids, judged, self.rng, of_ridge)
        more = ridge.path if path is None else path, unseen
        as_it_is = ridge.directions @ ridge.coefficients, ridge.means, ridge.out_of_fold
        self.bags.append(_bag(design, ridge, as_it_is, *more))
        if self.folds is not None:
            found = _multinomial(ridge, self.codes, self.folds, self.row_weights)
            self.refits.append(_bag(design, ridge, found, *more))
        progress(1.0)

    def best(self) -> list[Bag]:
        """The refitted bags where these are likelier out of fold, else the others."""
        if self.refits:
            plain, refitted = mean_out_of_fold(self.bags), mean_out_of_fold(self.refits)
            if is_likelier(refitted, plain, self.codes, self.groups, self.row_weights):
                return self.refits
        return self.bags


def mean_out_of_fold(bags: Sequence[Bag]) -> Array:
    """Mean of the leave-one-out outputs of the bags that have chosen no column by a row, shape (n, K)."""
    if bags[0].unseen is None:
        return np.asarray(np.mean([bag.out_of_fold for bag in bags], axis=0))
    unseen = np.array([bag.unseen for bag in bags], dtype=np.float64)[:, :, None]
    total = np.sum([mask * bag.out_of_fold for mask, bag in zip(unseen, bags, strict=True)], axis=0)
    return np.asarray(total / unseen.sum(axis=0))


def fit_bags(
    blocks: Blocks,
    targets: Array,
    places: Sequence[Codes],
    together: RowGroups | None,
    rng: np.random.Generator,
    report: Callable[[float], None],
    table: LongTable | None = None,
    may_begin: MayBegin = always,
) -> list[Bag]:
    """Fit a bag for each set of medoids: groups, design and weights; rows of one group are left out `together`.

    Bags behind the first are fitted if they may begin.
    """
    residuals = targets - targets.mean(axis=0)
    # Groups are chosen by the residuals of single columns.
    if (alone := blocks.design(places[0])).parts:
        done, u = part_of_progress(report, 0.1, 0.25), blocks.row_weights
        first = fit_ridge(alone.features, targets, together=together, row_weights=u, progress=done)
        residuals = targets - first.out_of_fold
    report(0.25)
    fits, began = BagFits(blocks, targets, together, rng, table), time.monotonic()
    for number, of_bag in enumerate(places):
        # A bag takes as long as the one before it.
        left = f"{len(places) - number} of {len(places)} bags of the evidence"
        if number and not may_begin(left, time.monotonic() - began):
            break
        began = time.monotonic()
        done = part_of_progress(report, *(0.25 + 0.7 * (number + end) / len(places) for end in (0, 1)))
        groups, judged = bag_groups(blocks, residuals, rng, None if together is None else together.groups)
        fits.add(blocks, of_bag, groups, judged, done)
    return fits.best()


Found = tuple[Array, Array, Array]
"""Weights of the features (p, K), intercepts (K,) and outputs (n, K) out of fold."""


def _bag(design: Design, ridge: Ridge, found: Found, path: RidgePath, unseen: Flags | None) -> Bag:
    """A bag by the weights of its features."""
    of_terms, (weights, intercepts, out_of_fold) = list[Array](), found
    for part, scale, place in zip(design.parts, design.scales, design.places, strict=True):
        own = weights[place]
        of_terms.append(scale * own if part.mixing is None else scale * part.mixing @ own)
    return Bag(design, of_terms, intercepts, out_of_fold, ridge.penalty, path, unseen)


def _multinomial(ridge: Ridge, codes: Codes, folds: Codes, row_weights: Array | None) -> Found:
    """Refitted along the directions that are kept; of a long table no other directions are there."""
    penalty = ridge.penalty * len(codes)
    kept = kept_directions(ridge.sizes, penalty)
    rows = ridge.rotated if ridge.rotated.dtype == np.float32 else ridge.rotated[:, kept]
    start = 2.0 * ridge.means, 2.0 * ridge.coefficients[kept]
    found = fit_multinomial(rows, codes, _LOGISTIC_SHARE * penalty / 4.0, start, folds, row_weights)
    intercepts, coefficients, out_of_fold = found
    return ridge.directions[:, kept] @ coefficients, intercepts, out_of_fold
