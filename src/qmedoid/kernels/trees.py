r"""Sums of trees of comparisons, each four comparisons deep.

A comparison sends a row to the right where its column is above a threshold. With the leaf :math:`\ell_t(x)` that row x
reaches in tree t, output k is :math:`\sum_{t\,:\,k_t = k} \ell_t(x)`, summed in the order of the trees.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table
from qmedoid.kernels._backend import compiled
from qmedoid.kernels._tables import in_chunks, row_count

LEVELS = 4
"""Comparisons on every path."""
N_NODES = 2**LEVELS - 1
N_LEAVES = 2**LEVELS
_CHUNK_ROWS = 4096
_ROWS_WORTH_A_THREAD = 1000
# Paths that the twin follows at a time.
_TWIN_PATHS = 2**18


class Trees(NamedTuple):
    """T trees over M columns, nodes and leaves in breadth-first order.

    Attributes
    ----------
    columns : ndarray of int32 of shape (T, 15)
        Column that each node compares.
    thresholds : ndarray of shape (T, 15)
        Rows above go to the right; +inf where a branch ends early, and its leaves are equal.
    leaves : ndarray of shape (T, 16)
    output : ndarray of int32 of shape (T,)
        The output that a tree adds to.
    """

    columns: NDArray[np.int32]
    thresholds: Array
    leaves: Array
    output: NDArray[np.int32]


def tree_outputs(table: Table, trees: Trees, n_columns: int, n_outputs: int, *, threads: int | None = None) -> Array:
    """Sums of the leaves of every row, shape (n, K); a table is an array (n, M) or a sequence of M columns."""
    outputs = np.zeros((row_count(table, n_columns), n_outputs))
    kernel = compiled("trees")
    if not len(trees.output) or not len(outputs):
        return outputs

    def judge(part: Table, rows: slice) -> None:
        values = np.ascontiguousarray(part if isinstance(part, np.ndarray) else np.column_stack(part), np.float64)
        if kernel is None:
            numpy_add_leaves(values, trees, outputs[rows])
        else:
            kernel.add_leaves(values, *trees, outputs[rows])

    in_chunks(
        judge, table, compiled=False, chunk_rows=_CHUNK_ROWS,
        rows_worth_a_thread=_ROWS_WORTH_A_THREAD, threads=threads,
    )  # fmt: skip
    return outputs


def leaf_places(rows: Array, trees: Trees) -> Codes:
    """The leaf that every row reaches in every tree, shape (n, T)."""
    each, number = np.arange(len(rows))[:, None], np.arange(len(trees.output))
    node = np.zeros((len(rows), len(number)), dtype=np.intp)
    for _ in range(LEVELS):
        above = rows[each, trees.columns[number, node]] > trees.thresholds[number, node]
        node = 2 * node + 1 + above
    return node - N_NODES


def numpy_add_leaves(rows: Array, trees: Trees, outputs: Array) -> None:
    """Add the leaves that rows reach to their outputs, tree by tree, as the compiled kernel does."""
    number = np.arange(len(trees.output))
    for first in range(0, len(rows), max(1, _TWIN_PATHS // len(number))):
        block = slice(first, first + max(1, _TWIN_PATHS // len(number)))
        reached = trees.leaves[number, leaf_places(rows[block], trees)]
        for output in range(outputs.shape[1]):
            own = reached[:, trees.output == output]
            # A running sum keeps the order of the trees.
            if own.shape[1]:
                outputs[block, output] += np.add.accumulate(own, axis=1)[:, -1]
