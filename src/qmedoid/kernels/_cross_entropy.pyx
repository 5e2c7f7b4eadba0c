"""Compiled cross-entropy: a thin wrapper over ``c/cross_entropy.c`` that finds the arrays and releases the GIL.

Arrays are C-contiguous and of shapes that go together: the caller has checked that.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef extern from "cross_entropy.h" nogil:
    int qm_cross_entropy(const double *scores, const Py_ssize_t *codes, const double *weights, Py_ssize_t n,
                         Py_ssize_t c, double *loss, double *gradient)


def cross_entropy(object scores, object codes, object weights, object gradient=None):
    """Loss of scores (rows, C); fill its gradient, of the same shape, if there is one."""
    cdef Py_buffer held[4]
    cdef int n_held = 0, refused
    cdef double loss = 0.0
    # Typed memoryviews would take longer to make than the loss of a small batch.
    try:
        for array in (scores, codes, weights):
            PyObject_GetBuffer(array, &held[n_held], PyBUF_C_CONTIGUOUS)
            n_held += 1
        if gradient is not None:
            PyObject_GetBuffer(gradient, &held[n_held], PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
            n_held += 1
        with nogil:
            refused = qm_cross_entropy(<double *> held[0].buf, <Py_ssize_t *> held[1].buf, <double *> held[2].buf,
                                       held[0].shape[0], held[0].shape[1], &loss,
                                       <double *> held[3].buf if n_held == 4 else NULL)
    finally:
        while n_held > 0:
            n_held -= 1
            PyBuffer_Release(&held[n_held])
    if refused:
        raise IndexError(f"A class code is not one of 0 to {scores.shape[1] - 1}.")
    return loss
