"""Boosted trees of comparisons over ranks of cells: by histograms, each with its own comparisons, and symmetric ones.

Trees by histograms are grown by our kernel, or the same ones by scikit-learn: where the kernel is not built, and where
rows have weights. Both give the same trees, and the kernel takes a fraction of the time.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.backend import compiled
from qmedoid.kernels.trees import (
    LEVELS,
    MOST_BINS,
    N_LEAVES,
    N_NODES,
    Bins,
    HistogramTrees,
    SymmetricTrees,
    grow_histogram,
    grow_symmetric,
)

# Rows that the bins of the columns are found by.
_MOST_ROWS = 200_000
_EPS = float(np.finfo(np.float64).eps)
# From this many rows on there are fewer folds, dealt twice, and trees of all rows are grown so much longer than those
# of a fold, which see two thirds of the rows.
_MANY_ROWS, _MUCH_LONGER = 12_500, 1.5
# From this many rows times classes on, which the time of a fit grows with, fewer folds are dealt once, for one seed.
_LARGE = 100_000
# From this many classes on there is one seed: each class has a tree in every iteration.
_MANY_CLASSES = 10


@dataclass(frozen=True)
class BoostingSettings:
    """How trees are grown: iterations at most, the learning rate, and how soon to stop without a gain.

    Trees of a fold stop where `patience` iterations added no more than the `least_gain` to the log-likelihood of its
    held-out rows: where classes lie apart they would gain less and less, and never nothing.
    """

    n_iterations: int = 500
    learning_rate: float = 0.1
    patience: int = 20
    least_gain: float = 0.05
    n_folds: int = 5
    n_deals: int = 1
    n_seeds: int = 2
    longer: float = 1.1
    least_rows: int = 10
    share_of_columns: float = 0.5
    l2: float = 1.0
    symmetric: bool = False

    def for_table(self, n_rows: int, n_classes: int, share: float) -> Self:
        """The settings for a table of this size: fewer folds and seeds for large ones, and folds dealt twice between.

        The penalty is one for two classes: trees learn from p·(1 − p) of a row with probability p, which is smaller
        for more. Where a row is but a `share` of a draw, as in copies of a table, more rows count as much.
        """
        many, large = n_rows >= _MANY_ROWS, n_rows * n_classes >= _LARGE
        return replace(
            self,
            n_folds=max(2, self.n_folds - 2) if many or large else self.n_folds,
            n_deals=2 * self.n_deals if many and not large else self.n_deals,
            n_seeds=1 if large or n_classes >= _MANY_CLASSES else self.n_seeds,
            longer=_MUCH_LONGER if many else self.longer,
            symmetric=self.symmetric or many,
            l2=self.l2 * 4.0 * (n_classes - 1) / n_classes**2 / share,
            least_rows=round(self.least_rows / share),
        )


RankedRows = tuple[Array, Codes, Array | None]
"""Rows as places of their cells among the values of each column, (n, M), their class codes and weights, if any."""
FullTrees = tuple[Codes, Array, Array, Codes]
"""T trees of four levels, nodes and leaves in breadth-first order.

Columns and thresholds, (T, 15): rows at most at the threshold go to the left; column −1 where all do. Values, (T, 31):
of each node the mean of what its training rows are given, then what the leaves add. The outputs that they add to, (T,).
"""


class Grown(NamedTuple):
    """Boosted trees over ranks."""

    start: Array  # outputs before the first iteration, (K,)
    losses: Array  # of held-out rows before the first and after every iteration; without such rows they say nothing
    # Outputs of rows by their ranks, shape (n, K), after all or after so many of the iterations.
    outputs: Callable[[Array, int | None], Array]
    # The trees; thresholds are the values with their ranks, by all values of each column.
    full_trees: Callable[[Sequence[Array]], FullTrees]

    @property
    def best(self) -> int:
        """The number of iterations with the smallest loss of the held-out rows."""
        return int(np.argmin(self.losses))


def by_histograms(
    rows: RankedRows, settings: BoostingSettings, seed: int, n_iterations: int, held_out: RankedRows | None = None
) -> Grown:
    """Boosted trees, each with its own comparison at every node; held-out rows end growth where they gain nothing."""
    ranks, codes, weights = rows
    if compiled("histogram") and weights is None and (held_out is None or held_out[2] is None):
        return _by_kernel(ranks, codes, settings, seed, n_iterations, held_out)
    least_gain = 0.0 if held_out is None else settings.least_gain / len(held_out[1])
    classifier = HistGradientBoostingClassifier(
        max_iter=n_iterations, learning_rate=settings.learning_rate, max_depth=LEVELS, max_leaf_nodes=N_LEAVES,
        min_samples_leaf=settings.least_rows, max_features=settings.share_of_columns, l2_regularization=settings.l2,
        early_stopping=held_out is not None, n_iter_no_change=settings.patience, random_state=seed, tol=least_gain,
    )  # fmt: skip
    judges = {}
    if held_out is not None:
        judges = dict(zip(("X_val", "y_val", "sample_weight_val"), held_out, strict=True))
    fit: Any = classifier.fit(ranks, codes, sample_weight=weights, **judges)

    def outputs(ranks: Array, n_iterations: int | None = None) -> Array:
        if n_iterations is None:
            raw = fit.decision_function(ranks)
        else:
            raw = deque(islice(fit.staged_decision_function(ranks), n_iterations), maxlen=1).pop()
        return np.asarray(raw, dtype=np.float64).reshape(len(ranks), -1)

    start = np.asarray(fit._baseline_prediction, dtype=np.float64).ravel()
    return Grown(start, -np.asarray(fit.validation_score_), outputs, lambda known: _of_scikit_learn(fit, known))


def _of_scikit_learn(fit: Any, known: Sequence[Array]) -> FullTrees:
    """The trees of a fit of scikit-learn, with all levels."""
    trees = [(one.nodes, output) for iteration in fit._predictors for output, one in enumerate(iteration)]
    columns, thresholds = np.full((len(trees), N_NODES), -1, dtype=np.intp), np.zeros((len(trees), N_NODES))
    values = np.zeros((len(trees), N_NODES + N_LEAVES))
    for number, (nodes, _) in enumerate(trees):
        # Plain numbers: the calls that arrays of two need cost more than a whole tree.
        column = np.where(nodes["is_leaf"], -1, nodes["feature_idx"].astype(np.intp)).tolist()
        # The last value that goes to the left.
        rank = np.floor(nodes["num_threshold"]).tolist()
        left, right, n_rows = (nodes[name].tolist() for name in ("left", "right", "count"))
        means = nodes["value"].astype(np.float64).tolist()
        for node in range(len(means) - 1, -1, -1):  # children stand behind their parents
            if column[node] >= 0:
                a, b = left[node], right[node]
                means[node] = (means[a] * n_rows[a] + means[b] * n_rows[b]) / (n_rows[a] + n_rows[b])
        places = [0] * (N_NODES + N_LEAVES)
        for place in range(N_NODES + N_LEAVES):
            node = places[place]
            values[number, place] = means[node]
            if place >= N_NODES:
                continue
            # A leaf is repeated down to the last level.
            places[2 * place + 1] = places[2 * place + 2] = node
            if column[node] >= 0:
                columns[number, place], thresholds[number, place] = column[node], known[column[node]][int(rank[node])]
                places[2 * place + 1], places[2 * place + 2] = left[node], right[node]
    return columns, thresholds, values, np.array([output for _, output in trees], dtype=np.intp)


def _by_kernel(
    ranks: Array, codes: Codes, settings: BoostingSettings, seed: int, n_iterations: int, held_out: RankedRows | None
) -> Grown:
    least_gain = 0.0 if held_out is None else settings.least_gain / len(held_out[1])
    # Seeds are drawn as scikit-learn draws them.
    drawing = np.random.RandomState(seed)
    of_rows, of_columns = (drawing.randint(np.iinfo(np.uint32).max, dtype="u8") for _ in range(2))
    some = ranks
    if len(ranks) > _MOST_ROWS:
        some = ranks[np.random.RandomState(of_rows).choice(len(ranks), _MOST_ROWS)]
    bounds = [_thresholds(column) for column in some.T]
    shares = np.bincount(codes) / len(codes)
    # The log-odds of two classes, or logarithms of the shares of more, of mean 0.
    if len(shares) == 2:
        start = np.atleast_1d(logit(np.clip(shares[1], 10 * _EPS, 1 - 10 * _EPS)))
    else:
        shares = np.clip(shares, _EPS, 1 - _EPS)
        start = np.asarray(np.log(shares / np.exp(np.mean(np.log(shares)))))
    trees = grow_histogram(
        (bins_between(ranks, bounds), codes),
        None if held_out is None else (bins_between(held_out[0], bounds), held_out[1]),
        n_bins=np.array([len(one) + 1 for one in bounds], dtype=np.int32), start=start, rate=settings.learning_rate,
        l2=settings.l2, least_rows=settings.least_rows,
        n_tried=max(1, math.ceil(settings.share_of_columns * ranks.shape[1])), n_iterations=n_iterations,
        patience=settings.patience, least_gain=least_gain, rng=np.random.default_rng(of_columns),
    )  # fmt: skip

    def full_trees(known: Sequence[Array]) -> FullTrees:
        columns, values = trees.columns.astype(np.intp), np.zeros(trees.columns.shape)
        for column in np.unique(columns[columns >= 0]):
            nodes = columns == column
            # The last value that goes to the left.
            values[nodes] = known[column][np.floor(bounds[column][trees.cuts[nodes]]).astype(np.intp)]
        return columns, values, trees.means(), np.tile(np.arange(len(start)), len(columns) // len(start))

    return Grown(start, trees.losses, _outputs(trees, bounds), full_trees)


def _thresholds(ranks: Array) -> Array:
    """Between neighboring values, or where there are very many of them, at evenly spaced quantiles."""
    ordered = np.sort(ranks)
    values = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    if len(values) <= MOST_BINS:
        return np.asarray((values[1:] + values[:-1]) / 2.0)
    shares = np.linspace(0, 100, num=MOST_BINS + 1)[1:-1]
    return np.unique(np.percentile(ordered, shares, method="averaged_inverted_cdf"))


def symmetric(
    rows: RankedRows, settings: BoostingSettings, seed: int, n_iterations: int, held_out: RankedRows | None = None
) -> Grown:
    """Boosted trees with one comparison at every level; see `by_histograms`. Rows have no weights."""
    ranks, codes, weights = rows
    assert weights is None, "symmetric trees are grown on rows that count the same"
    lasts = [_lasts(column) for column in ranks.T]
    bins, rng, n_columns = bins_between(ranks, lasts), np.random.default_rng(seed), ranks.shape[1]
    n_tried = max(1, round(settings.share_of_columns * n_columns))
    candidates = np.empty((n_iterations, LEVELS, n_tried), dtype=np.int32)
    for iteration in range(n_iterations):
        # Columns in a random order for each level, and the first of them.
        drawn = np.argsort(rng.random((LEVELS, n_columns)), axis=1)
        candidates[iteration] = np.sort(drawn[:, :n_tried], axis=1)
    logs = np.log(np.bincount(codes) / len(codes))
    start = logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean()
    trees = grow_symmetric(
        (bins, codes), None if held_out is None else (bins_between(held_out[0], lasts), held_out[1]),
        candidates=candidates, n_bins=np.array([len(one) + 1 for one in lasts], dtype=np.int32), start=start,
        rate=settings.learning_rate, l2=settings.l2, patience=settings.patience,
        least_gain=0.0 if held_out is None else settings.least_gain / len(held_out[1]),
    )  # fmt: skip

    def full_trees(known: Sequence[Array]) -> FullTrees:
        columns, cuts = trees.columns, trees.cuts
        n_trees, _, n_outputs = trees.leaves.shape
        reached = [np.bincount(trees.places(bins, tree), minlength=N_LEAVES) for tree in range(n_trees)]
        asks, thresholds = columns >= 0, np.zeros(columns.shape)
        thresholds[asks] = [
            known[column][int(lasts[column][cut])] for column, cut in zip(columns[asks], cuts[asks], strict=True)
        ]
        levels, by_level = np.repeat(np.arange(LEVELS), 2 ** np.arange(LEVELS)), [trees.leaves.transpose(0, 2, 1)]
        n_rows = np.array(reached, dtype=np.float64).reshape(n_trees, 1, N_LEAVES)
        for _ in range(LEVELS):
            pairs, counts = by_level[0].reshape(n_trees, n_outputs, -1, 2), n_rows.reshape(n_trees, 1, -1, 2)
            n_rows = counts.sum(axis=3)
            # What no row reaches has the mean of all that is below.
            weights = np.where(n_rows[..., None] > 0, counts / np.maximum(n_rows, 1)[..., None], 0.5)
            by_level.insert(0, (weights * pairs).sum(axis=3))
        asked = np.repeat(columns[:, levels], n_outputs, axis=0).astype(np.intp)
        limits = np.repeat(thresholds[:, levels], n_outputs, axis=0)
        values = np.concatenate(by_level, axis=2).reshape(n_trees * n_outputs, N_NODES + N_LEAVES)
        return asked, limits, values, np.tile(np.arange(n_outputs), n_trees)

    return Grown(start, trees.losses, _outputs(trees, lasts), full_trees)


def _lasts(ranks: Array) -> Array:
    """The last rank of every bin but the highest: of all values, or of about equally many rows."""
    known = np.unique(ranks)
    if len(known) <= MOST_BINS:
        return known[:-1]
    # Rounded up: of copies of all rows these are the same.
    places = -(-np.arange(1, MOST_BINS) * len(ranks) // MOST_BINS) - 1
    lasts = np.unique(np.sort(ranks)[places])
    below: Array = lasts[lasts < known[-1]]
    return below


def _outputs(trees: HistogramTrees | SymmetricTrees, bounds: Sequence[Array]) -> Callable[[Array, int | None], Array]:
    def outputs(ranks: Array, n_iterations: int | None = None) -> Array:
        return trees.outputs(bins_between(ranks, bounds), n_iterations)

    return outputs


def bins_between(ranks: Array, bounds: Sequence[Array]) -> Bins:
    """The bin of every cell, column after column, shape (M, n): how many of the bounds of its column are below it."""
    found = [np.searchsorted(own, column) for own, column in zip(bounds, ranks.T, strict=True)]
    return np.array(found, dtype=np.uint8).reshape(len(bounds), len(ranks))
