r"""Boosting of trees by histograms, with a comparison of its own at every node and at most four on a path.

A node asks the comparison with the largest gain

.. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda},

where G and H are sums of the first and second derivatives of the loss over its rows and over those on either side, and
a leaf adds :math:`-\eta\, G / (H + \lambda)`. The loss is logistic for one output and that of a softmax for more.

There is no NumPy twin: the trees are those of scikit-learn's ``HistGradientBoostingClassifier`` to the last bit, which
is what grows them where this kernel is not built.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array
from qmedoid.kernels._backend import compiled
from qmedoid.kernels.symmetric import Binned, Bins
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES, Places

# Iterations whose masks are drawn together.
_DRAWN_TOGETHER = 16


class HistogramGrowth(NamedTuple):
    """How trees are grown.

    Attributes
    ----------
    n_bins : ndarray of int32 of shape (M,)
        Bins of every column, 255 at most.
    start : ndarray of shape (K,)
        Outputs before the first iteration.
    rate, l2 : float
        The learning rate η and the penalty λ.
    least_rows : int
        Rows on either side of a comparison at least.
    n_tried : int
        Columns that are tried at a node.
    n_iterations : int
        At most.
    patience : int
    least_gain : float
        Growth ends where `patience` iterations took no more than this from the mean loss of held-out rows.
    """

    n_bins: Places
    start: Array
    rate: float
    l2: float
    least_rows: int
    n_tried: int
    n_iterations: int
    patience: int
    least_gain: float


class HistogramTrees(NamedTuple):
    """T trees, those of one iteration behind each other, nodes and leaves in breadth-first order.

    Attributes
    ----------
    columns, cuts : ndarray of int32 of shape (T, 15)
        Rows whose bin is above the cut go to the right; column −1 where all rows go to the left.
    values : ndarray of shape (T, 31)
        What the leaves add. A branch that ends early has its leaf at all places below, too; 0 for other nodes.
    n_rows : ndarray of int32 of shape (T, 31)
        Training rows that reach a node or a leaf.
    start : ndarray of shape (K,)
    losses : ndarray of shape (T / K + 1,)
        Mean loss of held-out rows before the first and after every iteration; empty without such rows.
    """

    columns: Places
    cuts: Places
    values: Array
    n_rows: Places
    start: Array
    losses: Array

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


def is_built() -> bool:
    """Whether the kernel is there."""
    return compiled("histogram") is not None


def grow_histogram(
    rows: Binned, growth: HistogramGrowth, rng: np.random.Generator, held_out: Binned | None = None
) -> HistogramTrees:
    """Boosted trees; with held-out rows growth ends where these gain nothing.

    `rng` draws the columns that are tried at each node.
    """
    kernel = compiled("histogram")
    assert kernel is not None, "the caller asks `is_built` first"
    n_outputs, n_columns = len(growth.start), len(growth.n_bins)
    boosting = kernel.Boosting(rows.bins, growth.n_bins, rows.codes, *growth[1:5])
    n_trees = growth.n_iterations * n_outputs
    columns, cuts = (np.zeros((n_trees, N_NODES), dtype=np.int32) for _ in range(2))
    values, n_rows = (np.zeros((n_trees, N_NODES + N_LEAVES), dtype=kind) for kind in (np.float64, np.int32))
    masks = _Masks(n_columns, growth.n_tried, N_NODES * n_outputs, rng)
    losses = list[float]()
    if held_out is not None:
        outputs = np.tile(growth.start[:, None], len(held_out.codes))
        of_rows = np.empty(len(held_out.codes))
        losses.append(_mean_loss(kernel, outputs, held_out, of_rows))
    done = 0
    while done < growth.n_iterations:
        own = slice(done * n_outputs, (done + 1) * n_outputs)
        masks.use(boosting.step(masks.next(), columns[own], cuts[own], values[own], n_rows[own]))
        done += 1
        if held_out is None:
            continue
        kernel.add_trees(held_out.bins, columns[own], cuts[own], values[own], outputs)
        losses.append(_mean_loss(kernel, outputs, held_out, of_rows))
        if _is_over(losses, growth.patience, growth.least_gain):
            break
    some = slice(done * n_outputs)
    return HistogramTrees(columns[some], cuts[some], values[some], n_rows[some], growth.start, np.array(losses))


class _Masks:
    """Columns that are tried at each node, drawn ahead; one that was not used is the next."""

    def __init__(self, n_columns: int, n_tried: int, n_ahead: int, rng: np.random.Generator) -> None:
        self._blank = np.zeros((_DRAWN_TOGETHER * n_ahead, n_columns), dtype=np.bool_)
        self._blank[:, :n_tried] = True
        self._n_ahead, self._rng = n_ahead, rng
        self._drawn, self._used = self._blank[:0], 0

    def next(self) -> NDArray[np.uint8]:
        """The next masks, as many as an iteration can use, or more."""
        if len(self._drawn) - self._used < self._n_ahead:
            more = self._rng.permuted(self._blank, axis=1)
            self._drawn, self._used = np.concatenate([self._drawn[self._used :], more]), 0
        return self._drawn[self._used :].view(np.uint8)

    def use(self, count: int) -> None:
        """So many were used."""
        self._used += count


def _mean_loss(kernel: Any, outputs: Array, rows: Binned, of_rows: Array) -> float:
    kernel.losses(outputs, rows.codes, of_rows)
    return float(of_rows.mean())


def _is_over(losses: Sequence[float], patience: int, least_gain: float) -> bool:
    """Whether the last iterations took no more than the least gain from the loss."""
    if len(losses) <= patience:
        return False
    return not any(loss < losses[-patience - 1] - least_gain for loss in losses[-patience:])
