"""Compiled statevectors: a thin wrapper over ``c/statevector.c`` that finds the arrays and releases the GIL.

Arrays are C-contiguous, all float64 or all float32, and of shapes that go together: the caller has checked that.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc


cdef extern from "statevector.h" nogil:
    enum:
        QM_WIDE_LANES
        QM_NARROW_LANES

    ctypedef struct qm_circuit:
        Py_ssize_t n_rows, n_qubits, n_layers, n_observables
        int reupload
        const void *angles
        const void *weights
        const void *observables

    Py_ssize_t qm_tape_size_wide(const qm_circuit *circuit)
    Py_ssize_t qm_tape_size_narrow(const qm_circuit *circuit)
    Py_ssize_t qm_circuit_scratch_wide(const qm_circuit *circuit)
    Py_ssize_t qm_circuit_scratch_narrow(const qm_circuit *circuit)
    void qm_run_wide(const qm_circuit *circuit, void *scratch, void *states, void *tape, void *values)
    void qm_run_narrow(const qm_circuit *circuit, void *scratch, void *states, void *tape, void *values)
    void qm_gradient_wide(const qm_circuit *circuit, void *scratch, const void *tape, const void *upstream,
                          double *by_weights, void *by_angles)
    void qm_gradient_narrow(const qm_circuit *circuit, void *scratch, const void *tape, const void *upstream,
                            double *by_weights, void *by_angles)

LANES = {8: QM_WIDE_LANES, 4: QM_NARROW_LANES}
"""Rows that are simulated together, by the bytes of a number."""


cdef class Call:
    """A circuit, its scratch space and the memory of its arrays, held for one call of a kernel.

    Typed memoryviews would do the same, one function for each precision, and take longer than a small batch does.
    """

    cdef qm_circuit circuit
    cdef bint narrow
    cdef void *block
    cdef void *scratch
    cdef Py_buffer held[8]
    cdef int n_held

    def __cinit__(self, object angles, object weights, object observables, bint reupload):
        self.circuit.angles = self.hold(angles, False)
        self.circuit.n_rows, self.circuit.n_qubits = self.held[0].shape[0], self.held[0].shape[1]
        self.narrow = self.held[0].itemsize == 4
        self.circuit.weights = self.hold(weights, False)
        self.circuit.n_layers = self.held[1].shape[0]
        self.circuit.reupload = reupload
        if observables is not None:
            self.circuit.observables = self.hold(observables, False)
            self.circuit.n_observables = self.held[2].shape[0]
        cdef const qm_circuit *circuit = &self.circuit
        cdef Py_ssize_t size = qm_circuit_scratch_narrow(circuit) if self.narrow else qm_circuit_scratch_wide(circuit)
        # Room to start at a multiple of 64 bytes.
        self.block = malloc(size + 64)
        if self.block == NULL:
            raise MemoryError
        self.scratch = <void *> ((<uintptr_t> self.block + 63) & ~(<uintptr_t> 63))

    cdef void *hold(self, object array, bint writable) except? NULL:
        """Where the numbers of an array are; it stays alive as long as this object."""
        PyObject_GetBuffer(array, &self.held[self.n_held], PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if writable else 0))
        self.n_held += 1
        return self.held[self.n_held - 1].buf

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_held):
            PyBuffer_Release(&self.held[k])
        free(self.block)


def tape_size(Py_ssize_t n_rows, Py_ssize_t n_qubits, Py_ssize_t itemsize):
    """How many numbers of that many bytes a tape of final states holds."""
    cdef qm_circuit circuit
    circuit.n_rows, circuit.n_qubits = n_rows, n_qubits
    return qm_tape_size_narrow(&circuit) if itemsize == 4 else qm_tape_size_wide(&circuit)


def states(object angles, object weights, bint reupload, object out):
    """Fill the final state of every row, complex of shape (rows, 2**n)."""
    cdef Call call = Call(angles, weights, None, reupload)
    cdef void *to = call.hold(out, True)
    with nogil:
        if call.narrow:
            qm_run_narrow(&call.circuit, call.scratch, to, NULL, NULL)
        else:
            qm_run_wide(&call.circuit, call.scratch, to, NULL, NULL)


def expectations(object angles, object weights, object observables, bint reupload, object out, object tape=None):
    """Fill the expectation values, shape (rows, K), and the tape of final states if there is one."""
    cdef Call call = Call(angles, weights, observables, reupload)
    cdef void *to = call.hold(out, True)
    cdef void *final = NULL if tape is None else call.hold(tape, True)
    with nogil:
        if call.narrow:
            qm_run_narrow(&call.circuit, call.scratch, NULL, final, to)
        else:
            qm_run_wide(&call.circuit, call.scratch, NULL, final, to)


def gradient(
    object tape,
    object angles,
    object weights,
    object observables,
    object upstream,
    bint reupload,
    object by_weights,
    object by_angles,
):
    """Fill the gradients by weights (float64, like the weights) and by angles (rows, n) from that by the values."""
    cdef Call call = Call(angles, weights, observables, reupload)
    cdef void *final = call.hold(tape, False)
    cdef void *given = call.hold(upstream, False)
    cdef void *to_weights = call.hold(by_weights, True)
    cdef void *to_angles = call.hold(by_angles, True)
    with nogil:
        if call.narrow:
            qm_gradient_narrow(&call.circuit, call.scratch, final, given, <double *> to_weights, to_angles)
        else:
            qm_gradient_wide(&call.circuit, call.scratch, final, given, <double *> to_weights, to_angles)
