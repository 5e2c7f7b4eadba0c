"""Compiled boosting of trees by histograms: a thin wrapper over ``c/histogram.c`` that releases the GIL."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc


cdef extern from "histogram.h" nogil:
    enum: QM_NODES

    ctypedef struct qm_rows:
        const uint8_t *bins
        const int32_t *n_bins
        const Py_ssize_t *codes
        Py_ssize_t n, m

    ctypedef struct qm_growing:
        double rate, l2
        Py_ssize_t least_rows

    ctypedef struct qm_tree:
        int32_t *columns
        int32_t *cuts
        double *values
        int32_t *n_rows

    ctypedef struct qm_boosting:
        pass

    qm_boosting *qm_boosting_new(const qm_rows *rows, Py_ssize_t k, const double *start)
    void qm_boosting_free(qm_boosting *boosting)
    Py_ssize_t qm_boosting_step(qm_boosting *boosting, const qm_growing *how, const uint8_t *masks, qm_tree *trees)
    void qm_tree_add(const qm_tree *tree, const uint8_t *bins, Py_ssize_t n, double *output)
    void qm_boosting_losses(
        const double *outputs, const Py_ssize_t *codes, Py_ssize_t n, Py_ssize_t k, double *losses
    )


cdef class Boosting:
    """Training rows (M, n) as bins, and their outputs, which grow tree by tree."""

    cdef qm_boosting *state
    cdef qm_tree *trees
    cdef qm_growing how
    cdef Py_ssize_t k, m
    cdef const uint8_t[:, ::1] bins
    cdef const int32_t[::1] n_bins
    cdef const Py_ssize_t[::1] codes

    def __cinit__(
        self,
        const uint8_t[:, ::1] bins,
        const int32_t[::1] n_bins,
        const Py_ssize_t[::1] codes,
        const double[::1] start,
        double rate,
        double l2,
        Py_ssize_t least_rows,
    ):
        if not bins.shape[0] == n_bins.shape[0] > 0 or not bins.shape[1] == codes.shape[0] > 0:
            raise ValueError("There are as many columns as numbers of bins, and as many rows as codes.")
        self.bins, self.n_bins, self.codes = bins, n_bins, codes
        self.k, self.m = start.shape[0], bins.shape[0]
        self.how.rate, self.how.l2, self.how.least_rows = rate, l2, least_rows
        cdef qm_rows rows
        rows.bins, rows.n_bins, rows.codes = &bins[0, 0], &n_bins[0], &codes[0]
        rows.n, rows.m = bins.shape[1], bins.shape[0]
        with nogil:
            self.state = qm_boosting_new(&rows, self.k, &start[0])
        self.trees = <qm_tree *>malloc(self.k * sizeof(qm_tree))
        if self.state is NULL or self.trees is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.trees)
        qm_boosting_free(self.state)

    def step(
        self,
        const uint8_t[:, ::1] masks,
        int32_t[:, ::1] columns,
        int32_t[:, ::1] cuts,
        double[:, ::1] values,
        int32_t[:, ::1] n_rows,
    ):
        """Fill a tree for each output; the number of masks that were used."""
        if masks.shape[0] < QM_NODES * self.k or masks.shape[1] != self.m:
            raise ValueError("There are 15 masks for each output, each of all columns.")
        cdef Py_ssize_t used, number
        for number in range(self.k):
            self.trees[number].columns, self.trees[number].cuts = &columns[number, 0], &cuts[number, 0]
            self.trees[number].values, self.trees[number].n_rows = &values[number, 0], &n_rows[number, 0]
        with nogil:
            used = qm_boosting_step(self.state, &self.how, &masks[0, 0], self.trees)
        if used < 0:
            raise MemoryError
        return used


def add_trees(
    const uint8_t[:, ::1] bins,
    int32_t[:, ::1] columns,
    int32_t[:, ::1] cuts,
    double[:, ::1] values,
    double[:, ::1] outputs,
):
    """Add trees to the outputs (K, n) of rows, in turn to each."""
    cdef qm_tree tree
    cdef Py_ssize_t number
    if not bins.shape[1]:
        return
    with nogil:
        for number in range(columns.shape[0]):
            tree.columns, tree.cuts, tree.values = &columns[number, 0], &cuts[number, 0], &values[number, 0]
            tree.n_rows = NULL
            qm_tree_add(&tree, &bins[0, 0], bins.shape[1], &outputs[number % outputs.shape[0], 0])


def losses(const double[:, ::1] outputs, const Py_ssize_t[::1] codes, double[::1] found):
    """Fill the loss of each row by its outputs (K, n)."""
    if not codes.shape[0]:
        return
    with nogil:
        qm_boosting_losses(&outputs[0, 0], &codes[0], codes.shape[0], outputs.shape[0], &found[0])
