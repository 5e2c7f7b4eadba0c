/* Exact gradients by the adjoint method: gates are undone from the last to the first on the states and on their
 * adjoints alike. Included once for each precision by statevector.c. */

/* One part, real or imaginary, of the states and of the adjoints: undo R_y on two qubits (or one) and add
 * Re<adjoint|(-iY_q)|state> of that part to `sum`, a line for each qubit.
 *
 * Without `undo` the gradient alone is taken. With `moved`, amplitudes go to where the entangler found them. */
QM_INLINE void NAME(undo_pass)(const NAME(layer) layer, const int undo, const int moved, const ptrdiff_t size,
                               const ptrdiff_t q, const int two, const REAL *state_in, const REAL *adjoint_in,
                               REAL *state, REAL *adjoint, REAL *sum)
{
    const int lines = layer.lines;
    const ptrdiff_t half = (ptrdiff_t)1 << q;
    const REAL *c = layer.cosine + q * (lines ? W : 1), *s = layer.sine + q * (lines ? W : 1);
    const REAL *sign = layer.factor_re;
    REAL sum0[W], sum1[W];
    EACH_LANE sum0[l] = sum[q * W + l], sum1[l] = two ? sum[(q + 1) * W + l] : 0;
#define TARGET(i) (W * (moved ? source_of(i, size) : (i)))
    for (ptrdiff_t high = 0; high < size; high += half << (1 + two))
        for (ptrdiff_t i = high; i < high + half; i++) {
            const ptrdiff_t i0 = i, i1 = i + half, i2 = two ? i1 + half : i0, i3 = two ? i2 + half : i1;
            const ptrdiff_t to0 = TARGET(i0), to1 = TARGET(i1), to2 = TARGET(i2), to3 = TARGET(i3);
            REAL f0 = 1, f1 = 1, f2 = 1, f3 = 1;
            if (moved) f0 = sign[i0], f1 = sign[i1], f2 = sign[i2], f3 = sign[i3];
            EACH_LANE {
                REAL c0 = COEFFICIENT(c, 0), s0 = -COEFFICIENT(s, 0);
                REAL c1 = two ? COEFFICIENT(c, 1) : 0, s1 = two ? -COEFFICIENT(s, 1) : 0;
                REAL x0 = state_in[i0 * W + l], x1 = state_in[i1 * W + l], x2 = 0, x3 = 0;
                REAL y0 = adjoint_in[i0 * W + l], y1 = adjoint_in[i1 * W + l], y2 = 0, y3 = 0;
                REAL turn0 = y1 * x0 - y0 * x1;
                if (two) {
                    x2 = state_in[i2 * W + l], x3 = state_in[i3 * W + l];
                    y2 = adjoint_in[i2 * W + l], y3 = adjoint_in[i3 * W + l];
                    turn0 += y3 * x2 - y2 * x3;
                    sum1[l] += (y2 * x0 - y0 * x2) + (y3 * x1 - y1 * x3);
                }
                sum0[l] += turn0;
                if (undo) {
                    ROTATE(x0, x1, c0, s0);
                    ROTATE(y0, y1, c0, s0);
                    if (two) {
                        ROTATE(x2, x3, c0, s0);
                        ROTATE(x0, x2, c1, s1);
                        ROTATE(x1, x3, c1, s1);
                        ROTATE(y2, y3, c0, s0);
                        ROTATE(y0, y2, c1, s1);
                        ROTATE(y1, y3, c1, s1);
                        state[to2 + l] = f2 * x2, state[to3 + l] = f3 * x3;
                        adjoint[to2 + l] = f2 * y2, adjoint[to3 + l] = f3 * y3;
                    }
                    state[to0 + l] = f0 * x0, state[to1 + l] = f1 * x1;
                    adjoint[to0 + l] = f0 * y0, adjoint[to1 + l] = f1 * y1;
                }
            }
        }
#undef TARGET
    EACH_LANE sum[q * W + l] = sum0[l];
    if (two) EACH_LANE sum[(q + 1) * W + l] = sum1[l];
}

/* Undo R_y on every qubit of one part; with `moved`, the last pass goes from the first two arrays to the last two. */
QM_INLINE void NAME(undo_part)(const NAME(layer) layer, const int undo, const int moved, const int n, REAL *state,
                               REAL *adjoint, REAL *state_to, REAL *adjoint_to, REAL *sum)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n, last = n % 2 ? n - 1 : n - 2;
    for (ptrdiff_t q = 0; q < last; q += 2)
        NAME(undo_pass)(layer, undo, 0, size, q, 1, state, adjoint, state, adjoint, sum);
    if (n % 2)
        NAME(undo_pass)(layer, undo, moved, size, last, 0, state, adjoint, state_to, adjoint_to, sum);
    else
        NAME(undo_pass)(layer, undo, moved, size, last, 1, state, adjoint, state_to, adjoint_to, sum);
}

/* Undo all R_z of a repetition in place, and take the gradient by their angles: the sum over amplitudes of
 * +-Im(conj(adjoint) state), with a minus where the bit of the qubit is 1. After the first repetition (`to_real`) the
 * state becomes real again, and only real parts matter. */
QM_INLINE void NAME(undo_phases)(const NAME(plan) *p, const int n, const int to_real, ptrdiff_t r, REAL *state,
                                 REAL *adjoint, REAL *sum)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n, im = size * W;
    const REAL *phase_re = p->phase_re + r * size, *phase_im = p->phase_im + r * size;
    REAL *turn = p->diagonal;
    for (ptrdiff_t t = 0; t < size; t++) {
        REAL a = phase_re[t], b = -phase_im[t], *psi = state + t * W, *phi = adjoint + t * W;
        EACH_LANE {
            REAL x = psi[l], y = psi[im + l], u = phi[l], v = phi[im + l];
            turn[t * W + l] = u * y - v * x;
            psi[l] = a * x - b * y;
            phi[l] = a * u - b * v;
            if (!to_real) psi[im + l] = b * x + a * y, phi[im + l] = b * u + a * v;
        }
    }
    /* Halves are folded onto each other from the highest qubit down. */
    for (ptrdiff_t q = n - 1; q >= 0; q--) {
        ptrdiff_t half = ((ptrdiff_t)1 << q) * W;
        REAL line[W];
        EACH_LANE line[l] = 0;
        for (ptrdiff_t i = 0; i < half; i += W)
            EACH_LANE {
                REAL zero = turn[i + l], one = turn[half + i + l];
                line[l] += zero - one;
                turn[i + l] = zero + one;
            }
        EACH_LANE sum[q * W + l] = line[l];
    }
}

QM_INLINE void NAME(clear_lines)(REAL *lines, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count * W; i += W) EACH_LANE lines[i + l] = 0;
}

/* What the amplitudes are weighted with: sum over k of upstream_k O_ks. */
QM_INLINE void NAME(weigh_amplitudes)(const NAME(plan) *p, const ptrdiff_t size)
{
    const ptrdiff_t count = p->circuit->n_observables;
    const REAL *observable = p->circuit->observables, *upstream = p->values;
    REAL *weight = p->diagonal;
    if (count % 2) {
        for (ptrdiff_t s = 0; s < size; s++) EACH_LANE weight[s * W + l] = observable[s] * upstream[l];
        observable += size, upstream += W;
    } else {
        NAME(clear_lines)(weight, size);
    }
    for (ptrdiff_t k = count % 2; k < count; k += 2, observable += 2 * size, upstream += 2 * W)
        for (ptrdiff_t s = 0; s < size; s++) {
            REAL first = observable[s], second = observable[size + s];
            EACH_LANE weight[s * W + l] += first * upstream[l] + second * upstream[W + l];
        }
}

/* The weighted states are the adjoints. */
QM_INLINE void NAME(start_adjoint)(const NAME(plan) *p, const int n, const REAL *tape, REAL *state, REAL *adjoint)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n, im = size * W;
    NAME(weigh_amplitudes)(p, size);
    for (ptrdiff_t i = 0; i < im; i += W)
        EACH_LANE {
            REAL weight = p->diagonal[i + l], x = tape[i + l], y = tape[im + i + l];
            state[i + l] = x, state[im + i + l] = y;
            adjoint[i + l] = weight * x, adjoint[im + i + l] = weight * y;
        }
}

/* Add the gradient of one layer to its totals. */
QM_INLINE void NAME(keep)(const NAME(plan) *p, const int n, ptrdiff_t layer, const REAL *sum)
{
    double *total = p->totals + layer * n * W;
    for (ptrdiff_t i = 0; i < n * W; i += W) EACH_LANE total[i + l] += (double)sum[i + l];
}

QM_INLINE void NAME(undo_tile)(const NAME(plan) *p, const int n, const REAL *tape)
{
    const ptrdiff_t im = W << n;
    REAL *state = p->state[0], *adjoint = p->adjoint[0], *state_to = p->state[1], *adjoint_to = p->adjoint[1];
    NAME(start_adjoint)(p, n, tape, state, adjoint);
    NAME(clear_lines)(p->by_angle, n);
    for (ptrdiff_t r = p->repetitions - 1; r > 0; r--) {
        const NAME(layer) weights = NAME(weight_layer)(p, n, r, 0), angles = NAME(row_layer)(p, r);
        NAME(clear_lines)(p->by_weight, n);
        for (ptrdiff_t part = 0; part <= im; part += im)
            NAME(undo_part)(weights, 1, 1, n, state + part, adjoint + part, state_to + part, adjoint_to + part,
                            p->by_weight);
        NAME(keep)(p, n, 2 * r, p->by_weight);
        REAL *swap = state;
        state = state_to, state_to = swap;
        swap = adjoint, adjoint = adjoint_to, adjoint_to = swap;
        if (p->circuit->reupload)
            for (ptrdiff_t part = 0; part <= im; part += im)
                NAME(undo_part)(angles, 1, 0, n, state + part, adjoint + part, state + part, adjoint + part,
                                p->by_angle);
        if (r == 1)
            NAME(undo_phases)(p, n, 1, 0, state, adjoint, p->by_weight);
        else
            NAME(undo_phases)(p, n, 0, r - 1, state, adjoint, p->by_weight);
        NAME(keep)(p, n, 2 * r - 1, p->by_weight);
    }
    NAME(clear_lines)(p->by_weight, n);
    NAME(undo_part)(NAME(weight_layer)(p, n, 0, 0), 1, 1, n, state, adjoint, state_to, adjoint_to, p->by_weight);
    NAME(keep)(p, n, 0, p->by_weight);
    /* What was there before the first layer is known, so that it need not be undone. */
    NAME(undo_part)(NAME(row_layer)(p, 1), 0, 0, n, state_to, adjoint_to, state_to, adjoint_to, p->by_angle);
}

QM_INLINE void NAME(all_gradients)(const NAME(plan) *p, const int n, const REAL *tape, const REAL *upstream,
                                   REAL *by_angles)
{
    const ptrdiff_t n_rows = p->circuit->n_rows, n_values = p->circuit->n_observables;
    for (ptrdiff_t start = 0; start < n_rows; start += W) {
        ptrdiff_t rows = n_rows - start < W ? n_rows - start : W;
        NAME(read_angles)(p, n, start, rows);
        NAME(read_lines)(upstream + start * n_values, n_values, rows, p->values);
        NAME(undo_tile)(p, n, tape + start * ((ptrdiff_t)2 << n));
        NAME(write_lines)(p->by_angle, n, rows, by_angles + start * n);
    }
}

QM_CLONES
void NAME(qm_gradient)(const qm_circuit *circuit, void *scratch, const void *tape, const void *upstream,
                       double *by_weights, void *by_angles)
{
    NAME(plan) p = NAME(make_plan)(circuit, scratch);
    ptrdiff_t n_weights = circuit->n_layers * circuit->n_qubits;
    for (ptrdiff_t i = 0; i < n_weights * W; i++) p.totals[i] = 0.0;
    /* The registers that are trained most have loops of their own, whose lengths the compiler knows. */
    switch (circuit->n_qubits) {
    case 2: NAME(all_gradients)(&p, 2, tape, upstream, by_angles); break;
    case 4: NAME(all_gradients)(&p, 4, tape, upstream, by_angles); break;
    default: NAME(all_gradients)(&p, (int)circuit->n_qubits, tape, upstream, by_angles);
    }
    for (ptrdiff_t i = 0; i < n_weights; i++) {
        double sum = 0.0;
        for (ptrdiff_t l = 0; l < W; l++) sum += p.totals[i * W + l];
        by_weights[i] = sum;
    }
}
