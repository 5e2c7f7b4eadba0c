"""Fit of the comparisons: trees boosted in folds and on all rows, and kept as pairs of real rows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError
from qmedoid.geometry.groups import MOST_COLUMNS, most_worth
from qmedoid.geometry.row_groups import draws_per_row, group_folds, is_clear_gain
from qmedoid.geometry.scaling import fit_standard
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.ties import order_by_content, stable_order, with_equal_cells
from qmedoid.methods.calibration import fit_sum
from qmedoid.methods.comparisons import growing
from qmedoid.methods.comparisons.growing import BoostingSettings, FullTrees, Grown
from qmedoid.methods.comparisons.part import ComparisonsPart, class_scores
from qmedoid.methods.evidence.ridge import RowGroups

# Gain in log-likelihood out of fold, in standard errors, from which on symmetric trees are added.
_WORTH_IT = 2.0
# The fits of all rows take about as long as those of so many folds.
_LAST_PARTS = 2
# Largest difference between our sum of the trees and the library's, relative to its size.
_SAME = 1e-9


class FittedComparisons(NamedTuple):
    """Trees fitted to all rows, and the out-of-fold dissimilarities of every row, shape (n, C)."""

    model: ComparisonsPart
    out_of_fold: Array
    n_iterations: int


def fit_comparisons(
    X: Array,
    codes: Codes,
    n_classes: int,
    settings: BoostingSettings,
    seed: int,
    progress: Callable[[float], None],
    groups: Codes | None = None,
    fold_rows: Callable[[Codes, Codes], tuple[Array, Array]] | None = None,
    row_weights: Array | None = None,
) -> FittedComparisons | None:
    """Grow trees in folds, and on all rows with more iterations than are best for the folds in the mean.

    Out-of-fold scores are means over deals of the folds: the trees of all rows are better than those of a fold, and
    would get too small a weight by scores of one. Where columns are made with labels, `fold_rows` makes those of a fold
    without the labels of its held-out rows. Of very many columns trees see those that are worth most to the rows that
    they are grown on. Where rows count by `row_weights`, there are no symmetric
    trees. None where a fold would have nothing to learn from or to judge by.
    """
    rng = np.random.default_rng(seed)
    settings = settings.for_table(len(codes), n_classes, draws_per_row(groups))
    dealt = [_folds(codes, groups, n_classes, settings.n_folds, rng) for _ in range(settings.n_deals)]
    deals = [folds for folds in dealt if folds is not None]
    if not deals:
        return None
    parts = [folds == fold for folds in deals for fold in range(settings.n_folds)]
    # What is learnt depends neither on the order of the columns nor on last digits: trees see ranks, which are exact.
    order = order_by_content(X)
    values = with_equal_cells(np.ascontiguousarray(X[:, order]))
    known, X = _ranks(values)
    sizes = None
    if groups is not None and X.shape[1] > MOST_COLUMNS:
        sizes = RowGroups(groups, X).sizes
    has_both = settings.symmetric and row_weights is None
    kinds = [growing.by_histograms, *([growing.symmetric] if has_both else [])]
    grown: list[list[Grown]] = [[] for _ in kinds]
    judges = []
    for number, part in enumerate(parts):
        train, held = np.flatnonzero(~part), np.flatnonzero(part)
        rows, held_out = X[train], X[held]
        if fold_rows is not None:
            both = with_equal_cells(np.ascontiguousarray(np.vstack(fold_rows(train, held))[:, order]))
            rows, held_out = np.split(_ranks(both)[1], [len(train)])
        seen = _worthy(rows, codes[train], n_classes, None if sizes is None else sizes[train])
        rows, held_out = rows[:, seen], held_out[:, seen]
        judges.append(held_out)
        grown_on = rows, codes[train], _part(row_weights, train)
        judged_by = held_out, codes[held], _part(row_weights, held)
        for kind, (grow, fits) in enumerate(zip(kinds, grown, strict=True), 1):
            fits.append(grow(grown_on, settings, seed + number, settings.n_iterations, judged_by))
            progress((number + kind / len(kinds)) / (len(parts) + _LAST_PARTS))
    # Rows that are never held out are the only ones of their class.
    judged = np.any(parts, axis=0)
    counts, made = [], []
    for fits in grown:
        # The losses begin with that of no iteration.
        counts.append(max(1, round(float(np.mean([one.best for one in fits])))))
        outputs = np.zeros((len(codes), 1 if n_classes == 2 else n_classes))
        for one, held_out, part in zip(fits, judges, parts, strict=True):
            outputs[part] += one.outputs(held_out, counts[-1]) / len(deals)
        outputs[~judged] = outputs[judged].mean(axis=0)
        made.append(outputs)
    weights, bias = _mix(made, codes, n_classes, groups)
    kept = np.flatnonzero(weights)
    seen = _worthy(X, codes, n_classes, sizes)
    X = X[:, seen]
    on_all = list[list[Grown]]()
    for place, kind in enumerate(kept.tolist(), 1):
        n_iterations = max(1, round(settings.longer * counts[kind]))
        on_all.append([])
        for number in range(settings.n_seeds):
            fit_seed = seed + len(parts) + number
            on_all[-1].append(kinds[kind]((X, codes, row_weights), settings, fit_seed, n_iterations))
            done = (place - 1 + (number + 1) / settings.n_seeds) / (len(kept) + 1)
            progress((len(parts) + _LAST_PARTS * done) / (len(parts) + _LAST_PARTS))
    narrow = [known[column] for column in np.arange(len(known))[seen]]
    model = _model_of(on_all, weights[kept], bias, X, narrow, values[:, seen], codes, n_classes)
    if len(narrow) < len(known):
        model = model.of_some_columns(np.arange(len(known))[seen], fit_standard(values))
    mixed: Array = np.sum([weight * one for weight, one in zip(weights, made, strict=True)], axis=0)
    out_of_fold = class_scores(mixed + bias, n_classes)
    progress(1.0)
    return FittedComparisons(model.with_columns(order), out_of_fold, sum(counts[kind] for kind in kept))


def _worthy(ranks: Array, codes: Codes, n_classes: int, sizes: Array | None) -> Codes | slice:
    """The columns that trees of these rows compare: all, or of very many those that are worth most, ascending."""
    if ranks.shape[1] <= MOST_COLUMNS:
        return slice(None)
    targets = np.eye(n_classes)[codes][:, 1 if n_classes == 2 else 0 :]
    return np.sort(most_worth(ranks, targets, MOST_COLUMNS, sizes))


def _part(row_weights: Array | None, rows: Codes) -> Array | None:
    return None if row_weights is None else row_weights[rows]


def _ranks(X: Array) -> tuple[list[Array], Array]:
    """The values of each column, rising, and the places of all cells among them."""
    known, places = zip(*(np.unique(column, return_inverse=True) for column in X.T), strict=True)
    return list(known), np.column_stack(places).astype(np.float64)


def _folds(codes: Codes, groups: Codes | None, n_classes: int, n_folds: int, rng: np.random.Generator) -> Codes | None:
    """Fold of every row, −1 for classes of one draw; None where fewer than two classes or folds are left."""
    groups = np.arange(len(codes)) if groups is None else groups
    draws = np.bincount(np.unique(groups * n_classes + codes) % n_classes, minlength=n_classes)
    judged = np.flatnonzero(draws[codes] > 1)
    if (draws > 1).sum() < 2 or len(np.unique(groups[judged])) < 2 * n_folds:
        return None
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[judged] = group_folds(groups[judged], codes[judged], n_folds, rng)
    enough = all(len(np.unique(codes[folds != fold])) == n_classes and (folds == fold).any() for fold in range(n_folds))
    return folds if enough else None


def _mix(outputs: Sequence[Array], codes: Codes, n_classes: int, groups: Codes | None) -> tuple[Array, Array]:
    """Weights of the kinds of trees, 0 for one that is left out, and what is added to the outputs, shape (K,).

    They have the highest likelihood out of fold where that is clearly higher than of the first kind alone.
    """
    first, nothing = np.eye(len(outputs))[0], np.zeros(outputs[0].shape[1])
    if len(outputs) == 1:
        return first, nothing
    scores = [class_scores(one, n_classes) for one in outputs]
    alone, both = fit_sum(scores[:1], codes, groups), fit_sum(scores, codes, groups)
    gains = row_losses(-alone.scores, codes) - row_losses(-both.scores, codes)
    if not is_clear_gain(gains, groups, _WORTH_IT):
        return first, nothing
    if not both.weights.all():
        return (both.weights > 0).astype(np.float64), nothing
    return both.weights, both.biases[1:] - both.biases[:1] if n_classes == 2 else both.biases


def _model_of(
    kinds: Sequence[Sequence[Grown]], weights: Array, bias: Array, ranks: Array, known: Sequence[Array], X: Array,
    codes: Codes, n_classes: int,
) -> ComparisonsPart:  # fmt: skip
    """Weighted means of the fits of each kind as one model; raise where it says anything else on the training rows.

    The fits saw ranks, the places of the cells of X among the `known` values of their columns.
    """
    fits = [(fit, weight / len(kind)) for kind, weight in zip(kinds, weights.tolist(), strict=True) for fit in kind]
    parts = list[FullTrees]()
    for fit, weight in fits:
        columns, thresholds, values, outputs = fit.full_trees(known)
        parts.append((columns, thresholds, weight * values, outputs))
    columns, thresholds, values, outputs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    trees = columns, thresholds, values, outputs
    model = comparisons_of(trees, bias + sum(weight * fit.start for fit, weight in fits), X, codes, n_classes)
    some = slice(None, None, max(1, len(X) // 1000))
    wanted = model.class_scores(bias + sum(weight * fit.outputs(ranks[some], None) for fit, weight in fits))
    if not np.allclose(model.score(X[some]).scores, wanted, rtol=_SAME, atol=_SAME):
        raise ModelError(
            "The trees of scikit-learn's histogram boosting could not be read: this version of scikit-learn keeps them "
            "in another form. Pass comparisons=False, or install the version that qmedoid was tested with."
        )
    return model


def comparisons_of(trees: FullTrees, intercepts: Array, X: Array, codes: Codes, n_classes: int) -> ComparisonsPart:
    """The model of trees that were grown on the rows of X.

    A threshold between two values of a column becomes a pair of rows that have them: the last value at most at the
    threshold and the first one above, each of the most central row that has it. Training rows take the same path
    through either.
    """
    columns, thresholds, values, outputs = trees
    shape = columns.shape
    near, far = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=np.intp)
    near_values, far_values = np.zeros(shape), np.zeros(shape)
    scaling = fit_standard(X)
    by_center = stable_order((((X - scaling.center) / scaling.scale) ** 2).sum(axis=1))
    for column in np.unique(columns[columns >= 0]):
        known, first = np.unique(X[by_center, column], return_index=True)
        nodes = columns == column
        above = np.searchsorted(known, thresholds[nodes], side="right")
        near[nodes], far[nodes] = by_center[first[above - 1]], by_center[first[above]]
        near_values[nodes], far_values[nodes] = known[above - 1], known[above]
    rows, places = np.unique(np.concatenate([near.ravel(), far.ravel()]), return_inverse=True)
    near, far = (part.reshape(shape).astype(np.intp) for part in np.split(places, 2))
    pairs = rows.astype(np.intp), codes[rows].astype(np.intp), near, far, near_values, far_values
    return ComparisonsPart(columns, *pairs, values, outputs, intercepts, scaling, n_classes)
