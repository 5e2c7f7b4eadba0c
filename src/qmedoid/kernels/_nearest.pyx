"""Compiled nearest prototypes: a thin wrapper over ``c/nearest.c`` that allocates and releases the GIL."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc


cdef extern from "nearest.h" nogil:
    enum: QM_PANEL
    enum: QM_MOST_NEAREST

    ctypedef struct qm_prototypes:
        Py_ssize_t n_prototypes, n_columns
        const double *prototypes
        const float *panels
        const double *center
        double scale, unit

    Py_ssize_t qm_nearest_scratch_size(const qm_prototypes *to)
    void qm_nearest(const qm_prototypes *to, const double *rows, Py_ssize_t n, Py_ssize_t k, const Py_ssize_t *own,
                    void *scratch, double *squared, Py_ssize_t *indices)

PANEL = QM_PANEL
"""Prototypes that lie side by side in a panel."""


def nearest(
    const double[:, ::1] rows,
    const double[:, ::1] prototypes,
    const float[:, :, ::1] panels,
    const double[::1] center,
    double scale,
    double unit,
    const Py_ssize_t[::1] own,
    double[:, ::1] squared,
    Py_ssize_t[:, ::1] indices,
):
    """Fill ``squared`` and ``indices``, shape (n, k), for n >= 1 rows; without ``panels`` every distance is measured."""
    cdef Py_ssize_t k = squared.shape[1]
    cdef qm_prototypes to
    to.n_prototypes, to.n_columns = prototypes.shape[0], prototypes.shape[1]
    to.prototypes = &prototypes[0, 0]
    to.panels = NULL
    if panels is not None:
        to.panels = &panels[0, 0, 0]
    to.center = &center[0]
    to.scale, to.unit = scale, unit
    cdef const Py_ssize_t *left_out = NULL
    if own is not None:
        left_out = &own[0]
    if not 1 <= k <= QM_MOST_NEAREST:
        raise ValueError(f"k must be between 1 and {QM_MOST_NEAREST}. Got {k} instead.")
    # Room to start at a multiple of 64 bytes.
    cdef void *block = malloc(qm_nearest_scratch_size(&to) + 64)
    if block == NULL:
        raise MemoryError
    with nogil:
        qm_nearest(&to, &rows[0, 0], rows.shape[0], k, left_out,
                   <void *> ((<uintptr_t> block + 63) & ~(<uintptr_t> 63)), &squared[0, 0], &indices[0, 0])
    free(block)
