"""Compiled nearest prototypes of some cells: a thin wrapper over ``c/cells.c`` that releases the GIL."""


cdef extern from "cells.h" nogil:
    ctypedef struct qm_cells:
        Py_ssize_t n_columns, n_visits
        const double *prototypes
        const Py_ssize_t *names
        const Py_ssize_t *starts
        const double *radii

    void qm_nearest_in_cells(const qm_cells *to, const double *rows, Py_ssize_t n, Py_ssize_t k, const Py_ssize_t *own,
                             const Py_ssize_t *visits, const double *to_centers, double *squared, Py_ssize_t *indices)


def nearest_in_cells(
    const double[:, ::1] rows,
    const double[:, ::1] prototypes,
    const Py_ssize_t[::1] names,
    const Py_ssize_t[::1] starts,
    const double[::1] radii,
    const Py_ssize_t[::1] own,
    const Py_ssize_t[:, ::1] visits,
    const double[:, ::1] to_centers,
    double[:, ::1] squared,
    Py_ssize_t[:, ::1] indices,
):
    """Fill ``squared`` and ``indices``, shape (n, k), for n >= 1 rows that look at the cells ``visits``."""
    cdef qm_cells to
    to.n_columns, to.n_visits = prototypes.shape[1], visits.shape[1]
    to.prototypes = &prototypes[0, 0]
    to.names, to.starts, to.radii = &names[0], &starts[0], &radii[0]
    cdef const Py_ssize_t *left_out = NULL
    if own is not None:
        left_out = &own[0]
    with nogil:
        qm_nearest_in_cells(&to, &rows[0, 0], rows.shape[0], squared.shape[1], left_out, &visits[0, 0],
                            &to_centers[0, 0], &squared[0, 0], &indices[0, 0])
