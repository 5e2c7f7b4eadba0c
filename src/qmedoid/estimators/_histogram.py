"""Trees of comparisons by histogram boosting: by our kernel, or the same ones by scikit-learn.

scikit-learn grows them where the kernel is not built, and where rows have weights. Both give the same trees, and the
kernel takes a fraction of the time.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._tree_kinds import BinnedTrees, Growing, RankedRows, bins_between
from qmedoid.kernels.histogram import HistogramGrowth, HistogramTrees, grow_histogram, is_built
from qmedoid.kernels.symmetric import Binned
from qmedoid.kernels.trees import LEVELS, N_LEAVES
from qmedoid.methods.comparisons.fit import FullTrees, PlainTree, full_trees

# Bins of a column at most, and rows that they are found by.
_MOST_BINS, _MOST_ROWS = 255, 200_000
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Compiled(BinnedTrees[HistogramTrees]):
    """Trees of our kernel, each with its own comparison at every node; bounds are thresholds of ranks."""

    def full_trees(self, known: Sequence[Array]) -> FullTrees:
        columns, cuts = self.trees.columns.astype(np.intp), self.trees.cuts
        values = np.zeros(columns.shape)
        for column in np.unique(columns[columns >= 0]):
            nodes = columns == column
            # The last value that goes to the left.
            ranks = np.floor(self.bounds[column][cuts[nodes]]).astype(np.intp)
            values[nodes] = known[column][ranks]
        n_outputs = len(self.start)
        outputs = np.tile(np.arange(n_outputs), len(columns) // n_outputs)
        return FullTrees(columns, values, self.trees.means(), outputs)


@dataclass(frozen=True, eq=False)
class Histogram:
    """A fit of scikit-learn; see `Grown`."""

    fit: Any

    @property
    def best(self) -> int:
        return int(np.argmax(self.fit.validation_score_))

    @property
    def start(self) -> Array:
        return np.asarray(self.fit._baseline_prediction, dtype=np.float64).ravel()

    def outputs(self, ranks: Array, n_iterations: int | None = None) -> Array:
        if n_iterations is None:
            raw = self.fit.decision_function(ranks)
        else:
            raw = deque(islice(self.fit.staged_decision_function(ranks), n_iterations), maxlen=1).pop()
        return np.asarray(raw, dtype=np.float64).reshape(len(ranks), -1)

    def full_trees(self, known: Sequence[Array]) -> FullTrees:
        return full_trees([
            _plain_tree(predictor.nodes, known, output)
            for iteration in self.fit._predictors
            for output, predictor in enumerate(iteration)
        ])  # fmt: skip


def grow(
    rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None = None
) -> Compiled | Histogram:
    """Boosted trees, each with its own comparison at every node; see `Grow`."""
    if is_built() and rows.weights is None and (held_out is None or held_out.weights is None):
        return _grow_compiled(rows, growing, seed, n_iterations, held_out)
    classifier = HistGradientBoostingClassifier(
        max_iter=n_iterations, learning_rate=growing.rate, max_depth=LEVELS, max_leaf_nodes=N_LEAVES,
        min_samples_leaf=growing.least_rows, max_features=growing.share_of_columns, l2_regularization=growing.l2,
        early_stopping=held_out is not None, n_iter_no_change=growing.patience, random_state=seed,
        tol=0.0 if held_out is None else growing.least_gain / len(held_out.codes),
    )  # fmt: skip
    if held_out is None:
        return Histogram(classifier.fit(rows.ranks, rows.codes, sample_weight=rows.weights))
    judges = {"X_val": held_out.ranks, "y_val": held_out.codes, "sample_weight_val": held_out.weights}
    return Histogram(classifier.fit(rows.ranks, rows.codes, sample_weight=rows.weights, **judges))


def _grow_compiled(
    rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None
) -> Compiled:
    ranks, codes = rows.ranks, rows.codes
    # Seeds are drawn as scikit-learn draws them.
    drawing = np.random.RandomState(seed)
    of_rows, of_columns = (drawing.randint(np.iinfo(np.uint32).max, dtype="u8") for _ in range(2))
    some = ranks
    if len(ranks) > _MOST_ROWS:
        some = ranks[np.random.RandomState(of_rows).choice(len(ranks), _MOST_ROWS)]
    thresholds = [_thresholds(column) for column in some.T]
    growth = HistogramGrowth(
        np.array([len(one) + 1 for one in thresholds], dtype=np.int32), _start(codes), growing.rate, growing.l2,
        growing.least_rows, max(1, math.ceil(growing.share_of_columns * ranks.shape[1])), n_iterations,
        growing.patience, 0.0 if held_out is None else growing.least_gain / len(held_out.codes),
    )  # fmt: skip
    held = None if held_out is None else Binned(bins_between(held_out.ranks, thresholds), held_out.codes)
    rng = np.random.default_rng(of_columns)
    return Compiled(grow_histogram(Binned(bins_between(ranks, thresholds), codes), growth, rng, held), thresholds)


def _thresholds(ranks: Array) -> Array:
    """Between neighboring values, or where there are very many of them, at evenly spaced quantiles."""
    ordered = np.sort(ranks)
    values = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    if len(values) <= _MOST_BINS:
        return np.asarray((values[1:] + values[:-1]) / 2.0)
    shares = np.linspace(0, 100, num=_MOST_BINS + 1)[1:-1]
    return np.unique(np.percentile(ordered, shares, method="averaged_inverted_cdf"))


def _start(codes: Codes) -> Array:
    """The log-odds of two classes, or logarithms of the shares of more, of mean 0."""
    shares = np.bincount(codes) / len(codes)
    if len(shares) == 2:
        return np.atleast_1d(logit(np.clip(shares[1], 10 * _EPS, 1 - 10 * _EPS)))
    shares = np.clip(shares, _EPS, 1 - _EPS)
    return np.asarray(np.log(shares / np.exp(np.mean(np.log(shares)))))


def _plain_tree(nodes: Any, known: Sequence[Array], output: int) -> PlainTree:
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    column = np.where(is_leaf, -1, nodes["feature_idx"].astype(np.intp))
    # The last value that goes to the left.
    rank = np.where(is_leaf, 0, np.floor(nodes["num_threshold"])).astype(np.intp)
    threshold = np.array([known[one][place] for one, place in zip(column, rank, strict=True)])
    return PlainTree(
        column, threshold,
        nodes["left"].astype(np.intp), nodes["right"].astype(np.intp), nodes["value"].astype(np.float64),
        nodes["count"].astype(np.float64), output,
    )  # fmt: skip
