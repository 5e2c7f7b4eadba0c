"""Symmetric trees of comparisons: all nodes of a level ask one comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._tree_kinds import BinnedTrees, Growing, RankedRows, bins_between
from qmedoid.kernels.symmetric import MOST_BINS, Binned, Growth, SymmetricTrees, grow_symmetric
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES
from qmedoid.methods.comparisons.fit import FullTrees


@dataclass(frozen=True, eq=False)
class Symmetric(BinnedTrees[SymmetricTrees]):
    """Symmetric trees, with the training rows that reach each leaf, shape (T, 16); bounds are last ranks of bins."""

    n_rows: Array

    def full_trees(self, known: Sequence[Array]) -> FullTrees:
        columns, cuts, leaves = self.trees.columns, self.trees.cuts, self.trees.leaves
        n_trees, _, n_outputs = leaves.shape
        asks = columns >= 0
        thresholds = np.zeros(columns.shape)
        thresholds[asks] = [
            known[column][int(self.bounds[column][cut])] for column, cut in zip(columns[asks], cuts[asks], strict=True)
        ]
        levels = np.repeat(np.arange(LEVELS), 2 ** np.arange(LEVELS))
        rows, by_level = self.n_rows[:, None], [leaves.transpose(0, 2, 1)]
        for _ in range(LEVELS):
            pairs, counts = by_level[0].reshape(n_trees, n_outputs, -1, 2), rows.reshape(n_trees, 1, -1, 2)
            rows = counts.sum(axis=3)
            # What no row reaches has the mean of all that is below.
            weights = np.where(rows[..., None] > 0, counts / np.maximum(rows, 1)[..., None], 0.5)
            by_level.insert(0, (weights * pairs).sum(axis=3))
        values = np.concatenate(by_level, axis=2).reshape(n_trees * n_outputs, N_NODES + N_LEAVES)
        return FullTrees(
            np.repeat(columns[:, levels], n_outputs, axis=0).astype(np.intp),
            np.repeat(thresholds[:, levels], n_outputs, axis=0), values,
            np.tile(np.arange(n_outputs), n_trees),
        )  # fmt: skip


def grow(
    rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None = None
) -> Symmetric:
    """Boosted trees with one comparison at every level; see `Grow`. Rows have no weights."""
    assert rows.weights is None, "symmetric trees are grown on rows that count the same"
    lasts = [_lasts(column) for column in rows.ranks.T]
    binned, rng = Binned(bins_between(rows.ranks, lasts), rows.codes), np.random.default_rng(seed)
    n_columns = rows.ranks.shape[1]
    n_tried = max(1, round(growing.share_of_columns * n_columns))
    candidates = np.empty((n_iterations, LEVELS, n_tried), dtype=np.int32)
    for iteration in range(n_iterations):
        # Columns in a random order for each level, and the first of them.
        drawn = np.argsort(rng.random((LEVELS, n_columns)), axis=1)
        candidates[iteration] = np.sort(drawn[:, :n_tried], axis=1)
    growth = Growth(
        candidates, np.array([len(one) + 1 for one in lasts], dtype=np.int32),
        _start(rows.codes), growing.rate, growing.l2, growing.patience,
        0.0 if held_out is None else growing.least_gain / len(held_out.codes),
    )  # fmt: skip
    if held_out is not None:
        trees = grow_symmetric(binned, growth, Binned(bins_between(held_out.ranks, lasts), held_out.codes))
        return Symmetric(trees, lasts, np.zeros((len(trees.leaves), N_LEAVES)))
    trees = grow_symmetric(binned, growth)
    reached = [np.bincount(trees.places(binned.bins, tree), minlength=N_LEAVES) for tree in range(len(trees.leaves))]
    return Symmetric(trees, lasts, np.array(reached, dtype=np.float64).reshape(-1, N_LEAVES))


def _start(codes: Codes) -> Array:
    """The log-odds of two classes, or logarithms of the shares of more."""
    logs = np.log(np.bincount(codes) / len(codes))
    return logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean()


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
