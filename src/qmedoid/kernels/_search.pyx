"""Compiled configuration search: thin wrappers over ``c/search.c`` that hand it the arrays and release the GIL."""

from libc.stdint cimport int64_t

import numpy as np

from qmedoid.kernels.medoid import TIE_TOLERANCE


cdef extern from "search.h" nogil:
    ctypedef struct qm_fold:
        Py_ssize_t n_train, n_sample, n_val, n_classes, n_anchors
        const double *train
        const double *val
        const Py_ssize_t *bounds
        const Py_ssize_t *val_bounds
        const unsigned char *repeated
        const double *multipliers
        double alpha
        int angle, is_signed
        double *sample_z
        double *val_z
        double *condition
        double *squared
        double *slack

    ctypedef struct qm_candidates:
        Py_ssize_t n_members, count, size
        const Py_ssize_t *members
        const double *weights
        const Py_ssize_t *picks
        const double *factors

    int qm_fill_column(const qm_fold *fold, Py_ssize_t anchor, const qm_candidates *column)
    int qm_build_squared(const qm_fold *fold)
    void qm_update_squared(const qm_fold *fold, const double *old, const double *new_)
    int qm_evaluate(const qm_fold *fold, Py_ssize_t anchor, const qm_candidates *candidates, double tie_tolerance,
                    int64_t *confusion, unsigned char *unsure)


cdef qm_fold _fold(state) except *:
    """The state as a C struct that borrows its arrays."""
    cdef const double[:, ::1] train = state.train, val = state.val
    cdef const Py_ssize_t[::1] bounds = state.bounds, val_bounds = state.val_bounds
    cdef const unsigned char[::1] repeated = state.repeated
    cdef const double[::1] multipliers = state.multipliers
    cdef double[:, ::1] sample_z = state.sample_z, val_z = state.val_z
    cdef double[::1] condition = state.condition, squared = state.squared, slack = state.slack
    cdef qm_fold fold
    fold.n_classes = multipliers.shape[0]
    fold.n_train, fold.n_sample, fold.n_val = train.shape[1], bounds[fold.n_classes], val.shape[1]
    fold.n_anchors = sample_z.shape[0]
    fold.train, fold.val = &train[0, 0], &val[0, 0]
    fold.bounds, fold.val_bounds = &bounds[0], &val_bounds[0]
    fold.repeated = &repeated[0]
    fold.multipliers, fold.alpha = &multipliers[0], state.alpha
    fold.angle, fold.is_signed = state.angle, state.signed
    fold.sample_z, fold.val_z = &sample_z[0, 0], &val_z[0, 0]
    fold.condition, fold.squared, fold.slack = &condition[0], &squared[0], &slack[0]
    return fold


cdef qm_candidates _group(candidates) except *:
    """The candidates as a C struct that borrows their arrays."""
    cdef const Py_ssize_t[::1] members = candidates.members
    cdef const Py_ssize_t[:, ::1] picks = candidates.picks
    cdef const double[::1] weights = candidates.weights, factors = candidates.factors
    cdef qm_candidates group
    group.n_members, group.count, group.size = members.shape[0], picks.shape[0], picks.shape[1]
    group.members, group.weights = &members[0], &weights[0]
    group.picks, group.factors = &picks[0, 0], &factors[0]
    return group


def fill_column(state, Py_ssize_t anchor, column):
    """Write the one candidate of `column` as the standardized feature of an anchor."""
    cdef qm_fold fold = _fold(state)
    cdef qm_candidates group = _group(column)
    cdef int failed
    with nogil:
        failed = qm_fill_column(&fold, anchor, &group)
    if failed:
        raise MemoryError


def build_squared(state):
    """Squared distances of the rows of each class over all features."""
    sizes = np.diff(state.bounds)
    # One number more than there are pairs, so that classes of one row leave no empty array.
    state.squared = np.empty(int((sizes * (sizes - 1) // 2).sum()) + 1)
    state.slack = np.empty(len(sizes))
    cdef qm_fold fold = _fold(state)
    with nogil:
        qm_build_squared(&fold)


def update_squared(state, const double[::1] old, const double[::1] new):
    """Squared distances after the feature `old` on the medoid rows became `new`."""
    cdef qm_fold fold = _fold(state)
    with nogil:
        qm_update_squared(&fold, &old[0], &new[0])


def evaluate(state, Py_ssize_t anchor, candidates, int64_t[:, :, ::1] confusion, unsigned char[::1] unsure):
    """Confusion matrix of the validation rows for each candidate in the place of an anchor's feature."""
    cdef qm_fold fold = _fold(state)
    cdef qm_candidates group = _group(candidates)
    cdef double tie_tolerance = TIE_TOLERANCE
    cdef int failed
    with nogil:
        failed = qm_evaluate(&fold, anchor, &group, tie_tolerance, &confusion[0, 0, 0], &unsure[0])
    if failed:
        raise MemoryError
