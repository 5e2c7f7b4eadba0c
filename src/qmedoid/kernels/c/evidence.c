/* Evidence: raw columns -> scaled columns -> distances to medoids, group by group -> channels -> outputs.
 *
 * As in scoring.c, rows are handled in tiles of QM_TILE, with one line of QM_TILE numbers for each quantity, and a
 * row is computed the same way wherever it stands. A *line* is a column, scaled by rank or standardized, times the
 * root of its weight in a group; so a squared distance is a plain sum of squared differences.
 *
 * What limits the speed is a square root and a power of two for each pair of a small group and a medoid, and the
 * distances over all columns. */
#if defined(__GNUC__) && !defined(__clang__)
/* Lines are short: to zero one by a block operation (rep stos) takes longer than by a few stores. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include "evidence.h"

#include <math.h>

#include "angle.h"
#include "exp.h"

#define T QM_TILE
#define FEW 5   /* groups with fewer lines than this have a loop of their own */
#define LANES 8 /* vectors of rows whose sums stay in registers */

#ifdef QM_GNU
#define EACH_ROW _Pragma("omp simd") for (ptrdiff_t r = 0; r < T; r++)
/* Sums stay in registers when they are vectors; the compiler would spill arrays. */
#define WIDTH 4
#define ROUND_FIRST __asm__ volatile("" ::: "memory")
typedef double vector __attribute__((vector_size(8 * WIDTH), aligned(8)));
#else
#define EACH_ROW for (ptrdiff_t r = 0; r < T; r++)
#define WIDTH 1
#define ROUND_FIRST ((void)0)
typedef double vector;
#endif

/* Scratch space of one tile; each pointer leads to one or more lines. */
typedef struct {
    double *raw, *place, *scaled;         /* 1 line each: a column, its places among the knots, and scaled */
    double *bad;                          /* 1 line: how many values of a row are bad */
    double *square, *channel;             /* 1 line each: |v - m|^2 of one pair, and a channel of it */
    double *least, *nearest, *angle;      /* C lines each: |v - m|^2 of the nearest medoid, its place and the angle */
    double *outputs;                      /* K lines */
    double *lines;                        /* L lines */
} tile;

#define SINGLE_LINES 6
#define CLASS_LINES 3

ptrdiff_t qm_evidence_scratch_size(const qm_evidence_plan *plan)
{
    return T * (SINGLE_LINES + CLASS_LINES * plan->n_classes + plan->n_outputs + plan->n_lines);
}

static tile divide_scratch(const qm_evidence_plan *plan, double *scratch)
{
    double *C = scratch + SINGLE_LINES * T;
    ptrdiff_t step = T * plan->n_classes;
    tile t = {scratch, scratch + T, scratch + 2 * T, scratch + 3 * T, scratch + 4 * T, scratch + 5 * T, C, C + step,
              C + 2 * step, C + 3 * step, C + 3 * step + T * plan->n_outputs};
    return t;
}

/* Copy a column's part of a tile, filled up with zeros. */
QM_INLINE void load_column(const qm_column *column, ptrdiff_t start, ptrdiff_t rows, double *QM_RESTRICT raw)
{
    ptrdiff_t stride = column->stride;
    const char *data = column->data + start * stride;
    for (ptrdiff_t r = 0; r < rows; r++)
        raw[r] = column->narrow ? *(const float *)(data + r * stride) : *(const double *)(data + r * stride);
    for (ptrdiff_t r = rows; r < T; r++) raw[r] = 0.0;
}

/* Bad values are counted, NaN among them, and replaced, so that they reach nothing else. */
QM_INLINE void count_bad(double *QM_RESTRICT raw, double largest, double *QM_RESTRICT bad)
{
    EACH_ROW {
        int good = fabs(raw[r]) <= largest;
        bad[r] += good ? 0.0 : 1.0;
        raw[r] = good ? raw[r] : 0.0;
    }
}

/* Interpolate between knots; beyond the outer ones the value is theirs. All rows take the same steps of a search for
 * the last knot that is not above the value. */
QM_INLINE void by_rank(const double *QM_RESTRICT knots, const double *QM_RESTRICT marks,
                       const double *QM_RESTRICT rises, ptrdiff_t count, const double *QM_RESTRICT raw,
                       double *QM_RESTRICT held, double *QM_RESTRICT scaled)
{
    ptrdiff_t place[T];
    double low = knots[0], high = knots[count - 1];
    EACH_ROW {
        double x = raw[r] > low ? raw[r] : low;
        held[r] = x < high ? x : high;
        place[r] = 0;
    }
    while (count > 1) {
        ptrdiff_t half = count / 2;
        const double *QM_RESTRICT middle = knots + half;
        for (ptrdiff_t r = 0; r < T; r++) place[r] += middle[place[r]] <= held[r] ? half : 0;
        count -= half;
    }
    for (ptrdiff_t r = 0; r < T; r++) scaled[r] = rises[place[r]] * (held[r] - knots[place[r]]);
    /* Rounded twice, as the medoids' values were: else a medoid would not be at distance 0 of itself. */
    ROUND_FIRST;
    for (ptrdiff_t r = 0; r < T; r++) scaled[r] += marks[place[r]];
}

QM_INLINE void standardize(const double *QM_RESTRICT raw, double center, double scale, double clip,
                           double *QM_RESTRICT scaled)
{
    EACH_ROW {
        double a = (raw[r] - center) / scale;
        a = a < clip ? a : clip;
        scaled[r] = a > -clip ? a : -clip;
    }
}

QM_INLINE void times(const double *QM_RESTRICT scaled, double root, double *QM_RESTRICT line)
{
    EACH_ROW line[r] = scaled[r] * root;
}

/* All lines of a tile. */
QM_INLINE void all_lines(const qm_evidence_plan *plan, const qm_column *columns, ptrdiff_t start, ptrdiff_t rows,
                         const tile *t)
{
    double *QM_RESTRICT bad = t->bad;
    EACH_ROW bad[r] = 0.0;
    for (ptrdiff_t u = 0; u < plan->n_columns; u++) {
        ptrdiff_t knots = plan->knot_offsets[u], kind = -1;
        load_column(columns + u, start, rows, t->raw);
        count_bad(t->raw, plan->largest, bad);
        for (ptrdiff_t l = plan->line_offsets[u]; l < plan->line_offsets[u + 1]; l++) {
            if (plan->line_by_rank[l] && kind != 1)
                by_rank(plan->knots + knots, plan->marks + knots, plan->rises + knots,
                        plan->knot_offsets[u + 1] - knots, t->raw, t->place, t->scaled);
            else if (!plan->line_by_rank[l] && kind != 0)
                standardize(t->raw, plan->center[u], plan->scale[u], plan->clip, t->scaled);
            kind = plan->line_by_rank[l];
            times(t->scaled, plan->line_root[l], t->lines + l * T);
        }
    }
}

/* q v^2 + b v added to an output. */
QM_INLINE void add_polynomial(const double *QM_RESTRICT v, double q, double b, double *QM_RESTRICT output)
{
    EACH_ROW output[r] += (q * v[r] + b) * v[r];
}

/* w |v - m| of QM_FOLDS medoids added to an output; the weights of an output are `step` apart. */
QM_INLINE void add_folds(const double *QM_RESTRICT v, const double *QM_RESTRICT folds, const double *QM_RESTRICT weights,
                         ptrdiff_t step, double *QM_RESTRICT output)
{
    double m[QM_FOLDS], w[QM_FOLDS];
    for (ptrdiff_t i = 0; i < QM_FOLDS; i++) m[i] = folds[i], w[i] = weights[i * step];
    EACH_ROW {
        double sum = output[r];
        for (ptrdiff_t i = 0; i < QM_FOLDS; i++) sum += w[i] * fabs(v[r] - m[i]);
        output[r] = sum;
    }
}

/* What the terms of one line alone add to the outputs. */
QM_INLINE void all_line_terms(const qm_evidence_plan *plan, const tile *t)
{
    ptrdiff_t K = plan->n_outputs;
    for (ptrdiff_t k = 0; k < K; k++) {
        double *QM_RESTRICT output = t->outputs + k * T;
        double intercept = plan->intercepts[k];
        EACH_ROW output[r] = intercept;
        for (ptrdiff_t l = 0; l < plan->n_lines; l++) {
            double q = plan->quadratic[l * K + k], b = plan->linear[l * K + k];
            if (q != 0.0 || b != 0.0) add_polynomial(t->lines + l * T, q, b, output);
            for (ptrdiff_t i = plan->fold_offsets[l]; i < plan->fold_offsets[l + 1]; i += QM_FOLDS)
                add_folds(t->lines + l * T, plan->folds + i, plan->fold_weights + i * K + k, K, output);
        }
    }
}

/* A pair: the lines of its group, the medoid's values on them, and its terms. */
typedef struct {
    const double *lines;
    const ptrdiff_t *members;
    ptrdiff_t size;
    const double *medoid;
    ptrdiff_t n_outputs, has_distance, n_near;
    const double *distance_weights, *near_rates, *near_weights;
} pair;

QM_INLINE pair make_pair(const qm_evidence_plan *plan, const tile *t, ptrdiff_t g, ptrdiff_t p)
{
    ptrdiff_t first = plan->member_offsets[g], size = plan->member_offsets[g + 1] - first;
    ptrdiff_t near = plan->near_offsets[p], K = plan->n_outputs;
    pair made = {t->lines,
                 plan->members + first,
                 size,
                 plan->values + plan->value_offsets[g] + (p - plan->pair_offsets[g]) * size,
                 K,
                 plan->has_distance[p],
                 plan->near_offsets[p + 1] - near,
                 plan->distance_weights + p * K,
                 plan->near_rates + near,
                 plan->near_weights + near * K};
    return made;
}

/* |v - m|^2 over any number of lines. */
QM_INLINE void square_of_many(const pair *p, double *QM_RESTRICT square)
{
    for (ptrdiff_t start = 0; start < T; start += LANES * WIDTH) {
        vector total[LANES];
        for (int i = 0; i < LANES; i++) total[i] = (vector){0.0};
        for (ptrdiff_t j = 0; j < p->size; j++) {
            const vector *v = (const vector *)(p->lines + p->members[j] * T + start);
            double value = p->medoid[j];
            for (int i = 0; i < LANES; i++) {
                vector difference = v[i] - value;
                total[i] += difference * difference;
            }
        }
        for (int i = 0; i < LANES; i++) ((vector *)(square + start))[i] = total[i];
    }
}

/* Channels of a pair over s lines (0: |v - m|^2 is known already): w D + u exp(-D / length) added to the only output.
 * How many lines and which channels are constants of the caller, so that there is one loop for each case. */
QM_INLINE void add_only(const pair *p, ptrdiff_t s, int with_distance, int with_near, const double *QM_RESTRICT square,
                        double *QM_RESTRICT output)
{
    const double *v[FEW];
    double m[FEW], w = with_distance ? p->distance_weights[0] : 0.0;
    double rate = with_near ? p->near_rates[0] : 0.0, u = with_near ? p->near_weights[0] : 0.0;
    for (ptrdiff_t j = 0; j < s; j++) v[j] = p->lines + p->members[j] * T, m[j] = p->medoid[j];
    EACH_ROW {
        double distance, sum = output[r];
        if (s == 1) {
            distance = fabs(v[0][r] - m[0]);
        } else {
            double squares = s ? 0.0 : square[r];
            for (ptrdiff_t j = 0; j < s; j++) squares += (v[j][r] - m[j]) * (v[j][r] - m[j]);
            distance = sqrt(squares);
        }
        if (with_distance) sum += w * distance;
        if (with_near) sum += u * qm_exp2(rate * distance);
        output[r] = sum;
    }
}

QM_INLINE void add_only_of(const pair *p, ptrdiff_t s, const double *square, double *output)
{
    if (!p->n_near)
        add_only(p, s, 1, 0, square, output);
    else if (p->has_distance)
        add_only(p, s, 1, 1, square, output);
    else
        add_only(p, s, 0, 1, square, output);
}

QM_INLINE void add_channel(const double *QM_RESTRICT channel, ptrdiff_t n_outputs, const double *weights,
                           double *outputs)
{
    for (ptrdiff_t k = 0; k < n_outputs; k++) {
        double *QM_RESTRICT output = outputs + k * T, w = weights[k];
        EACH_ROW output[r] += w * channel[r];
    }
}

QM_INLINE void root(double *QM_RESTRICT square) { EACH_ROW square[r] = sqrt(square[r]); }

QM_INLINE void nearness(const double *QM_RESTRICT distance, double rate, double *QM_RESTRICT near)
{
    EACH_ROW near[r] = qm_exp2(rate * distance[r]);
}

/* What a pair adds to the outputs, given |v - m|^2, which is overwritten. */
QM_INLINE void add_known(const pair *p, const tile *t)
{
    if (p->n_outputs == 1 && p->n_near <= 1) {
        add_only_of(p, 0, t->square, t->outputs);
        return;
    }
    root(t->square);
    if (p->has_distance) add_channel(t->square, p->n_outputs, p->distance_weights, t->outputs);
    for (ptrdiff_t i = 0; i < p->n_near; i++) {
        nearness(t->square, p->near_rates[i], t->channel);
        add_channel(t->channel, p->n_outputs, p->near_weights + i * p->n_outputs, t->outputs);
    }
}

QM_INLINE void add_pair(const pair *p, const tile *t)
{
    if (p->size > 0 && p->size < FEW && p->n_outputs == 1 && p->n_near <= 1) {
        switch (p->size) {
        case 1: add_only_of(p, 1, t->square, t->outputs); break;
        case 2: add_only_of(p, 2, t->square, t->outputs); break;
        case 3: add_only_of(p, 3, t->square, t->outputs); break;
        default: add_only_of(p, 4, t->square, t->outputs);
        }
        return;
    }
    square_of_many(p, t->square);
    add_known(p, t);
}

/* Replace what is known of a class's nearest medoid where another is nearer; of equals the first stays. */
QM_INLINE void keep_nearer(const double *QM_RESTRICT square, double index, double *QM_RESTRICT least,
                           double *QM_RESTRICT nearest)
{
    EACH_ROW {
        int nearer = square[r] < least[r];
        least[r] = nearer ? square[r] : least[r];
        nearest[r] = nearer ? index : nearest[r];
    }
}

/* Group 0: medoid by medoid, in order of class, the nearest of each class and the terms over all columns. */
QM_INLINE void all_medoids(const qm_evidence_plan *plan, const tile *t, int with_nearest)
{
    for (ptrdiff_t c = 0; c < plan->n_classes; c++) {
        double *QM_RESTRICT least = t->least + c * T, *QM_RESTRICT nearest = t->nearest + c * T;
        EACH_ROW least[r] = INFINITY, nearest[r] = 0.0;
        for (ptrdiff_t i = plan->class_offsets[c]; i < plan->class_offsets[c + 1]; i++) {
            pair p = make_pair(plan, t, 0, i);
            int has_terms = p.has_distance || p.n_near;
            if (!with_nearest && !has_terms) continue;
            square_of_many(&p, t->square);
            if (with_nearest) keep_nearer(t->square, (double)i, least, nearest);
            if (has_terms) add_known(&p, t);
        }
    }
}

QM_INLINE void all_pairs(const qm_evidence_plan *plan, const tile *t)
{
    for (ptrdiff_t g = 1; g < plan->n_groups; g++)
        for (ptrdiff_t i = plan->pair_offsets[g]; i < plan->pair_offsets[g + 1]; i++) {
            pair p = make_pair(plan, t, g, i);
            add_pair(&p, t);
        }
}

/* The angle of one row to its nearest medoid by Kahan's formula on unit vectors, exact near 0 and pi; a zero vector is
 * at a right angle to all but another one. */
static double angle_of_row(const double *lines, const ptrdiff_t *members, ptrdiff_t s, const double *m)
{
    double xx = 0.0, mm = 0.0, apart = 0.0, together = 0.0;
    for (ptrdiff_t j = 0; j < s; j++) {
        double v = lines[members[j] * T];
        xx += v * v, mm += m[j] * m[j];
    }
    if (xx == 0.0 || mm == 0.0) return xx == mm ? 0.0 : QM_HALF_PI;
    double x_inverse = 1.0 / sqrt(xx), m_inverse = 1.0 / sqrt(mm);
    for (ptrdiff_t j = 0; j < s; j++) {
        double x = lines[members[j] * T] * x_inverse, y = m[j] * m_inverse;
        apart += (x - y) * (x - y), together += (x + y) * (x + y);
    }
    return 2.0 * atan2(sqrt(apart), sqrt(together));
}

QM_INLINE void all_angles(const qm_evidence_plan *plan, const tile *t, ptrdiff_t rows)
{
    ptrdiff_t s = plan->member_offsets[1];
    for (ptrdiff_t c = 0; c < plan->n_classes; c++)
        for (ptrdiff_t r = 0; r < rows; r++) {
            ptrdiff_t i = c * T + r;
            t->angle[i] = t->least[i] == 0.0 ? 0.0
                                             : angle_of_row(t->lines + r, plan->members, s,
                                                            plan->values + (ptrdiff_t)t->nearest[i] * s);
        }
}

QM_INLINE void write_outputs(const qm_evidence_plan *plan, const tile *t, ptrdiff_t rows, double *QM_RESTRICT out)
{
    ptrdiff_t K = plan->n_outputs;
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < K; k++) out[r * K + k] = t->bad[r] > 0.0 ? NAN : t->outputs[k * T + r];
}

QM_INLINE void write_classes(const qm_evidence_plan *plan, const tile *t, ptrdiff_t start, ptrdiff_t rows,
                             const qm_evidence_results *out)
{
    ptrdiff_t C = plan->n_classes;
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < C; c++) {
            ptrdiff_t from = c * T + r, to = (start + r) * C + c;
            int bad = t->bad[r] > 0.0;
            if (out->distance) out->distance[to] = bad ? NAN : sqrt(t->least[from]);
            if (out->angle) out->angle[to] = bad ? NAN : t->angle[from];
            if (out->nearest) out->nearest[to] = bad ? -1 : plan->medoid_indices[(ptrdiff_t)t->nearest[from]];
        }
}

QM_CLONES
ptrdiff_t qm_evidence(const qm_evidence_plan *plan, const qm_column *columns, ptrdiff_t n, double *scratch,
                      const qm_evidence_results *out)
{
    tile t = divide_scratch(plan, scratch);
    ptrdiff_t undecided = 0;
    int with_nearest = out->distance || out->angle || out->nearest;
    for (ptrdiff_t start = 0; start < n; start += T) {
        ptrdiff_t rows = n - start < T ? n - start : T;
        all_lines(plan, columns, start, rows, &t);
        all_line_terms(plan, &t);
        all_medoids(plan, &t, with_nearest);
        all_pairs(plan, &t);
        if (out->angle) all_angles(plan, &t, rows);
        if (out->outputs) write_outputs(plan, &t, rows, out->outputs + start * plan->n_outputs);
        if (with_nearest) write_classes(plan, &t, start, rows, out);
        for (ptrdiff_t r = 0; r < rows; r++) undecided += t.bad[r] > 0.0;
    }
    return undecided;
}
