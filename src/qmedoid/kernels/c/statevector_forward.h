/* From angles to final states and expectation values. Included once for each precision by statevector.c. */

/* The state that the first layer leaves, of real amplitudes: at index t the product of cos or sin of every qubit. */
QM_INLINE void NAME(product_state)(const NAME(plan) *p, const int n, REAL *state)
{
    EACH_LANE state[l] = p->row_cosine[l], state[W + l] = p->row_sine[l];
    for (ptrdiff_t q = 1; q < n; q++) {
        const REAL *c = p->row_cosine + q * W, *s = p->row_sine + q * W;
        ptrdiff_t half = ((ptrdiff_t)1 << q) * W;
        for (ptrdiff_t i = 0; i < half; i += W)
            EACH_LANE {
                REAL old = state[i + l];
                state[i + l] = c[l] * old;
                state[half + i + l] = s[l] * old;
            }
    }
}

/* Run the circuit on the tile whose angles were read, without the R_z that may end it. Returns where the state is. */
QM_INLINE REAL *NAME(run_tile)(const NAME(plan) *p, const int n)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n;
    REAL *state = p->state[0], *other = p->state[1];
    NAME(product_state)(p, n, other);
    NAME(rotate)(NAME(weight_layer)(p, n, 0, 0), WITH_SIGN, 1, n, other, state);
    for (ptrdiff_t r = 1; r < p->repetitions; r++) {
        if (p->circuit->reupload) {
            if (r == 1)
                NAME(rotate)(NAME(row_layer)(p, r), REAL_WITH_PHASE, 0, n, state, state);
            else
                NAME(rotate)(NAME(row_layer)(p, r), WITH_PHASE, 0, n, state, state);
            NAME(rotate)(NAME(weight_layer)(p, n, r, 0), WITH_SIGN, 0, n, state, other);
        } else if (r == 1) {
            NAME(rotate)(NAME(weight_layer)(p, n, r, 1), REAL_WITH_PHASE, 0, n, state, other);
        } else {
            NAME(rotate)(NAME(weight_layer)(p, n, r, 1), WITH_PHASE, 0, n, state, other);
        }
        REAL *swap = state;
        state = other, other = swap;
    }
    if (p->repetitions == 1)
        for (ptrdiff_t i = size * W; i < 2 * size * W; i++) state[i] = 0;
    return state;
}

/* Expectation values of a tile: sum over s of O_ks |psi_s|^2. */
QM_INLINE void NAME(measure)(const NAME(plan) *p, const int n, const REAL *state)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n;
    const REAL *observable = p->circuit->observables, *re = state, *im = state + size * W;
    REAL *probability = p->diagonal;
    for (ptrdiff_t i = 0; i < size * W; i += W)
        EACH_LANE probability[i + l] = re[i + l] * re[i + l] + im[i + l] * im[i + l];
    for (ptrdiff_t k = 0; k < p->circuit->n_observables; k++, observable += size) {
        REAL sum[W];
        EACH_LANE sum[l] = observable[0] * probability[l] + observable[1] * probability[W + l];
        for (ptrdiff_t s = 2; s < size; s += 2)
            EACH_LANE {
                REAL zero = probability[s * W + l], one = probability[(s + 1) * W + l];
                sum[l] += observable[s] * zero + observable[s + 1] * one;
            }
        EACH_LANE p->values[k * W + l] = sum[l];
    }
}

QM_INLINE void NAME(copy_lines)(const REAL *from, ptrdiff_t count, REAL *to)
{
    for (ptrdiff_t i = 0; i < count * W; i += W) EACH_LANE to[i + l] = from[i + l];
}

/* The R_z that ends the circuit, in place. */
QM_INLINE void NAME(last_phase)(const NAME(plan) *p, REAL *state)
{
    const ptrdiff_t size = p->size;
    const REAL *phase_re = p->phase_re + (p->repetitions - 1) * size;
    const REAL *phase_im = p->phase_im + (p->repetitions - 1) * size;
    for (ptrdiff_t s = 0; s < size; s++) {
        REAL *re = state + s * W, *im = re + size * W;
        EACH_LANE {
            REAL x = re[l], y = im[l];
            re[l] = phase_re[s] * x - phase_im[s] * y;
            im[l] = phase_im[s] * x + phase_re[s] * y;
        }
    }
}

/* The state of every row of a tile as pairs. */
QM_INLINE void NAME(write_states)(const REAL *state, ptrdiff_t size, ptrdiff_t rows, REAL *to)
{
    for (ptrdiff_t l = 0; l < rows; l++)
        for (ptrdiff_t s = 0; s < size; s++, to += 2) to[0] = state[s * W + l], to[1] = state[(size + s) * W + l];
}

QM_CLONES
void NAME(qm_run)(const qm_circuit *circuit, void *scratch, void *states, void *tape, void *values)
{
    NAME(plan) p = NAME(make_plan)(circuit, scratch);
    const int n = (int)circuit->n_qubits;
    const ptrdiff_t size = p.size, n_rows = circuit->n_rows, n_values = circuit->n_observables;
    for (ptrdiff_t start = 0; start < n_rows; start += W) {
        ptrdiff_t rows = n_rows - start < W ? n_rows - start : W;
        NAME(read_angles)(&p, n, start, rows);
        REAL *state = NAME(run_tile)(&p, n);
        if (tape) NAME(copy_lines)(state, 2 * size, (REAL *)tape + 2 * size * start);
        if (values) {
            NAME(measure)(&p, n, state);
            NAME(write_lines)(p.values, n_values, rows, (REAL *)values + start * n_values);
        }
        if (states) {
            if (p.has_last_phase) NAME(last_phase)(&p, state);
            NAME(write_states)(state, size, rows, (REAL *)states + 2 * size * start);
        }
    }
}
