"""Compiled boosting of symmetric trees: a thin wrapper over ``c/symmetric.c`` that releases the GIL."""

from libc.stdint cimport int32_t, uint8_t


cdef extern from "symmetric.h" nogil:
    enum: QM_LEVELS
    enum: QM_LEAVES

    ctypedef struct qm_binned:
        const uint8_t *bins
        const Py_ssize_t *codes
        Py_ssize_t n

    ctypedef struct qm_growth:
        const int32_t *candidates
        const int32_t *n_bins
        Py_ssize_t n_columns, n_candidates, n_iterations, patience, k
        double rate, l2, least_gain

    Py_ssize_t qm_symmetric(const qm_binned *rows, const qm_binned *held, const qm_growth *how, const double *start,
                            int32_t *columns, int32_t *cuts, double *leaves, double *losses)


def grow(
    const uint8_t[:, ::1] bins,
    const Py_ssize_t[::1] codes,
    const uint8_t[:, ::1] held_bins,
    const Py_ssize_t[::1] held_codes,
    const int32_t[:, :, ::1] candidates,
    const int32_t[::1] n_bins,
    const double[::1] start,
    double rate,
    double l2,
    Py_ssize_t patience,
    double least_gain,
    int32_t[:, ::1] columns,
    int32_t[:, ::1] cuts,
    double[:, :, ::1] leaves,
    double[::1] losses,
):
    """Fill trees, and losses of held-out rows where there are any; the number of iterations until growth ended."""
    if candidates.shape[1] != QM_LEVELS or leaves.shape[1] != QM_LEAVES:
        raise ValueError("A symmetric tree has 4 levels and 16 leaves.")
    cdef qm_binned rows, held
    rows.bins, rows.codes, rows.n = &bins[0, 0], &codes[0], bins.shape[1]
    held.bins, held.codes, held.n = NULL, NULL, held_bins.shape[1]
    if held.n:
        held.bins, held.codes = &held_bins[0, 0], &held_codes[0]
    cdef qm_growth how
    how.candidates, how.n_bins = &candidates[0, 0, 0], &n_bins[0]
    how.n_columns, how.n_iterations, how.n_candidates = bins.shape[0], candidates.shape[0], candidates.shape[2]
    how.patience, how.k = patience, start.shape[0]
    how.rate, how.l2, how.least_gain = rate, l2, least_gain
    cdef Py_ssize_t grown
    with nogil:
        grown = qm_symmetric(&rows, &held, &how, &start[0], &columns[0, 0], &cuts[0, 0], &leaves[0, 0, 0], &losses[0])
    if grown < 0:
        raise MemoryError
    return grown
