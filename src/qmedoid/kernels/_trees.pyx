"""Compiled sums of trees: a thin wrapper over ``c/trees.c`` that releases the GIL."""

from libc.stdint cimport int32_t


cdef extern from "trees.h" nogil:
    enum: QM_NODES
    enum: QM_LEAVES

    void qm_trees(const double *rows, Py_ssize_t n, Py_ssize_t m, Py_ssize_t n_trees, const int32_t *columns,
                  const double *thresholds, const double *leaves, const int32_t *output, Py_ssize_t k,
                  double *outputs)


def add_leaves(
    const double[:, ::1] rows,
    const int32_t[:, ::1] columns,
    const double[:, ::1] thresholds,
    const double[:, ::1] leaves,
    const int32_t[::1] output,
    double[:, ::1] outputs,
):
    """Add the leaves that rows reach to their outputs, shape (n, K); there is a row and a tree at least."""
    if columns.shape[1] != QM_NODES or thresholds.shape[1] != QM_NODES or leaves.shape[1] != QM_LEAVES:
        raise ValueError("A tree has 15 nodes and 16 leaves.")
    with nogil:
        qm_trees(&rows[0, 0], rows.shape[0], rows.shape[1], columns.shape[0], &columns[0, 0], &thresholds[0, 0],
                 &leaves[0, 0], &output[0], outputs.shape[1], &outputs[0, 0])
