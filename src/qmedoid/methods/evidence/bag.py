r"""The bags of an evidence model: groups of columns, weights of the terms of each design, and leave-one-out outputs.

Groups are pairs and triples of columns that explain what single columns do not. Columns are cut at quantiles. Crossing
the cells of two columns explains

.. math:: \sum_{\text{cells}} \Bigl(\frac{(\sum_{i\in\text{cell}} r_i)^2}{n_\text{cell}} - \bar{r^2}\Bigr)

of the residuals r that single columns leave; what chance alone would explain is taken off cell by cell, and so is what
either column explains by itself. All crossings together are a few matrix products.

Weights are those of a ridge regression, refitted by a logistic or multinomial one.
"""

import math
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels.ties import TIE, stable_order
from qmedoid.methods.evidence.design import Blocks, Columns, Design
from qmedoid.methods.evidence.logistic import fit_logistic
from qmedoid.methods.evidence.long_table import LongTable, RowBlock, kept_directions, part_of_progress
from qmedoid.methods.evidence.multinomial import deal_folds, fit_multinomial, is_likelier
from qmedoid.methods.evidence.ridge import Ridge, RidgePath, RowGroups, fit_ridge
from qmedoid.optimize.newton import Stored

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
    n_pairs, n_triples, judged = settings.n_pairs, settings.n_triples, None
    if "group" not in settings.blocks or len(columns) < 2:
        return [], None
    if settings.targeted:
        order = rng.permutation(len(residuals) if together is None else int(together.max()) + 1)
        some, others = np.split(order, [math.ceil(_GROUP_ROWS * len(order))])
        if together is not None:
            some, others = (np.flatnonzero(np.isin(together, part)) for part in (some, others))
        values = blocks.rows.ranks[some][:, list(columns)]
        found, judged = chosen_groups(values, residuals[some], n_pairs, n_triples), np.sort(others)
    else:
        found = drawn_groups(len(columns), n_pairs, n_triples, rng)
    named = [tuple(columns[place] for place in group) for group in found]
    return named, judged if judged is not None and len(judged) else None


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


def _main_directions(residuals: Array) -> Array:
    if residuals.shape[1] <= _MAX_RESIDUALS:
        return residuals
    _, vectors = np.linalg.eigh(residuals.T @ residuals)
    return np.asarray(residuals @ vectors[:, -_MAX_RESIDUALS:])


# The curvature of a logistic loss is a quarter at most, and less where a row is predicted with confidence: its λ is
# this share of the one that would be the same ridge at the quarter.
_LOGISTIC_SHARE = 0.8


# Progress of a bag when its ridge is fitted, and its logistic regression where another one follows.
_RIDGE_SHARE, _LOGISTIC_END = 0.6, 0.7


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

    Where these rows are the sample of a long table, weights are fitted on all of its rows. Bags behind the first are
    fitted if they may begin.
    """
    settings, row_groups = blocks.settings, None if together is None else together.groups
    residuals = targets - targets.mean(axis=0)
    # Groups are chosen by the residuals of single columns.
    if settings.targeted and "group" in settings.blocks and (alone := blocks.design(places[0])).parts:
        first = fit_ridge(
            alone.features, targets, settings.selection, together=together, row_weights=blocks.row_weights,
            progress=part_of_progress(report, 0.1, 0.25),
        )  # fmt: skip
        residuals = targets - first.out_of_fold
    report(0.25)
    bags, refits, began = list[Bag](), list[Bag](), time.monotonic()
    refit = settings.multinomial and targets.shape[1] > 1
    all_targets, all_groups, all_weights = (
        (targets, row_groups, blocks.row_weights) if table is None else (table.targets, table.groups, table.row_weights)
    )
    codes = all_targets.argmax(axis=1)
    folds = deal_folds(codes, all_groups, rng) if refit else None
    for number, of_bag in enumerate(places):
        # A bag takes as long as the one before it.
        if bags and not may_begin(
            f"{len(places) - number} of {len(places)} bags of the evidence", time.monotonic() - began
        ):
            break
        began = time.monotonic()
        done = part_of_progress(report, *(0.25 + 0.7 * (number + end) / len(places) for end in (0, 1)))
        groups, judged = bag_groups(blocks, residuals, rng, row_groups)
        if table is None:
            design = blocks.design(of_bag, groups)
            ridge = fit_ridge(
                design.features, targets, settings.selection, judged, together=together, same_intercept=True,
                row_weights=all_weights, progress=part_of_progress(done, 0.0, _RIDGE_SHARE),
            )  # fmt: skip
            bags.append(fit_bag(design, ridge, targets, settings.logistic, together, None, all_weights))
        else:
            parts = blocks.parts(of_bag, groups)
            design, ridge = table.fit_ridge(
                parts, blocks.medoids, settings.selection, judged, rng, part_of_progress(done, 0.0, _RIDGE_SHARE)
            )
            bags.append(fit_bag(design, ridge, all_targets, settings.logistic, None, table.blocks, all_weights))
        done(_LOGISTIC_END if refit else 1.0)
        if folds is not None:
            refits.append(multinomial_bag(design, ridge, codes, folds, all_weights))
        done(1.0)
    if refits:
        plain, refitted = (np.mean([bag.out_of_fold for bag in one], axis=0) for one in (bags, refits))
        return refits if is_likelier(refitted, plain, codes, all_groups, all_weights) else bags
    return bags


def fit_bag(
    design: Design,
    ridge: Ridge,
    targets: Array,
    logistic: bool,
    together: RowGroups | None = None,
    blocks: Sequence[RowBlock] | None = None,
    row_weights: Array | None = None,
) -> Bag:
    """A bag by its ridge regression on ±1, refitted, if asked and with one output, by logistic regression."""
    if logistic and targets.shape[1] == 1:
        return _bag(design, ridge, *_logistic(ridge, targets, together, blocks, row_weights))
    return _bag(design, ridge, ridge.directions @ ridge.coefficients, ridge.means, ridge.out_of_fold)


def _bag(design: Design, ridge: Ridge, weights: Array, intercepts: Array, out_of_fold: Array) -> Bag:
    """A bag by the weights of its features."""
    of_terms = []
    for part, scale, place in zip(design.parts, design.scales, design.places, strict=True):
        own = weights[place]
        of_terms.append(scale * own if part.mixing is None else scale * part.mixing @ own)
    return Bag(design, of_terms, intercepts, out_of_fold, ridge.penalty, ridge.path)


def _kept_rows(ridge: Ridge, kept: Codes) -> Array | Stored:
    """T of the directions that are kept; of a long table no others are there."""
    return ridge.rotated if ridge.rotated.dtype == np.float32 else ridge.rotated[:, kept]


def multinomial_bag(design: Design, ridge: Ridge, codes: Codes, folds: Codes, row_weights: Array | None) -> Bag:
    """The same bag with weights by multinomial regression."""
    penalty = ridge.penalty * len(codes)
    kept = kept_directions(ridge.sizes, penalty)
    start = 2.0 * ridge.means, 2.0 * ridge.coefficients[kept]
    rows, penalty = _kept_rows(ridge, kept), _LOGISTIC_SHARE * penalty / 4.0
    found = fit_multinomial(rows, codes, penalty, start, folds, row_weights)
    weights = ridge.directions[:, kept] @ found.coefficients
    return _bag(design, ridge, weights, found.intercepts, found.out_of_fold)


def _logistic(
    ridge: Ridge,
    targets: Array,
    together: RowGroups | None,
    blocks: Sequence[RowBlock] | None,
    row_weights: Array | None,
) -> tuple[Array, Array, Array]:
    """Weights of the features, intercepts and leave-one-out outputs, all as logits."""
    penalty = ridge.penalty * len(targets)
    kept = kept_directions(ridge.sizes, penalty)
    # An output t of the ridge is a probability (1 + t) / 2, whose logit starts as 2 t.
    fitted = fit_logistic(
        _kept_rows(ridge, kept), (targets[:, 0] + 1.0) / 2.0, _LOGISTIC_SHARE * penalty / 4.0,
        2.0 * float(ridge.means[0]), 2.0 * ridge.coefficients[kept, 0], together, same_intercept=True, blocks=blocks,
        row_weights=row_weights,
    )  # fmt: skip
    weights = ridge.directions[:, kept] @ fitted.coefficients
    return weights[:, None], np.array([fitted.intercept]), fitted.out_of_fold[:, None]
