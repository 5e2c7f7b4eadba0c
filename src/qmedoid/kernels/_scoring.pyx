"""Compiled scoring: a thin wrapper over ``c/scoring.c`` that finds the columns, allocates and releases the GIL."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

import numpy as np


cdef extern from "scoring.h" nogil:
    enum:
        QM_TILE
        QM_ANGLE_NONE
        QM_ANGLE_TRUE
        QM_ANGLE_PRINTED

    ctypedef struct qm_column:
        const char *data
        Py_ssize_t stride
        int narrow

    ctypedef struct qm_plan:
        Py_ssize_t n_columns, n_anchors, n_classes
        const double *center
        const Py_ssize_t *offsets
        const Py_ssize_t *members
        const double *weights
        const double *feature_center
        const double *feature_inverse_scale
        const double *medoids
        const double *medoid_norms
        const Py_ssize_t *medoid_indices
        const Py_ssize_t *class_offsets
        const double *multipliers
        double alpha
        int is_signed, angle

    ctypedef struct qm_results:
        double *distance
        double *angle
        Py_ssize_t *nearest
        double *scores
        Py_ssize_t *labels

    Py_ssize_t qm_scratch_size(const qm_plan *plan)
    Py_ssize_t qm_score(const qm_plan *plan, const qm_column *columns, const double **lines, Py_ssize_t n,
                        double *scratch, const qm_results *out)

TILE = QM_TILE
"""Rows that are computed together."""

cdef dict ANGLES = {"none": QM_ANGLE_NONE, "true": QM_ANGLE_TRUE, "printed": QM_ANGLE_PRINTED}


def score(
    object columns,
    object plan,
    str angle,
    double[:, ::1] distance=None,
    double[:, ::1] theta=None,
    Py_ssize_t[:, ::1] nearest=None,
    double[:, ::1] scores=None,
    Py_ssize_t[::1] labels=None,
):
    """Fill the results that are given for a table of n >= 1 rows; return how many rows were left undecided.

    ``columns`` is a 2-D array or a sequence of 1-D arrays, of float64 or float32 with any strides.
    """
    cdef const double[::1] center = plan.center, weights = plan.weights
    cdef const double[::1] feature_center = plan.feature_center, feature_inverse = plan.feature_inverse_scale
    cdef const double[:, ::1] medoids = plan.medoids
    cdef const double[::1] medoid_norms = plan.medoid_norms, multipliers = plan.multipliers
    cdef const Py_ssize_t[::1] offsets = plan.offsets, members = plan.members, used = plan.used
    cdef const Py_ssize_t[::1] medoid_indices = plan.medoid_indices, class_offsets = plan.class_offsets
    cdef qm_plan c_plan
    c_plan.n_columns, c_plan.n_anchors, c_plan.n_classes = used.shape[0], medoids.shape[1], multipliers.shape[0]
    c_plan.center, c_plan.weights = &center[0], &weights[0]
    c_plan.offsets, c_plan.members = &offsets[0], &members[0]
    c_plan.feature_center, c_plan.feature_inverse_scale = &feature_center[0], &feature_inverse[0]
    c_plan.medoids, c_plan.medoid_norms = &medoids[0, 0], &medoid_norms[0]
    c_plan.medoid_indices, c_plan.class_offsets = &medoid_indices[0], &class_offsets[0]
    c_plan.multipliers = &multipliers[0]
    c_plan.alpha, c_plan.is_signed, c_plan.angle = plan.alpha, plan.signed, ANGLES[angle]

    cdef qm_results out
    out.distance = NULL if distance is None else &distance[0, 0]
    out.angle = NULL if theta is None else &theta[0, 0]
    out.nearest = NULL if nearest is None else &nearest[0, 0]
    out.scores = NULL if scores is None else &scores[0, 0]
    out.labels = NULL if labels is None else &labels[0]

    cdef Py_ssize_t undecided, n = len(columns) if isinstance(columns, np.ndarray) else len(columns[0])
    cdef qm_column *found = <qm_column *> malloc(used.shape[0] * sizeof(qm_column))
    cdef const double **lines = <const double **> malloc(used.shape[0] * sizeof(double *))
    # Room to start at a multiple of 64 bytes.
    cdef void *block = malloc(qm_scratch_size(&c_plan) * sizeof(double) + 64)
    cdef double *scratch = <double *> ((<uintptr_t> block + 63) & ~(<uintptr_t> 63))
    try:
        if found == NULL or lines == NULL or block == NULL:
            raise MemoryError
        find_columns(columns, used, found)
        with nogil:
            undecided = qm_score(&c_plan, found, lines, n, scratch, &out)
    finally:
        free(found)
        free(lines)
        free(block)
    return undecided


cdef int find_columns(object columns, const Py_ssize_t[::1] used, qm_column *found) except -1:
    """Note where each used column lies; ``columns`` keeps the memory alive."""
    cdef Py_ssize_t j
    cdef const double[:, :] wide_table
    cdef const float[:, :] narrow_table
    cdef const double[:] wide
    cdef const float[:] narrow
    if not isinstance(columns, np.ndarray):
        for j in range(used.shape[0]):
            column = columns[used[j]]
            if column.dtype == np.float64:
                wide = column
                found[j] = qm_column(<const char *> &wide[0], wide.strides[0], 0)
            else:
                narrow = column
                found[j] = qm_column(<const char *> &narrow[0], narrow.strides[0], 1)
    elif columns.dtype == np.float64:
        wide_table = columns
        for j in range(used.shape[0]):
            found[j] = qm_column(<const char *> &wide_table[0, used[j]], wide_table.strides[0], 0)
    else:
        narrow_table = columns
        for j in range(used.shape[0]):
            found[j] = qm_column(<const char *> &narrow_table[0, used[j]], narrow_table.strides[0], 1)
    return 0
