r"""Trees of comparisons, each four comparisons deep: their sums, and their boosting.

A comparison sends a row to the right where its column is above a threshold. With the leaf :math:`\ell_t(x)` that row x
reaches in tree t, output k is :math:`\sum_{t\,:\,k_t = k} \ell_t(x)`, summed in the order of the trees.

A tree *by histograms* has a comparison at every node and at most four on a path. A node asks the one with the largest
gain

.. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda},

where G and H are sums of the first and second derivatives of the loss over its rows and over those on either side, and
a leaf adds :math:`-\eta\, G / (H + \lambda)`. The loss is logistic for one output and that of a softmax for more, each
of which has a tree in every iteration. There is no NumPy twin: the trees are those of scikit-learn's
``HistGradientBoostingClassifier`` to the last bit, which is what grows them where this kernel is not built.

Of a *symmetric* tree all nodes of a level ask one comparison, so that four of them make 16 leaves: the one with the
largest sum of :math:`G^2 / (H + \lambda)` over both sides of all nodes and over the outputs. An iteration adds one tree
with a value for each output to every leaf.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.kernels.backend import compiled, in_chunks, row_count
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.ties import first_largest

Places = NDArray[np.int32]
Bins = NDArray[np.uint8]
Binned = tuple[Bins, Codes]
"""Rows as the bins of their cells, column after column, shape (M, n), with their class codes (n,)."""

LEVELS = 4
"""Comparisons on every path."""
N_NODES = 2**LEVELS - 1
N_LEAVES = 2**LEVELS
MOST_BINS = 255
_CHUNK_ROWS = 4096
_ROWS_PER_THREAD = 1000
# Paths that the twin follows at a time.
_TWIN_PATHS = 2**18
# Iterations whose masks are drawn together.
_DRAWN_TOGETHER = 16


class Trees(NamedTuple):
    """T trees over M columns, nodes and leaves in breadth-first order."""

    columns: Places  # (T, 15): column that each node compares
    thresholds: Array  # (T, 15): rows above go to the right; +inf where a branch ends early, and its leaves are equal
    leaves: Array  # (T, 16)
    output: Places  # (T,): the output that a tree adds to


def tree_outputs(table: Table, trees: Trees, n_columns: int, n_outputs: int, *, threads: int | None = None) -> Array:
    """Sums of the leaves of every row, shape (n, K); a table is an array (n, M) or a sequence of M columns."""
    outputs = np.zeros((row_count(table, n_columns), n_outputs))
    if len(trees.output) and len(outputs):
        sizes, results = (_CHUNK_ROWS, _ROWS_PER_THREAD), {"outputs": outputs}
        in_chunks("trees.add_leaves", numpy_add_leaves, table, sizes, threads, trees._asdict(), results, as_rows=True)
    return outputs


def numpy_add_leaves(
    rows: Array, columns: Places, thresholds: Array, leaves: Array, output: Places, outputs: Array
) -> None:
    """Add the leaves that rows reach to their outputs, tree by tree, as the compiled kernel does."""
    number = np.arange(len(output))
    for block in row_slices(rows, max(1, _TWIN_PATHS // len(number))):
        each, node = np.arange(len(rows[block]))[:, None], np.zeros((len(rows[block]), len(number)), dtype=np.intp)
        for _ in range(LEVELS):
            node = 2 * node + 1 + (rows[block][each, columns[number, node]] > thresholds[number, node])
        reached = leaves[number, node - N_NODES]
        for place in np.unique(output):
            # A running sum keeps the order of the trees.
            outputs[block, place] += np.add.accumulate(reached[:, output == place], axis=1)[:, -1]


class HistogramTrees(NamedTuple):
    """T trees, those of one iteration behind each other, nodes and leaves in breadth-first order."""

    columns: Places  # (T, 15): −1 where all rows go to the left
    cuts: Places  # (T, 15): rows whose bin is above the cut go to the right
    values: Array  # (T, 31): what leaves add, at all nodes below where a branch ends early; 0 for other nodes
    n_rows: Places  # (T, 31): training rows that reach a node or a leaf
    start: Array  # (K,)
    losses: Array  # (T / K + 1,): mean loss of held-out rows before the first and after every iteration, or empty

    def outputs(self, bins: Bins, n_iterations: int | None = None) -> Array:
        """Outputs of rows, shape (n, K), after some or all of the iterations."""
        kernel = compiled("histogram")
        assert kernel is not None, "trees of this kind are grown by the compiled kernel alone"
        outputs = np.tile(self.start[:, None], bins.shape[1])
        some = slice(None if n_iterations is None else n_iterations * len(self.start))
        kernel.add_trees(bins, self.columns[some], self.cuts[some], self.values[some], outputs)
        return np.ascontiguousarray(outputs.T)

    def means(self) -> Array:
        """Of each node the mean of what its training rows are given, and what the leaves add, shape (T, 31)."""
        values, n_rows = self.values.copy(), self.n_rows.astype(np.float64)
        for level in range(LEVELS - 1, -1, -1):
            nodes = np.arange(2**level - 1, 2 ** (level + 1) - 1)
            left, right = 2 * nodes + 1, 2 * nodes + 2
            below = n_rows[:, left] + n_rows[:, right]
            mean = (values[:, left] * n_rows[:, left] + values[:, right] * n_rows[:, right]) / below
            values[:, nodes] = np.where(self.columns[:, nodes] >= 0, mean, values[:, nodes])
        return values


def grow_histogram(
    rows: Binned,
    held_out: Binned | None = None,
    *,
    n_bins: Places,
    start: Array,
    rate: float,
    l2: float,
    least_rows: int,
    n_tried: int,
    n_iterations: int,
    patience: int,
    least_gain: float,
    rng: np.random.Generator,
) -> HistogramTrees:
    """Boosted trees; growth ends where `patience` iterations lower the loss of held-out rows by `least_gain` at most.

    Columns have `n_bins` bins, 255 at most, int32 of shape (M,). `start` (K,) are outputs before the first iteration,
    `rate` and `l2` the learning rate η and the penalty λ. `least_rows` lie on either side of a comparison at least, and
    `n_tried` columns, drawn by `rng`, are tried at a node.
    """
    kernel = compiled("histogram")
    assert kernel is not None, "the caller knows that it is built"
    n_outputs, n_columns, (bins, codes) = len(start), len(n_bins), rows
    boosting = kernel.Boosting(bins, n_bins, codes, start, rate, l2, least_rows)
    n_trees, n_masks = n_iterations * n_outputs, N_NODES * n_outputs
    columns, cuts = (np.zeros((n_trees, N_NODES), dtype=np.int32) for _ in range(2))
    values, n_rows = (np.zeros((n_trees, N_NODES + N_LEAVES), dtype=kind) for kind in (np.float64, np.int32))
    # Columns that are tried at each node, drawn ahead; those of a node that was not there are the next.
    blank = np.zeros((_DRAWN_TOGETHER * n_masks, n_columns), dtype=np.bool_)
    blank[:, :n_tried] = True
    masks, used, losses, done = blank[:0], 0, list[float](), 0
    if held_out is not None:
        held_bins, held_codes = held_out
        outputs = np.tile(start[:, None], len(held_codes))
        losses.append(_mean_loss(kernel, outputs, held_codes))
    while done < n_iterations:
        own = slice(done * n_outputs, (done + 1) * n_outputs)
        if len(masks) - used < n_masks:
            masks, used = np.concatenate([masks[used:], rng.permuted(blank, axis=1)]), 0
        used += boosting.step(masks[used:].view(np.uint8), columns[own], cuts[own], values[own], n_rows[own])
        done += 1
        if held_out is None:
            continue
        kernel.add_trees(held_bins, columns[own], cuts[own], values[own], outputs)
        losses.append(_mean_loss(kernel, outputs, held_codes))
        if _is_over(losses, patience, least_gain):
            break
    some = slice(done * n_outputs)
    return HistogramTrees(columns[some], cuts[some], values[some], n_rows[some], start, np.array(losses))


def _mean_loss(kernel: Any, outputs: Array, codes: Codes) -> float:
    of_rows = np.empty(len(codes))
    kernel.losses(outputs, codes, of_rows)
    return float(of_rows.mean())


def _is_over(losses: Sequence[float], patience: int, least_gain: float) -> bool:
    """Whether the last iterations took no more than the least gain from the loss."""
    if len(losses) <= patience:
        return False
    return not any(loss < losses[-patience - 1] - least_gain for loss in losses[-patience:])


class SymmetricTrees(NamedTuple):
    """T trees: a level sends rows whose bin in a column is above a cut to the right."""

    columns: Places  # (T, 4): −1 where no candidate had two bins, and all rows go to the left
    cuts: Places  # (T, 4)
    leaves: Array  # (T, 16, K)
    start: Array  # (K,)
    losses: Array  # (T + 1,): mean loss of held-out rows before the first and after every iteration; zeros without

    def places(self, bins: Bins, tree: int) -> Codes:
        """The leaf that every row reaches in one tree, shape (n,)."""
        node = np.zeros(bins.shape[1], dtype=np.uint8)
        for column, cut in zip(self.columns[tree].tolist(), self.cuts[tree].tolist(), strict=True):
            node += node
            node += bins[column] > cut
        return node.astype(np.intp)

    def outputs(self, bins: Bins, n_trees: int | None = None) -> Array:
        """Outputs of rows, shape (n, K), after some or all of the trees."""
        outputs = np.tile(self.start, (bins.shape[1], 1))
        for tree in range(len(self.leaves) if n_trees is None else min(n_trees, len(self.leaves))):
            outputs += self.leaves[tree, self.places(bins, tree)]
        return outputs


def grow_symmetric(
    rows: Binned,
    held_out: Binned | None = None,
    *,
    candidates: Places,
    n_bins: Places,
    start: Array,
    rate: float,
    l2: float,
    patience: int,
    least_gain: float,
) -> SymmetricTrees:
    """Boosted symmetric trees; with held-out rows growth ends where these gain nothing.

    `candidates` are columns that are tried at each level, rising, int32 of shape (iterations, 4, candidates); see
    `grow_histogram` for the others.
    """
    held = held_out or (np.zeros((len(rows[0]), 0), dtype=np.uint8), np.zeros(0, dtype=np.intp))
    n_iterations, growth = len(candidates), (candidates, n_bins, start, rate, l2, patience, least_gain)
    columns, cuts = (np.zeros((n_iterations, LEVELS), dtype=np.int32) for _ in range(2))
    leaves, losses = np.zeros((n_iterations, N_LEAVES, len(start))), np.zeros(n_iterations + 1)
    kernel = compiled("symmetric")
    grow: Any = numpy_grow if kernel is None else kernel.grow
    grown: int = grow(*rows, *held, *growth, columns, cuts, leaves, losses) if n_iterations else 0
    return SymmetricTrees(columns[:grown], cuts[:grown], leaves[:grown], start, losses[: grown + 1])


def numpy_grow(
    bins: Bins,
    codes: Codes,
    held_bins: Bins,
    held_codes: Codes,
    candidates: Places,
    n_bins: Places,
    start: Array,
    rate: float,
    l2: float,
    patience: int,
    least_gain: float,
    columns: Places,
    cuts: Places,
    leaves: Array,
    losses: Array,
) -> int:
    """Fill trees and losses as the compiled kernel does, with the same sums."""
    trees = SymmetricTrees(columns, cuts, leaves, start, losses)
    outputs, held_outputs = (np.tile(start, (part.shape[1], 1)) for part in (bins, held_bins))
    if len(held_codes):
        losses[0] = _losses(held_outputs, held_codes).mean()
    for tree, tried in enumerate(candidates):
        first, second = _derivatives(outputs, codes)
        node = np.zeros(len(codes), dtype=np.intp)
        for level in range(LEVELS):
            columns[tree, level], cuts[tree, level] = _best_cut(
                bins, n_bins, tried[level], node, 2**level, first, second, l2
            )
            node = 2 * node + (bins[columns[tree, level]] > cuts[tree, level])
        for output in range(len(start)):
            G, H = (np.bincount(node, one[:, output], N_LEAVES) for one in (first, second))
            leaves[tree, :, output] = -rate * G / (H + l2)
        outputs += leaves[tree, node]
        if not len(held_codes):
            continue
        held_outputs += leaves[tree, trees.places(held_bins, tree)]
        losses[tree + 1] = _losses(held_outputs, held_codes).mean()
        if _is_over(losses[: tree + 2].tolist(), patience, least_gain):
            return tree + 1
    return len(candidates)


def _derivatives(outputs: Array, codes: Codes) -> tuple[Array, Array]:
    """First and second derivatives of the loss by the outputs, each of shape (n, K)."""
    if outputs.shape[1] == 1:
        rest = np.exp(-np.abs(outputs))
        share = 1.0 / (1.0 + rest)
        return np.where(outputs > 0.0, share, rest * share) - codes[:, None], rest * share * share
    shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares - np.eye(outputs.shape[1])[codes], shares * (1.0 - shares)


def _losses(outputs: Array, codes: Codes) -> Array:
    return row_losses(np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs, codes)


def _best_cut(
    bins: Bins, n_bins: Places, tried: Places, node: Codes, n_nodes: int, first: Array, second: Array, l2: float
) -> tuple[int, int]:
    gains, where = [np.zeros(0)], []
    for column in tried:
        count = int(n_bins[column])
        place = node * count + bins[column]
        gain = np.zeros(count - 1)
        for output in range(first.shape[1]):
            G, H = (
                np.bincount(place, one[:, output], n_nodes * count).reshape(n_nodes, count).cumsum(axis=1)
                for one in (first, second)
            )
            left, right = G[:, :-1], G[:, -1:] - G[:, :-1]
            gain += (left**2 / (H[:, :-1] + l2) + right**2 / (H[:, -1:] - H[:, :-1] + l2)).sum(axis=0)
        gains.append(gain)
        where += [(int(column), cut) for cut in range(count - 1)]
    return where[first_largest(np.concatenate(gains))] if where else (-1, MOST_BINS + 1)
