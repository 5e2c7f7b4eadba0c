"""Compiled sums of distances and their bounds: thin wrappers over ``c/medoid.c`` that release the GIL."""

from libc.stdlib cimport free, malloc


cdef extern from "medoid.h" nogil:
    enum: QM_LANES
    enum: QM_POINTS
    int qm_spread(const double *x, Py_ssize_t n, Py_ssize_t d, double *spread)
    void qm_totals(const double *x, const double *w, Py_ssize_t n, Py_ssize_t d, const Py_ssize_t *rows,
                   Py_ssize_t m, double *scratch, double *out)
    void qm_all_totals(const double *x, const double *w, Py_ssize_t n, Py_ssize_t d, double *scratch, double *out)
    void qm_centre(const double *x, const double *pivot, Py_ssize_t n, Py_ssize_t d, double *z, double *norms)
    void qm_moments(const double *z, const double *norms, const double *w, Py_ssize_t n, Py_ssize_t d, double low,
                    double high, double r0, double *out)
    void qm_bounds(const double *z, const double *norms, Py_ssize_t d, const Py_ssize_t *rows, Py_ssize_t m,
                   const double *moments, double r0, double *scratch, double *out)


cdef double *scratch_for(Py_ssize_t d) except NULL:
    cdef double *scratch = <double *> malloc((QM_LANES + QM_POINTS) * d * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    return scratch


def spread(const double[:, ::1] X):
    """Return the largest range of a column of X, or NaN when X holds NaN or infinity."""
    cdef double widest = 0.0
    cdef int finite
    with nogil:
        finite = qm_spread(&X[0, 0], X.shape[0], X.shape[1], &widest)
    return widest if finite else float("nan")


def totals(const double[:, ::1] X, const double[::1] w, const Py_ssize_t[::1] rows, double[::1] out):
    """Write sum_j w_j |x_j - x_r| for the r in ``rows`` to ``out``."""
    cdef double *scratch = scratch_for(X.shape[1])
    with nogil:
        qm_totals(&X[0, 0], &w[0], X.shape[0], X.shape[1], &rows[0], rows.shape[0], scratch, &out[0])
    free(scratch)


def all_totals(const double[:, ::1] X, const double[::1] w, double[::1] out):
    """Write sum_j w_j |x_j - x_i| for every row i to ``out``."""
    cdef double *scratch = scratch_for(X.shape[1])
    with nogil:
        qm_all_totals(&X[0, 0], &w[0], X.shape[0], X.shape[1], scratch, &out[0])
    free(scratch)


def centre(const double[:, ::1] X, const double[::1] pivot, double[:, ::1] Z, double[::1] norms):
    """Write z_j = x_j - pivot to ``Z`` and |z_j| to ``norms``."""
    with nogil:
        qm_centre(&X[0, 0], &pivot[0], X.shape[0], X.shape[1], &Z[0, 0], &norms[0])


def moments(const double[:, ::1] Z, const double[::1] norms, const double[::1] w, double low, double high, double r0,
            double[::1] out):
    """Write the 3 + 2 d + d * d moments of a shell of candidates to ``out``."""
    with nogil:
        qm_moments(&Z[0, 0], &norms[0], &w[0], Z.shape[0], Z.shape[1], low, high, r0, &out[0])


def bounds(const double[:, ::1] Z, const double[::1] norms, const Py_ssize_t[::1] rows, const double[::1] moments,
           double r0, double[::1] out):
    """Write lower bounds of sum_j w_j |z_j - z_r| for the r in ``rows``, which lie in the shell, to ``out``."""
    cdef double *scratch = scratch_for(Z.shape[1])
    with nogil:
        qm_bounds(&Z[0, 0], &norms[0], Z.shape[1], &rows[0], rows.shape[0], &moments[0], r0, scratch, &out[0])
    free(scratch)
