/* Tables of a circuit, scratch space and the layers of gates on one tile. Included once for each precision by
 * statevector.c, which defines REAL, W and NAME. */

/* A circuit as its tiles need it. R repetitions, n qubits, S = 2^n amplitudes. */
typedef struct {
    const qm_circuit *circuit;
    ptrdiff_t size, repetitions;
    int has_last_phase;              /* whether R_z ends the circuit */
    REAL *cosine, *sine;             /* (R, n): of half the angles of R_y */
    REAL *sign;                      /* (S,): of the entangler */
    REAL *phase_re, *phase_im;       /* (R, S): the diagonal of the R_z after each repetition */
    REAL *entering_re, *entering_im; /* (R, S): the one before each repetition, moved and signed by its entangler */
    REAL *row_cosine, *row_sine;     /* n lines: of half the angles of the rows */
    REAL *by_angle, *by_weight;      /* n lines each: gradients under way */
    REAL *values;                    /* a line for each observable */
    REAL *diagonal;                  /* S lines: probabilities, or what amplitudes are weighted with */
    REAL *state[2], *adjoint[2];     /* 2 S lines each, real parts first; two of each, to permute between them */
    double *totals;                  /* (layers, n) lines: gradients by the weights, tiles summed */
} NAME(plan);

/* Lines of W numbers of each table; all sizes are rounded up to full lines. */
#define LINES(count) (((count) + W - 1) / W)

ptrdiff_t NAME(qm_tape_size)(const qm_circuit *circuit)
{
    return LINES(circuit->n_rows) * W * ((ptrdiff_t)2 << circuit->n_qubits);
}

ptrdiff_t NAME(qm_circuit_scratch)(const qm_circuit *circuit)
{
    ptrdiff_t n = circuit->n_qubits, size = (ptrdiff_t)1 << n, repetitions = (circuit->n_layers + 1) / 2;
    ptrdiff_t lines = 2 * LINES(repetitions * n) + LINES(size) + 4 * LINES(repetitions * size) + 4 * n
                      + circuit->n_observables + size + 8 * size;
    return lines * W * (ptrdiff_t)sizeof(REAL) + circuit->n_layers * n * W * (ptrdiff_t)sizeof(double);
}

QM_INLINE REAL *NAME(take)(char **scratch, ptrdiff_t lines)
{
    REAL *taken = (REAL *)(void *)*scratch;
    *scratch += lines * W * (ptrdiff_t)sizeof(REAL);
    return taken;
}

/* Diagonal of R_z(angle) on every qubit. Qubit q turns an amplitude by -angle/2, or +angle/2 where its bit is 1. */
static void NAME(fill_phases)(const REAL *angles, ptrdiff_t n, REAL *re, REAL *im)
{
    double all = 0.0;
    for (ptrdiff_t q = 0; q < n; q++) all -= 0.5 * (double)angles[q];
    re[0] = (REAL)cos(all), im[0] = (REAL)sin(all);
    for (ptrdiff_t q = 0; q < n; q++) {
        ptrdiff_t half = (ptrdiff_t)1 << q;
        double c = cos((double)angles[q]), s = sin((double)angles[q]);
        for (ptrdiff_t i = 0; i < half; i++) {
            double x = (double)re[i], y = (double)im[i];
            re[i + half] = (REAL)(x * c - y * s), im[i + half] = (REAL)(x * s + y * c);
        }
    }
}

/* Divide the scratch space and fill the tables that all rows share. */
static NAME(plan) NAME(make_plan)(const qm_circuit *circuit, void *scratch)
{
    ptrdiff_t n = circuit->n_qubits, size = (ptrdiff_t)1 << n, repetitions = (circuit->n_layers + 1) / 2;
    const REAL *weights = circuit->weights;
    char *rest = scratch;
    NAME(plan) p = {.circuit = circuit, .size = size, .repetitions = repetitions};
    p.has_last_phase = circuit->n_layers % 2 == 0;
    p.totals = (double *)scratch;
    rest += circuit->n_layers * n * W * (ptrdiff_t)sizeof(double);
    p.cosine = NAME(take)(&rest, LINES(repetitions * n)), p.sine = NAME(take)(&rest, LINES(repetitions * n));
    p.sign = NAME(take)(&rest, LINES(size));
    p.phase_re = NAME(take)(&rest, LINES(repetitions * size));
    p.phase_im = NAME(take)(&rest, LINES(repetitions * size));
    p.entering_re = NAME(take)(&rest, LINES(repetitions * size));
    p.entering_im = NAME(take)(&rest, LINES(repetitions * size));
    p.row_cosine = NAME(take)(&rest, n), p.row_sine = NAME(take)(&rest, n);
    p.by_angle = NAME(take)(&rest, n), p.by_weight = NAME(take)(&rest, n);
    p.values = NAME(take)(&rest, circuit->n_observables);
    p.diagonal = NAME(take)(&rest, size);
    for (int k = 0; k < 2; k++) p.state[k] = NAME(take)(&rest, 2 * size), p.adjoint[k] = NAME(take)(&rest, 2 * size);

    for (ptrdiff_t t = 0; t < size; t++) p.sign[t] = (REAL)sign_of(t);
    for (ptrdiff_t r = 0; r < repetitions; r++) {
        for (ptrdiff_t q = 0; q < n; q++) {
            double half = 0.5 * (double)weights[2 * r * n + q];
            p.cosine[r * n + q] = (REAL)cos(half), p.sine[r * n + q] = (REAL)sin(half);
        }
        if (2 * r + 1 < circuit->n_layers)
            NAME(fill_phases)(weights + (2 * r + 1) * n, n, p.phase_re + r * size, p.phase_im + r * size);
        for (ptrdiff_t t = 0; t < size && r > 0; t++) {
            ptrdiff_t source = (r - 1) * size + source_of(t, size);
            p.entering_re[r * size + t] = p.sign[t] * p.phase_re[source];
            p.entering_im[r * size + t] = p.sign[t] * p.phase_im[source];
        }
    }
    return p;
}

/* Columns of rows `start` and on to lines; lanes beyond the last row hold 0. */
QM_INLINE void NAME(read_lines)(const REAL *from, ptrdiff_t n_columns, ptrdiff_t rows, REAL *lines)
{
    for (ptrdiff_t k = 0; k < n_columns; k++) {
        if (rows == W)
            for (ptrdiff_t l = 0; l < W; l++) lines[k * W + l] = from[l * n_columns + k];
        else
            for (ptrdiff_t l = 0; l < W; l++) lines[k * W + l] = l < rows ? from[l * n_columns + k] : (REAL)0;
    }
}

QM_INLINE void NAME(write_lines)(const REAL *lines, ptrdiff_t n_columns, ptrdiff_t rows, REAL *to)
{
    for (ptrdiff_t l = 0; l < rows; l++)
        for (ptrdiff_t k = 0; k < n_columns; k++) to[l * n_columns + k] = lines[k * W + l];
}

/* Cosine and sine of half the angles of a tile. */
QM_INLINE void NAME(read_angles)(const NAME(plan) *p, const int n, ptrdiff_t start, ptrdiff_t rows)
{
    const REAL *angles = (const REAL *)p->circuit->angles + start * n;
    REAL *cosine = p->row_cosine, *sine = p->row_sine;
    NAME(read_lines)(angles, n, rows, cosine);
    for (ptrdiff_t q = 0; q < n; q++, cosine += W, sine += W) {
        double half[W];
        EACH_LANE {
            double c, s;
            half[l] = 0.5 * (double)cosine[l];
            qm_sincos(half[l], &s, &c);
            cosine[l] = (REAL)c, sine[l] = (REAL)s;
        }
        int far = 0;
        for (ptrdiff_t l = 0; l < W; l++) far |= !(fabs(half[l]) <= QM_SINCOS_LIMIT);
        if (!far) continue;
        for (ptrdiff_t l = 0; l < W; l++)
            if (!(fabs(half[l]) <= QM_SINCOS_LIMIT)) cosine[l] = (REAL)cos(half[l]), sine[l] = (REAL)sin(half[l]);
    }
}

/* R_y on a pair of amplitudes. */
#define ROTATE(zero, one, c, s)                                                                                        \
    do {                                                                                                               \
        REAL old = zero;                                                                                               \
        zero = (c) * old - (s) * one;                                                                                  \
        one = (c) * one + (s) * old;                                                                                   \
    } while (0)

/* Number l of line k, or the number k that all lanes share. */
#define COEFFICIENT(of, k) (lines ? of[(k) * W + l] : of[k])

QM_INLINE void NAME(load)(enum reading how, const REAL *re, const REAL *im, ptrdiff_t at, REAL factor_re,
                          REAL factor_im, REAL *x, REAL *y)
{
    switch (how) {
    case AS_IT_IS: *x = re[at], *y = im[at]; break;
    case WITH_SIGN: *x = factor_re * re[at], *y = factor_re * im[at]; break;
    case WITH_PHASE:
        *x = factor_re * re[at] - factor_im * im[at], *y = factor_im * re[at] + factor_re * im[at];
        break;
    case REAL_WITH_PHASE: *x = factor_re * re[at], *y = factor_im * re[at]; break;
    }
}

/* A layer of R_y: of angles that each row has of its own (`lines`), or of weights, which come after the entangler. */
typedef struct {
    int lines;
    const REAL *cosine, *sine;         /* n lines each, or n numbers */
    const REAL *factor_re, *factor_im; /* (S,): what amplitudes are multiplied with as they are read, if so */
} NAME(layer);

/* The layer of the rows' angles in repetition r > 0, which reads with the phases before it. */
QM_INLINE NAME(layer) NAME(row_layer)(const NAME(plan) *p, ptrdiff_t r)
{
    const ptrdiff_t at = (r - 1) * p->size;
    NAME(layer) layer = {1, p->row_cosine, p->row_sine, p->phase_re + at, p->phase_im + at};
    return layer;
}

/* The layer of weights in repetition r, with or without the phases before it. */
QM_INLINE NAME(layer) NAME(weight_layer)(const NAME(plan) *p, const int n, ptrdiff_t r, const int with_phases)
{
    const ptrdiff_t at = r * p->size;
    NAME(layer) layer = {0, p->cosine + r * n, p->sine + r * n, with_phases ? p->entering_re + at : p->sign,
                         p->entering_im + at};
    return layer;
}

/* R_y on qubits q and q + 1 (with `two`) or on q alone, from one state to another or in place. A layer of weights that
 * does not read amplitudes as they are finds them where the entangler does. Real states have no imaginary parts. */
QM_INLINE void NAME(rotate_pass)(const NAME(layer) layer, const enum reading how, const int is_real,
                                 const ptrdiff_t size, const ptrdiff_t q, const int two, const REAL *from, REAL *to)
{
    const int lines = layer.lines, moved = !lines && how != AS_IT_IS;
    const int with_phase = how == WITH_PHASE || how == REAL_WITH_PHASE;
    const ptrdiff_t half = (ptrdiff_t)1 << q, im = size * W;
    const REAL *c = layer.cosine + q * (lines ? W : 1), *s = layer.sine + q * (lines ? W : 1);
    const REAL *re = layer.factor_re, *turn = layer.factor_im;
#define SOURCE(i) (W * (moved ? source_of(i, size) : (i)))
    for (ptrdiff_t high = 0; high < size; high += half << (1 + two))
        for (ptrdiff_t i = high; i < high + half; i++) {
            const ptrdiff_t i0 = i, i1 = i + half, i2 = two ? i1 + half : i0, i3 = two ? i2 + half : i1;
            const ptrdiff_t from0 = SOURCE(i0), from1 = SOURCE(i1), from2 = SOURCE(i2), from3 = SOURCE(i3);
            REAL f0 = 1, f1 = 1, f2 = 1, f3 = 1, g0 = 0, g1 = 0, g2 = 0, g3 = 0;
            if (how != AS_IT_IS) f0 = re[i0], f1 = re[i1], f2 = re[i2], f3 = re[i3];
            if (with_phase) g0 = turn[i0], g1 = turn[i1], g2 = turn[i2], g3 = turn[i3];
            EACH_LANE {
                const REAL *re_in = from + l, *im_in = is_real || how == REAL_WITH_PHASE ? re_in : re_in + im;
                REAL c0 = COEFFICIENT(c, 0), s0 = COEFFICIENT(s, 0);
                REAL c1 = two ? COEFFICIENT(c, 1) : 0, s1 = two ? COEFFICIENT(s, 1) : 0;
                REAL x0, x1, x2, x3, y0, y1, y2, y3;
                NAME(load)(how, re_in, im_in, from0, f0, g0, &x0, &y0);
                NAME(load)(how, re_in, im_in, from1, f1, g1, &x1, &y1);
                if (two) {
                    NAME(load)(how, re_in, im_in, from2, f2, g2, &x2, &y2);
                    NAME(load)(how, re_in, im_in, from3, f3, g3, &x3, &y3);
                }
                ROTATE(x0, x1, c0, s0);
                if (!is_real) ROTATE(y0, y1, c0, s0);
                if (two) {
                    ROTATE(x2, x3, c0, s0);
                    ROTATE(x0, x2, c1, s1);
                    ROTATE(x1, x3, c1, s1);
                    to[i2 * W + l] = x2, to[i3 * W + l] = x3;
                }
                if (two && !is_real) {
                    ROTATE(y2, y3, c0, s0);
                    ROTATE(y0, y2, c1, s1);
                    ROTATE(y1, y3, c1, s1);
                    to[im + i2 * W + l] = y2, to[im + i3 * W + l] = y3;
                }
                to[i0 * W + l] = x0, to[i1 * W + l] = x1;
                if (!is_real) to[im + i0 * W + l] = y0, to[im + i1 * W + l] = y1;
            }
        }
#undef SOURCE
}

/* R_y on every qubit; only the first pass reads in a special way. */
QM_INLINE void NAME(rotate)(const NAME(layer) layer, const enum reading how, const int is_real, const int n,
                            const REAL *from, REAL *to)
{
    const ptrdiff_t size = (ptrdiff_t)1 << n;
    if (n == 1) {
        NAME(rotate_pass)(layer, how, is_real, size, 0, 0, from, to);
        return;
    }
    NAME(rotate_pass)(layer, how, is_real, size, 0, 1, from, to);
    for (ptrdiff_t q = 2; q + 1 < n; q += 2) NAME(rotate_pass)(layer, AS_IT_IS, is_real, size, q, 1, to, to);
    if (n % 2) NAME(rotate_pass)(layer, AS_IT_IS, is_real, size, n - 1, 0, to, to);
}
