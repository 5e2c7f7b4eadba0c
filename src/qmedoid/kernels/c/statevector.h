/* A family of small circuits on many rows: states, expectation values and gradients; see statevector.c. */
#ifndef QMEDOID_STATEVECTOR_H
#define QMEDOID_STATEVECTOR_H

#include <stddef.h>

/* Rows that are simulated together: as many as fill one line of 64 bytes. */
#define QM_WIDE_LANES 8
#define QM_NARROW_LANES 16

/* A circuit and the rows it runs on; numbers are double, or float in the functions that end in _narrow. */
typedef struct {
    ptrdiff_t n_rows, n_qubits, n_layers, n_observables;
    int reupload;            /* whether the angles enter in every repetition */
    const void *angles;      /* (n_rows, n_qubits) */
    const void *weights;     /* (n_layers, n_qubits): R_y and R_z alternately */
    const void *observables; /* (n_observables, 2^n_qubits): eigenvalues */
} qm_circuit;

/* Numbers that a tape of final states holds. */
ptrdiff_t qm_tape_size_wide(const qm_circuit *circuit);
ptrdiff_t qm_tape_size_narrow(const qm_circuit *circuit);

/* Bytes of scratch space that the functions below need; it must start at a multiple of 64 bytes. */
ptrdiff_t qm_circuit_scratch_wide(const qm_circuit *circuit);
ptrdiff_t qm_circuit_scratch_narrow(const qm_circuit *circuit);

/* What is wanted of every row; a null pointer leaves it out. `states` are (n_rows, 2^n_qubits) complex numbers as
 * pairs, `values` the expectation values, (n_rows, n_observables), and `tape` keeps what qm_gradient needs. */
void qm_run_wide(const qm_circuit *circuit, void *scratch, void *states, void *tape, void *values);
void qm_run_narrow(const qm_circuit *circuit, void *scratch, void *states, void *tape, void *values);

/* From the gradient by the expectation values, (n_rows, n_observables), to that by the weights, summed over rows in a
 * fixed order and in double precision, and to that by the angles, (n_rows, n_qubits). */
void qm_gradient_wide(const qm_circuit *circuit, void *scratch, const void *tape, const void *upstream,
                      double *by_weights, void *by_angles);
void qm_gradient_narrow(const qm_circuit *circuit, void *scratch, const void *tape, const void *upstream,
                        double *by_weights, void *by_angles);

#endif
