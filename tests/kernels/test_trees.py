"""Sums of trees: the compiled kernel against its twin and against a walk node by node."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES, Trees, numpy_add_leaves, tree_outputs


def random_trees(rng, n_trees, n_columns, n_outputs):
    return Trees(
        rng.integers(n_columns, size=(n_trees, N_NODES)).astype(np.int32),
        np.where(rng.random((n_trees, N_NODES)) < 0.1, np.inf, rng.integers(-3, 4, size=(n_trees, N_NODES)) / 2),
        rng.normal(size=(n_trees, N_LEAVES)),
        rng.integers(n_outputs, size=n_trees).astype(np.int32),
    )


def walked(row, trees, n_outputs):
    """The definition: node by node, tree by tree."""
    outputs = np.zeros(n_outputs)
    for columns, thresholds, leaves, output in zip(*trees, strict=True):
        node = 0
        for _ in range(LEVELS):
            node = 2 * node + (2 if row[columns[node]] > thresholds[node] else 1)
        outputs[output] += leaves[node - N_NODES]
    return outputs


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 5), st.integers(0, 40), st.integers(1, 4))
def test_tree_outputs_are_those_of_a_walk(seed, n_rows, n_columns, n_trees, n_outputs):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, n_trees, n_columns, n_outputs)
    X = rng.integers(-4, 5, size=(n_rows, n_columns)) / 2.0
    wanted = np.array([walked(row, trees, n_outputs) for row in X])
    np.testing.assert_array_equal(tree_outputs(X, trees, n_columns, n_outputs), wanted)
    twin = np.zeros_like(wanted)
    if n_trees:
        numpy_add_leaves(X, *trees, twin)
    np.testing.assert_array_equal(twin, wanted)


def test_tree_outputs_do_not_depend_on_threads_layout_or_neighboring_rows():
    rng = np.random.default_rng(0)
    trees, X = random_trees(rng, 50, 3, 2), rng.normal(size=(5000, 3))
    one = tree_outputs(X, trees, 3, 2, threads=1)
    np.testing.assert_array_equal(tree_outputs(X, trees, 3, 2, threads=3), one)
    np.testing.assert_array_equal(tree_outputs([*X.T], trees, 3, 2), one)
    np.testing.assert_array_equal(tree_outputs(np.asfortranarray(X), trees, 3, 2), one)
    np.testing.assert_array_equal(tree_outputs(X[4321:4322], trees, 3, 2), one[4321:4322])
