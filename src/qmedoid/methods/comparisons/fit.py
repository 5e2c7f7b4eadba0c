"""Trees of comparisons from plain trees: every threshold becomes the middle between two real rows."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.scaling import fit_standard
from qmedoid.kernels.ties import stable_order
from qmedoid.kernels.trees import N_LEAVES, N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart


class PlainTree(NamedTuple):
    """A tree as boosting leaves it, node 0 the root; arrays of shape (nodes,).

    Attributes
    ----------
    column, threshold : ndarray
        Rows at most at the threshold go to the left; column −1 for a leaf.
    left, right : ndarray
        Children.
    value, n_rows : ndarray
        What a leaf adds, and training rows that reach a node.
    output : int
        The output that the tree adds to.
    """

    column: Codes
    threshold: Array
    left: Codes
    right: Codes
    value: Array
    n_rows: Array
    output: int


class FullTrees(NamedTuple):
    """T trees of four levels, nodes and leaves in breadth-first order.

    Attributes
    ----------
    columns, thresholds : ndarray of shape (T, 15)
        As those of a `PlainTree`; column −1 where all rows go to the left.
    values : ndarray of shape (T, 31)
        Of each node the mean of what its training rows are given, then what the leaves add.
    outputs : ndarray of shape (T,)
    """

    columns: Codes
    thresholds: Array
    values: Array
    outputs: Codes

    def scaled(self, factor: float) -> Self:
        """Trees that add this many times as much."""
        return self._replace(values=factor * self.values)


def full_trees(trees: Sequence[PlainTree]) -> FullTrees:
    """Plain trees of at most four levels, with all levels."""
    shape = (len(trees), N_NODES)
    columns, thresholds = np.full(shape, -1, dtype=np.intp), np.zeros(shape)
    values = np.zeros((len(trees), N_NODES + N_LEAVES))
    for number, tree in enumerate(trees):
        _place(tree, 0, 0, _means(tree), columns[number], thresholds[number], values[number])
    return FullTrees(columns, thresholds, values, np.array([tree.output for tree in trees], dtype=np.intp))


def joined(parts: Sequence[FullTrees]) -> FullTrees:
    """All trees of some parts, one part after the other."""
    return FullTrees(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


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
    return ComparisonsPart(
        columns, rows.astype(np.intp), codes[rows].astype(np.intp), near, far, near_values, far_values, values,
        outputs, intercepts, scaling, n_classes,
    )  # fmt: skip


def _means(tree: PlainTree) -> Array:
    """Of each node the mean of what its training rows are given; children stand behind their parents."""
    # Plain numbers: the calls that arrays of two need cost more than a whole tree.
    means, n_rows, left, right = tree.value.tolist(), tree.n_rows.tolist(), tree.left.tolist(), tree.right.tolist()
    for node in range(len(means) - 1, -1, -1):
        if tree.column[node] >= 0:
            a, b = left[node], right[node]
            means[node] = (means[a] * n_rows[a] + means[b] * n_rows[b]) / (n_rows[a] + n_rows[b])
    return np.array(means)


def _place(
    tree: PlainTree, node: int, place: int, means: Array, columns: Codes, thresholds: Array, values: Array
) -> None:
    """Write a node and what is below it, breadth first; a leaf is repeated down to the last level."""
    values[place] = means[node]
    if place >= N_NODES:
        return
    left = right = node
    if tree.column[node] >= 0:
        columns[place], thresholds[place] = tree.column[node], tree.threshold[node]
        left, right = tree.left[node], tree.right[node]
    _place(tree, left, 2 * place + 1, means, columns, thresholds, values)
    _place(tree, right, 2 * place + 2, means, columns, thresholds, values)
