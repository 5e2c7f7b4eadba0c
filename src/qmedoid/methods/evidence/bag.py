r"""The bags of an evidence model: groups of columns, weights of the terms of each design, and leave-one-out outputs.

Groups are pairs and triples of columns that explain what single columns do not. Columns are cut at quantiles. Crossing
the cells of two columns explains

.. math:: \sum_{\text{cells}} \Bigl(\frac{(\sum_{i\in\text{cell}} r_i)^2}{n_\text{cell}} - \bar{r^2}\Bigr)

of the residuals r that single columns leave; what chance alone would explain is taken off cell by cell, and so is what
either column explains by itself. All crossings together are a few matrix products.

A bag of a wide table has terms of the columns that are worth most to it. A column that was chosen because it fits the
classes of some rows fits these rows better than new ones, and with very many columns to choose from much better. So
rows are dealt into parts, and there is a bag for each: its columns and groups of columns are chosen without the rows of
its part, which then evaluate λ. The out-of-fold output of a row comes from the bag that was chosen without it.

Weights are those of a ridge regression; of three or more classes they may be refitted by a multinomial one.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.groups import MOST_COLUMNS, most_worth
from qmedoid.geometry.row_groups import group_folds, is_clear_gain
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.ties import TIE, first_smallest, stable_order
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.evidence.design import Blocks, Columns, Design
from qmedoid.methods.evidence.ridge import RidgePath, RowGroups, fit_multinomial, fit_ridge

_PAIR_CELLS = 6
_TRIPLE_CELLS = 4
# Pairs that are tried with every third column, at least.
_MIN_STEMS = 8
# Directions of the residuals of many classes that are looked at.
_MAX_RESIDUALS = 8
# Share of the rows that a bag chooses its groups on: so bags differ, and the other rows can evaluate the choice.
_GROUP_ROWS = 0.6
# Progress of a bag when its ridge is fitted, where a refit follows.
_RIDGE_SHARE = 0.7
# Folds of the out-of-fold outputs of a refit.
_N_FOLDS = 5
# Directions that a refit keeps: at most this many, and none that the ridge shrinks below this share.
_MAX_DIRECTIONS, _LEAST_SHARE = 400, 0.003
# The curvature of a logistic loss is a quarter at most, and less where a row is predicted with confidence: its λ is
# this share of the one that would be the same ridge at the quarter.
_LOGISTIC_SHARE = 0.8
# Minimum gain in out-of-fold log-likelihood of the refits over the ridge, in standard errors.
_WORTH_IT = 1.0
# Numbers of columns of a wide table that are tried, and those at most that have nearnesses or are crossed in groups.
_COUNTS = (12, 40, 125, 400, 1200)
_MOST_CURVED = 125
_N_PARTS = 5
# With fewer rows, those of a single part are too few to evaluate λ.
_FEW_ROWS = 1000


MayBegin = Callable[[str, float], bool]
"""Whether a part with this name, which takes about this many seconds, may begin."""
Choice = tuple[Blocks, Codes, list[Columns], Codes | None]
"""What a bag looks at: its blocks, medoids and groups of columns, and the rows that did not choose them, if any."""


class Bag(NamedTuple):
    """A design with the weights of its terms."""

    design: Design
    weights: list[Array]  # weights of the terms of each part, (q, K)
    intercepts: Array  # (K,)
    out_of_fold: Array  # leave-one-out outputs, (n, K)
    penalty: float  # the λ that was chosen
    path: RidgePath
    unseen: Flags | None = None  # rows by which no column was chosen; None where all columns have terms, (n,)


def fit_bags(
    blocks: Blocks,
    targets: Array,
    places: Sequence[Codes],
    together: RowGroups | None,
    rng: np.random.Generator,
    report: Callable[[float], None],
    may_begin: MayBegin,
) -> tuple[list[Bag], Array]:
    """Bags, one for each set of medoids or part of the rows of a wide table, and their out-of-fold outputs (n, K).

    Rows of one group are left out `together`. Bags behind the first are fitted if they may begin.
    """
    codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0).astype(np.intp)
    groups, u = None if together is None else together.groups, blocks.row_weights
    numbers, is_wide = np.arange(len(codes)) if groups is None else groups, len(blocks.varying) > MOST_COLUMNS
    choices: Iterator[Choice]
    path, n_bags = None, len(places)
    if is_wide:
        part = group_folds(numbers, codes, min(_N_PARTS, int(numbers.max()) + 1), rng)
        chosen = _wide_choices(blocks, targets, places, part, together)
        path = _shared_path(chosen, targets, together) if len(targets) < _FEW_ROWS else None
        choices, n_bags = iter(chosen), len(chosen)
    else:
        residuals = targets - targets.mean(axis=0)
        # Groups are chosen by the residuals of single columns.
        if (alone := blocks.design(places[0])).parts:
            progress = _part_of(report, 0.1, 0.25)
            first = fit_ridge(alone.features, targets, together=together, row_weights=u, progress=progress)
            residuals = targets - first.out_of_fold
        choices = ((blocks, of_bag, *bag_groups(blocks, residuals, rng, groups)) for of_bag in places)
    report(0.25)
    folds = group_folds(numbers, codes, _N_FOLDS, rng) if blocks.settings.multinomial and targets.shape[1] > 1 else None
    bags, refits, began = list[Bag](), list[Bag](), time.monotonic()
    for number in range(n_bags):
        # A bag takes as long as the one before it.
        left = f"{n_bags - number} of {n_bags} bags of the evidence"
        if number and not is_wide and not may_begin(left, time.monotonic() - began):
            break
        began = time.monotonic()
        progress = _part_of(report, *(0.25 + 0.7 * (number + end) / n_bags for end in (0, 1)))
        of_bag, medoids, columns, unchosen = next(choices)
        design = of_bag.design(medoids, columns)
        of_ridge = _part_of(progress, 0.0, 1.0 if folds is None else _RIDGE_SHARE)
        ridge = fit_ridge(
            design.features, targets, unchosen, None if path is None else path.penalties[[path.place]], together,
            same_intercept=True, row_weights=u, progress=of_ridge,
        )  # fmt: skip
        unseen = np.isin(np.arange(len(targets)), unchosen) if is_wide and unchosen is not None else None
        more = ridge.penalty, ridge.path if path is None else path, unseen
        weights = _of_terms(design, ridge.directions @ ridge.coefficients)
        bags.append(Bag(design, weights, ridge.means, ridge.out_of_fold, *more))
        if folds is not None:
            # A refit has few directions: the last of those that the ridge hardly shrinks.
            kept = np.flatnonzero(ridge.sizes > _LEAST_SHARE * ridge.penalty * len(codes))[-_MAX_DIRECTIONS:]
            start, penalty = (2.0 * ridge.means, 2.0 * ridge.coefficients[kept]), ridge.penalty * len(codes)
            intercepts, along, out_of_fold = fit_multinomial(
                ridge.rotated[:, kept], codes, _LOGISTIC_SHARE * penalty / 4.0, start, folds, u
            )
            weights = _of_terms(design, ridge.directions[:, kept] @ along)
            refits.append(Bag(design, weights, intercepts, out_of_fold, *more))
        progress(1.0)
    outputs = _mean_out_of_fold(bags)
    if not refits:
        return bags, outputs
    refitted = _mean_out_of_fold(refits)
    before, after = (
        row_losses(fit_calibration(-one, codes, "logistic", groups, u).apply(-one), codes)
        for one in (outputs, refitted)
    )
    gains = before - after if u is None else u * (before - after)
    return (refits, refitted) if is_clear_gain(gains, groups, _WORTH_IT) else (bags, outputs)


def _part_of(report: Callable[[float], None], begin: float, end: float) -> Callable[[float], None]:
    """Progress of a part that takes a fit from one fraction done to another."""
    return lambda done: report(begin + (end - begin) * done)


def _of_terms(design: Design, weights: Array) -> list[Array]:
    """Weights of the terms of each part, from those of the features (p, K)."""
    return [
        scale * weights[place] if part.mixing is None else scale * part.mixing @ weights[place]
        for part, scale, place in zip(design.parts, design.scales, design.places, strict=True)
    ]


def _mean_out_of_fold(bags: Sequence[Bag]) -> Array:
    """Mean of the leave-one-out outputs of the bags that have chosen no column by a row, shape (n, K)."""
    if bags[0].unseen is None:
        return np.asarray(np.mean([bag.out_of_fold for bag in bags], axis=0))
    unseen = np.array([bag.unseen for bag in bags], dtype=np.float64)[:, :, None]
    total = np.sum([mask * bag.out_of_fold for mask, bag in zip(unseen, bags, strict=True)], axis=0)
    return np.asarray(total / unseen.sum(axis=0))


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
    crossed = [(cells[f][:, :, None] * cells[g][:, None, :]).reshape(len(Z), -1) for f, g in stems]
    gains = _crossing_gains([both[:, both.any(axis=0)] for both in crossed], cells, residuals)
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


def _wide_choices(
    blocks: Blocks, targets: Array, places: Sequence[Codes], part: Codes, together: RowGroups | None
) -> list[Choice]:
    """For every part of the rows the columns that are worth most to the other rows, as many as predict it best."""
    columns, ranks = np.array(blocks.varying), blocks.rows.ranks
    counts = sorted({min(count, len(columns)) for count in _COUNTS})
    best, errors = dict[int, Codes](), np.zeros(len(counts))
    for number in np.unique(part).tolist():
        some, others = np.flatnonzero(part != number), np.flatnonzero(part == number)
        sizes = None if together is None else together.sizes[some]
        best[number] = columns[most_worth(ranks[some][:, columns], targets[some], counts[-1], sizes)]
        for index, count in enumerate(counts):
            features = ranks[:, best[number][:count]]
            features = (features - features.mean(axis=0)) / np.sqrt(count)
            path = fit_ridge(features, targets, others, together=together).path
            errors[index] += len(others) * float(path.errors.min())
    count = counts[first_smallest(errors)]
    choices = list[Choice]()
    for number, chosen in best.items():
        # Groups of columns are chosen without the rows of the part, too.
        some, others = part != number, np.flatnonzero(part == number)
        curved = np.sort(chosen[: min(count, _MOST_CURVED)])
        many_valued = curved[np.isin(curved, blocks.many_valued)]
        terms_of = tuple(np.sort(chosen[:count]).tolist())
        narrow = replace(blocks, chosen=terms_of, many_valued=tuple(many_valued.tolist()))
        medoids, residuals = places[number % len(places)], targets[some] - targets[some].mean(axis=0)
        if (alone := narrow.design(medoids)).parts:
            features = alone.features[some] - alone.features[some].mean(axis=0)
            residuals = targets[some] - fit_ridge(features, targets[some]).out_of_fold
        values, settings = ranks[np.ix_(some, curved)], blocks.settings
        found = chosen_groups(values, residuals, settings.n_pairs, settings.n_triples)
        choices.append((narrow, medoids, [tuple(curved[list(group)].tolist()) for group in found], others))
    return choices


def _shared_path(chosen: Sequence[Choice], targets: Array, together: RowGroups | None) -> RidgePath:
    """Errors of all rows along the path of λ, each by the bag that was chosen without it: few rows decide together."""
    paths, errors = list[RidgePath](), list[Array]()
    for blocks, medoids, columns, others in chosen:
        assert others is not None, "every part has rows"
        paths.append(fit_ridge(blocks.design(medoids, columns).features, targets, others, together=together).path)
        errors.append(paths[-1].errors * len(others) / len(targets))
    return RidgePath(paths[0].penalties, np.sum(errors, axis=0))
