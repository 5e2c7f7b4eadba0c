"""Compiled sums of distances: thin wrappers over ``c/medoid.c`` that allocate and release the GIL."""

from libc.stdlib cimport free, malloc


cdef extern from "medoid.h" nogil:
    enum: QM_LANES
    int qm_spread(const double *x, Py_ssize_t n, Py_ssize_t d, double *spread)
    void qm_totals(const double *x, const double *w, Py_ssize_t n, Py_ssize_t d, const Py_ssize_t *rows,
                   Py_ssize_t m, double *tile, double *out)
    void qm_all_totals(const double *x, const double *w, Py_ssize_t n, Py_ssize_t d, double *tile, double *out)
    Py_ssize_t qm_first_minimum(const double *totals, Py_ssize_t n, double tolerance)


def spread(const double[:, ::1] X):
    """Return the largest range of a column, or NaN when X holds NaN or infinity."""
    cdef double widest = 0.0
    cdef int finite
    with nogil:
        finite = qm_spread(&X[0, 0], X.shape[0], X.shape[1], &widest)
    return widest if finite else float("nan")


def totals(const double[:, ::1] X, const double[::1] w, const Py_ssize_t[::1] rows, double[::1] out):
    """Write sum_j w_j |x_j - x_r| for the r in ``rows`` to ``out``."""
    cdef double *tile = <double *> malloc(QM_LANES * X.shape[1] * sizeof(double))
    if tile == NULL:
        raise MemoryError
    if rows.shape[0] > 0:
        with nogil:
            qm_totals(&X[0, 0], &w[0], X.shape[0], X.shape[1], &rows[0], rows.shape[0], tile, &out[0])
    free(tile)


def all_totals(const double[:, ::1] X, const double[::1] w, double[::1] out):
    """Write sum_j w_j |x_j - x_i| for every row i to ``out``, each distance computed once."""
    cdef double *tile = <double *> malloc(QM_LANES * X.shape[1] * sizeof(double))
    if tile == NULL:
        raise MemoryError
    with nogil:
        qm_all_totals(&X[0, 0], &w[0], X.shape[0], X.shape[1], tile, &out[0])
    free(tile)
