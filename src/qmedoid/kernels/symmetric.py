r"""Boosting of symmetric trees: all nodes of a level ask one comparison, so that four of them make 16 leaves.

An iteration adds one tree with a value for each output to every leaf. With sums G and H of the first and second
derivatives of the loss by an output over the rows of a node, a level asks the comparison with the largest sum of
:math:`G^2 / (H + \lambda)` over both sides of all its nodes and over the outputs, and a leaf adds
:math:`-\eta\, G / (H + \lambda)`. The loss is logistic for one output and that of a softmax for more.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes
from qmedoid.kernels._backend import compiled
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.ties import first_largest
from qmedoid.kernels.trees import LEVELS, N_LEAVES, Places

Bins = NDArray[np.uint8]

MOST_BINS = 255


class Binned(NamedTuple):
    """Rows as the bins of their cells, column after column, shape (M, n), with their class codes (n,)."""

    bins: Bins
    codes: Codes


class Growth(NamedTuple):
    """How trees are grown.

    Attributes
    ----------
    candidates : ndarray of int32 of shape (iterations, 4, candidates)
        Columns that are tried at each level, rising.
    n_bins : ndarray of int32 of shape (M,)
        Bins of every column, 255 at most.
    start : ndarray of shape (K,)
        Outputs before the first iteration.
    rate, l2 : float
        The learning rate η and the penalty λ, above 0.
    patience : int
    least_gain : float
        Growth ends where `patience` iterations took no more than this from the mean loss of held-out rows.
    """

    candidates: Places
    n_bins: Places
    start: Array
    rate: float
    l2: float
    patience: int
    least_gain: float


class SymmetricTrees(NamedTuple):
    """T trees: a level sends rows whose bin in a column is above a cut to the right.

    Attributes
    ----------
    columns, cuts : ndarray of int32 of shape (T, 4)
        Column −1 where no candidate had two bins: all rows go to the left.
    leaves : ndarray of shape (T, 16, K)
    start : ndarray of shape (K,)
    losses : ndarray of shape (T + 1,)
        Mean loss of held-out rows before the first and after every iteration; zeros without such rows.
    """

    columns: Places
    cuts: Places
    leaves: Array
    start: Array
    losses: Array

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


def grow_symmetric(rows: Binned, growth: Growth, held_out: Binned | None = None) -> SymmetricTrees:
    """Boosted symmetric trees; with held-out rows growth ends where these gain nothing."""
    held = held_out or Binned(np.zeros((len(rows.bins), 0), dtype=np.uint8), np.zeros(0, dtype=np.intp))
    n_iterations = len(growth.candidates)
    columns, cuts = (np.zeros((n_iterations, LEVELS), dtype=np.int32) for _ in range(2))
    leaves, losses = np.zeros((n_iterations, N_LEAVES, len(growth.start))), np.zeros(n_iterations + 1)
    kernel = compiled("symmetric")
    grow: Any = numpy_grow if kernel is None else kernel.grow
    grown: int = grow(*rows, *held, *growth, columns, cuts, leaves, losses) if n_iterations else 0
    return SymmetricTrees(columns[:grown], cuts[:grown], leaves[:grown], growth.start, losses[: grown + 1])


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
        recent = losses[max(0, tree + 1 - patience) : tree + 2]
        if len(recent) > patience and not (recent[1:] < recent[0] - least_gain).any():
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
