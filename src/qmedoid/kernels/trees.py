r"""Sums of trees of comparisons, each four comparisons deep.

A comparison sends a row to the right where its column is above a threshold. With the leaf :math:`\ell_t(x)` that row x
reaches in tree t, output k is :math:`\sum_{t\,:\,k_t = k} \ell_t(x)`, summed in the order of the trees.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.kernels.backend import compiled, in_chunks, row_block, row_count

Places = NDArray[np.int32]

LEVELS = 4
"""Comparisons on every path."""
N_NODES = 2**LEVELS - 1
N_LEAVES = 2**LEVELS
_CHUNK_ROWS = 4096
_ROWS_PER_THREAD = 1000
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

    columns: Places
    thresholds: Array
    leaves: Array
    output: Places


def tree_outputs(table: Table, trees: Trees, n_columns: int, n_outputs: int, *, threads: int | None = None) -> Array:
    """Sums of the leaves of every row, shape (n, K); a table is an array (n, M) or a sequence of M columns."""
    outputs = np.zeros((row_count(table, n_columns), n_outputs))
    if not len(trees.output) or not len(outputs):
        return outputs
    kernel = compiled("trees")
    add_leaves = numpy_add_leaves if kernel is None else kernel.add_leaves

    def fill(part: Table, outputs: Array) -> None:
        add_leaves(row_block(part, slice(None)), *trees, outputs)

    in_chunks(fill, table, chunk_rows=_CHUNK_ROWS, rows_per_thread=_ROWS_PER_THREAD, threads=threads, outputs=outputs)
    return outputs


def leaf_places(rows: Array, columns: Places, thresholds: Array) -> Codes:
    """The leaf that every row reaches in every tree, shape (n, T)."""
    each, number = np.arange(len(rows))[:, None], np.arange(len(columns))
    node = np.zeros((len(rows), len(number)), dtype=np.intp)
    for _ in range(LEVELS):
        node = 2 * node + 1 + (rows[each, columns[number, node]] > thresholds[number, node]).astype(np.intp)
    places: Codes = node - N_NODES
    return places


def numpy_add_leaves(
    rows: Array, columns: Places, thresholds: Array, leaves: Array, output: Places, outputs: Array
) -> None:
    """Add the leaves that rows reach to their outputs, tree by tree, as the compiled kernel does."""
    number = np.arange(len(output))
    for block in row_slices(rows, max(1, _TWIN_PATHS // len(number))):
        reached = leaves[number, leaf_places(rows[block], columns, thresholds)]
        for place in np.unique(output):
            # A running sum keeps the order of the trees.
            outputs[block, place] += np.add.accumulate(reached[:, output == place], axis=1)[:, -1]
