"""Compiled evidence: a thin wrapper over ``c/evidence.c`` that finds the columns, allocates and releases the GIL."""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

import numpy as np


cdef extern from "evidence.h" nogil:
    ctypedef struct qm_column:
        const char *data
        Py_ssize_t stride
        int narrow

    ctypedef struct qm_evidence_plan:
        Py_ssize_t n_columns, n_lines, n_groups, n_outputs, n_classes
        double largest, clip
        const double *center
        const double *scale
        const Py_ssize_t *knot_offsets
        const double *knots
        const double *marks
        const double *rises
        const Py_ssize_t *line_offsets
        const Py_ssize_t *line_by_rank
        const double *line_root
        const double *intercepts
        const double *quadratic
        const double *linear
        const Py_ssize_t *fold_offsets
        const double *folds
        const double *fold_weights
        const Py_ssize_t *member_offsets
        const Py_ssize_t *members
        const Py_ssize_t *pair_offsets
        const Py_ssize_t *value_offsets
        const double *values
        const Py_ssize_t *has_distance
        const double *distance_weights
        const Py_ssize_t *near_offsets
        const double *near_rates
        const double *near_weights
        const Py_ssize_t *medoid_indices
        const Py_ssize_t *class_offsets

    ctypedef struct qm_evidence_results:
        double *outputs
        double *distance
        double *angle
        Py_ssize_t *nearest

    Py_ssize_t qm_evidence_scratch_size(const qm_evidence_plan *plan)
    Py_ssize_t qm_evidence(const qm_evidence_plan *plan, const qm_column *columns, Py_ssize_t n, double *scratch,
                           const qm_evidence_results *out)


def judge(
    object columns,
    object plan,
    double[:, ::1] outputs=None,
    double[:, ::1] distance=None,
    double[:, ::1] angle=None,
    Py_ssize_t[:, ::1] nearest=None,
):
    """Fill the results that are given for a table of n >= 1 rows; return how many rows were left undecided.

    ``columns`` is a 2-D array or a sequence of 1-D arrays, of float64 or float32 with any strides.
    """
    cdef const Py_ssize_t[::1] used = plan.columns.used
    cdef qm_evidence_plan c_plan = plan_of(plan)
    cdef qm_evidence_results out
    out.outputs = NULL if outputs is None else &outputs[0, 0]
    out.distance = NULL if distance is None else &distance[0, 0]
    out.angle = NULL if angle is None else &angle[0, 0]
    out.nearest = NULL if nearest is None else &nearest[0, 0]

    cdef Py_ssize_t undecided, n = len(columns) if isinstance(columns, np.ndarray) else len(columns[0])
    cdef qm_column *found = <qm_column *> malloc(max(1, used.shape[0]) * sizeof(qm_column))
    # Room to start at a multiple of 64 bytes.
    cdef void *block = malloc(qm_evidence_scratch_size(&c_plan) * sizeof(double) + 64)
    cdef double *scratch = <double *> ((<uintptr_t> block + 63) & ~(<uintptr_t> 63))
    try:
        if found == NULL or block == NULL:
            raise MemoryError
        find_columns(columns, used, found)
        with nogil:
            undecided = qm_evidence(&c_plan, found, n, scratch, &out)
    finally:
        free(found)
        free(block)
    return undecided


cdef const double *numbers(object array) except? NULL:
    """Where the numbers of an array start; the plan keeps them alive."""
    cdef const double[::1] flat = array.reshape(-1)
    return &flat[0] if flat.shape[0] else NULL


cdef const Py_ssize_t *codes(object array) except? NULL:
    cdef const Py_ssize_t[::1] flat = array
    return &flat[0] if flat.shape[0] else NULL


cdef qm_evidence_plan plan_of(object plan) except *:
    """The plan as pointers into its arrays."""
    cdef qm_evidence_plan p
    columns = plan.columns
    p.n_columns, p.n_lines = len(columns.used), len(plan.line_root)
    p.n_groups, p.n_outputs, p.n_classes = len(plan.pair_offsets) - 1, len(plan.intercepts), len(plan.class_offsets) - 1
    p.largest, p.clip = plan.largest, columns.clip
    p.center, p.scale = numbers(columns.center), numbers(columns.scale)
    p.knot_offsets = codes(columns.knot_offsets)
    p.knots, p.marks, p.rises = numbers(columns.knots), numbers(columns.marks), numbers(columns.rises)
    p.line_offsets, p.line_by_rank = codes(plan.line_offsets), codes(plan.line_by_rank)
    p.line_root, p.intercepts = numbers(plan.line_root), numbers(plan.intercepts)
    p.quadratic, p.linear = numbers(plan.quadratic), numbers(plan.linear)
    p.fold_offsets, p.folds, p.fold_weights = codes(plan.fold_offsets), numbers(plan.folds), numbers(plan.fold_weights)
    p.member_offsets, p.members = codes(plan.member_offsets), codes(plan.members)
    p.pair_offsets, p.value_offsets = codes(plan.pair_offsets), codes(plan.value_offsets)
    p.values, p.has_distance = numbers(plan.values), codes(plan.has_distance)
    p.distance_weights, p.near_offsets = numbers(plan.distance_weights), codes(plan.near_offsets)
    p.near_rates, p.near_weights = numbers(plan.near_rates), numbers(plan.near_weights)
    p.medoid_indices, p.class_offsets = codes(plan.medoid_indices), codes(plan.class_offsets)
    return p


cdef int find_columns(object columns, const Py_ssize_t[::1] used, qm_column *found) except -1:
    """Note where each used column lies; ``columns`` keeps the memory alive."""
    cdef Py_buffer view
    cdef Py_ssize_t j
    if isinstance(columns, np.ndarray):
        PyObject_GetBuffer(columns, &view, PyBUF_STRIDES)
        for j in range(used.shape[0]):
            found[j] = qm_column(<const char *> view.buf + used[j] * view.strides[1], view.strides[0],
                                 view.itemsize == 4)
        PyBuffer_Release(&view)
        return 0
    for j in range(used.shape[0]):
        PyObject_GetBuffer(columns[used[j]], &view, PyBUF_STRIDES)
        found[j] = qm_column(<const char *> view.buf, view.strides[0], view.itemsize == 4)
        PyBuffer_Release(&view)
    return 0
